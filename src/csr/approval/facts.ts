import type { Certificate } from '../../x509/certificate.ts'

// What an approver must find out besides reading the request. Adapters answer from the cluster, test/fakes from memory.

/** A question to the authorizer of the cluster, as kube-controller-manager puts it in a SubjectAccessReview. */
export interface AccessQuestion {
  readonly user: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
  readonly resource: {
    readonly group: string
    readonly version: string
    readonly resource: string
    readonly subresource: string
    readonly verb: string
    readonly namespace?: string
    readonly name?: string
  }
}

/** A Node, as far as an approver looks at it. */
export interface NodeFacts {
  readonly name: string
  /** status.addresses. The kubelet itself writes them where no cloud provider does. */
  readonly addresses: readonly {
    readonly type: string
    readonly address: string
  }[]
  /** Has the label node-role.kubernetes.io/control-plane, which NodeRestriction keeps kubelets from setting. */
  readonly isControlPlane: boolean
}

/** What a kubelet presents on its port now. */
export interface ServedCertificate {
  readonly certificate: Certificate
  /** The chain leads to the CA that signs kubelets, and no certificate of it is out of its time. */
  readonly isTrusted: boolean
  /** Why it is not trusted. */
  readonly reason?: string
}

/** Addresses and names that belong to the cluster and to no node. */
export interface ClusterAddresses {
  /** Host names and IP addresses where clients reach API servers. */
  readonly apiServers: readonly string[]
  readonly serviceCidrs: readonly string[]
}

/**
 * Lookups of facts. Undefined means: cannot be known here (a file is all there is, or this user may not ask), and what
 * depends on it is not approved. A lookup that fails throws, with the same effect.
 */
export interface ApprovalFacts {
  /** Whether the cluster allows it. */
  isAllowed(question: AccessQuestion): Promise<boolean | undefined>
  findNode(name: string): Promise<NodeFacts | 'absent' | undefined>
  /** Names of all Nodes with this address; text is compared as addresses are, not as text. */
  findNodesAt(address: string): Promise<readonly string[] | undefined>
  readServedCertificate(node: NodeFacts): Promise<ServedCertificate | 'none' | undefined>
  readClusterAddresses(): Promise<ClusterAddresses | undefined>
}

/** Knows nothing: what a check from files alone has. */
export const noFacts: ApprovalFacts = {
  isAllowed: async () => undefined,
  findNode: async () => undefined,
  findNodesAt: async () => undefined,
  readServedCertificate: async () => undefined,
  readClusterAddresses: async () => undefined,
}
