import { messageOf } from '../../errors/kcert-error.ts'
import type { Duty, Finding } from '../rule.ts'
import { hasCondition, isDecided, readRequestContent, type SigningRequest } from '../signing-request.ts'
import type { ApprovalFacts } from './facts.ts'
import type { Decision, Policy, PolicyEvaluation } from './policy.ts'

/** The decision of an approver on an object, and the reason. */
export interface Verdict {
  readonly decision: Decision
  /** The policy that decided; undefined when none did. */
  readonly policy?: string
  /** One fragment for the user. */
  readonly reason: string
  /** The findings of the policy that decided, or else of the policy that applies. */
  readonly findings: readonly Finding[]
  /** The two duties of an approver: met, unmet or unknown. Without findings, neither is met. */
  readonly duties: Readonly<Record<Duty, Finding['outcome']>>
  /** A lookup failed: a later run may succeed. */
  readonly isIncomplete: boolean
}

/**
 * Returns the verdict of policies on an object in its current state. A denial overrides an approval, in any order. An object that
 * no policy approves, or whose lookups fail, is skipped. The content of the object never makes it throw.
 */
export async function decide(
  object: SigningRequest,
  policies: readonly Policy[],
  facts: ApprovalFacts,
): Promise<Verdict> {
  const settled = settledReason(object)
  if (settled !== undefined) return leftAlone(settled)
  const { request, fault } = readRequestContent(object.request)
  if (request === undefined) return leftAlone(`the request cannot be read: ${fault.detail}`)
  const evaluations: PolicyEvaluation[] = []
  let failure: string | undefined
  for (const policy of policies) {
    try {
      evaluations.push(await policy.evaluate({ object, request }, facts))
    } catch (error) {
      failure ??= `${policy.name}: a lookup failed: ${messageOf(error)}`
    }
  }
  return conclusion(evaluations, failure)
}

/** Returns why the object needs no decision; undefined when it does. */
function settledReason(object: SigningRequest): string | undefined {
  if (object.deletionTimestamp !== undefined) return 'the object is being deleted'
  if (hasCondition(object, 'Denied')) return 'already denied'
  if (object.certificate !== undefined) return 'already issued'
  if (isDecided(object)) return 'already approved'
  return hasCondition(object, 'Failed') ? 'it failed: the requester must submit a new request' : undefined
}

function conclusion(evaluations: readonly PolicyEvaluation[], failure: string | undefined): Verdict {
  const applying = evaluations.filter(({ applies }) => applies)
  const denial = applying.find(({ decision }) => decision === 'deny')
  if (denial !== undefined) return verdictOf(denial)
  // A policy that failed might have denied.
  if (failure !== undefined) return { ...leftAlone(failure), isIncomplete: true }
  const approval = applying.find(({ decision }) => decision === 'approve')
  const deciding = approval ?? applying[0]
  return deciding === undefined ? leftAlone('no policy applies to it') : verdictOf(deciding)
}

function verdictOf({ policy, decision, reason, findings }: PolicyEvaluation): Verdict {
  return {
    decision,
    policy,
    reason,
    findings,
    duties: {
      identity: dutyOutcome('identity', findings),
      entitlement: dutyOutcome('entitlement', findings),
    },
    isIncomplete: false,
  }
}

function leftAlone(reason: string): Verdict {
  return {
    decision: 'ignore',
    reason,
    findings: [],
    duties: { identity: 'unknown', entitlement: 'unknown' },
    isIncomplete: false,
  }
}

/** Met when every rule for the duty is met; unmet when one is unmet. */
export function dutyOutcome(duty: Duty, findings: readonly Finding[]): Finding['outcome'] {
  const outcomes = findings.filter((finding) => finding.duty === duty).map(({ outcome }) => outcome)
  if (outcomes.includes('unmet')) return 'unmet'
  return outcomes.length === 0 || outcomes.includes('unknown') ? 'unknown' : 'met'
}
