import type { Certificate } from './certificate.ts'
import type { CertificatePool } from './certificate-pool.ts'
import { oncePer } from './once-per.ts'
import { type SignatureRefusal, verifySignature } from './signature.ts'

// Path building as Go's crypto/x509 does it: every candidate with the issuer's name is tried, roots before intermediates,
// and all chains that hold are found. Where OpenSSL takes the first issuer that looks right, Go goes on looking.

/**
 * How many candidates one question may try. Go stops there, so that certificates of one name that sign each other in every
 * direction cannot keep it busy; a chain that would be found later is not found.
 */
const maxCandidates = 100

/** Why a certificate cannot be used at all at this time. */
export type OwnDefect = 'critical-extension' | 'not-yet-valid' | 'expired'

/** Why a certificate cannot stand where it would. */
export type Unfitness = OwnDefect | 'not-a-ca' | 'no-cert-sign' | 'path-length'

/** A candidate that was tried as an issuer and given up. */
export interface DeadEnd {
  /** From the leaf to the certificate whose issuer was looked for. */
  readonly below: readonly Certificate[]
  readonly candidate: Certificate
  readonly among: 'roots' | 'intermediates'
  readonly reason: SignatureRefusal | Unfitness
}

/** What Go's error would be about; the words are in go-words.ts. */
export type GoRefusal =
  | { readonly kind: 'unknown-authority'; readonly hint?: DeadEnd }
  | { readonly kind: 'unfit'; readonly certificate: Certificate; readonly reason: Unfitness }
  | { readonly kind: 'limit' }

export interface BuiltPaths {
  /** Leaf first, root last; the shortest not always first. */
  readonly chains: readonly (readonly Certificate[])[]
  /** Set when there is no chain. */
  readonly refusal?: GoRefusal
  readonly deadEnds: readonly DeadEnd[]
  /** Ends of chains for whose issuer there was no candidate at all. */
  readonly orphans: readonly (readonly Certificate[])[]
}

export interface PathQuestion {
  readonly roots: CertificatePool
  readonly intermediates: CertificatePool
  readonly at: Date
}

interface Extended {
  readonly chains: (readonly Certificate[])[]
  readonly refusal?: GoRefusal
}

/** Returns every chain from the leaf to a root, and where the others ended. The leaf itself is not evaluated here. */
export function buildPaths(leaf: Certificate, question: PathQuestion): BuiltPaths {
  const deadEnds: DeadEnd[] = []
  const orphans: (readonly Certificate[])[] = []
  let tried = 0

  /** The chains that begin with these certificates. Its refusal is the one of the last candidate that came far enough to have one. */
  const extend = (below: readonly Certificate[]): Extended => {
    const issued = below.at(-1)!
    const chains: (readonly Certificate[])[] = []
    let refusal: GoRefusal | undefined
    let hint: DeadEnd | undefined
    let isOrphan = true

    for (const among of ['roots', 'intermediates'] as const) {
      for (const candidate of question[among].issuersOf(issued)) {
        if (++tried > maxCandidates) return withoutRefusalOf(chains, { kind: 'limit' })
        if (isAlreadyIn(below, candidate)) continue
        isOrphan = false
        // Go passes over such a candidate without a hint in its error.
        if (!hasUsableKey(candidate)) {
          deadEnds.push({ below, candidate, among, reason: 'key-unsupported' })
          continue
        }
        const giveUp = (reason: DeadEnd['reason']): void => {
          const deadEnd = { below, candidate, among, reason }
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
        const chain = [...below, candidate]
        if (among === 'roots') chains.push(chain)
        else {
          const further = extend(chain)
          chains.push(...further.chains)
          refusal = further.refusal
          if (refusal?.kind === 'limit') return withoutRefusalOf(chains, refusal)
        }
      }
    }
    if (isOrphan) orphans.push(below)
    const unknown: GoRefusal =
      hint === undefined ? { kind: 'unknown-authority' } : { kind: 'unknown-authority', hint }
    return withoutRefusalOf(chains, refusal ?? unknown)
  }

  return { ...extend([leaf]), deadEnds, orphans }
}

function withoutRefusalOf(chains: Extended['chains'], refusal: GoRefusal): Extended {
  return chains.length > 0 ? { chains } : { chains, refusal }
}

const usableKeys = new Set(['RSA', 'ECDSA', 'Ed25519', 'DSA', '1.3.101.110'])

/** Go up to 1.26 does not read keys of other algorithms. */
function hasUsableKey({ publicKey }: Certificate): boolean {
  return usableKeys.has(publicKey.algorithm)
}

const oidSubjectAltName = '2.5.29.17'

/** The same CA in another certificate counts as already there: otherwise CAs that signed each other would be a loop. */
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

/** Why this candidate's key cannot have signed the certificate; RFC 5280 section 4.2.1.3 and 4.2.1.9. */
function signingDefect(issued: Certificate, candidate: Certificate): DeadEnd['reason'] | undefined {
  const { version, basicConstraints, keyUsage } = candidate
  // Certificates of version 1 cannot say that they are a CA; as roots they are trusted.
  if (basicConstraints === undefined ? version === 3 : !basicConstraints.ca) return 'not-a-ca'
  if (keyUsage !== undefined && keyUsage.length > 0 && !keyUsage.includes('keyCertSign'))
    return 'no-cert-sign'
  const verdict = checkedSignature(issued)(candidate)
  return verdict.ok ? undefined : verdict.reason
}

// An issuer's signature is needed again for every chain that contains it, and once more for what OpenSSL would say.
const checkedSignature = oncePer((issued: Certificate) =>
  oncePer((issuer: Certificate) => verifySignature(issued, issuer.publicKey)),
)

/** Why a certificate cannot be used at this time, in any position. */
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
  // Go counts self-issued certificates too, which RFC 5280 section 4.2.1.9 does not.
  const intermediates = below.length - 1
  const allowed = candidate.basicConstraints?.pathLength ?? Number.POSITIVE_INFINITY
  return intermediates > allowed ? 'path-length' : undefined
}
