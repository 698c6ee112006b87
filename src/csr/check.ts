import { given } from '../errors/given.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { admissionFindings } from './admission.ts'
import { adviceOn } from './advice.ts'
import { decide, dutyOutcome } from './approval/decide.ts'
import type { ApprovalFacts } from './approval/facts.ts'
import type { Policy } from './approval/policy.ts'
import { approvalRule, requestFindings } from './approval/request-rules.ts'
import type { CheckReport } from './check-report.ts'
import { quoted } from './quoting.ts'
import { requestFields } from './request-fields.ts'
import { type Duty, dutyText, type Finding, isUnknown, isUnmet } from './rule.ts'
import { isKubernetesDomain } from './signer-name.ts'
import { findSigner } from './signers.ts'
import { signatureFinding, signingFindings } from './signing.ts'
import { readRequestContent, type SigningRequest } from './signing-request.ts'

/** The input of a check in addition to the object. */
export interface CheckContext {
  readonly source: string
  readonly policies: readonly Policy[]
  readonly facts: ApprovalFacts
}

/** Returns whether the API server accepts the object, an approver should approve it, and the signer will sign it, rule by rule. */
export async function checkRequest(object: SigningRequest, context: CheckContext): Promise<CheckReport> {
  const { name, signerName, usages, expirationSeconds, username, groups } = object
  const { request } = readRequestContent(object.request)
  const admission = admissionFindings(object)
  const signing = request === undefined ? [] : signingFindings(object, request)
  const approval = await approvalAnswer(object, request, context)
  const signature = request && signatureFinding(signerName, request)
  const findings = [...admission, ...approval.findings, ...signing, ...(signature ? [signature] : [])]
  const isSubmitted = username !== undefined
  const { decision, reason } = isSubmitted ? approval : draftDecision(object, findings)
  return {
    apiVersion: 'kcert/v1',
    kind: 'RequestCheck',
    source: context.source,
    spec: {
      ...given({ name, signerName, usages: [...usages], expirationSeconds, username }),
      groups: [...groups],
    },
    ...(request && { request: requestFields(request) }),
    isSubmitted,
    decision,
    reason,
    answers: {
      admission: admission.some(isUnmet) ? 'refused' : 'accepted',
      signing: signingAnswer(signerName, request === undefined || signing.some(isUnmet), signature),
    },
    duties: (['identity', 'entitlement'] as const).map((name: Duty) => ({
      name,
      text: dutyText[name],
      outcome: dutyOutcome(name, approval.findings),
    })),
    rules: findings
      .filter((finding) => !isUnknown(finding))
      .map(({ id, question, duty, outcome, detail, fix, next }) => ({
        ...{ id, question, ...given({ duty }), ok: outcome === 'met', detail },
        ...given({ fix, next }),
      })),
    unknownFacts: findings.filter(isUnknown).map(({ id, question, duty, detail, fix, next = fix ?? '' }) => ({
      id,
      question,
      ...given({ duty }),
      detail,
      ...given({ fix }),
      next,
    })),
    advice: request === undefined ? [] : adviceOn(object, request).map((one) => ({ ...one, next: one.fix })),
  }
}

interface ApprovalAnswer {
  readonly decision: CheckReport['decision']
  readonly reason: string
  readonly findings: readonly Finding[]
}

async function approvalAnswer(
  object: SigningRequest,
  request: CertificateRequest | undefined,
  { policies, facts }: CheckContext,
): Promise<ApprovalAnswer> {
  const verdict = await decide(object, policies, facts)
  const findings =
    verdict.findings.length === 0 && request !== undefined
      ? [...requestFindings({ object, request }), ...requesterOpen(object)]
      : verdict.findings
  // The rules of the signer are listed one by one under signing.
  return { ...verdict, findings: findings.filter(({ id }) => id !== 'signer-takes-it') }
}

// No policy applies to this signer: a person must verify the requester and what it may request.
function requesterOpen({ username }: SigningRequest): Finding[] {
  const who =
    username === undefined
      ? 'the requester is unknown'
      : `not verified: ${quoted(username)} is who the request says`
  return [
    approvalRule('requester', 'identity').unknown(who, {
      fix: 'ask the person or team named in the request, through another channel',
    }),
    approvalRule('permission', 'entitlement').unknown('no policy says who may request this', {
      fix: 'decide, or write a policy rule (docs/policy.md)',
    }),
  ]
}

/**
 * Returns the decision on a request that is not submitted yet: whether anything in it is wrong. The facts that an approver must
 * look up are listed separately.
 */
function draftDecision(
  { signerName }: SigningRequest,
  findings: readonly Finding[],
): Pick<CheckReport, 'decision' | 'reason'> {
  const unmet = findings.find(isUnmet)
  const signer = findSigner(signerName)
  if (signer === undefined && isKubernetesDomain(signerName))
    return {
      decision: 'ignore',
      reason: 'Kubernetes has no signer of this name, so an approval has no effect',
    }
  if (unmet !== undefined) return { decision: 'deny', reason: `${unmet.id}: ${unmet.detail}` }
  if (signer === undefined)
    return { decision: 'ignore', reason: `kcert has no policy for ${signerName}; its approvers decide` }
  const open = findings.filter(isUnknown).map(({ id }) => id)
  const rest = open.length === 0 ? '' : `; an approver must still verify: ${open.join(', ')}`
  return { decision: 'approve', reason: `no objections${rest}` }
}

function signingAnswer(
  signerName: string,
  isFaulty: boolean,
  signature: Finding | undefined,
): CheckReport['answers']['signing'] {
  if (findSigner(signerName) !== undefined) return isFaulty ? 'failed' : signature ? 'retried' : 'signed'
  return isKubernetesDomain(signerName) ? 'no-signer' : 'other-signer'
}
