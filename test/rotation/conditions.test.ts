import { describe, expect, test } from 'vitest'
import type { Condition } from '../../src/rotation/action.ts'
import type { CertificateRecord } from '../../src/rotation/certificate-record.ts'
import { locationOfCondition, missingFor, secondsUntil, sectionsOf } from '../../src/rotation/conditions.ts'
import type { PodSnapshot, Sections, Snapshot } from '../../src/rotation/snapshot.ts'

// Each condition on a snapshot that meets it, and on snapshots that differ in one value.

type Wanted = { contains: string[]; lacks: string[] }
const both: Wanted = { contains: ['old', 'new'], lacks: [] }
const newAlone: Wanted = { contains: ['new'], lacks: ['old'] }
const leaf = { digest: 'leaf', signedBy: 'new-key' } as CertificateRecord
const nothing = new Map<string, never>()

const empty: Sections = {
  nodes: [],
  components: [],
  kubelets: [],
  etcdMembers: [],
  files: nothing,
  kubeconfigs: [],
  published: [],
  pods: [],
  backends: [],
  workloads: [],
  caBundles: [],
  stored: { examined: 0, objects: [], unread: [] },
  clusterInfo: undefined,
  extensionAuthentication: undefined,
  kubeadm: undefined,
  leases: [],
  handshakes: [],
  servedKeys: [],
  tokens: { nodes: [], objects: [], drivers: { value: [] } },
  evidence: nothing,
  copies: [],
  intents: [],
}

function missing(until: Condition, observed: Partial<Snapshot> = {}): string[] {
  const snapshot = { ...empty, atMs: 1_000, certificates: new Map([['leaf', leaf]]), ...observed }
  return missingFor(until, snapshot).map(({ at, what }) => `${at}: ${what}`)
}

function pod(trust: readonly string[], more: Partial<PodSnapshot> = {}): PodSnapshot {
  const volume = { trust, changedAtMs: 500 }
  return { id: 'default/web-1', uid: '1', node: 'w1', startedAtMs: 600, rereads: false, volume, ...more }
}

describe('published', () => {
  const object = {
    kind: 'ConfigMap',
    name: 'default/kube-root-ca.crt',
    isActive: true,
    changedAtMs: 0,
  } as const
  const at = 'ConfigMap default/kube-root-ca.crt'

  test.each<[string, readonly string[] | undefined, Wanted, string[]]>([
    ['both CAs', ['old', 'new'], both, []],
    ['a third CA in addition to both', ['new', 'x', 'old'], both, []],
    ['the old CA alone when both are required', ['old'], both, [`${at}: unchanged`]],
    ['no CA', [], both, [`${at}: unchanged`]],
    ['no object', undefined, both, [`${at}: not found`]],
    ['the new CA alone', ['new'], newAlone, []],
    ['both CAs when the old one must be gone', ['old', 'new'], newAlone, [`${at}: unchanged`]],
  ])('%s', (_, trust, wanted, expected) => {
    const published = [{ ...object, ...(trust && { trust }) }]
    expect(missing({ kind: 'published', bundles: true, ...wanted }, { published })).toEqual(expected)
  })

  test.each([
    ['no namespace', []],
    ['a terminating namespace alone', [{ ...object, isActive: false, trust: ['old', 'new'] }]],
  ])('%s: the published CAs are unknown', (_, published) => {
    const nowhere = 'ConfigMap kube-root-ca.crt: not found in any namespace'
    expect(missing({ kind: 'published', bundles: true, ...both }, { published })).toEqual([nowhere])
  })

  test.each([
    [true, ['ClusterTrustBundle a:b: unchanged']],
    [false, []],
  ])('waits for a ClusterTrustBundle where bundles exist: %j', (bundles, expected) => {
    const bundle = { ...object, kind: 'ClusterTrustBundle', name: 'a:b', trust: ['old'] } as const
    const published = [{ ...object, trust: ['old', 'new'] }, bundle]
    expect(missing({ kind: 'published', bundles, ...both }, { published })).toEqual(expected)
  })

  test('does not wait for a terminating namespace', () => {
    const published = [
      { ...object, isActive: false, trust: [] },
      { ...object, trust: ['old', 'new'] },
    ]
    expect(missing({ kind: 'published', bundles: true, ...both }, { published })).toEqual([])
  })
})

