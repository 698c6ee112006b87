import type { Certificate } from './certificate.ts'

/** Certificates that may issue others, indexed by subject: a set of roots, or the certificates that a server sends. Immutable. */
export class CertificatePool {
  /** In input order, without duplicates. */
  readonly certificates: readonly Certificate[]
  private readonly bySubject: ReadonlyMap<string, readonly Certificate[]>
  private readonly byFingerprint = new Map<string, Certificate>()

  constructor(certificates: Iterable<Certificate>) {
    for (const certificate of certificates) {
      if (!this.has(certificate)) this.byFingerprint.set(certificate.fingerprintSha256, certificate)
    }
    this.certificates = [...this.byFingerprint.values()]
    this.bySubject = Map.groupBy(this.certificates, ({ subject }) => subject.key)
  }

  has(certificate: Certificate): boolean {
    return this.byFingerprint.has(certificate.fingerprintSha256)
  }

  /**
   * Returns the certificates whose subject has the same bytes as this certificate's issuer, the likelier issuers first. Matching
   * key identifiers come first, then pairs where one identifier is missing, then pairs that differ. Go tries all of them.
   */
  issuersOf(certificate: Certificate): readonly Certificate[] {
    const named = this.bySubject.get(certificate.issuer.key)
    if (named === undefined || named.length < 2) return named ?? []
    const asked = certificate.authorityKeyId ?? ''
    const likelihood = ({ subjectKeyId = '' }: Certificate): number => {
      if (subjectKeyId === asked) return 0
      return subjectKeyId === '' || asked === '' ? 1 : 2
    }
    return named.toSorted((a, b) => likelihood(a) - likelihood(b))
  }
}
