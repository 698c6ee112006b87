import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'

/** A certificate and its key, for servers and clients in tests. */
export interface TlsPair {
  readonly name: string
  readonly key: KeyObject
  readonly der: Uint8Array
  /** In PEM. */
  readonly certificate: string
  readonly keyPem: string
}

/** Returns a pair for a name, signed by the issuer; without an issuer it is a CA. Valid from 2026 to 2036. */
export function tlsPair(
  name: string,
  issuer?: TlsPair,
  { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' }),
): TlsPair {
  const der = issueCertificate(
    {
      serialNumber: '01',
      subject: { commonName: name },
      issuer: { commonName: issuer?.name ?? name },
      notBefore: new Date('2026-01-01T00:00:00Z'),
      notAfter: new Date('2036-01-01T00:00:00Z'),
      publicKey,
      basicConstraints: { ca: issuer === undefined },
      subjectAltNames: { dns: [name] },
    },
    issuer?.key ?? privateKey,
  )
  const keyPem = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
  return { name, key: privateKey, der, certificate: writePem('CERTIFICATE', der), keyPem }
}
