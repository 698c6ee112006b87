import { given } from '../errors/given.ts'
import type { Certificate } from '../x509/certificate.ts'
import { verifySignature } from '../x509/signature.ts'

/**
 * SHA-256 in lower-case hexadecimal; for a certificate, of its DER. A certificate that does not exist yet is named `planned:…`.
 */
export type Digest = string

/** The data of a certificate that the rotation needs: enough to verify a chain, small enough for 100,000 pods. */
export interface CertificateRecord {
  readonly digest: Digest
  /** Subject in RFC 4514 format. */
  readonly subject: string
  readonly issuer: string
  readonly subjectKeyId?: string
  readonly authorityKeyId?: string
  /** SHA-256 of the SubjectPublicKeyInfo. It identifies the key, regardless of the certificate. */
  readonly spki: Digest
  /**
   * For a CA: its SubjectPublicKeyInfo, DER in base64. It identifies certificates that the CA signed even after the CA
   * certificate is gone.
   */
  readonly publicKey?: string
  /** The key that verifies the signature; absent when none of the tested keys does. */
  readonly signedBy?: Digest
  readonly isCa: boolean
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** Certificates by digest. Every section of a snapshot refers to certificates by digest only. */
export type CertificateTable = ReadonlyMap<Digest, CertificateRecord>

/** Returns the record of a certificate. Its signature is verified with its own key and those of the given CAs. */
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
    ...given({ subjectKeyId, authorityKeyId }),
    spki: certificate.publicKey.sha256,
    ...(certificate.isCa && { publicKey: Buffer.from(certificate.publicKey.spki).toString('base64') }),
    ...(signer && { signedBy: signer.publicKey.sha256 }),
    isCa: certificate.isCa,
    notBeforeMs: certificate.notBefore.getTime(),
    notAfterMs: certificate.notAfter.getTime(),
  }
}

/** Returns the record of the replacement for this leaf certificate: same subject and key, signed by another CA. */
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
    ...given({ authorityKeyId: by.subjectKeyId }),
    notBeforeMs: by.notBeforeMs,
    notAfterMs: by.notAfterMs,
  }
}

/** Returns true when the CA's key made the signature, whichever certificate the CA has. */
export function isSignedByCa(certificate: CertificateRecord | undefined, ca: CertificateRecord): boolean {
  return certificate?.signedBy === ca.spki
}
