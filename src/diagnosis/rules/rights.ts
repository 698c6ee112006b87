import { commandLine } from '../../errors/command-line.ts'
import type { Found } from '../found.ts'
import { kubeconfigOf } from '../place.ts'
import { check, type Rule } from '../rule.ts'

// HTTP status 403: the API server knows who asks. It is RBAC that says no, but a certificate says who one is.

const isUser =
  (...beginnings: readonly string[]) =>
  ({ user }: Found): boolean =>
    user !== undefined && beginnings.some((beginning) => user.startsWith(beginning))

const theUser = ({ user }: Found): string | undefined =>
  user === undefined ? undefined : `the user is ${user}`

export const rightsRules: readonly Rule[] = [
  {
    id: 'forbidden',
    words: ['is forbidden: User "'],
    means: ({ user }) =>
      `the API server knows who asks${user === undefined ? '' : ` (${user})`}, and that user has no right to do it (HTTP status 403): certificate or token are accepted`,
    causes: [
      {
        id: 'bootstrap-rights-missing',
        holds: isUser('system:bootstrap:', 'kubelet-bootstrap'),
        evidence: theUser,
        detail:
          'the groups of a bootstrap token lack the bindings of TLS bootstrap, or the token has other groups than the bindings (system:bootstrappers:kubeadm:default-node-token)',
        checks: ({ user }) => [
          check(
            user?.startsWith('system:bootstrap:') === true
              ? commandLine`kcert token check ${user.slice('system:bootstrap:'.length)}`
              : 'kcert token list',
            'the groups and usages of the token',
          ),
          check('kcert bootstrap rbac', 'the bindings that are needed, for kubectl apply'),
        ],
      },
      {
        id: 'node-may-only-its-own',
        holds: isUser('system:node:'),
        evidence: theUser,
        detail:
          "kubelets may read what belongs to their own pods only (Node authorizer): somebody else uses the kubelet's kubeconfig, or the certificate is of another node than the Node is called",
        checks: ({ user }) => [
          check('kcert kubelet doctor', `on the node: whose certificate it has; here ${user}`),
        ],
      },
      {
        id: 'admin-binding-missing',
        holds: isUser('kubernetes-admin', 'kubernetes-super-admin'),
        evidence: theUser,
        detail:
          'since Kubernetes 1.29 admin.conf is of the group kubeadm:cluster-admins, which needs a ClusterRoleBinding; an admin.conf that was made by a newer kubeadm, or a restored etcd, has none',
        checks: () => [
          check('kcert inspect /etc/kubernetes/admin.conf', 'the groups (O) of its certificate'),
          check(
            'kcert inspect /etc/kubernetes/super-admin.conf',
            'system:masters, which needs no binding: with this one the binding kubeadm:cluster-admins is made',
          ),
        ],
      },
      {
        id: 'no-role',
        holds: (found) =>
          !isUser(
            'system:bootstrap:',
            'kubelet-bootstrap',
            'system:node:',
            'kubernetes-admin',
            'kubernetes-super-admin',
          )(found),
        detail:
          'no RoleBinding or ClusterRoleBinding gives it to this user or one of its groups; or it is another user than was meant (CN and O of the client certificate)',
        checks: (found) => [
          check(
            commandLine`kcert inspect ${kubeconfigOf(found)}`,
            'as whom the client certificate comes: CN is the user, O are the groups',
          ),
        ],
      },
    ],
  },
  {
    id: 'forbidden-without-user',
    isGeneric: true,
    words: ['403 Forbidden', '(403) Reason: Forbidden'],
    means:
      'the server knows who asks, and that user has no right to do it: TLS and the credential were accepted',
    causes: [
      {
        id: 'no-role',
        detail: 'a right that the user, its groups or the ServiceAccount does not have (RBAC)',
        checks: (found) => [
          check(
            commandLine`kcert inspect ${kubeconfigOf(found)}`,
            'as whom a client certificate comes: CN is the user, O are the groups',
          ),
        ],
      },
    ],
  },
]
