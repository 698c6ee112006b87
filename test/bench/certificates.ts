import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueCertificate, keyIdentifierOf } from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'

export interface CertificateFolder {
  readonly root: string
  /** The first leaf's file. */
  readonly leaf: string
}

const notBefore = new Date('2026-01-01T00:00:00Z')
const ca = { commonName: 'bench-ca', notAfter: new Date('2046-01-01T00:00:00Z') }

/**
 * Writes a P-256 CA and `count` serving certificates signed by it, each in its own file. Returns their paths. Every leaf has its
 * own key, SANs and notAfter, as in a real folder.
 */
export function certificateFolder(root: string, count: number): CertificateFolder {
  mkdirSync(root, { recursive: true })
  const signingCa = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const authorityId = keyIdentifierOf(signingCa.publicKey)
  const issuer = { commonName: ca.commonName }
  const authorityCertificate = issueCertificate(
    {
      serialNumber: '01',
      subject: issuer,
      issuer,
      notBefore,
      notAfter: ca.notAfter,
      publicKey: signingCa.publicKey,
      basicConstraints: { ca: true },
      keyUsage: ['digitalSignature', 'keyCertSign'],
      subjectKeyId: authorityId,
    },
    signingCa.privateKey,
  )
  writeFileSync(join(root, 'ca.pem'), writePem('CERTIFICATE', authorityCertificate))
  for (let index = 0; index < count; index++) {
    const name = `node-${index}.bench.example`
    const certificate = issueCertificate(
      {
        serialNumber: (0x10000000 + index).toString(16),
        subject: { organization: ['bench'], commonName: name },
        issuer,
        notBefore,
        // Ten years from the start, a minute apart, so that no certificate in the folder expires during the life of the
        // benchmark.
        notAfter: new Date(notBefore.getTime() + (10 * 365 * 24 * 60 + index) * 60_000),
        publicKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey,
        keyUsage: ['digitalSignature'],
        extendedKeyUsage: ['serverAuth'],
        basicConstraints: { ca: false },
        authorityKeyId: authorityId,
        subjectAltNames: {
          dns: [name],
          ip: [`10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`],
        },
      },
      signingCa.privateKey,
    )
    writeFileSync(join(root, leafName(index)), writePem('CERTIFICATE', certificate))
  }
  return { root, leaf: join(root, leafName(0)) }
}

function leafName(index: number): string {
  return `leaf-${String(index).padStart(5, '0')}.pem`
}