describe('volumes', () => {
  test.each<[string, PodSnapshot, string[]]>([
    ['a volume with both CAs', pod(['old', 'new']), []],
    ['a volume with the old CA', pod(['old']), ['Pod default/web-1: its volume is unchanged']],
  ])('%s', (_, one, expected) => {
    expect(missing({ kind: 'volumes', ...both }, { pods: [one] })).toEqual(expected)
  })

  test('does not wait for a pod on an unreadable node', () => {
    const { volume: _, ...unread } = pod([])
    expect(missing({ kind: 'volumes', ...both }, { pods: [unread] })).toEqual([])
  })
})

describe('pods-converged', () => {
  const workload = 'Deployment default/web'
  const late = ['Pod default/web-1: not replaced yet']
  const until = { kind: 'pods-converged', workload, contains: ['new'] } as const

  test.each<[string, PodSnapshot[], string[]]>([
    ['a pod that started after its volume changed', [pod(['new'], { workload })], []],
    ['a pod that started in the same millisecond', [pod(['new'], { workload, startedAtMs: 500 })], []],
    ['a pod that started before its volume changed', [pod(['new'], { workload, startedAtMs: 499 })], late],
    ['a pod whose volume has the old CA', [pod(['old'], { workload })], late],
    ['a late pod of another workload', [pod(['new'], { workload }), pod(['old'], { workload: 'x' })], []],
    ['no pod of the workload', [pod(['new'])], [`${workload}: no pod runs`]],
  ])('%s', (_, pods, expected) => {
    expect(missing(until, { pods })).toEqual(expected)
  })

  test('without a workload, includes every pod, and nothing is pending without pods', () => {
    const all = { kind: 'pods-converged', contains: ['new'] } as const
    expect(missing(all, { pods: [pod(['old'], { workload }), pod(['new'])] })).toEqual(late)
    expect(missing(all)).toEqual([])
  })

  test('does not report a pod with an unknown volume as late', () => {
    const { volume: _, ...unread } = pod([], { workload })
    expect(missing(until, { pods: [unread] })).toEqual([])
  })
})

test.each<[string, PodSnapshot[], string[]]>([
  ['a pod that started at the instant', [pod([], { workload: 'a', startedAtMs: 700 })], []],
  [
    'a pod that started earlier',
    [pod([], { workload: 'a', startedAtMs: 699 })],
    ['Pod default/web-1: not replaced yet'],
  ],
  ['an old pod of another workload', [pod([], { workload: 'a', startedAtMs: 700 }), pod([])], []],
  ['no pod of the workload', [pod([])], ['a: no pod runs']],
])('pods-started: %s', (_, pods, expected) => {
  expect(missing({ kind: 'pods-started', workload: 'a', sinceMs: 700 }, { pods })).toEqual(expected)
})

