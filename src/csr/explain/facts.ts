import type { ApprovalFacts } from '../approval/facts.ts'

// The facts that explain why a request is stuck, besides the object itself.

/** kube-controller-manager, which approves kubelets' client requests and signs for the signers of Kubernetes. */
export interface ControllerManager {
  /** spec.renewTime of its Lease: it renews every few seconds while it lives. */
  readonly renewedAt?: Date
  /** spec.holderIdentity of its Lease. */
  readonly holder?: string
  /** Words of its command line, where it runs as a pod that can be read; undefined on managed clusters and for systemd units. */
  readonly commandLine?: readonly string[]
}

/** A subject to which RBAC gives a right. */
export interface Holder {
  readonly kind: string
  /** A ServiceAccount as NAMESPACE/NAME. */
  readonly name: string
}

/**
 * Lookups of facts. Undefined means: cannot be known here, or this user may not ask. A lookup that fails throws, and what depends
 * on it stays open.
 */
export interface ExplainFacts extends Pick<ApprovalFacts, 'isAllowed'> {
  readControllerManager(): Promise<ControllerManager | 'absent' | undefined>
  /** To whom RBAC gives the verb on this signer by a rule that is about signers; whoever may do everything is left out. */
  findHolders(verb: 'approve' | 'sign', signerName: string): Promise<readonly Holder[] | undefined>
}
