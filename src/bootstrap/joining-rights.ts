import { nodeGroup, nodeUserPrefix } from '../pki/kubelet.ts'
import { kubeadmJoiners } from './token-secret.ts'

// The permissions that a joining node needs, and the binding that grants each (kubeadm's names, phases/bootstraptoken).

export interface Subject {
  readonly user: string
  readonly groups: readonly string[]
}

interface Attributes {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

export interface JoiningRight {
  readonly id: 'create-requests' | 'auto-approval' | 'renewal' | 'cluster-info' | 'kubeadm-configuration'
  readonly subject: Subject
  readonly attributes: readonly Attributes[]
  /** Its purpose, as the end of a sentence. */
  readonly purpose: string
  /** What fails without it. */
  readonly otherwise: string
}

const requests = { group: 'certificates.k8s.io', resource: 'certificatesigningrequests' } as const
const systemMap = { group: '', resource: 'configmaps', namespace: 'kube-system', verb: 'get' } as const

/** Returns the user as which a token authenticates. */
export function bearerOf(id: string, groups: readonly string[]): Subject {
  return {
    user: `system:bootstrap:${id}`,
    groups: ['system:bootstrappers', ...groups, 'system:authenticated'],
  }
}

/**
 * Returns the permissions that a token needs until the node has joined, and after that. The additional ones of kubeadm join are
 * only for kubeadm's group.
 */
export function joiningRights(bearer: Subject): JoiningRight[] {
  return [
    {
      id: 'cluster-info',
      subject: { user: 'system:anonymous', groups: ['system:unauthenticated'] },
      attributes: [{ ...systemMap, namespace: 'kube-public', name: 'cluster-info' }],
      purpose: 'read cluster-info without credentials',
      otherwise: 'kubeadm join and token discovery fail',
    },
    {
      id: 'create-requests',
      subject: bearer,
      attributes: ['create', 'get', 'list', 'watch'].map((verb) => ({ ...requests, verb })),
      purpose: 'create and read CertificateSigningRequests (system:node-bootstrapper)',
      otherwise: "the kubelet's request is rejected",
    },
    {
      id: 'auto-approval',
      subject: bearer,
      attributes: [{ ...requests, subresource: 'nodeclient', verb: 'create' }],
      purpose: 'have its first request approved automatically (nodeclient)',
      otherwise: 'its request stays pending until an administrator approves it',
    },
    {
      id: 'renewal',
      subject: { user: `${nodeUserPrefix}any`, groups: [nodeGroup, 'system:authenticated'] },
      attributes: [{ ...requests, subresource: 'selfnodeclient', verb: 'create' }],
      purpose: 'have renewals approved automatically (selfnodeclient)',
      otherwise: 'its certificate expires without a renewal',
    },
    ...(bearer.groups.includes(kubeadmJoiners)
      ? [
          {
            id: 'kubeadm-configuration' as const,
            subject: bearer,
            attributes: [
              { ...systemMap, name: 'kubeadm-config' },
              { ...systemMap, name: 'kubelet-config' },
              { group: '', resource: 'nodes', verb: 'get' },
            ],
            purpose: 'read kubeadm-config, kubelet-config and Nodes, as kubeadm join does',
            otherwise:
              'kubeadm join fails (a kubelet that bootstraps without kubeadm does not need this); restore the objects on a control-plane node',
          },
        ]
      : []),
  ]
}
