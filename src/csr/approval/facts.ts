import type { Certificate } from '../../x509/certificate.ts'

// The facts that an approver needs in addition to the request. Adapters read them from the cluster, test/fakes from memory.

/** A question to the authorizer of the cluster, as kube-controller-manager sends it in a SubjectAccessReview. */
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

/** The fields of a Node that an approver reads. */
export interface NodeFacts {
  readonly name: string
  /** status.addresses. Without a cloud provider, the kubelet writes them. */
  readonly addresses: readonly {
    readonly type: string
    readonly address: string
  }[]
  /** The Node has the label node-role.kubernetes.io/control-plane, which NodeRestriction does not let kubelets set. */
  readonly isControlPlane: boolean
}

/** The certificate that a kubelet currently serves. */
export interface ServedCertificate {
  readonly certificate: Certificate
  /** The chain leads to the CA that signs kubelet certificates, and every certificate in it is within its validity. */
  readonly isTrusted: boolean
  /** Why it is not trusted. */
  readonly reason?: string
}

/** Addresses and names that belong to the cluster and not to a node. */
export interface ClusterAddresses {
  /** Host names and IP addresses where clients reach API servers. */
  readonly apiServers: readonly string[]
  readonly serviceCidrs: readonly string[]
}

/**
 * Lookups of facts. Undefined means that the fact is unavailable (the input is only a file, or this user lacks the permission),
 * and a request that depends on it is not approved. A failed lookup throws, with the same effect.
 */
export interface ApprovalFacts {
  /** Whether the authorizer of the cluster allows it. */
  isAllowed(question: AccessQuestion): Promise<boolean | undefined>
  findNode(name: string): Promise<NodeFacts | 'absent' | undefined>
  /** Names of all Nodes with this address; IP addresses are compared by value, not by spelling. */
  findNodesAt(address: string): Promise<readonly string[] | undefined>
  /** `node` is a result of `findNode`. */
  readServedCertificate(node: NodeFacts): Promise<ServedCertificate | 'none' | undefined>
  readClusterAddresses(): Promise<ClusterAddresses | undefined>
}

/** No facts: for checks that read only files. */
export const noFacts: ApprovalFacts = {
  isAllowed: async () => undefined,
  findNode: async () => undefined,
  findNodesAt: async () => undefined,
  readServedCertificate: async () => undefined,
  readClusterAddresses: async () => undefined,
}
