import type { Certificate } from './certificate.ts'
import { explainPaths, ownCodes } from './dead-ends.ts'
import { isValidForHost } from './hostname.ts'
import { findConstraintViolation } from './name-constraints.ts'
import { buildPaths, ownDefect, type Path, type PathQuestion } from './path.ts'
import { policiesAllow } from './policies.ts'
import type { Chain, Refusal, RefusalCode } from './refusal.ts'

// Evaluates whether API servers, kubelets and all other Go programs accept a certificate. Path building and validation give the
// result of crypto/x509's Certificate.Verify (Go 1.26) for the same roots, intermediates, time, purpose and name.

/** What the certificate is used for: TLS server, TLS client, or any purpose. */
export const purposes = ['server', 'client', 'any'] as const
export type Purpose = (typeof purposes)[number]

export interface ChainQuestion extends PathQuestion {
  readonly leaf: Certificate
  readonly purpose: Purpose
  /** Host name or IP address that the leaf must be valid for. Names are not checked when absent. */
  readonly name?: string | undefined
}

export type ChainVerdict =
  /** Every valid chain: leaf first, root last. */
  | { readonly trusted: true; readonly chains: readonly Chain[] }
  | { readonly trusted: false; readonly refusal: Refusal }

/** Returns Go's result for a certificate, with the failing certificate and the reason. Go's error often omits both. */
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
  // A leaf that is itself a root needs no path, and Go does not check whether it may sign.
  if (roots.has(leaf)) return evaluatePaths([[leaf]], question)
  const paths = buildPaths(leaf, question)
  if (paths.refusal !== undefined) return refused({ ...explainPaths(leaf, paths), go: paths.refusal })
  return evaluatePaths(paths.chains, question)
}

function refused(refusal: Refusal): ChainVerdict {
  return { trusted: false, refusal }
}

/** Evaluates what only applies to complete chains: policies, extended key usage, name constraints. */
function evaluatePaths(paths: readonly Path[], question: ChainQuestion): ChainVerdict {
  const verdicts = paths.map((chain) => evaluatePath(chain, question))
  const chains = paths.filter((_, i) => verdicts[i] === undefined)
  if (chains.length > 0) return { trusted: true, chains }
  const refusals = verdicts.filter((verdict) => verdict !== undefined)
  const count = (code: RefusalCode): number => refusals.filter((refusal) => refusal.code === code).length
  const constraint = refusals.find(({ code }) => code === 'NAME_NOT_ALLOWED')
  // The order in which Go reports the errors when chains fail for different reasons.
  if (constraint?.violation !== undefined) {
    return refused({ ...constraint, go: { kind: 'constraint', violation: constraint.violation } })
  }
  const [badUsage, badPolicies] = [count('USAGE_WRONG'), count('POLICY_NOT_MET')]
  const go =
    badPolicies === 0 ? ({ kind: 'usage' } as const) : ({ kind: 'no-chain', badUsage, badPolicies } as const)
  // biome-ignore lint/style/noNonNullAssertion: without a chain that verifies, every path has a refusal
  return refused({ ...refusals[0]!, go })
}

function evaluatePath(chain: Path, { purpose }: ChainQuestion): Omit<Refusal, 'go'> | undefined {
  if (!policiesAllow(chain)) return { code: 'POLICY_NOT_MET', certificate: chain[0], chain }
  const unusable =
    purpose === 'any' ? undefined : chain.find((certificate) => !allowsUse(certificate, purpose))
  if (unusable !== undefined) return { code: 'USAGE_WRONG', certificate: unusable, chain }
  const violation = findConstraintViolation(chain)
  return violation && { code: 'NAME_NOT_ALLOWED', certificate: violation.certificate, chain, violation }
}

const usageOf = { server: 'serverAuth', client: 'clientAuth' } as const

/**
 * True when the extended key usage of this certificate allows the purpose. An absent or empty one allows all. That of a CA also
 * restricts the certificates below it: RFC 5280 does not define this, but Go and OpenSSL do it.
 */
function allowsUse({ extendedKeyUsage }: Certificate, purpose: 'server' | 'client'): boolean {
  return (
    extendedKeyUsage.length === 0 ||
    extendedKeyUsage.includes('anyExtendedKeyUsage') ||
    extendedKeyUsage.includes(usageOf[purpose])
  )
}
