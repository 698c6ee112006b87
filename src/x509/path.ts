import type { Certificate } from './certificate.ts'
import type { CertificatePool } from './certificate-pool.ts'
import { oncePer } from './once-per.ts'
import { type SignatureRefusal, verifySignature } from './signature.ts'

// Path building as in Go's crypto/x509: it tries every candidate with the issuer's name, roots before intermediates, and finds
// all valid chains. OpenSSL stops at the first issuer that looks right; Go continues.

/**
 * Maximum number of candidates. Go has the same limit, so that certificates of one name that sign each other in all directions
 * cannot keep it busy. Chains beyond the limit are not found.
 */
const maxCandidates = 100

/** Why a certificate cannot be used in any position at this time. */
export type OwnDefect = 'critical-extension' | 'not-yet-valid' | 'expired'

/** Why a certificate cannot be used in its position. */
export type Unfitness = OwnDefect | 'not-a-ca' | 'no-cert-sign' | 'path-length'

/** From the leaf upwards. */
export type Path = readonly [leaf: Certificate, ...issuers: Certificate[]]

/** A candidate that was tried as an issuer and rejected. */
export interface DeadEnd {
  /** From the leaf to the certificate whose issuer is missing. */
  readonly below: Path
  readonly issued: Certificate
  readonly candidate: Certificate
  readonly among: 'roots' | 'intermediates'
  readonly reason: SignatureRefusal | Unfitness
}

/** The subject of Go's error. go-words.ts has the texts. */
export type GoRefusal =
  | { readonly kind: 'unknown-authority'; readonly hint?: DeadEnd }
  | { readonly kind: 'unfit'; readonly certificate: Certificate; readonly reason: Unfitness }
  | { readonly kind: 'limit' }

export interface BuiltPaths {
  /** Leaf first, root last. The shortest chain is not always the first. */
  readonly chains: readonly Path[]
  /** Set when there is no chain. */
  readonly refusal?: GoRefusal
  readonly deadEnds: readonly DeadEnd[]
  /** Incomplete chains whose last certificate has no candidate issuer. */
  readonly orphans: readonly Pick<DeadEnd, 'below' | 'issued'>[]
}

export interface PathQuestion {
  readonly roots: CertificatePool
  readonly intermediates: CertificatePool
  readonly at: Date
}

interface Extended {
  readonly chains: Path[]
  readonly refusal?: GoRefusal
}

/** Returns every chain from the leaf to a root, and the ends of the others. Does not evaluate the leaf itself. */
export function buildPaths(leaf: Certificate, question: PathQuestion): BuiltPaths {
  const deadEnds: DeadEnd[] = []
  const orphans: BuiltPaths['orphans'][number][] = []
  let tried = 0

  /** Returns the chains that begin with these certificates. The refusal is that of the last candidate that has one. */
  const extend = (below: Path, issued: Certificate): Extended => {
    const chains: Path[] = []
    let refusal: GoRefusal | undefined
    let hint: DeadEnd | undefined
    let isOrphan = true

    for (const among of ['roots', 'intermediates'] as const) {
      for (const candidate of question[among].issuersOf(issued)) {
        if (++tried > maxCandidates) return withoutRefusalOf(chains, { kind: 'limit' })
        if (isAlreadyIn(below, candidate)) continue
        isOrphan = false
        // Go skips such a candidate without mentioning it in its error.
        if (!hasUsableKey(candidate)) {
          deadEnds.push({ below, issued, candidate, among, reason: 'key-unsupported' })
          continue
        }
        const giveUp = (reason: DeadEnd['reason']): void => {
          const deadEnd = { below, issued, candidate, among, reason }
          deadEnds.push(deadEnd)
          hint ??= deadEnd
        }

        const unsigned = signingDefect(issued, candidate)
        if (unsigned !== undefined) {
          giveUp(unsigned)
          continue
        }
        const unfit = candidateDefect(candidate, below, among, question.at)
        refusal = unfit && { kind: 'unfit', certificate: candidate, reason: unfit }
        if (unfit !== undefined) {
          giveUp(unfit)
          continue
        }
        const chain: Path = [...below, candidate]
        if (among === 'roots') chains.push(chain)
        else {
          const further = extend(chain, candidate)
          chains.push(...further.chains)
          refusal = further.refusal
          if (refusal?.kind === 'limit') return withoutRefusalOf(chains, refusal)
        }
      }
    }
    if (isOrphan) orphans.push({ below, issued })
    const unknown: GoRefusal =
      hint === undefined ? { kind: 'unknown-authority' } : { kind: 'unknown-authority', hint }
    return withoutRefusalOf(chains, refusal ?? unknown)
  }

  return { ...extend([leaf], leaf), deadEnds, orphans }
}

