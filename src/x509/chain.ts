import type { Certificate } from './certificate.ts'
import type { CertificatePool } from './certificate-pool.ts'
import { explainPaths, ownCodes } from './dead-ends.ts'
import { isValidForHost } from './hostname.ts'
import { type ConstraintViolation, findConstraintViolation } from './name-constraints.ts'
import { buildPaths, type GoRefusal, ownDefect } from './path.ts'
import { policiesAllow } from './policies.ts'

// Whether API servers, kubelets and all other programs in Go accept a certificate: path building and validation with the
// outcome of crypto/x509's Certificate.Verify (Go 1.26) for the same roots, intermediates, time, purpose and name.

/** What the certificate is used for: by a TLS server, by a TLS client, or for anything at all. */
export const purposes = ['server', 'client', 'any'] as const
export type Purpose = (typeof purposes)[number]

export interface ChainQuestion {
  readonly leaf: Certificate
  readonly roots: CertificatePool
  readonly intermediates: CertificatePool
  readonly at: Date
  readonly purpose: Purpose
  /** Host name or IP address that the leaf must be valid for. Absent: names are not looked at. */
  readonly name?: string | undefined
}

export type Chain = readonly Certificate[]

export type ChainVerdict =
  /** Every chain that holds; leaf first, root last. */
  | { readonly trusted: true; readonly chains: readonly Chain[] }
  | { readonly trusted: false; readonly refusal: Refusal }

/** Why a chain is refused. docs/ list this table; the codes are part of the JSON contract. */
export const refusalCodes = {
  CERT_EXPIRED: 'A certificate of the chain is past its notAfter.',
  CERT_NOT_YET_VALID: 'A certificate of the chain is before its notBefore, or a clock is wrong.',
  CRITICAL_EXTENSION_UNKNOWN: 'A certificate has a critical extension that Go does not know.',
  HOST_NAME_MISMATCH: 'The leaf is not valid for the name that was asked for.',
  LEAF_SELF_SIGNED: 'The leaf signed itself and is not among the roots.',
  ROOT_NOT_TRUSTED: 'The chain ends in a root that is not among the roots given.',
  ISSUER_UNKNOWN:
    'There is no certificate of the issuer, neither among the roots nor among the intermediates.',
  ISSUER_KEY_OTHER:
    'A CA of the right name is there, but another key made the signature: mostly the CA from before or after a rotation.',
  SIGNATURE_WEAK: 'A certificate is signed with SHA-1 or MD5, which Go refuses.',
  SIGNATURE_UNSUPPORTED: 'A certificate is signed by an algorithm that Go does not know.',
  ISSUER_KEY_UNSUPPORTED: "An issuer's key is one that Go does not use, such as RSA below 1024 bits.",
  LEAF_KEY_UNSUPPORTED:
    "The chain is valid, but TLS in Go does not use the leaf's own key: RSA below 1024 bits, DSA, ML-DSA before Kubernetes 1.38.",
  ISSUER_NOT_CA: 'A certificate signed another, but its basic constraints do not say that it is a CA.',
  ISSUER_MAY_NOT_SIGN: 'A CA signed a certificate, but its key usage lacks keyCertSign.',
  PATH_LENGTH_EXCEEDED: 'A CA allows fewer intermediates below it than the chain has.',
  USAGE_WRONG: 'The extended key usage of a certificate of the chain does not allow the purpose.',
  NAME_NOT_ALLOWED: 'The name constraints of a CA forbid a name of a certificate below it.',
  POLICY_NOT_MET: 'A CA demands a certificate policy, and none holds for the whole chain.',
  TOO_MANY_CANDIDATES: 'Go gives up after 100 candidates for issuers.',
  USER_UID_INVALID:
    'The client certificate has two user UIDs, or an empty one: an API server answers 401 (since Kubernetes 1.33).',
} as const

export type RefusalCode = keyof typeof refusalCodes

export interface Refusal {
  readonly code: RefusalCode
  /** The certificate at fault. */
  readonly certificate: Certificate
  /** The certificate that was tried as its issuer and does not fit, or the one below it for which it was tried. */
  readonly other?: Certificate
  /** The certificates from the leaf to the one where the search ended, or the chain that was judged. */
  readonly chain: Chain
  readonly violation?: ConstraintViolation
  /** What Go's own error is about. */
  readonly go: GoCause
}

