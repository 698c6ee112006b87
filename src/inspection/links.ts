import type { Certificate } from '../x509/certificate.ts'
import { isMlDsa } from '../x509/ml-dsa.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { Collection } from './collection.ts'
import type { CertificateEntry, KeyEntry } from './entries.ts'
import { keyNameBeside } from './pairs.ts'

// After a rotation, two or three CAs share a name. More candidates for one certificate indicate an attack on the run time.
const mostCandidates = 16
/** A signature check takes up to 0.4 ms, so this many failed ones take about a second. */
const mostMisses = 2000
/** Beyond this number, no check that could fail is made. */
const lastMiss = 3000
/** All verifiers reject longer chains. */
const longestChain = 32

type KnownKey = KeyEntry & { readonly publicKey: PublicKeyInfo }

interface KeyLink {
  readonly key: KeyEntry
  readonly matches: boolean
  /** Set if the key at `path` belongs to another certificate. */
  readonly own?: KeyEntry | undefined
}

/**
 * Signers and keys of all certificates in all inputs. Links are computed on first use: a table of 10,000 certificates needs none,
 * and a signature check costs as much as reading the certificate ten times.
 */
export class Links {
  private readonly collection: Collection
  private readonly now: number
  /** By name, and by name with key identifier. */
  private readonly casByName = new Map<string, CertificateEntry[]>()
  /** By name: the earliest expiry. */
  private readonly firstEnds = new Map<string, number>()
  private readonly verdicts = new Map<Certificate, Map<Certificate, boolean>>()
  private readonly issuers = new Map<Certificate, Certificate | undefined>()
  private misses = 0
  private readonly unsought = new Set<Certificate>()
  private readonly placesOf = this.indexed('certificates', ({ certificate }) => certificate)
  private readonly byIssuer = this.indexed('certificates', ({ certificate }) => certificate.issuer.key)
  private readonly byHash = this.indexed('certificates', ({ certificate }) => certificate.publicKey.sha256)
  private readonly keysByHash = this.indexed('keys', ({ publicKey }) => publicKey?.sha256)
  private readonly privateByHash = this.indexed('keys', ({ kind, publicKey }) =>
    kind === 'private' ? publicKey?.sha256 : undefined,
  )
  private readonly keysByPath = this.indexed('keys', ({ group: { owner, origin } }) =>
    owner.kind === 'file' ? origin.file?.path : undefined,
  )

  constructor(collection: Collection, now: Date) {
    this.collection = collection
    this.now = now.getTime()
    const seen = new Set<Certificate>()
    collection.certificates.forEach((entry) => {
      const { certificate } = entry
      if (!mayIssue(certificate) || seen.has(certificate)) return
      seen.add(certificate)
      const name = certificate.subject.key
      push(this.casByName, name, entry)
      const firstEnd = this.firstEnds.get(name)
      if (firstEnd === undefined || certificate.notAfterMs < firstEnd)
        this.firstEnds.set(name, certificate.notAfterMs)
      if (certificate.subjectKeyId !== undefined) push(this.casByName, name + certificate.subjectKeyId, entry)
    })
  }

  /** True when the key of `issuer` made the signature. Verifies each pair once. */
  isSignedBy(certificate: Certificate, issuer: Certificate): boolean {
    let verdicts = this.verdicts.get(certificate)
    if (verdicts === undefined) {
      verdicts = new Map()
      this.verdicts.set(certificate, verdicts)
    }
    const known = verdicts.get(issuer)
    if (known !== undefined) return known
    const verdict = certificate.issuer.equals(issuer.subject) && certificate.isSignedBy(issuer)
    verdicts.set(issuer, verdict)
    return verdict
  }

  isSelfSigned(certificate: Certificate): boolean {
    return certificate.isSelfIssued && this.leadsTo(certificate, certificate)
  }

  /** Like isSignedBy, but false without a check after too many failed checks. */
  private leadsTo(certificate: Certificate, issuer: Certificate): boolean {
    if (this.misses >= lastMiss) return false
    const verdict = this.isSignedBy(certificate, issuer)
    if (!verdict) this.misses++
    return verdict
  }

