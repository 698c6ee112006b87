import type { Certificate } from '../x509/certificate.ts'
import { verifySignature } from '../x509/signature.ts'

/** SHA-256 in lower-case hexadecimal; of a certificate: of its DER. One that is not made yet is named `planned:…`. */
export type Digest = string

/** What the rotation knows of a certificate: enough to tell whether a chain is valid, small enough for 100,000 pods. */
export interface CertificateRecord {
  readonly digest: Digest
  /** RFC 4514. */
  readonly subject: string
  readonly issuer: string
  readonly subjectKeyId?: string
  readonly authorityKeyId?: string
  /** SHA-256 of the SubjectPublicKeyInfo: the key, whatever the certificate says of itself. */
  readonly spki: Digest
  /** Of a CA: its SubjectPublicKeyInfo, DER in base64. It identifies what the CA signed when its certificate is gone. */
  readonly publicKey?: string
  /** The key whose signature on it was seen to hold; absent when no key that was tried had made it. */
  readonly signedBy?: Digest
  readonly isCa: boolean
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** Certificates by digest; every section of a snapshot names certificates by digest alone. */
export type CertificateTable = ReadonlyMap<Digest, CertificateRecord>

/** Returns the record of a certificate. Its signature is tried with its own key and those of the given CAs. */
export function certificateRecord(
  certificate: Certificate,
  cas: Iterable<Certificate> = [],
): CertificateRecord {
  const signer = [certificate, ...cas].find(
    (one) => certificate.issuer.equals(one.subject) && verifySignature(certificate, one.publicKey).ok,
  )
  const { subjectKeyId, authorityKeyId } = certificate
  return {
    digest: certificate.fingerprintSha256,
    subject: certificate.subject.text,
    issuer: certificate.issuer.text,
    ...(subjectKeyId !== undefined && { subjectKeyId }),
    ...(authorityKeyId !== undefined && { authorityKeyId }),
    spki: certificate.publicKey.sha256,
    ...(certificate.isCa && { publicKey: Buffer.from(certificate.publicKey.spki).toString('base64') }),
    ...(signer && { signedBy: signer.publicKey.sha256 }),
    isCa: certificate.isCa,
    notBeforeMs: certificate.notBefore.getTime(),
    notAfterMs: certificate.notAfter.getTime(),
  }
}

/** Returns the record of the leaf that replaces this one: same subject and key, signed by another CA. */
export function reissuedRecord(
  leaf: CertificateRecord,
  by: CertificateRecord,
  digest: Digest,
): CertificateRecord {
  const { authorityKeyId: _, ...kept } = leaf
  return {
    ...kept,
    digest,
    issuer: by.subject,
    signedBy: by.spki,
    ...(by.subjectKeyId !== undefined && { authorityKeyId: by.subjectKeyId }),
    notBeforeMs: by.notBeforeMs,
    notAfterMs: by.notAfterMs,
  }
}

/** True when the key of the CA made the signature, whatever certificate the CA has. */
export function isSignedByCa(certificate: CertificateRecord | undefined, ca: CertificateRecord): boolean {
  return certificate?.signedBy === ca.spki
}
