import { resources } from '../../cluster/kinds.ts'
import { each, type Right } from '../../cluster/rights.ts'
import type { Lookup } from '../../csr/approval/policy.ts'
import { controllerName, eventNamespace } from '../../csr/controller-events.ts'
import { etcdRotation } from '../../rotation/etcd/phase-table.ts'
import { manualRotation } from '../../rotation/phase-table.ts'
import { keyRotation } from '../../rotation/service-account-key/phase-table.ts'
import type { ApprovedBy, Enabled } from './approved-by.ts'
import { lookupsOf, signersOf } from './policy-rights.ts'

// Everything that the controller reads and writes, by the switch that needs it. `kcert controller check` and /readyz check this table,
// and the roles of `kcert controller manifest`, deploy/kustomize and deploy/helm grant it.

/** A part of the controller with roles of its own: kcert-controller-election, -approve and -watch. */
export type Part = 'election' | 'approve' | 'watch'

/** What turns a row on: a part, a lookup of the policy, or --watch-secrets. */
export type Switch = Part | Lookup | 'watchSecrets'

export interface NeededRights {
  readonly when: Switch
  readonly part: Part
  readonly neededFor: string
  readonly rights: readonly Right[]
}

const list = ({ group, resource }: Omit<Right, 'verb'>, namespace?: string): Right[] =>
  each('list', { group, resource, ...(namespace !== undefined && { namespace }) })

const configMap = (namespace: string, name: string): Right[] =>
  each('get', { group: '', resource: 'configmaps', namespace, name })

const certificates = { group: 'certificates.k8s.io' } as const
const reviews = each('create', { group: 'authorization.k8s.io', resource: 'subjectaccessreviews' })
const objects = [
  ...['configMaps', 'validating', 'mutating', 'apiServices', 'definitions', 'clusterTrustBundles'],
] as const satisfies readonly (keyof typeof resources)[]
const journals = [manualRotation, etcdRotation, keyRotation].map(({ journal }) => journal)

/**
 * Returns the table for a controller with its Lease in a namespace, which approves for these signers (see `signersOf`). It reads
 * nothing on nodes: nodes/proxy would let it run commands in pods.
 */
export function rightsTable(namespace: string, signers: readonly string[]): readonly NeededRights[] {
  const row = (part: Part, neededFor: string, rights: Right[], when: Switch = part): NeededRights => ({
    ...{ when, part, neededFor, rights },
  })
  const leases = { group: 'coordination.k8s.io', resource: 'leases' }
  return [
    row('approve', '--approve', [
      ...each('get list watch', { ...certificates, resource: 'certificatesigningrequests' }),
      ...each('update', { ...certificates, resource: 'certificatesigningrequests/approval' }),
      ...each('create', { group: '', resource: 'events', namespace: eventNamespace }),
    ]),
    row('election', 'election of the leader', [
      ...each('create', { ...leases, namespace }),
      ...each('get update', { ...leases, namespace, name: controllerName }),
    ]),
    ...signers.map((name) =>
      row(
        'approve',
        `approval for ${name}`,
        each('approve', { ...certificates, resource: 'signers', ...(name !== '*' && { name }) }),
      ),
    ),
    // src/cluster/approval-facts.ts and cluster-addresses.ts, and src/app/csr/approval-facts.ts.
    row('approve', 'policy: whether RBAC lets a requester have its certificate', reviews, 'access'),
    row(
      'approve',
      'policy: Nodes and their addresses',
      each('get list', { group: '', resource: 'nodes' }),
      'nodes',
    ),
    row(
      'approve',
      'policy: addresses of API servers and Services',
      [
        ...list({ group: 'networking.k8s.io', resource: 'servicecidrs' }),
        ...list(resources.endpointSlices, 'default'),
        ...configMap('kube-public', 'cluster-info'),
        ...configMap('kube-system', 'kubeadm-config'),
      ],
      'cluster-addresses',
    ),
    row(
      'approve',
      'policy: certificates that kubelets serve now',
      configMap('kube-system', 'kube-root-ca.crt'),
      'served-certificates',
    ),
    row(
      'watch',
      '--watch: certificates in objects',
      objects.flatMap((one) => list(resources[one])),
    ),
    row('watch', '--watch: served certificates', [
      ...list(resources.nodes),
      ...list(resources.endpointSlices),
      ...each('get', { group: '', resource: 'services' }),
      ...list(resources.pods, 'kube-system'),
      ...configMap('default', 'kube-root-ca.crt'),
    ]),
    row('watch', '--watch: pending CSRs', [
      ...list(resources.requests),
      ...list(resources.clusterRoles),
      ...list(resources.clusterRoleBindings),
      ...each('list', { group: '', resource: 'events', namespace: eventNamespace }),
      ...each('get', { ...leases, namespace: 'kube-system', name: 'kube-controller-manager' }),
      ...reviews,
    ]),
    row('watch', '--watch: cluster-info', [
      ...configMap('kube-public', 'cluster-info'),
      ...configMap('kube-public', 'kube-root-ca.crt'),
    ]),
    row(
      'watch',
      '--watch: phases of rotations',
      journals.flatMap((name) => configMap('kube-system', name)),
    ),
    row('watch', '--watch: certificates in Secrets', list(resources.secrets), 'watchSecrets'),
  ]
}

interface EnabledParts {
  readonly approve?: Pick<ApprovedBy, 'policies'> | undefined
  readonly watch?: Enabled['watch']
}

/** Returns the rows of the table that a controller with these parts needs. */
export function neededRights({ approve, watch }: EnabledParts, namespace: string): readonly NeededRights[] {
  const policies = approve?.policies ?? []
  const on = new Set<Switch>(['election', ...lookupsOf(policies)])
  if (approve !== undefined) on.add('approve')
  if (watch !== undefined) on.add('watch')
  if (watch?.readSecrets === true) on.add('watchSecrets')
  return rightsTable(namespace, signersOf(policies)).filter(({ when }) => on.has(when))
}
