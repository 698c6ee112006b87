import type { Finding } from '../rule.ts'
import type { Candidate } from './candidate.ts'
import type { ApprovalFacts } from './facts.ts'

export type Decision = 'approve' | 'deny' | 'ignore'

/** The evaluation of one request by one policy. */
export interface PolicyEvaluation {
  readonly policy: string
  /** False when the policy does not apply to the request; it then has no findings. */
  readonly applies: boolean
  /** `ignore`: skip, for a person to decide or for a later run. */
  readonly decision: Decision
  /** One fragment for the user: why. */
  readonly reason: string
  readonly findings: readonly Finding[]
}

/** A kind of lookup in the cluster. Each needs its own permissions. */
export type Lookup = 'access' | 'nodes' | 'cluster-addresses' | 'served-certificates'

export interface Policy {
  readonly name: string
  /** Patterns of the signers that it approves requests for; "*" stops at a slash. */
  readonly signerNames: readonly string[]
  /** The lookups that it may make. */
  readonly lookups: readonly Lookup[]
  evaluate(candidate: Candidate, facts: ApprovalFacts): Promise<PolicyEvaluation>
}

/** What a policy does with a request that breaks its rules. It always skips requests whose findings are unknown. */
export type OnViolation = 'ignore' | 'deny'

export function outOfScope(policy: string, reason: string): PolicyEvaluation {
  return { policy, applies: false, decision: 'ignore', reason, findings: [] }
}

/** Returns an approval when all findings are met; otherwise skips, or denies where the policy says so. */
export function evaluated(
  policy: string,
  findings: readonly Finding[],
  onViolation: OnViolation,
): PolicyEvaluation {
  const unmet = findings.find(({ outcome }) => outcome === 'unmet')
  if (unmet !== undefined)
    return { policy, applies: true, decision: onViolation, reason: `${unmet.id}: ${unmet.detail}`, findings }
  const unknown = findings.find(({ outcome }) => outcome === 'unknown')
  if (unknown !== undefined)
    return { policy, applies: true, decision: 'ignore', reason: `${unknown.id}: ${unknown.detail}`, findings }
  return { policy, applies: true, decision: 'approve', reason: `all rules of ${policy} are met`, findings }
}

/**
 * Returns the findings, with those of lookups only when the text of the request breaks no rule: a request that breaks one is not
 * worth a call, and gets the finding `unasked` instead.
 */
export async function withLookups(
  findings: readonly Finding[],
  unasked: Finding,
  lookup: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const isHopeless = findings.some(({ outcome }) => outcome === 'unmet')
  return isHopeless ? [...findings, unasked] : [...findings, ...(await lookup())]
}