  /**
   * Returns the certificates in the inputs that may be the signer by name and key identifiers, the likeliest first. Nothing is
   * proven. If very many share the name, only those with the right key identifier and the first ones are checked.
   */
  candidates(certificate: Certificate): Certificate[] {
    const name = certificate.issuer.key
    const named = this.casByName.get(name)
    if (named === undefined) return []
    const { authorityKeyId } = certificate
    const byKey = authorityKeyId === undefined ? undefined : this.casByName.get(name + authorityKeyId)
    const found = byKey === undefined ? named.slice(0, mostCandidates) : byKey.slice(0, mostCandidates)
    if (byKey !== undefined && named.length <= mostCandidates)
      found.push(...named.filter((one) => !byKey.includes(one)))
    return found
      .filter(({ certificate: issuer }) => issuer !== certificate)
      .map(({ certificate: issuer }) => ({ issuer, score: this.likelihood(certificate, issuer) }))
      .sort((a, b) => b.score - a.score || b.issuer.notAfter.getTime() - a.issuer.notAfter.getTime())
      .map(({ issuer }) => issuer)
  }

  /** False when no CA in the inputs with the issuer's name expires earlier. */
  mayOutliveIssuer({ issuer, notAfterMs }: Certificate): boolean {
    const firstEnd = this.firstEnds.get(issuer.key)
    return firstEnd !== undefined && firstEnd < notAfterMs
  }

  /**
   * True for a certificate that appears to be a root: its own issuer by name, and by key identifier if present. Nothing is
   * proven.
   */
  looksSelfSigned({ isSelfIssued, authorityKeyId, subjectKeyId }: Certificate): boolean {
    return isSelfIssued && (authorityKeyId === undefined || authorityKeyId === subjectKeyId)
  }

  /** Returns the certificate in the inputs that signed it, proven by its signature; itself when it is self-signed. */
  issuerOf(certificate: Certificate): Certificate | undefined {
    if (this.issuers.has(certificate)) return this.issuers.get(certificate)
    const issuer = this.isSelfSigned(certificate) ? certificate : this.provenCandidate(certificate)
    this.issuers.set(certificate, issuer)
    if (issuer === undefined && this.misses >= lastMiss) this.unsought.add(certificate)
    return issuer
  }

  /** True if the search for the signer was skipped, because too many signatures of these inputs have no signer. */
  isIssuerUnsought(certificate: Certificate): boolean {
    return this.issuerOf(certificate) === undefined && this.unsought.has(certificate)
  }

  /** True if the OpenSSL in this Node.js cannot verify whether a certificate in the inputs signed it. */
  isIssuerUnchecked(certificate: Certificate): boolean {
    if (!isMlDsa(certificate.signatureAlgorithm) || this.issuerOf(certificate) !== undefined) return false
    const namesakes = [certificate, ...this.candidates(certificate)]
    return namesakes.some(
      (one) => certificate.issuer.equals(one.subject) && certificate.isUncheckableFor(one),
    )
  }

  private provenCandidate(certificate: Certificate): Certificate | undefined {
    for (const candidate of this.candidates(certificate)) {
      if (this.leadsTo(certificate, candidate)) return candidate
      // Legitimate inputs rarely have failed checks. After many of them, only the likeliest candidate of each certificate is
      // tried.
      if (this.misses > mostMisses) return undefined
    }
    return undefined
  }

  /** Returns the location of the issuer: in the same source if possible, otherwise the first one. */
  issuerPlace(entry: CertificateEntry): CertificateEntry | undefined {
    const issuer = this.issuerOf(entry.certificate)
    if (issuer === entry.certificate) return entry
    const places = issuer === undefined ? [] : this.placesOf(issuer)
    return (
      places.find(({ group }) => group === entry.group) ??
      places.find(({ source }) => source === entry.source) ??
      places[0]
    )
  }

  /** Returns the certificates that have this issuer and were signed by it. */
  issuedBy(issuer: Certificate): CertificateEntry[] {
    return this.byIssuer(issuer.subject.key).filter(
      ({ certificate }) => certificate !== issuer && this.issuerOf(certificate) === issuer,
    )
  }

  /**
   * True when a chain of signatures leads from the first certificate through the others to one of the anchors. Does not check
   * times, usages and constraints: it tells who signed, not which verifiers accept the chain.
   */
  reaches(chain: readonly Certificate[], anchors: readonly Certificate[]): boolean {
    const [leaf, ...others] = chain.slice(0, longestChain)
    if (leaf === undefined) return false
    const seen = new Set<Certificate>()
    const waiting = [leaf]
    for (let current = waiting.pop(); current !== undefined; current = waiting.pop()) {
      if (seen.has(current)) continue
      seen.add(current)
      const certificate = current
      if (anchors.includes(certificate)) return true
      const named = anchors
        .filter(({ subject }) => subject.equals(certificate.issuer))
        .slice(0, mostCandidates)
      if (named.some((anchor) => this.isSignedBy(certificate, anchor))) return true
      waiting.push(...others.filter((other) => !seen.has(other) && this.isSignedBy(certificate, other)))
    }
    return false
  }