describe('serves', () => {
  const server = 'cp1/kube-apiserver'
  const until = { kind: 'serves', server, signedBy: 'new-key' } as const
  const shows = (...chain: string[]): Partial<Snapshot> => ({
    handshakes: [
      { server: 'cp2/kube-apiserver', chain: ['other'], atMs: 0 },
      { server, chain, atMs: 0 },
    ],
  })

  test.each<[string, Condition, Partial<Snapshot>, string[]]>([
    ['a leaf of the new key', until, shows('leaf'), []],
    [
      'a leaf of another key',
      { ...until, signedBy: 'old-key' },
      shows('leaf'),
      ['serves its previous certificate'],
    ],
    ['a leaf that was never read', until, shows('unread'), ['serves its previous certificate']],
    ['an empty chain', until, shows(), ['serves its previous certificate']],
    ['no response', until, { handshakes: [] }, ['does not answer']],
    [
      'a missing bridge certificate',
      { ...until, bridged: true },
      shows('leaf'),
      ['does not serve the bridge certificate'],
    ],
    ['a required bridge certificate', { ...until, bridged: true }, shows('leaf', 'bridge'), []],
    [
      'a bridge certificate that must be gone',
      { ...until, bridged: false },
      shows('leaf', 'bridge'),
      ['still serves the bridge certificate'],
    ],
    ['no bridge certificate when none is allowed', { ...until, bridged: false }, shows('leaf'), []],
    ['an optional bridge certificate', until, shows('leaf', 'bridge'), []],
  ])('%s', (_, condition, observed, expected) => {
    expect(missing(condition, observed)).toEqual(expected.map((what) => `${server}: ${what}`))
  })
})

describe('cluster-info-signed', () => {
  const until = { kind: 'cluster-info-signed', trust: ['old', 'new'] } as const
  const at = 'ConfigMap kube-public/cluster-info'
  const signatures = [
    { tokenId: 'aaaaaa', isValid: true },
    { tokenId: 'bbbbbb', isValid: false },
  ]

  test.each<[string, Partial<Snapshot>, string[]]>([
    ['no ConfigMap', {}, [`${at}: has other content`]],
    [
      'another order',
      { clusterInfo: { version: '1', trust: ['new', 'old'], signatures: [] } },
      [`${at}: has other content`],
    ],
    [
      'the content, without tokens',
      { clusterInfo: { version: '1', trust: ['old', 'new'], signatures: [] } },
      [],
    ],
    [
      'a token without a valid signature',
      { clusterInfo: { version: '1', trust: ['old', 'new'], signatures } },
      [`${at}: not signed for token bbbbbb`],
    ],
  ])('%s', (_, observed, expected) => {
    expect(missing(until, observed)).toEqual(expected)
  })
})

describe('extension-authentication', () => {
  const until = {
    kind: 'extension-authentication',
    client: ['c'],
    requestheader: ['r'],
    lacks: ['old'],
  } as const
  const at = 'ConfigMap kube-system/extension-apiserver-authentication'
  const containing = (client: string[], requestheader: string[]): Partial<Snapshot> => ({
    extensionAuthentication: { version: '1', changedAtMs: 0, client, requestheader, allowsAnyName: false },
  })

  test.each<[string, Partial<Snapshot>, string[]]>([
    ['no ConfigMap', {}, [`${at}: not found`]],
    ['both lists', containing(['c', 'x'], ['r']), []],
    ['a client list without the CA', containing(['x'], ['r']), [`${at}: has other content`]],
    ['a requestheader list without the CA', containing(['c'], ['x']), [`${at}: has other content`]],
    ['the old CA among the clients', containing(['c', 'old'], ['r']), [`${at}: has other content`]],
    ['the old CA in the requestheader list', containing(['c'], ['r', 'old']), [`${at}: has other content`]],
  ])('%s', (_, observed, expected) => {
    expect(missing(until, observed)).toEqual(expected)
  })
})

