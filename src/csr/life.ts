import { type Certificate, certificateBlocks, certificateOfBlock } from '../x509/certificate.ts'
import { hasCondition, type SigningRequest } from './signing-request.ts'

// Where a CertificateSigningRequest stands between its making and the day when kube-controller-manager removes it.

/** In the order in which they want attention. */
export const requestStates = ['pending', 'approved', 'failed', 'denied', 'issued'] as const

/**
 * pending: nobody has decided; approved: and not signed yet; issued: the certificate is there; failed: the signer refused it for
 * good; denied: by an approver.
 */
export type RequestState = (typeof requestStates)[number]

/** Returns the state of an object. A denial takes precedence, then a certificate. */
export function stateOf(object: SigningRequest): RequestState {
  if (hasCondition(object, 'Denied')) return 'denied'
  if (object.certificate !== undefined) return 'issued'
  if (hasCondition(object, 'Failed')) return 'failed'
  return hasCondition(object, 'Approved') ? 'approved' : 'pending'
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

/** When kube-controller-manager's cleaner removes an object; it looks once an hour, so up to an hour later. */
export interface Collection {
  /** From this moment on. */
  readonly after: Date
  /** A fragment: why then. */
  readonly reason: string
}

const hourMs = 3_600_000

/**
 * Returns when an object is removed, or undefined when its conditions have no time to go by (k8s.io/kubernetes
 * pkg/controller/certificates/cleaner). All releases from 1.32 on do alike, but that 1.34 and older ones leave what is approved and
 * never signed (isApprovedUnissuedPastDeadline is new in 1.35): the reason says it.
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

/** Returns the whole seconds since an object was created; undefined where its time cannot be read. */
export function ageSecondsOf(creationTimestamp: string | undefined, now: Date): number | undefined {
  const createdMs = Date.parse(creationTimestamp ?? '')
  return Number.isNaN(createdMs) ? undefined : Math.floor((now.getTime() - createdMs) / 1000)
}

/** Returns the certificate that was issued, the first where there are several; undefined when there is none or it cannot be read. */
export function issuedCertificate({
  certificate,
}: Pick<SigningRequest, 'certificate'>): Certificate | undefined {
  try {
    const block = certificate && certificateBlocks(certificate)[0]
    return block && certificateOfBlock(block)
  } catch {
    // Signers may upload what only Go parses; reports say so.
    return undefined
  }
}
