import { parseAllDocuments } from 'yaml'
import { ttlMetrics } from '../../src/app/kubelet/forecast-live.ts'
import { bootstrapRbac } from '../../src/bootstrap/rbac.ts'
import { kubeadmJoiners } from '../../src/bootstrap/token-secret.ts'
import { resources } from '../../src/cluster/kinds.ts'
import { handshakeErrors } from '../../src/rotation-io/watching-handshakes.ts'
import { filesOfGuide } from '../guides/blocks.ts'
import type { Cluster } from './fixture.ts'
import { allReleases } from './spec.ts'

// kcert's requirements of every minor version: kinds of objects with their verbs, ClusterRoles, metrics.

interface Need {
  readonly group: string
  /** With its subresource: "nodes/proxy". */
  readonly resource: string
  readonly verb: string
}

interface Manifest {
  readonly kind?: string
  readonly roleRef?: { readonly kind: string; readonly name: string }
  readonly rules?: readonly {
    apiGroups: readonly string[]
    resources: readonly string[]
    verbs: readonly string[]
  }[]
}

/** Requirements of commands in addition to the kinds of the rotation and the rights in the guides. */
const byCommands: readonly Need[] = [
  { group: '', resource: 'nodes/proxy', verb: 'get' },
  { group: '', resource: 'pods/eviction', verb: 'create' },
  { group: '', resource: 'pods/log', verb: 'get' },
  { group: '', resource: 'endpoints', verb: 'get' },
  { group: '', resource: 'serviceaccounts/token', verb: 'create' },
  { group: 'authentication.k8s.io', resource: 'selfsubjectreviews', verb: 'create' },
  { group: 'authentication.k8s.io', resource: 'tokenreviews', verb: 'create' },
  { group: 'authorization.k8s.io', resource: 'selfsubjectaccessreviews', verb: 'create' },
  { group: 'authorization.k8s.io', resource: 'subjectaccessreviews', verb: 'create' },
  { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', verb: 'create' },
  { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', verb: 'watch' },
  { group: 'certificates.k8s.io', resource: 'certificatesigningrequests/status', verb: 'update' },
]

/** Returns the requirements that this cluster does not meet; empty for a supported minor version. */
export async function lackingNeeds(cluster: Cluster): Promise<string[]> {
  const raw = async (path: string): Promise<string> =>
    (await cluster.kubectl(['get', '--raw', path], { mayFail: true })).stdout
  const lacking: string[] = []
  const served = new Map<string, ReadonlyMap<string, readonly string[]>>()
  for (const { group, resource, verb } of needs(cluster)) {
    const path = group === '' ? '/api/v1' : `/apis/${group}/v1`
    if (!served.has(path)) served.set(path, kindsIn(await raw(path)))
    if (!served.get(path)?.get(resource)?.includes(verb)) lacking.push(`${verb} of ${path}/${resource}`)
  }
  for (const role of clusterRoles()) {
    const { code } = await cluster.kubectl(['get', 'clusterrole', role], { mayFail: true })
    if (code !== 0) lacking.push(`ClusterRole ${role}`)
  }
  const metrics: (readonly [path: string, name: string])[] = [
    ['/metrics', handshakeErrors],
    ...cluster
      .nodes()
      .flatMap(({ name }) =>
        Object.values(ttlMetrics).map((metric) => [`/api/v1/nodes/${name}/proxy/metrics`, metric] as const),
      ),
  ]
  for (const [path, name] of metrics)
    if (!new RegExp(`^${name} \\S+$`, 'm').test(await raw(path))) lacking.push(`${name} in ${path}`)
  return lacking
}

function needs({ spec }: Cluster): Need[] {
  const listed = Object.values(resources).map(({ group, resource }) => ({ group, resource, verb: 'list' }))
  const isNew = allReleases.indexOf(spec.kubernetes['control-plane']) >= allReleases.indexOf('1.37')
  // Kinds with older versions are v1 since 1.37, and disabled before.
  const young = Object.values(resources).flatMap((one) => ('olderVersions' in one ? [one.resource] : []))
  const absent: readonly string[] = isNew ? [] : young
  // A signer exists only as a name in RBAC.
  return [...listed, ...byGuides(), ...byCommands].filter(
    ({ resource }) => resource !== 'signers' && !absent.includes(resource),
  )
}

function byGuides(): Need[] {
  const manifests = [
    filesOfGuide('approve-kubelet-serving')['rbac.yaml']!,
    filesOfGuide('monitoring')['kcert-cronjob.yaml']!,
  ].flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Manifest))
  return manifests.flatMap(({ rules = [] }) =>
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => ({ group, resource, verb }))),
      ),
    ),
  )
}

/** Returns ClusterRoles of Kubernetes that kcert or its user binds. */
function clusterRoles(): string[] {
  const bound = (bootstrapRbac(kubeadmJoiners) as Manifest[]).flatMap(({ roleRef }) =>
    roleRef?.kind === 'ClusterRole' ? [roleRef.name] : [],
  )
  return [...bound, 'system:kubelet-api-admin']
}

/** Returns verbs by resource from a group's discovery; empty where the group is not served. */
function kindsIn(text: string): ReadonlyMap<string, readonly string[]> {
  if (text === '') return new Map()
  const { resources: found } = JSON.parse(text) as {
    resources: readonly { readonly name: string; readonly verbs: readonly string[] }[]
  }
  return new Map(found.map(({ name, verbs }) => [name, verbs]))
}
