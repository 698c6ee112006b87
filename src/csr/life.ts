import { type Certificate, certificateBlocks, certificateOfBlock } from '../x509/certificate.ts'
import { signingRequestOfObject } from './request-object.ts'
import type { RequestObject } from './requests-api.ts'
import { hasCondition, type SigningRequest } from './signing-request.ts'

// The state of a CertificateSigningRequest from its creation until kube-controller-manager deletes it.

/** In the order of urgency. */
export const requestStates = ['pending', 'approved', 'failed', 'denied', 'issued'] as const

/**
 * pending: no decision yet. approved: not signed yet. issued: has a certificate. failed: refused by the signer permanently.
 * denied: by an approver.
 */
export type RequestState = (typeof requestStates)[number]

/** Returns the state of an object. A denial takes precedence, then a certificate. */
export function stateOf(object: SigningRequest): RequestState {
  if (hasCondition(object, 'Denied')) return 'denied'
  if (object.certificate !== undefined) return 'issued'
  if (hasCondition(object, 'Failed')) return 'failed'
  return hasCondition(object, 'Approved') ? 'approved' : 'pending'
}

/** Returns true for an object that needs a decision. */
export function isPending(object: RequestObject): boolean {
  return (
    object.metadata.deletionTimestamp === undefined && stateOf(signingRequestOfObject(object)) === 'pending'
  )
}

/** Returns the conditions in kubectl's words: "Pending", "Approved,Issued", "Approved,Failed". */
export function conditionText(object: SigningRequest): string {
  const decision = (['Denied', 'Approved'] as const).find((type) => hasCondition(object, type)) ?? 'Pending'
  return [
    decision,
    ...(hasCondition(object, 'Failed') ? ['Failed'] : []),
    ...(object.certificate === undefined ? [] : ['Issued']),
  ].join(',')
}

/** When kube-controller-manager's cleaner deletes an object; it runs once an hour, so up to an hour later. */
export interface Collection {
  /** The earliest time. */
  readonly after: Date
  /** Why at that time, as a fragment. */
  readonly reason: string
}

const hourMs = 3_600_000

/**
 * Returns when an object is deleted; undefined when its conditions have no times (k8s.io/kubernetes
 * pkg/controller/certificates/cleaner). Releases from 1.32 on behave alike, except that 1.34 and older keep objects that are
 * approved and never signed (isApprovedUnissuedPastDeadline is new in 1.35): the reason mentions that.
 */
export function collectionOf(
  object: SigningRequest,
  issued = issuedCertificate(object),
): Collection | undefined {
  const { certificate, creationTimestamp, conditions } = object
  const isIssued = certificate !== undefined
  const approval = timeOf(object, 'Approved')
  return earliest([
    isIssued
      ? [approval, hourMs, 'an hour after the approval, once issued']
      : [
          approval,
          24 * hourMs,
          'a day after the approval, if it is not signed (Kubernetes 1.35 and later; 1.34 and older keep it)',
        ],
    [timeOf(object, 'Denied'), hourMs, 'an hour after the denial'],
    [timeOf(object, 'Failed'), hourMs, 'an hour after it failed'],
    [
      conditions.length === 0 ? creationTimestamp : undefined,
      24 * hourMs,
      'a day after its creation, if it is still pending',
    ],
    [issued?.notAfter.toISOString(), 0, 'when its certificate expires'],
  ])
}

type Deadline = readonly [from: string | undefined, delayMs: number, reason: string]

function earliest(deadlines: readonly Deadline[]): Collection | undefined {
  return deadlines
    .map(([from = '', delayMs, reason]) => ({ after: new Date(Date.parse(from) + delayMs), reason }))
    .filter(({ after }) => !Number.isNaN(after.getTime()))
    .sort((a, b) => a.after.getTime() - b.after.getTime())[0]
}

function timeOf({ conditions }: SigningRequest, type: string): string | undefined {
  return conditions.find((condition) => condition.type === type)?.lastUpdateTime
}

/** Returns the whole seconds since an object was created; undefined when its time is unreadable. */
export function ageSecondsOf(creationTimestamp: string | undefined, now: Date): number | undefined {
  const createdMs = Date.parse(creationTimestamp ?? '')
  return Number.isNaN(createdMs) ? undefined : Math.floor((now.getTime() - createdMs) / 1000)
}

/** Returns the issued certificate, the first of several; undefined when there is none or it is unreadable. */
export function issuedCertificate({
  certificate,
}: Pick<SigningRequest, 'certificate'>): Certificate | undefined {
  try {
    const block = certificate && certificateBlocks(certificate)[0]
    return block && certificateOfBlock(block)
  } catch {
    // Signers may upload a certificate that only Go parses; reports mention that.
    return undefined
  }
}