  /**
   * Returns the private key of a certificate: the one in the expected place, whether it matches or not, otherwise a matching one
   * anywhere. If the one in the expected place does not match, `own` is the matching key from the inputs.
   */
  keyOf(entry: CertificateEntry): KeyLink | undefined {
    if (this.collection.keys.length === 0) return undefined
    const hash = entry.certificate.publicKey.sha256
    const own = nearest(this.privateByHash(hash), entry)
    const found = own && { key: own, matches: true }
    // Only the leaf of a chain has its key in the same place.
    if (entry.position > 0) return found
    const beside = this.privateKeysBeside(entry)
    const right = beside.find(({ publicKey }) => publicKey.sha256 === hash)
    if (right !== undefined) return { key: right, matches: true }
    const [wrong] = beside
    return wrong === undefined ? found : { key: wrong, matches: false, own }
  }

  /** Certificates and keys with the same public key. */
  matchesOf(key: KeyEntry): readonly { readonly source: string; readonly entry: string }[] {
    const hash = key.publicKey?.sha256
    if (hash === undefined) return []
    return [...this.byHash(hash), ...this.keysByHash(hash).filter((other) => other !== key)]
  }

  /**
   * Returns the known private keys in the place for this certificate's key, without those of another certificate in the group.
   */
  private privateKeysBeside(entry: CertificateEntry): KnownKey[] {
    const { group } = entry
    const known = this.keysBeside(entry).filter(
      (key): key is KnownKey => key.kind === 'private' && key.publicKey !== undefined,
    )
    if (known.length === 0 || group.certificates.length === 1) return known
    const others = group.certificates.filter((other) => other !== entry)
    return known.filter(
      ({ publicKey }) =>
        !others.some(({ certificate }) => certificate.publicKey.sha256 === publicKey.sha256) ||
        publicKey.sha256 === entry.certificate.publicKey.sha256,
    )
  }

  /** Returns the keys in the same group, otherwise in the same object or in files with matching names. */
  private keysBeside(entry: CertificateEntry): readonly KeyEntry[] {
    const { group } = entry
    if (group.keys.length > 0) return group.keys
    if (group.owner.kind === 'value') {
      const { object, key } = group.owner
      const names = keyNameBeside(key)
      return object.groups
        .filter(({ owner }) => owner.kind === 'value' && names.includes(owner.key))
        .flatMap(({ keys }) => keys)
    }
    const path = group.owner.kind === 'file' ? group.origin.file?.path : undefined
    if (path === undefined) return []
    const slash = path.lastIndexOf('/')
    return keyNameBeside(path.slice(slash + 1)).flatMap((name) =>
      this.keysByPath(path.slice(0, slash + 1) + name),
    )
  }

  private likelihood(certificate: Certificate, issuer: Certificate): number {
    const { authorityKeyId } = certificate
    const { subjectKeyId } = issuer
    const known = authorityKeyId !== undefined && subjectKeyId !== undefined
    const keyScore = !known ? 2 : authorityKeyId === subjectKeyId ? 4 : 0
    return (
      keyScore + (issuer.notAfter.getTime() >= this.now && issuer.notBefore.getTime() <= this.now ? 1 : 0)
    )
  }

  /** Returns a function that finds the certificates or keys for a public key. The index is built on first use. */
  private indexed<List extends 'certificates' | 'keys', Key>(
    list: List,
    keyOf: (item: Collection[List][number]) => Key | undefined,
  ): (key: Key) => readonly Collection[List][number][] {
    let index: Map<Key | undefined, Collection[List][number][]> | undefined
    return (key) => {
      index ??= Map.groupBy<Key | undefined, Collection[List][number]>(this.collection[list], keyOf)
      return index.get(key) ?? []
    }
  }
}

/** True for a CA, or a certificate from before the CA extension existed. */
function mayIssue(certificate: Certificate): boolean {
  return certificate.isCa || certificate.version !== 3
}

function nearest(keys: readonly KeyEntry[], { group, source }: CertificateEntry): KeyEntry | undefined {
  return keys.find((one) => group.keys.includes(one)) ?? keys.find((one) => one.source === source) ?? keys[0]
}

function push<Key, Value>(map: Map<Key, Value[]>, key: Key, value: Value): void {
  const values = map.get(key)
  if (values === undefined) map.set(key, [value])
  else values.push(value)
}
