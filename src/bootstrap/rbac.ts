import { nodeGroup } from '../pki/kubelet.ts'
import { kubeadmJoiners } from './token-secret.ts'

// The RBAC objects that TLS bootstrap needs, with kubeadm's names (phases/bootstraptoken), so that applying them to a kubeadm
// cluster restores the missing ones and changes nothing else. Every API server creates the roles itself.

const apiGroup = 'rbac.authorization.k8s.io'
const rbac = { apiVersion: `${apiGroup}/v1` } as const
const signerRole = { name: 'kubeadm:bootstrap-signer-clusterinfo', namespace: 'kube-public' } as const
const role = 'system:certificates.k8s.io:certificatesigningrequests'

/** Returns the bindings for tokens with this group, as Kubernetes objects. */
export function bootstrapRbac(group: string): object[] {
  // Bindings with kubeadm's names for another group would revoke the permissions of kubeadm's group.
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
