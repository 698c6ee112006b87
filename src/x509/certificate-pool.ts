import type { Certificate } from './certificate.ts'

/** Certificates that may issue others, found by their subject: a set of roots, or what a server sends along. Immutable. */
export class CertificatePool {
  /** In the order given, duplicates left out. */
  readonly certificates: readonly Certificate[]
  private readonly bySubject = new Map<string, Certificate[]>()
  private readonly fingerprints = new Set<string>()

  constructor(certificates: Iterable<Certificate>) {
    const distinct: Certificate[] = []
    for (const certificate of certificates) {
      if (this.fingerprints.has(certificate.fingerprintSha256)) continue
      this.fingerprints.add(certificate.fingerprintSha256)
      distinct.push(certificate)
      const subject = certificate.subject.key
      const sameName = this.bySubject.get(subject)
      if (sameName === undefined) this.bySubject.set(subject, [certificate])
      else sameName.push(certificate)
    }
    this.certificates = distinct
  }

  has(certificate: Certificate): boolean {
    return this.fingerprints.has(certificate.fingerprintSha256)
  }

  /**
   * Certificates whose subject has the octets of this one's issuer, the likelier issuers first: those whose key identifier
   * is the one asked for, then those where one side has none, then those where they differ. Go tries all of them.
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
