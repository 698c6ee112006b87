import { quoted } from '../quoting.ts'
import { signingRequestOfObject } from '../request-object.ts'
import type { RequestObject } from '../requests-api.ts'
import type { Finding } from '../rule.ts'
import { apiServerClient } from '../signers.ts'
import { hasCondition, isDecided, readRequestContent, type SigningRequest } from '../signing-request.ts'
import type { Candidate } from './candidate.ts'
import { decide, dutyOutcome, type Verdict } from './decide.ts'
import { type ApprovalFacts, noFacts } from './facts.ts'
import type { Policy } from './policy.ts'
import { builtinPolicies } from './policy-file.ts'
import { approvalRule, requestFindings } from './request-rules.ts'

// Whether an object of the cluster should be approved or denied, by a policy or by hand.

export type Act = 'approve' | 'deny'

/** What to do with an object in its current state. */
export interface Evaluation {
  /**
   * act: do it. already: nothing to do. skipped: no policy decides it or it is already decided otherwise.
   * refused: approving it by name would be dangerous. incomplete: a required lookup failed.
   */
  readonly course: 'act' | 'already-decided' | 'skipped' | 'refused' | 'incomplete'
  /** One fragment for the user. */
  readonly reason: string
  readonly verdict: Verdict
}

export type Evaluator = (object: RequestObject) => Promise<Evaluation>

/** Returns an evaluator that follows policies: it skips what they do not decide. */
export function evaluateByPolicy(act: Act, policies: readonly Policy[], facts: ApprovalFacts): Evaluator {
  return async (object) => {
    const request = signingRequestOfObject(object)
    const verdict = await decide(request, policies, facts)
    const settled = settledAs(request, act)
    if (settled !== undefined) return { ...settled, verdict }
    const { decision, reason } = verdict
    if (verdict.isIncomplete) return { course: 'incomplete', reason, verdict }
    if (decision === act) return { course: 'act', reason, verdict }
    return { course: 'skipped', reason: unlike(verdict), verdict }
  }
}

/** Returns why the request is skipped: the policy decides the opposite, or does not decide. */
function unlike({ decision, policy, reason }: Verdict): string {
  if (decision === 'deny') return `policy ${policy} denies it: ${reason}`
  return decision === 'approve' ? `policy ${policy} approves it` : reason
}

/**
 * Returns an evaluator for objects that an operator names: it acts on everything that is not decided yet. It refuses an approval
 * that would grant more than the request shows, unless forced. The operator decides where kcert has no proof.
 */
export function evaluateByHand(act: Act, facts: ApprovalFacts, isForced: boolean): Evaluator {
  return async (object) => {
    const request = signingRequestOfObject(object)
    const settled = settledAs(request, act)
    // kcert makes no lookups for an object that cannot change any more.
    if (settled !== undefined) return { ...settled, verdict: await decide(request, builtinPolicies, noFacts) }
    const verdict = await verdictForPeople(request, facts)
    const danger =
      act === 'approve'
        ? verdict.findings.find(({ id, outcome }) => outcome === 'unmet' && !forPeopleToKnow.has(id))
        : undefined
    if (danger !== undefined && !isForced)
      return { course: 'refused', reason: `${danger.id}: ${danger.detail}`, verdict }
    return { course: 'act', reason: danger === undefined ? 'by hand' : `forced: ${danger.id}`, verdict }
  }
}

/** Facts that an operator may know better than the cluster and the default policy: which node owns these names and addresses. */
const forPeopleToKnow: ReadonlySet<string> = new Set(['own-names', 'node-exists', 'dns-suffix'])

/** Returns the verdict of the built-in policies; where none applies, the verdict of the rules common to all approvals. */
async function verdictForPeople(object: SigningRequest, facts: ApprovalFacts): Promise<Verdict> {
  const full = await decide(object, builtinPolicies, facts)
  // When a lookup fails, the text of the request still counts.
  const verdict = full.isIncomplete
    ? { ...(await decide(object, builtinPolicies, noFacts)), isIncomplete: true }
    : full
  const { request, fault } = readRequestContent(object.request)
  if (request === undefined)
    return withFindings(verdict, [approvalRule(fault.id, 'identity').unmet(fault.detail, fault)])
  if (verdict.findings.length > 0) return verdict
  const candidate = { object, request }
  return withFindings(verdict, [...requestFindings(candidate), ...ownFindings(candidate)])
}

function withFindings(verdict: Verdict, findings: readonly Finding[]): Verdict {
  const identity = dutyOutcome('identity', findings)
  const entitlement = dutyOutcome('entitlement', findings)
  return { ...verdict, findings, duties: { identity, entitlement } }
}

function ownFindings(candidate: Candidate): Finding[] {
  const { signerName, username } = candidate.object
  return [
    ...(signerName === apiServerClient ? [reservedIdentity(candidate)] : []),
    approvalRule('requester', 'identity').unknown(
      `not verified: ${quoted(username ?? '')} is who the request says`,
      { fix: 'ask the person or team named in the request, through another channel' },
    ),
    approvalRule('permission', 'entitlement').unknown('not verified: no policy says who may request this', {
      fix: 'decide, or write a policy rule (docs/policy.md)',
    }),
  ]
}

// The API server takes the holder of such a certificate for a Kubernetes component: a node, the scheduler, the
// controller-manager.
function reservedIdentity({ request: { subject } }: Candidate): Finding {
  const { met, unmet } = approvalRule('reserved-identity', 'entitlement')
  const names = [subject.commonName ?? '', ...subject.organization].filter((name) =>
    name.startsWith('system:'),
  )
  return names.length === 0
    ? met('it requests no name that Kubernetes reserves')
    : unmet(`the certificate gives the reserved identity ${names.map(quoted).join(', ')}`, {
        fix: 'approve it with --force if that is intended',
      })
}

/** Returns the evaluation of an object that is already decided; undefined for a pending one. */
function settledAs(object: SigningRequest, act: Act): Omit<Evaluation, 'verdict'> | undefined {
  const leftAlone = (reason: string) => ({ course: 'skipped', reason }) as const
  if (object.deletionTimestamp !== undefined) return leftAlone('the object is being deleted')
  if (hasCondition(object, 'Denied'))
    return act === 'deny'
      ? { course: 'already-decided', reason: 'already denied' }
      : leftAlone('already denied')
  if (hasCondition(object, 'Failed')) return leftAlone('it failed: the requester must submit a new request')
  const isApproved = isDecided(object) || object.certificate !== undefined
  if (!isApproved) return undefined
  return act === 'approve'
    ? { course: 'already-decided', reason: 'already approved' }
    : leftAlone('already approved, which cannot be undone')
}
