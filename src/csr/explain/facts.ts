import type { ApprovalFacts } from '../approval/facts.ts'
import type { ControllerEvent } from '../controller-events.ts'

// The facts that explain why a request is stuck, in addition to the object itself.

/** kube-controller-manager, which approves kubelet client requests and signs for the Kubernetes signers. */
export interface ControllerManager {
  /** spec.renewTime of its Lease, which it renews every few seconds while it runs. */
  readonly renewedAt?: Date
  /** spec.holderIdentity of its Lease. */
  readonly holder?: string
  /** The arguments of its command line, when it runs as a readable Pod; undefined on managed clusters and for systemd units. */
  readonly commandLine?: readonly string[]
}

/** A subject to which RBAC grants a permission. */
export interface Holder {
  readonly kind: string
  /** A ServiceAccount as NAMESPACE/NAME. */
  readonly name: string
}

/**
 * Lookups of facts. Undefined means that the fact is unavailable, or that this user lacks the permission. A failed lookup throws,
 * and the causes that need it stay open.
 */
export interface ExplainFacts extends Pick<ApprovalFacts, 'isAllowed'> {
  /** The last Event in which `kcert controller` says why it leaves the request with this UID pending. */
  readLeftPending(uid: string): Promise<ControllerEvent | 'none' | undefined>
  readControllerManager(): Promise<ControllerManager | 'absent' | undefined>
  /** The subjects to which RBAC grants the verb on this signer by a rule about signers, without those that may do everything. */
  findHolders(verb: 'approve' | 'sign', signerName: string): Promise<readonly Holder[] | undefined>
}
