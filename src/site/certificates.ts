import { type CertificateRecord, certificateRecord, type Digest } from '../rotation/certificate-record.ts'
import type { Certificate } from '../x509/certificate.ts'
import { verifySignature } from '../x509/signature.ts'

/** Every certificate that was read in this run, by digest: snapshots name them, and what is written is made of them. */
export class Certificates {
  /** What snapshots carry. It grows; what is in it stays, but that a signer may become known. */
  readonly table = new Map<Digest, CertificateRecord>()
  private readonly known = new Map<Digest, Certificate>()
  private readonly cas: Certificate[] = []

  /** Takes a certificate in and returns its digest. */
  add(certificate: Certificate): Digest {
    const digest = certificate.fingerprintSha256
    if (this.known.has(digest)) return digest
    this.known.set(digest, certificate)
    this.table.set(digest, certificateRecord(certificate, this.cas))
    if (certificate.isCa) {
      this.cas.push(certificate)
      this.findSignedBy(certificate)
    }
    return digest
  }

  addAll(certificates: readonly Certificate[]): Digest[] {
    return certificates.map((certificate) => this.add(certificate))
  }

  /** The certificate of a digest, when it was read in this run. */
  get(digest: Digest): Certificate | undefined {
    return this.known.get(digest)
  }

  /** A leaf may have been read before its CA. */
  private findSignedBy(ca: Certificate): void {
    for (const [digest, record] of this.table) {
      if (record.signedBy !== undefined) continue
      const certificate = this.known.get(digest)
      if (!certificate?.issuer.equals(ca.subject) || !verifySignature(certificate, ca.publicKey).ok) continue
      this.table.set(digest, { ...record, signedBy: ca.publicKey.sha256 })
    }
  }
}
