import type { LoggedCertificate } from '../ca/issuance-log.ts'
import { given } from '../errors/given.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { ServiceAccountToken } from '../x509/service-account-token.ts'
import { legacyTokenId } from './event.ts'

// The credentials that kcert has found, by the IDs that audit events have.

/** A certificate or token that was found, without its key and without the token. */
export interface KnownCredential {
  /** Of the certificate as in RFC 4514, or the service account of the token. */
  readonly subject: string
  readonly issuer?: string
  /** `kid`, of a token. */
  readonly keyId?: string
  readonly expiresAtMs?: number
  /** Whether the old CA or the old key signed it. Undefined if that cannot be decided. */
  readonly isOld: boolean | undefined
  readonly places: string[]
}

const mostPlaces = 8

/** The old CAs and keys, of which the report lists the credentials. */
export interface OldSigners {
  readonly cas: readonly Certificate[]
  readonly keyIds: ReadonlySet<string>
}

export class KnownCredentials {
  private readonly byId = new Map<string, KnownCredential>()
  private readonly old: OldSigners

  constructor(old: OldSigners) {
    this.old = old
  }

  get(id: string): KnownCredential | undefined {
    return this.byId.get(id)
  }

  addCertificate(certificate: Certificate, place: string): void {
    this.add(`X509SHA256=${certificate.fingerprintSha256}`, place, () => ({
      subject: certificate.subject.text,
      issuer: certificate.issuer.text,
      expiresAtMs: certificate.notAfterMs,
      isOld: this.isSignedByOldCa(certificate),
    }))
  }

  /** Adds a certificate of which only the entry in an issuance log is left. Whether its CA is the old one is in newer entries. */
  addIssued({ fingerprintSha256, authorityKeyId, ...rest }: LoggedCertificate, place: string): void {
    this.add(`X509SHA256=${fingerprintSha256}`, place, () => {
      const named = this.old.cas.filter(({ subject }) => subject.text === rest.issuer)
      const keyIds = named.map(({ subjectKeyId }) => subjectKeyId)
      const isUnclear = authorityKeyId === undefined || keyIds.includes(undefined)
      return { ...rest, isOld: keyIds.includes(authorityKeyId ?? '') || (isUnclear ? undefined : false) }
    })
  }

  addToken(
    { id, namespace, serviceAccount, keyId, expiresAtMs, boundTo }: ServiceAccountToken,
    place: string,
  ) {
    const subject = `system:serviceaccount:${namespace}:${serviceAccount}`
    const token = {
      subject,
      ...given({ keyId, expiresAtMs }),
      isOld: keyId === undefined ? undefined : this.old.keyIds.has(keyId),
    }
    if (id !== undefined) return this.add(`JTI=${id}`, place, () => token)
    const [, secret] = /^secret (.+)$/.exec(boundTo ?? '') ?? []
    if (secret !== undefined) this.add(legacyTokenId(namespace, secret), place, () => token)
    // API servers before 1.29 do not name the Secret. One account may have several.
    const account = `LEGACY=${subject}`
    const other = this.byId.get(account)
    this.add(account, place, () => token)
    if (other !== undefined && other.isOld !== token.isOld)
      this.byId.set(account, { ...other, isOld: undefined })
  }

  private add(id: string, place: string, describe: () => Omit<KnownCredential, 'places'>): void {
    const known = this.byId.get(id)
    const places = known?.places ?? []
    // A certificate shows more than its entry in an issuance log, and a token whose key is unknown is not verified: old wins.
    if (known === undefined || (known.isOld !== true && !id.startsWith('LEGACY='))) {
      const found = describe()
      if (known === undefined || known.isOld === undefined || found.isOld)
        this.byId.set(id, { ...found, places })
    }
    if (places.length < mostPlaces && !places.includes(place)) places.push(place)
  }

  private isSignedByOldCa(certificate: Certificate): boolean | undefined {
    const named = this.old.cas.filter(({ subject }) => subject.equals(certificate.issuer))
    if (named.some((ca) => certificate.isSignedBy(ca))) return true
    return named.some((ca) => certificate.isUncheckableFor(ca)) ? undefined : false
  }
}
