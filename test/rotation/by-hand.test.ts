import { expect, test } from 'vitest'
import { checkPlan } from '../../src/rotation/model/check.ts'
import { phaseNumbered } from '../../src/rotation/playbook.ts'
import { sectionNames } from '../../src/rotation/snapshot.ts'
import { SimulatedOperator } from './operator.ts'
import { allPhases, Scene } from './scene.ts'

// Manual installations from binaries: one file has two purposes, and kubelets have certificates that are never renewed.

const byHand = { controlPlanes: 2, workers: 1, isByHand: true } as const
const servingLeaf = '/etc/kubernetes/pki/apiserver.pem'
const kubeletLeaf = '/etc/kubernetes/pki/kubelet.pem'

function written(scene: Scene, phase: number): string[] {
  return scene.events.flatMap((event) =>
    event.kind === 'action-started' && event.action.kind === 'write-file' && event.action.phase === phase
      ? [`${event.action.node}:${event.action.path}`]
      : [],
  )
}

function leafOf(scene: Scene, node: string, path: string) {
  const { cluster } = scene
  return cluster.certificates.get(cluster.certificatesIn(cluster.read(node, path)?.text)[0] ?? '')!
}

async function observeIn(scene: Scene) {
  return scene.asProcess((rotation) => rotation.observe(sectionNames))
}

test.for([{ withBridge: true }, { withBridge: false }])(
  'writes a file that is both serving and kubelet client certificate once: %o',
  async (settings) => {
    const scene = new Scene(byHand, settings)
    scene.clients.expectsBridge = settings.withBridge
    await scene.runAll(1, 8)
    const { observed, target } = await observeIn(scene)
    const open = phaseNumbered(9).gaps(observed, target)
    expect(open.filter(({ at }) => at === 'cp1/kube-apiserver').map(({ what }) => what)).toEqual([
      'serving certificate of the old CA',
      'kubelet-client certificate of the old CA',
      'front-proxy-client certificate of the old CA',
      'serves a certificate of the old CA',
    ])
    await scene.run(9)
    const paths = written(scene, 9)
    expect(paths.filter((path) => path === `cp1:${servingLeaf}`)).toHaveLength(1)
    // Without the bridge certificate, no kubelet accepts the new leaf certificate before it has read both CAs.
    const [leaf, kubelet] = [paths.indexOf(`cp1:${servingLeaf}`), paths.indexOf(`w1:${kubeletLeaf}`)]
    expect(leaf < kubelet).toBe(settings.withBridge)
    expect(scene.clients.failures).toEqual([])
  },
)

test('copies the tlsCertFile of a kubelet, reissues it for the same name and key, and the kubelet serves it', async () => {
  const scene = new Scene(byHand)
  const before = leafOf(scene, 'w1', kubeletLeaf)
  await scene.runAll(1, 8)
  expect(scene.cluster.files.get('w1:/var/lib/kcert/copies/index.jsonl')!.text).toContain(kubeletLeaf)
  const { observed, target } = await observeIn(scene)
  expect(phaseNumbered(9).gaps(observed, target)).toContainEqual({
    at: 'w1/kubelet',
    what: 'serving certificate of the old CA',
  })
  await scene.run(9)
  const after = leafOf(scene, 'w1', kubeletLeaf)
  expect([after.subject, after.spki]).toEqual([before.subject, before.spki])
  expect(after.signedBy).toBe(scene.newCa().spki)
  const shown = scene.observer.snapshot.handshakes.find(({ server }) => server === 'w1/kubelet')
  expect(shown?.chain).toEqual([after.digest])
})

