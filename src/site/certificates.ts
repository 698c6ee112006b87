import { type CertificateRecord, certificateRecord, type Digest } from '../rotation/certificate-record.ts'
import type { Certificate } from '../x509/certificate.ts'
import { verifySignature } from '../x509/signature.ts'

/** Every certificate read in this run, by digest. Snapshots name certificates by digest, and writes take them from here. */
export class Certificates {
  /** The table that snapshots carry. It grows; an entry changes only when its signer becomes known. */
  readonly table = new Map<Digest, CertificateRecord>()
  private readonly known = new Map<Digest, Certificate>()
  private readonly cas: Certificate[] = []

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

  /** Returns the certificate with a digest if it was read in this run. */
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