/** Go reports less than kcert does, and sometimes about another certificate: this is what its words are made of. */
type GoCause =
  | GoRefusal
  | { readonly kind: 'host'; readonly certificate: Certificate; readonly name: string }
  | { readonly kind: 'constraint'; readonly violation: ConstraintViolation }
  | { readonly kind: 'usage' }
  /** Of TLS, after a chain was found. */
  | { readonly kind: 'leaf-key'; readonly certificate: Certificate }
  /** Of the API server, after a chain was found. */
  | { readonly kind: 'user'; readonly uids: readonly string[] }
  | { readonly kind: 'no-chain'; readonly badUsage: number; readonly badPolicies: number }

/** Judges a certificate as Go does; names the certificate at fault and the reason, which Go's error often does not. */
export function verifyChain(question: ChainQuestion): ChainVerdict {
  const { leaf, at, name, roots } = question
  const own = ownDefect(leaf, at)
  if (own !== undefined) {
    const go = { kind: 'unfit', certificate: leaf, reason: own } as const
    return refused({ code: ownCodes[own], certificate: leaf, chain: [leaf], go })
  }
  if (name !== undefined && name !== '' && !isValidForHost(leaf, name)) {
    const go = { kind: 'host', certificate: leaf, name } as const
    return refused({ code: 'HOST_NAME_MISMATCH', certificate: leaf, chain: [leaf], go })
  }
  // What is a root itself needs no path, and nobody asks whether it may sign.
  if (roots.has(leaf)) return judgePaths([[leaf]], question)
  const paths = buildPaths(leaf, question)
  if (paths.refusal !== undefined) return refused({ ...explainPaths(leaf, paths), go: paths.refusal })
  return judgePaths(paths.chains, question)
}

function refused(refusal: Refusal): ChainVerdict {
  return { trusted: false, refusal }
}

/** What only whole chains can be asked: policies, extended key usage, name constraints. */
function judgePaths(paths: readonly Chain[], question: ChainQuestion): ChainVerdict {
  const verdicts = paths.map((chain) => judgePath(chain, question))
  const chains = paths.filter((_, i) => verdicts[i] === undefined)
  if (chains.length > 0) return { trusted: true, chains }
  const refusals = verdicts.filter((verdict) => verdict !== undefined)
  const count = (code: RefusalCode): number => refusals.filter((refusal) => refusal.code === code).length
  const constraint = refusals.find(({ code }) => code === 'NAME_NOT_ALLOWED')
  // The order in which Go reports when chains fail for different reasons.
  if (constraint?.violation !== undefined) {
    return refused({ ...constraint, go: { kind: 'constraint', violation: constraint.violation } })
  }
  const [badUsage, badPolicies] = [count('USAGE_WRONG'), count('POLICY_NOT_MET')]
  const go =
    badPolicies === 0 ? ({ kind: 'usage' } as const) : ({ kind: 'no-chain', badUsage, badPolicies } as const)
  return refused({ ...refusals[0]!, go })
}

function judgePath(chain: Chain, { purpose }: ChainQuestion): Omit<Refusal, 'go'> | undefined {
  if (!policiesAllow(chain)) return { code: 'POLICY_NOT_MET', certificate: chain[0]!, chain }
  const unusable =
    purpose === 'any' ? undefined : chain.find((certificate) => !allowsUse(certificate, purpose))
  if (unusable !== undefined) return { code: 'USAGE_WRONG', certificate: unusable, chain }
  const violation = findConstraintViolation(chain)
  return violation && { code: 'NAME_NOT_ALLOWED', certificate: violation.certificate, chain, violation }
}

const usageOf = { server: 'serverAuth', client: 'clientAuth' } as const

/**
 * True when the extended key usage of this certificate allows the purpose. An absent or empty one allows all. A CA's
 * holds for what is below it, which RFC 5280 does not say but Go and OpenSSL do.
 */
function allowsUse({ extendedKeyUsage }: Certificate, purpose: 'server' | 'client'): boolean {
  return (
    extendedKeyUsage.length === 0 ||
    extendedKeyUsage.includes('anyExtendedKeyUsage') ||
    extendedKeyUsage.includes(usageOf[purpose])
  )
}
