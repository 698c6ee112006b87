import { randomBytes } from 'node:crypto'
import { issueRoot } from '../../src/ca/root.ts'
import { Certificate } from '../../src/x509/certificate.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { generatePrivateKey, parseKeyType } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'

const dayMs = 86_400_000

/** Returns a CA with a new key, and functions that issue certificates. */
export function someCa(commonName: string, now: Date) {
  const key = generatePrivateKey(parseKeyType('ECDSA-P256'))
  const serial = (): string => `1${randomBytes(7).toString('hex')}`
  const certificate = issueRoot({ subject: { commonName }, ttlMs: 3650 * dayMs }, key, now, serial())
  return {
    certificate,
    pem: writePem('CERTIFICATE', certificate.der),
    /** Returns a serving certificate for these addresses. */
    issueServing(ip: readonly string[]): Certificate {
      const der = issueCertificate(
        {
          serialNumber: serial(),
          subject: { commonName: 'kube-apiserver' },
          issuer: certificate.subject,
          notBefore: new Date(now.getTime() - dayMs),
          notAfter: new Date(now.getTime() + dayMs),
          publicKey: generatePrivateKey(parseKeyType('ECDSA-P256')),
          keyUsage: ['digitalSignature'],
          extendedKeyUsage: ['serverAuth'],
          basicConstraints: { ca: false },
          subjectAltNames: { dns: [], ip: [...ip] },
        },
        key,
      )
      return Certificate.parse(der)
    },
  }
}