test('does not change the tlsCertFile of a kubelet from another CA', async () => {
  const scene = new Scene(byHand)
  const { cluster } = scene
  const own = cluster.makeCa('kubelets', true)
  const caPath = '/etc/kubernetes/pki/kubelet-ca.pem'
  for (const { name, isControlPlane } of cluster.nodes.values()) {
    const leaf = cluster.issue(`system:node:${name}`, own)
    cluster.write(name, kubeletLeaf, { certificates: [leaf.digest] })
    cluster.restartKubelet(name)
    if (!isControlPlane) continue
    cluster.write(name, caPath, { certificates: [own.digest] })
    const path = cluster.definitionPath('kube-apiserver')
    const content = cluster.contentOf(cluster.read(name, path)!.text)
    const { definition } = content as Extract<typeof content, { definition: object }>
    const flags = { ...definition.flags, 'kubelet-certificate-authority': caPath }
    cluster.write(name, path, { definition: { ...definition, flags } })
    await cluster.time.pass(1_000)
    cluster.stop(`${name}/kube-apiserver`)
    cluster.start(`${name}/kube-apiserver`, 0)
  }
  await cluster.time.pass(20_000)
  const files = (): (string | undefined)[] =>
    ['cp1', 'cp2', 'w1'].flatMap((node) =>
      [kubeletLeaf, caPath].map((path) => cluster.read(node, path)?.text),
    )
  const before = files()
  cluster.restarts.length = 0
  scene.clients.failures.length = 0
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(files()).toEqual(before)
  // API servers verify it with another CA, so none restarts.
  expect(cluster.restarts.filter((id) => id.endsWith('/kube-apiserver'))).toEqual([])
})

test('does not copy or change the certificates of etcd and service account keys, although flags refer to them', async () => {
  const scene = new Scene(byHand)
  const { cluster } = scene
  const etcdCa = cluster.makeCa('etcd-ca', true)
  const client = cluster.issue('etcd-cp1', etcdCa)
  const others = {
    'etcd-cafile': ['/etc/etcd/ssl/etcd-ca.pem', { certificates: [etcdCa.digest] }],
    'etcd-certfile': ['/etc/etcd/ssl/etcd.pem', { certificates: [client.digest] }],
    'etcd-keyfile': ['/etc/etcd/ssl/etcd-key.pem', { key: client.spki }],
    'service-account-key-file': ['/etc/kubernetes/pki/sa.pub', { key: 'of service accounts' }],
    'service-account-signing-key-file': ['/etc/kubernetes/pki/sa.key', { key: 'of service accounts' }],
  } as const
  const path = cluster.definitionPath('kube-apiserver')
  const content = cluster.contentOf(cluster.read('cp1', path)!.text)
  const { definition } = content as Extract<typeof content, { definition: object }>
  const flags: Record<string, string> = { ...definition.flags }
  for (const [flag, [file, its]] of Object.entries(others)) {
    flags[flag] = file
    cluster.write('cp1', file, its)
  }
  cluster.write('cp1', path, { definition: { ...definition, flags } })
  await cluster.time.pass(1_000)
  cluster.stop('cp1/kube-apiserver')
  cluster.start('cp1/kube-apiserver', 0)
  const files = (): (string | undefined)[] =>
    Object.values(others).map(([file]) => cluster.read('cp1', file)?.text)
  const before = files()
  await scene.runAll()
  expect(files()).toEqual(before)
  const copied = [...cluster.files]
    .filter(([key]) => key.startsWith('cp1:/var/lib/kcert/copies/index-'))
    .map(([, { text }]) => text)
    .join('')
  expect(copied).toContain('/etc/kubernetes/pki/ca.pem')
  for (const [file] of Object.values(others)) expect(copied).not.toContain(`"${file}"`)
  expect(scene.remainsOfOldCa()).toEqual([])
})

test('requires no proof from a scheduler that verifies no clients', async () => {
  const scene = new Scene(byHand)
  await scene.runAll(1, 4)
  const { observed, target } = await observeIn(scene)
  const probed = phaseNumbered(5)
    .plan(observed, target)
    .flatMap((step) => (step.kind === 'together' ? step.lanes.flatMap((lane) => lane.steps) : [step]))
    .flatMap((step) => (step.kind === 'probe' && step.subject.kind === 'client' ? [step.subject.at] : []))
  expect(new Set(probed)).toEqual(
    new Set(
      ['cp1', 'cp2', 'w1']
        .flatMap((node) =>
          ['kube-apiserver', 'kube-controller-manager', 'kubelet'].map((name) => `${node}/${name}`),
        )
        .filter((id) => !id.startsWith('w1/kube-')),
    ),
  )
})

