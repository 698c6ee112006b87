import { nodeGroup } from '../pki/kubelet.ts'
import { kubeadmJoiners } from './token-secret.ts'

// What TLS bootstrap needs of RBAC, under the names that kubeadm gives (phases/bootstraptoken), so that applying it to a cluster of
// kubeadm's mends what is missing and changes nothing else. The roles themselves come with every API server.

const apiGroup = 'rbac.authorization.k8s.io'
const rbac = { apiVersion: `${apiGroup}/v1` } as const
const signerRole = { name: 'kubeadm:bootstrap-signer-clusterinfo', namespace: 'kube-public' } as const
const role = 'system:certificates.k8s.io:certificatesigningrequests'

/** Returns the bindings for the bearers of tokens with this group, as Kubernetes objects. */
export function bootstrapRbac(group: string): object[] {
  // Another group under kubeadm's names would take the rights of kubeadm's own away.
  const prefix = group === kubeadmJoiners ? 'kubeadm' : 'kcert'
  return [
    clusterBinding(`${prefix}:kubelet-bootstrap`, 'system:node-bootstrapper', group),
    clusterBinding(`${prefix}:node-autoapprove-bootstrap`, `${role}:nodeclient`, group),
    clusterBinding('kubeadm:node-autoapprove-certificate-rotation', `${role}:selfnodeclient`, nodeGroup),
    {
      ...rbac,
      kind: 'Role',
      metadata: signerRole,
      rules: [
        { apiGroups: [''], resources: ['configmaps'], resourceNames: ['cluster-info'], verbs: ['get'] },
      ],
    },
    {
      ...rbac,
      kind: 'RoleBinding',
      metadata: signerRole,
      roleRef: { apiGroup, kind: 'Role', name: signerRole.name },
      subjects: [{ apiGroup, kind: 'User', name: 'system:anonymous' }],
    },
  ]
}

function clusterBinding(name: string, clusterRole: string, group: string): object {
  return {
    ...rbac,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name: clusterRole },
    subjects: [{ apiGroup, kind: 'Group', name: group }],
  }
}
