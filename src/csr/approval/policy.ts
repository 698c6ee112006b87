import type { Finding } from '../rule.ts'
import type { Candidate } from './candidate.ts'
import type { ApprovalFacts } from './facts.ts'

export type Decision = 'approve' | 'deny' | 'ignore'

/** What one policy makes of one request. */
export interface PolicyEvaluation {
  readonly policy: string
  /** False when the request is none of its business; it has no findings then. */
  readonly applies: boolean
  /** `ignore`: skip, for a person or for later. */
  readonly decision: Decision
  /** One fragment for people: why. */
  readonly reason: string
  readonly findings: readonly Finding[]
}

export interface Policy {
  readonly name: string
  evaluate(candidate: Candidate, facts: ApprovalFacts): Promise<PolicyEvaluation>
}

/** What a policy does with a request that certainly breaks its rules. What is merely unknown is always skipped. */
export type OnViolation = 'ignore' | 'deny'

export function outOfScope(policy: string, reason: string): PolicyEvaluation {
  return { policy, applies: false, decision: 'ignore', reason, findings: [] }
}

/** Approves when all findings are met; otherwise skips, or denies where the policy says so. */
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
 * Looks things up only for requests whose own text breaks no rule: the others are not worth a call. For those, `unasked` is
 * what stays unknown.
 */
export async function withLookups(
  findings: readonly Finding[],
  unasked: Finding,
  lookup: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const isHopeless = findings.some(({ outcome }) => outcome === 'unmet')
  return isHopeless ? [...findings, unasked] : [...findings, ...(await lookup())]
}
