import { expect, test } from 'vitest'
import type { Condition } from '../../src/rotation/action.ts'
import { missingFor } from '../../src/rotation/conditions.ts'
import { phaseNumbered, playbook } from '../../src/rotation/playbook.ts'
import { earliestPhase, positionOf } from '../../src/rotation/position.ts'
import { preflight } from '../../src/rotation/refusals.ts'
import { type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import type { CaChange, Target } from '../../src/rotation/target.ts'
import { Scene } from './scene.ts'

// Refusals, positions and conditions: each rule on a snapshot with one change.

const small = { controlPlanes: 2, workers: 1 } as const

async function observeIn(scene: Scene): Promise<{ observed: Snapshot; target: Target }> {
  return scene.asProcess((rotation) => rotation.observe(sectionNames))
}

async function refusedFor(
  change: (on: { observed: Snapshot; target: Target }) => {
    observed?: Partial<Snapshot>
    target?: Partial<Target>
  },
  phase = 1,
): Promise<string[]> {
  const on = await observeIn(new Scene(small))
  expect(preflight(on.observed, on.target, phaseNumbered(phase))).toEqual([])
  const { observed = {}, target = {} } = change(on)
  const refusals = preflight(
    { ...on.observed, ...observed },
    { ...on.target, ...target },
    phaseNumbered(phase),
  )
  for (const { why, next } of refusals) expect([why, next].every((text) => text.length > 10)).toBe(true)
  return refusals.map(({ what }) => what)
}

function ofCluster(target: Target, change: (of: CaChange) => CaChange): Partial<Target> {
  return { changes: target.changes.map((one) => (one.ca === 'cluster' ? change(one) : one)) }
}

test.for(['managed', 'k3s', 'rke2'])('refuses a cluster of %s', async (layout) => {
  const what = await refusedFor(({ observed }) => ({
    observed: { nodes: observed.nodes.map((one) => ({ ...one, layout })) },
  }))
  expect(what).toEqual([`kcert does not rotate ${layout} clusters: cp1, cp2, w1`])
})

test('refuses a cluster without an observed API server', async () => {
  expect(await refusedFor(() => ({ observed: { components: [] } }))).toContain(
    'no kube-apiserver was found on any node',
  )
})

test('refuses one CA for cluster and front proxy', async () => {
  const what = await refusedFor(({ target }) => {
    const { oldCa } = target.changes[1]!
    return { target: ofCluster(target, (one) => ({ ...one, oldCa })) }
  })
  expect(what).toContain('the cluster and the front proxy share one CA')
})

test('refuses one CA for cluster and etcd', async () => {
  const what = await refusedFor(({ observed }) => ({
    observed: {
      components: observed.components.map((one) =>
        one.name === 'kube-apiserver'
          ? { ...one, flags: { ...one.flags, 'etcd-cafile': one.flags['client-ca-file']! } }
          : one,
      ),
    },
  }))
  expect(what).toEqual(['the cluster and etcd share one CA (on cp1)'])
})

test('refuses an expired CA, with the next step', async () => {
  const { observed, target } = await observeIn(new Scene(small))
  const expired = ofCluster(target, (one) => ({ ...one, oldCa: { ...one.oldCa, notAfterMs: observed.atMs } }))
  const [refusal, ...more] = preflight(observed, { ...target, ...expired }, phaseNumbered(1))
  expect(more).toEqual([])
  expect(refusal?.what).toBe(`the cluster CA has expired: ${new Date(observed.atMs).toISOString()}`)
  expect(refusal?.next).toContain('kcert rotate-ca recover')
})

test('refuses a new CA with the old name and no key identifiers', async () => {
  const what = await refusedFor(({ target }) => ({
    target: ofCluster(target, (one) => {
      const { subjectKeyId: _, ...newCa } = {
        ...one.newCa,
        subject: one.oldCa.subject,
        issuer: one.oldCa.subject,
      }
      return { ...one, newCa }
    }),
  }))
  expect(what).toEqual(['the new cluster CA has the name of the old one: CN=kubernetes'])
})

test('refuses a CA without its key on a node only in phase 1', async () => {
  const withoutKeys = ({ observed }: { observed: Snapshot }) => ({
    observed: { files: new Map([...observed.files].filter(([key]) => !key.endsWith('/ca.key'))) },
  })
  expect(await refusedFor(withoutKeys)).toEqual(['no control-plane node has the key of the cluster CA'])
  expect(await refusedFor(withoutKeys, 5)).toEqual([])
})

test('refuses signers with their own files', async () => {
  const flag = 'cluster-signing-kubelet-client-cert-file'
  const what = await refusedFor(({ observed }) => ({
    observed: {
      components: observed.components.map((one) =>
        one.id === 'cp2/kube-controller-manager'
          ? { ...one, flags: { ...one.flags, [flag]: '/a.crt' } }
          : one,
      ),
    },
  }))
  expect(what).toEqual([`signers with separate files: cp2/kube-controller-manager --${flag}`])
})

test('refuses certificates for single server names, until they are accepted', async () => {
  const flag = 'tls-sni-cert-key'
  const named = `cp2/kube-apiserver --${flag}`
  const withFlag = (waivers: readonly string[], changes?: readonly CaChange[]) =>
    refusedFor(({ observed, target }) => ({
      observed: {
        components: observed.components.map((one) =>
          one.id === 'cp2/kube-apiserver'
            ? { ...one, flags: { ...one.flags, [flag]: '/a.crt,/a.key' } }
            : one,
        ),
      },
      target: { waivers: new Set(waivers), changes: changes ?? target.changes },
    }))
  expect(await withFlag([])).toEqual([`kcert does not reissue the certificates of ${named}=/a.crt,/a.key`])
  expect(await withFlag([`cp1/kube-apiserver --${flag}`])).toHaveLength(1)
  expect(await withFlag([named])).toEqual([])
  expect(await withFlag([], [])).toEqual([])
})

const pki = '/etc/kubernetes/pki'

test.for<[string, Record<string, string>, string[]]>([
  ['separate files', { 'kubelet-client-key': `${pki}/apiserver-kubelet-client.key` }, []],
  [
    'one key for two certificates',
    { 'kubelet-client-key': `${pki}/apiserver.key` },
    ['cp2/kube-apiserver --kubelet-client-key', 'cp2/kube-apiserver --tls-private-key-file'],
  ],
  ['one key for etcd too', { 'etcd-keyfile': `${pki}/apiserver.key` }, ['cp2/kube-apiserver --etcd-keyfile']],
  [
    'a key that signs tokens',
    {
      'service-account-signing-key-file': `${pki}/apiserver.key`,
      'service-account-key-file': `${pki}/sa.pub`,
    },
    ['cp2/kube-apiserver --service-account-signing-key-file'],
  ],
  [
    'a key that verifies tokens by default',
    { 'service-account-signing-key-file': `${pki}/sa.key` },
    ['cp2/kube-apiserver, which has no --service-account-key-file'],
  ],
  [
    'certificate and key in one file',
    { 'tls-private-key-file': `${pki}/apiserver.crt` },
    ['cp2/kube-apiserver --tls-cert-file'],
  ],
])('refuses new keys for %s', async ([, flags, uses]) => {
  const onFlags = (newKeys: boolean, phase: number) =>
    refusedFor(
      ({ observed }) => ({
        observed: {
          components: observed.components.map((one) =>
            one.id === 'cp2/kube-apiserver' ? { ...one, flags: { ...one.flags, ...flags } } : one,
          ),
        },
        target: { newKeys },
      }),
      phase,
    )
  expect(await onFlags(false, 1)).toEqual([])
  const key = flags['tls-private-key-file'] ?? `${pki}/apiserver.key`
  const found = uses.map((use) => `cp2:${key} (${use})`)
  const what = `new keys would replace keys that have another use: ${found.join(', ')}`
  for (const phase of [1, 9]) expect(await onFlags(true, phase)).toEqual(found.length > 0 ? [what] : [])
})

test.for([
  ['/a.crt', true],
  ['/var/lib/kubelet/pki/kubelet.crt', false],
] as const)(
  'a key of a kubelet that a component uses with the certificate %s: refused: %s',
  async ([path, isRefused]) => {
    const scene = new Scene({ ...small, isByHand: true }, { keyType: 'ECDSA-P256' })
    const { observed, target } = await observeIn(scene)
    expect(preflight(observed, target, phaseNumbered(1))).toEqual([])
    const files = { servingFile: '/var/lib/kubelet/pki/kubelet.crt', servingKeyFile: '/k.key' }
    const serving = [...observed.files.values()].find(
      ({ path }) => path === observed.kubelets[0]!.servingFile,
    )!
    const changed: Snapshot = {
      ...observed,
      kubelets: observed.kubelets.map((one) => ({ ...one, ...files })),
      files: new Map([
        ...observed.files,
        [`cp1:${files.servingFile}`, { ...serving, path: files.servingFile }],
      ]),
      components: observed.components.map((one) =>
        one.id === 'cp1/kube-controller-manager'
          ? { ...one, flags: { ...one.flags, 'tls-cert-file': path, 'tls-private-key-file': '/k.key' } }
          : one,
      ),
    }
    expect(preflight(changed, target, phaseNumbered(1)).map(({ what }) => what)).toEqual(
      isRefused
        ? [
            'new keys would replace keys that have another use: cp1:/k.key (cp1/kube-controller-manager --tls-private-key-file)',
          ]
        : [],
    )
  },
)

test('refuses a front proxy that may use any name', async () => {
  const what = await refusedFor(({ observed }) => ({
    observed: { extensionAuthentication: { ...observed.extensionAuthentication!, allowsAnyName: true } },
  }))
  expect(what[0]).toMatch(/^every certificate of the front-proxy CA is accepted as a front proxy/)
})

test('an unreachable node stops phases that write, not phases that read', async () => {
  const without = ({ observed }: { observed: Snapshot }) => ({
    observed: {
      nodes: observed.nodes.map((one) => (one.name === 'w1' ? { ...one, unreachable: 'no route' } : one)),
    },
  })
  expect(await refusedFor(without, 5)).toEqual(['1 node cannot be reached: w1 (no route)'])
  expect(await refusedFor(without, 3)).toEqual([])
})

test('while the old CA is being dropped, refuses only what makes the next step impossible', async () => {
  expect(
    await refusedFor(
      ({ observed }) => ({
        observed: { components: [], nodes: observed.nodes },
        target: { isDropping: true },
      }),
      12,
    ),
  ).toEqual([])
})

test('reads the position from the presented certificates and from the intents in the journal', async () => {
  const scene = new Scene(small)
  const positions: string[] = []
  for (const phase of [8, 9, 11]) {
    await scene.runAll(positions.length === 0 ? 1 : phase === 9 ? 9 : 10, phase)
    const { observed, target } = await observeIn(scene)
    positions.push(positionOf(observed, target))
  }
  const { target } = await observeIn(scene)
  expect(positions).toEqual(['preparing', 'reissuing', 'reissuing'])
  expect(earliestPhase(playbook, target, 5)).toEqual([])
  scene.clients.expectsBridge = false
  await scene.run(12)
  const after = await observeIn(scene)
  expect(positionOf(after.observed, after.target)).toBe('removing')
  expect(earliestPhase(playbook, after.target, 12)).toEqual([])
  expect(earliestPhase(playbook, after.target, 5)).toEqual([
    {
      what: 'phase 5 cannot run any more: the old CA is being removed',
      why: 'it would make components trust the old CA again',
      next: 'kcert rotate-ca --phase 12',
    },
  ])
})

test('evaluates conditions on a snapshot, and names the pending items', async () => {
  const { observed, target } = await observeIn(new Scene(small))
  const { oldCa, newCa } = target.changes[0]!
  const [pod] = observed.pods
  const workload = pod!.workload!
  const missing = (until: Condition, change: Partial<Snapshot> = {}) =>
    missingFor(until, { ...observed, ...change })
  const both = { contains: [oldCa.digest, newCa.digest], lacks: [] }
  const old = { contains: [oldCa.digest], lacks: [] }
  expect(missing({ kind: 'published', bundles: true, ...old })).toEqual([])
  expect(missing({ kind: 'published', bundles: true, ...both })).toContainEqual({
    at: 'ConfigMap default/kube-root-ca.crt',
    what: 'unchanged',
  })
  const [first, ...others] = observed.published
  const { trust: _, ...absent } = first!
  expect(missing({ kind: 'published', bundles: true, ...old }, { published: [absent, ...others] })).toEqual([
    { at: `${first!.kind} ${first!.name}`, what: 'not found' },
  ])
  // Kubernetes creates no objects in a terminating namespace.
  expect(
    missing(
      { kind: 'published', bundles: true, ...old },
      { published: [{ ...absent, isActive: false }, ...others] },
    ),
  ).toEqual([])
  expect(missing({ kind: 'volumes', ...old })).toEqual([])
  expect(missing({ kind: 'volumes', ...both })).toHaveLength(observed.pods.length)
  expect(missing({ kind: 'pods-converged', workload, contains: [newCa.digest] })).toContainEqual({
    at: `Pod ${pod!.id}`,
    what: 'not replaced yet',
  })
  expect(missing({ kind: 'pods-converged', workload, contains: [] }, { pods: [] })).toEqual([
    { at: workload, what: 'no pod runs' },
  ])
  expect(missing({ kind: 'pods-started', workload, sinceMs: pod!.startedAtMs })).toEqual([])
  expect(missing({ kind: 'pods-started', workload, sinceMs: observed.atMs })).not.toEqual([])
  const server = 'cp1/kube-apiserver'
  expect(missing({ kind: 'serves', server, signedBy: oldCa.spki })).toEqual([])
  expect(missing({ kind: 'serves', server, signedBy: newCa.spki })).toEqual([
    { at: server, what: 'serves its previous certificate' },
  ])
  expect(missing({ kind: 'serves', server, signedBy: oldCa.spki, bridged: true })).toEqual([
    { at: server, what: 'does not serve the bridge certificate' },
  ])
  expect(missing({ kind: 'serves', server: 'cp9/kube-apiserver', signedBy: oldCa.spki })).toEqual([
    { at: 'cp9/kube-apiserver', what: 'does not answer' },
  ])
  expect(missing({ kind: 'cluster-info-signed', trust: [oldCa.digest] })).toEqual([])
  const signatures = [{ tokenId: 'abcdef', isValid: false }]
  const clusterInfo = { ...observed.clusterInfo!, signatures }
  expect(missing({ kind: 'cluster-info-signed', trust: [oldCa.digest] }, { clusterInfo })[0]?.what).toBe(
    'not signed for token abcdef',
  )
  const { client, requestheader } = observed.extensionAuthentication!
  const published = { kind: 'extension-authentication', client, requestheader, lacks: [] } as const
  expect(missing(published)).toEqual([])
  expect(missing({ ...published, client: [], lacks: client })[0]?.what).toBe('has other content')
  expect(missing({ ...published, client: [...client, newCa.digest] })[0]?.what).toBe('has other content')
  expect(missing(published, { extensionAuthentication: undefined })[0]?.what).toBe('not found')
  expect(missing({ kind: 'leader', lease: 'kube-scheduler' })).toEqual([])
  expect(missing({ kind: 'leader', lease: 'kube-scheduler' }, { leases: [] })).toEqual([
    { at: 'kube-scheduler', what: 'no leader' },
  ])
  const caBundles = observed.caBundles.map((one) => ({ ...one, isAvailable: false }))
  expect(missing({ kind: 'available', bundle: 'APIService v1.agg' })).toEqual([])
  expect(missing({ kind: 'available', bundle: 'APIService v1.agg' }, { caBundles })[0]?.what).toBe(
    'not available',
  )
  expect(missing({ kind: 'node-ready', node: 'w1' })).toEqual([])
  expect(missing({ kind: 'node-ready', node: 'w9' })).toEqual([{ at: 'w9', what: 'not Ready' }])
  expect(missing({ kind: 'instant', atMs: observed.atMs })).toEqual([])
  expect(missing({ kind: 'instant', atMs: observed.atMs + 1_500 })).toEqual([
    { at: 'clock', what: '2 s left' },
  ])
})

test('refuses a kubeconfig that client-go rejects, by node and path, unless it is waived', async () => {
  const key = 'cp1:/etc/kubernetes/admin.conf'
  const withRefusal = (observed: Snapshot): Partial<Snapshot> => {
    const file = observed.files.get(key)!
    const contains = { ...file.contains, refusal: 'users[u].token: a number' } as typeof file.contains
    return { files: new Map([...observed.files, [key, { ...file, contains }]]) }
  }
  expect(await refusedFor(({ observed }) => ({ observed: withRefusal(observed) }))).toEqual([
    `client-go rejects kubeconfig ${key}`,
  ])
  const waivers = new Set([key])
  expect(
    await refusedFor(({ observed }) => ({ observed: withRefusal(observed), target: { waivers } })),
  ).toEqual([])
})
