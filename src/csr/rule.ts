/** The three questions about a request, which three parties answer: the API server, an approver, the signer. */
export type Question = 'admission' | 'approval' | 'signing'

/**
 * The two duties that the documentation of Kubernetes lays on every approver:
 * identity: the requester holds the private key of the request and is who the subject says;
 * entitlement: that subject may act in the context that is asked for.
 */
export type Duty = 'identity' | 'entitlement'

export const dutyText: Readonly<Record<Duty, string>> = {
  identity: 'the requester holds the private key and is who the request says',
  entitlement: 'the requester is entitled to what the request asks for',
}

/** What came of one rule. */
export interface Finding {
  readonly id: string
  readonly question: Question
  /** Of an approver's rules: which of the two duties the rule serves. */
  readonly duty?: Duty
  /** `unknown`: it takes a fact that is not at hand. */
  readonly outcome: 'met' | 'unmet' | 'unknown'
  /** What was found, as a fragment. */
  readonly detail: string
  /** What to change or to look up, in words. */
  readonly fix?: string
  /** A command that does it, or that shows what to decide. */
  readonly next?: string
}

export const isUnmet = ({ outcome }: Finding): boolean => outcome === 'unmet'
export const isUnknown = ({ outcome }: Finding): boolean => outcome === 'unknown'