test.each<[string, Condition, Partial<Snapshot>, string[]]>([
  [
    'a Lease with a holder',
    { kind: 'leader', lease: 'a' },
    {
      leases: [
        { name: 'b', renewedAtMs: 0 },
        { name: 'a', holder: 'cp1', renewedAtMs: 0 },
      ],
    },
    [],
  ],
  [
    'a Lease without a holder',
    { kind: 'leader', lease: 'a' },
    {
      leases: [
        { name: 'b', holder: 'cp1', renewedAtMs: 0 },
        { name: 'a', renewedAtMs: 0 },
      ],
    },
    ['a: no leader'],
  ],
  ['no Lease', { kind: 'leader', lease: 'a' }, {}, ['a: no leader']],
  [
    'pods behind Services that are not Ready since before, or on another node',
    { kind: 'backends-ready', node: 'w1', sinceMs: 500 },
    {
      backends: [
        { pod: 'a', node: 'w1', isReady: false, changedAtMs: 499, services: ['s'] },
        { pod: 'b', node: 'w1', isReady: true, changedAtMs: 900, services: ['s'] },
        { pod: 'c', node: 'w2', isReady: false, changedAtMs: 900, services: ['s'] },
      ],
    },
    [],
  ],
  [
    'a pod behind Services that is not Ready since then',
    { kind: 'backends-ready', node: 'w1', sinceMs: 500 },
    { backends: [{ pod: 'a', node: 'w1', isReady: false, changedAtMs: 500, services: ['s', 't'] }] },
    ['Pod a: not Ready, selected by Service s, t'],
  ],
  [
    'a ready node',
    { kind: 'node-ready', node: 'w1' },
    { nodes: [{ name: 'w1', isReady: true }] as never },
    [],
  ],
  [
    'a node that is not ready',
    { kind: 'node-ready', node: 'w1' },
    {
      nodes: [
        { name: 'w2', isReady: true },
        { name: 'w1', isReady: false },
      ] as never,
    },
    ['w1: not Ready'],
  ],
  ['an unknown node', { kind: 'node-ready', node: 'w1' }, {}, ['w1: not Ready']],
  [
    'an available API',
    { kind: 'available', bundle: 'x' },
    {
      caBundles: [
        { id: 'y', isAvailable: false },
        { id: 'x', isAvailable: true },
      ] as never,
    },
    [],
  ],
  [
    'an unavailable API',
    { kind: 'available', bundle: 'x' },
    {
      caBundles: [
        { id: 'y', isAvailable: true },
        { id: 'x', isAvailable: false },
      ] as never,
    },
    ['x: not available'],
  ],
  ['a missing API', { kind: 'available', bundle: 'x' }, {}, ['x: not found']],
  [
    'a missing API next to another one',
    { kind: 'available', bundle: 'x' },
    { caBundles: [{ id: 'y', isAvailable: true }] as never },
    ['x: not found'],
  ],
  ['a past instant', { kind: 'instant', atMs: 1_000 }, {}, []],
  ['an instant in the next second', { kind: 'instant', atMs: 1_001 }, {}, ['clock: 1 s left']],
  ['an instant in five seconds', { kind: 'instant', atMs: 6_000 }, {}, ['clock: 5 s left']],
])('%s', (_, until, observed, expected) => {
  expect(missing(until, observed)).toEqual(expected)
})

describe('healthy', () => {
  const until = { kind: 'healthy', process: 'cp1/kube-apiserver' } as const
  const component = (isHealthy?: boolean) =>
    ({
      id: 'cp1/kube-apiserver',
      ...(isHealthy !== undefined && { process: { startedAtMs: 0, flags: {}, isHealthy } }),
    }) as unknown as Snapshot['components'][number]

  test.each<[string, Snapshot['components'], string[]]>([
    ['a healthy process', [component(true)], []],
    ['a process that is not healthy', [component(false)], ['cp1/kube-apiserver: not healthy']],
    ['no process', [component()], ['cp1/kube-apiserver: not healthy']],
    ['no such component', [], ['cp1/kube-apiserver: not healthy']],
  ])('%s', (_, components, expected) => {
    expect(missing(until, { components })).toEqual(expected)
  })
})

