/** The three questions about a request, for the API server, an approver and the signer. */
export type Question = 'admission' | 'approval' | 'signing'

/**
 * The two duties of every approver in the Kubernetes documentation:
 * identity: the requester holds the private key of the request and is the subject;
 * entitlement: that subject may act in the requested context.
 */
export type Duty = 'identity' | 'entitlement'

export const dutyText: Readonly<Record<Duty, string>> = {
  identity: 'the requester holds the private key and is who the request says',
  entitlement: 'the requester is entitled to what the request asks for',
}

/** The result of one rule. */
export interface Finding {
  readonly id: string
  readonly question: Question
  /** For rules of an approver: the duty that the rule belongs to. */
  readonly duty?: Duty
  /** `unknown`: a required fact is unavailable. */
  readonly outcome: 'met' | 'unmet' | 'unknown'
  /** The detail, as a fragment. */
  readonly detail: string
  /** What to change or look up, in prose. */
  readonly fix?: string
  /** A command that fixes it, or that shows the facts for a decision. */
  readonly next?: string
}

export const isUnmet = ({ outcome }: Finding): boolean => outcome === 'unmet'
export const isUnknown = ({ outcome }: Finding): boolean => outcome === 'unknown'