function withoutRefusalOf(chains: Extended['chains'], refusal: GoRefusal): Extended {
  return chains.length > 0 ? { chains } : { chains, refusal }
}

const usableKeys = new Set(['RSA', 'ECDSA', 'Ed25519', 'DSA', '1.3.101.110'])

/** Go up to 1.26 does not read keys with other algorithms. */
function hasUsableKey({ publicKey }: Certificate): boolean {
  return usableKeys.has(publicKey.algorithm)
}

const oidSubjectAltName = '2.5.29.17'

/** Another certificate of the same CA counts as already present. Otherwise CAs that signed each other would form a loop. */
function isAlreadyIn(below: readonly Certificate[], candidate: Certificate): boolean {
  const names = candidate.findExtension(oidSubjectAltName)?.value
  for (const certificate of below) {
    if (!certificate.subject.equals(candidate.subject)) continue
    if (!areEqual(certificate.publicKey.spki, candidate.publicKey.spki)) continue
    const itsNames = certificate.findExtension(oidSubjectAltName)?.value
    if (names === undefined || itsNames === undefined) return names === itsNames
    if (areEqual(names, itsNames)) return true
  }
  return false
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

/** Returns why this candidate's key cannot have signed the certificate (RFC 5280 section 4.2.1.3 and 4.2.1.9). */
function signingDefect(issued: Certificate, candidate: Certificate): DeadEnd['reason'] | undefined {
  const { version, basicConstraints, keyUsage } = candidate
  // Version 1 certificates have no CA flag. They are trusted as roots.
  if (basicConstraints === undefined ? version === 3 : !basicConstraints.ca) return 'not-a-ca'
  if (keyUsage !== undefined && keyUsage.length > 0 && !keyUsage.includes('keyCertSign'))
    return 'no-cert-sign'
  const verdict = checkedSignature(issued)(candidate)
  return verdict.ok ? undefined : verdict.reason
}

// An issuer's signature is needed for every chain that contains it, and again for OpenSSL's result.
const checkedSignature = oncePer((issued: Certificate) =>
  oncePer((issuer: Certificate) => verifySignature(issued, issuer.publicKey)),
)

/** Returns why a certificate cannot be used in any position at this time. */
export function ownDefect(certificate: Certificate, at: Date): OwnDefect | undefined {
  if (certificate.unhandledCriticalExtensions.length > 0) return 'critical-extension'
  if (at < certificate.notBefore) return 'not-yet-valid'
  if (at > certificate.notAfter) return 'expired'
  return undefined
}

function candidateDefect(
  candidate: Certificate,
  below: readonly Certificate[],
  among: DeadEnd['among'],
  at: Date,
): Unfitness | undefined {
  const own = ownDefect(candidate, at)
  if (own !== undefined) return own
  if (among === 'intermediates' && !candidate.isCa) return 'not-a-ca'
  // Go counts self-issued certificates too. RFC 5280 section 4.2.1.9 does not.
  const intermediates = below.length - 1
  const allowed = candidate.basicConstraints?.pathLength ?? Number.POSITIVE_INFINITY
  return intermediates > allowed ? 'path-length' : undefined
}
