import { messageOf } from '../../errors/kcert-error.ts'
import type { Duty, Finding } from '../rule.ts'
import { hasCondition, isDecided, readRequestContent, type SigningRequest } from '../signing-request.ts'
import type { ApprovalFacts } from './facts.ts'
import type { Decision, Policy, PolicyEvaluation } from './policy.ts'

/** What an approver does with an object, and why. */
export interface Verdict {
  readonly decision: Decision
  /** The policy that decided; undefined when none did. */
  readonly policy?: string
  /** One fragment for people. */
  readonly reason: string
  /** Of the policy that decided, or that the request is for. */
  readonly findings: readonly Finding[]
  /** The two duties of an approver: fulfilled, not fulfilled, or not known. Empty findings fulfil nothing. */
  readonly duties: Readonly<Record<Duty, Finding['outcome']>>
  /** A lookup failed: worth another try. */
  readonly isIncomplete: boolean
}

/**
 * Returns the verdict of policies on an object as it is now. A denial beats an approval, whatever the order; where no policy
 * approves, the object is left alone. Never throws for what is in the object; lookups that fail leave it alone too.
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

/** Why nothing is left to decide. */
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
  // A policy that could not answer might have denied.
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

/** Met when every rule that serves it is; unmet as soon as one is. */
export function dutyOutcome(duty: Duty, findings: readonly Finding[]): Finding['outcome'] {
  const outcomes = findings.filter((finding) => finding.duty === duty).map(({ outcome }) => outcome)
  if (outcomes.includes('unmet')) return 'unmet'
  return outcomes.length === 0 || outcomes.includes('unknown') ? 'unknown' : 'met'
}