test('refuses serving certificates of kubelets before API servers have read both CAs', async () => {
  const scene = new Scene(byHand)
  await scene.runAll(1, 8)
  const { observed, target } = await observeIn(scene)
  const steps = phaseNumbered(9).plan(observed, target)
  expect(checkPlan(observed, target, steps)).toBeUndefined()
  const components = observed.components.map((one) =>
    one.name === 'kube-apiserver' ? { ...one, process: { ...one.process!, startedAtMs: 0 } } : one,
  )
  expect(checkPlan({ ...observed, components }, target, steps)).toMatchObject({
    kind: 'kubelet-serving',
    credentialHolder: 'cp1/kubelet, serving certificate',
    trustHolder: 'cp1/kube-apiserver, --kubelet-certificate-authority',
    after: 'write cp1:/etc/kubernetes/pki/kubelet.pem (reissued)',
  })
})

test('refuses to drop the old CA while a kubelet still serves its certificate', async () => {
  const scene = new Scene(byHand)
  const old = scene.cluster.read('w1', kubeletLeaf)!.text
  await scene.runAll(1, 11)
  scene.cluster.write('w1', kubeletLeaf, old)
  scene.cluster.restartKubelet('w1')
  await scene.cluster.time.pass(20_000)
  const { observed, target } = await observeIn(scene)
  const edge = checkPlan(observed, target, phaseNumbered(12).plan(observed, target))
  expect(edge).toMatchObject({ kind: 'kubelet-serving', credentialHolder: 'w1/kubelet, serving certificate' })
  await expect(scene.run(12)).rejects.toMatchObject({ code: 'KCERT_ROTATION_REFUSED' })
})

test('waits for connections with the old certificate to end when no kubelet has restarted since then', async () => {
  const scene = new Scene(byHand, { withBridge: false })
  scene.clients.expectsBridge = false
  await scene.runAll(1, 9)
  const { changedAtMs } = scene.cluster.read('cp2', servingLeaf)!
  await scene.runAll(10, 11)
  expect(scene.cluster.time.nowMs).toBeGreaterThanOrEqual(changedAtMs + 300_000)
})

test('names both roles of a file, and the credentials in a kubeconfig, as clients', async () => {
  const plan = await new SimulatedOperator(new Scene(byHand)).command((session) => session.plan())
  expect(plan.blockers).toEqual([])
  const places = plan.credentialHolders.flatMap(({ name, location }) =>
    name === 'cp1/kube-apiserver' || name === 'w1/kubelet' ? [location] : [],
  )
  expect(places).toEqual([
    `${servingLeaf} (serving)`,
    `${servingLeaf} (kubelet-client)`,
    '/etc/kubernetes/pki/front-proxy-client.pem (front-proxy-client)',
    '/etc/kubernetes/kubelet.conf (client)',
    `${kubeletLeaf} (serving)`,
  ])
})

test.for([
  { when: 'before', withBridge: true },
  { when: 'after', withBridge: true },
  { when: 'after', withBridge: false },
] as const)(
  'killed at each act and run again, it comes to the same end: %o',
  async ({ when, ...settings }) => {
    const scene = new Scene(byHand, settings)
    scene.clients.expectsBridge = settings.withBridge
    const kills = await scene.killedAtEachAct(when, allPhases, (phase) => scene.runInTurn(phase))
    expect(kills).toBeGreaterThan(150)
    expect(scene.clients.failures).toEqual([])
    expect(scene.remainsOfOldCa()).toEqual([])
  },
)
