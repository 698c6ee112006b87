import { resources } from '../../cluster/kinds.ts'
import { eventNamespace } from '../../csr/controller-events.ts'
import { etcdRotation } from '../../rotation/etcd/phase-table.ts'
import { manualRotation } from '../../rotation/phase-table.ts'
import { keyRotation } from '../../rotation/service-account-key/phase-table.ts'
import { each, type Right } from './rights.ts'
import type { WatchSettings } from './watch/watcher.ts'

// The permissions of --watch. It writes nothing, and reads nothing on nodes: nodes/proxy would let it run commands in pods.

type NamedRights = readonly (readonly [neededFor: string, rights: readonly Right[]])[]

const list = ({ group, resource }: Omit<Right, 'verb'>, namespace?: string): Right[] =>
  each('list', { group, resource, ...(namespace !== undefined && { namespace }) })

const configMap = (namespace: string, name: string): Right[] =>
  each('get', { group: '', resource: 'configmaps', namespace, name })

const objects = [
  ...['configMaps', 'validating', 'mutating', 'apiServices', 'definitions', 'clusterTrustBundles'],
] as const satisfies readonly (keyof typeof resources)[]

const rows: NamedRights = [
  ['certificates in objects', objects.flatMap((one) => list(resources[one]))],
  [
    'served certificates',
    [
      ...list(resources.nodes),
      ...list(resources.endpointSlices),
      ...each('get', { group: '', resource: 'services' }),
      ...list(resources.pods, 'kube-system'),
      ...configMap('default', 'kube-root-ca.crt'),
    ],
  ],
  [
    'pending CSRs',
    [
      ...list(resources.requests),
      ...list(resources.clusterRoles),
      ...list(resources.clusterRoleBindings),
      ...each('list', { group: '', resource: 'events', namespace: eventNamespace }),
      ...each('get', {
        ...{ group: 'coordination.k8s.io', resource: 'leases' },
        ...{ namespace: 'kube-system', name: 'kube-controller-manager' },
      }),
      ...each('create', { group: 'authorization.k8s.io', resource: 'subjectaccessreviews' }),
    ],
  ],
  [
    'cluster-info',
    [...configMap('kube-public', 'cluster-info'), ...configMap('kube-public', 'kube-root-ca.crt')],
  ],
  [
    'phases of rotations',
    [manualRotation, etcdRotation, keyRotation].flatMap(({ journal }) => configMap('kube-system', journal)),
  ],
]

/** Returns the permissions that --watch needs, and what needs them. */
export function rightsToWatch({ readSecrets }: Pick<WatchSettings, 'readSecrets'>): NamedRights {
  return readSecrets ? [...rows, ['certificates in Secrets', list(resources.secrets)]] : rows
}