describe('etcd-serves', () => {
  const until = { kind: 'etcd-serves', member: 'cp1/etcd', signedBy: 'new-key', bridged: true } as const
  const about = { id: 'cp1/etcd', node: 'cp1', runsAs: 'static-pod', flags: {} } as const
  const served = (client: readonly string[], peer: readonly string[]) => ({
    etcdMembers: [{ ...about, served: { client, peer } }],
  })
  const good = ['leaf', 'bridge']
  const ofClient = 'cp1/etcd, client port: '
  const ofPeer = 'cp1/etcd, peer port: '

  test.each<[string, Partial<Snapshot>, boolean, string[]]>([
    ['both chains with the bridge certificate', served(good, good), true, []],
    ['both chains without it', served(['leaf'], ['leaf']), false, []],
    ['no answer on one port', served(good, []), true, [`${ofPeer}does not answer`]],
    ['no member', {}, true, [`${ofClient}does not answer`, `${ofPeer}does not answer`]],
    [
      'a leaf of another key',
      served(['another', 'bridge'], good),
      true,
      [`${ofClient}serves its previous certificate`],
    ],
    [
      'a chain without the bridge certificate',
      served(['leaf'], good),
      true,
      [`${ofClient}does not serve the bridge certificate`],
    ],
    [
      'a chain with the bridge certificate that must be gone',
      served(['leaf'], good),
      false,
      [`${ofPeer}still serves the bridge certificate`],
    ],
  ])('%s', (_, observed, bridged, expected) => {
    expect(missing({ ...until, bridged }, observed)).toEqual(expected)
  })
})

test('etcd-quorum: without members, there is no quorum', () => {
  expect(missing({ kind: 'etcd-quorum', forMs: 5_000 })).toContain('etcd: no member was found')
})

test.each<[Condition['kind'], readonly string[]]>([
  ['published', ['published']],
  ['volumes', ['pods']],
  ['pods-converged', ['pods']],
  ['pods-started', ['pods']],
  ['serves', ['handshakes']],
  ['cluster-info-signed', ['clusterInfo']],
  ['extension-authentication', ['extensionAuthentication']],
  ['leader', ['leases']],
  ['available', ['caBundles']],
  ['node-ready', ['nodes']],
  ['backends-ready', ['backends']],
  ['healthy', ['components']],
  ['etcd-quorum', ['etcdMembers']],
  ['etcd-serves', ['etcdMembers']],
  ['instant', []],
])('%s reads the sections %j', (kind, expected) => {
  expect(sectionsOf({ kind } as Condition)).toEqual(expected)
})

test.each<[Condition, string]>([
  [{ kind: 'published', bundles: true, ...both }, 'cluster'],
  [{ kind: 'volumes', ...both }, 'cluster'],
  [{ kind: 'pods-converged', contains: [] }, 'pods'],
  [{ kind: 'pods-converged', contains: [], workload: 'Deployment a/b' }, 'Deployment a/b'],
  [{ kind: 'pods-started', workload: 'DaemonSet a/b', sinceMs: 0 }, 'DaemonSet a/b'],
  [{ kind: 'serves', server: 'cp1/kube-apiserver', signedBy: 'x' }, 'cp1/kube-apiserver'],
  [{ kind: 'leader', lease: 'a' }, 'cluster'],
  [{ kind: 'node-ready', node: 'w1' }, 'w1'],
  [{ kind: 'backends-ready', node: 'w1', sinceMs: 0 }, 'w1'],
  [{ kind: 'healthy', process: 'cp1/kube-apiserver' }, 'cp1/kube-apiserver'],
  [{ kind: 'etcd-quorum', forMs: 0 }, 'etcd'],
  [{ kind: 'etcd-serves', member: 'cp1/etcd', signedBy: 'x', bridged: true }, 'cp1/etcd'],
  [{ kind: 'instant', atMs: 0 }, 'cluster'],
])('returns the location of %j in a plan: %s', (condition, expected) => {
  expect(locationOfCondition(condition)).toBe(expected)
})

test('estimates the seconds of a condition: until an instant, and 0 after it', () => {
  expect(secondsUntil({ kind: 'volumes', ...both }, 1_000)).toBe(80)
  expect(secondsUntil({ kind: 'instant', atMs: 61_000 }, 1_000)).toBe(60)
  expect(secondsUntil({ kind: 'instant', atMs: 500 }, 1_000)).toBe(0)
})
