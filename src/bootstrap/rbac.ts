import { nodeGroup } from '../pki/kubelet.ts'
import { kubeadmJoiners } from './token-secret.ts'

// What TLS bootstrap needs of RBAC, under the names that kubeadm gives (phases/bootstraptoken), so that applying it to a cluster of
// kubeadm's mends what is missing and changes nothing else. The roles themselves come with every API server.

const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' } as const
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
      metadata: { name: 'kubeadm:bootstrap-signer-clusterinfo', namespace: 'kube-public' },
      rules: [
        { apiGroups: [''], resources: ['configmaps'], resourceNames: ['cluster-info'], verbs: ['get'] },
      ],
    },
    {
      ...rbac,
      kind: 'RoleBinding',
      metadata: { name: 'kubeadm:bootstrap-signer-clusterinfo', namespace: 'kube-public' },
      roleRef: {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: 'Role',
        name: 'kubeadm:bootstrap-signer-clusterinfo',
      },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:anonymous' }],
    },
  ]
}

function clusterBinding(name: string, clusterRole: string, group: string): object {
  return {
    ...rbac,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
  }
}
