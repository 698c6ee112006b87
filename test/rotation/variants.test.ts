import { expect, test } from 'vitest'
import type { Settings } from '../../src/rotation/target-reading.ts'
import type { ClusterShape } from '../fakes/simulated-cluster.ts'
import { allPhases, Scene } from './scene.ts'

// Whole rotations of other clusters, and for other reasons. No client fails, and the old CA is removed.

const small = { controlPlanes: 2, workers: 1 } as const

interface Variant {
  readonly name: string
  readonly shape?: ClusterShape
  readonly settings?: Partial<Settings>
  readonly restartsApiServers?: true
}

const variants: readonly Variant[] = [
  { name: 'a leaked key', settings: { reason: 'compromise' } },
  { name: 'new keys for all leaves', settings: { newKeys: true } },
  {
    name: '--kubelet-certificate-authority and a scheduler of its own client CAs',
    shape: { allFlags: true },
    restartsApiServers: true,
  },
  { name: 'no bridge', settings: { withBridge: false } },
  { name: 'one control-plane node and no worker', shape: { controlPlanes: 1, workers: 0 } },
  {
    name: 'a single API server that must be restarted',
    shape: { controlPlanes: 1, allFlags: true },
    settings: { acceptsOutage: true },
    restartsApiServers: true,
  },
  { name: 'no client is known to reread ca.crt', settings: { trustsReloadingClients: false } },
  { name: 'one node at a time', settings: { atOnce: 1 } },
  { name: 'units instead of static pods', shape: { isPlain: true } },
  {
    name: 'units, every flag, no bridge',
    shape: { isPlain: true, allFlags: true },
    settings: { withBridge: false },
    restartsApiServers: true,
  },
  { name: 'laid out by hand', shape: { isByHand: true }, restartsApiServers: true },
  {
    name: 'laid out by hand, a single API server',
    shape: { isByHand: true, controlPlanes: 1 },
    settings: { acceptsOutage: true },
    restartsApiServers: true,
  },
  {
    name: 'laid out by hand, no bridge',
    shape: { isByHand: true },
    settings: { withBridge: false },
    restartsApiServers: true,
  },
  {
    name: 'laid out by hand, a leaked key',
    shape: { isByHand: true },
    settings: { reason: 'compromise' },
    restartsApiServers: true,
  },
]

test.for(variants)('$name: no client fails, and the old CA is removed', async (variant) => {
  const { shape, settings, restartsApiServers } = variant
  const scene = new Scene({ ...small, ...shape }, settings)
  scene.clients.expectsBridge = settings?.withBridge !== false && settings?.reason !== 'compromise'
  const before = definitions(scene)
  scene.cluster.restarts.length = 0
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
  expect(definitions(scene)).toEqual(before)
  const restarts = scene.cluster.restarts.filter((id) => id.endsWith('/kube-apiserver'))
  expect(restarts.length > 0).toBe(restartsApiServers === true)
})

/** Returns the bytes of manifests and units. */
function definitions(scene: Scene): [string, string][] {
  return Object.entries(scene.files()).filter(([key]) => /\/(manifests|system)\//.test(key))
}

/** Returns the files with a CA's certificate or leaf certificates that it signed. */
function heldOf(scene: Scene, ca: 'oldCa' | 'oldFrontProxyCa') {
  const { spki } = scene.cluster[ca]
  return Object.entries(scene.files()).filter(([, text]) =>
    [...scene.cluster.certificates.values()].some(
      (one) => one.signedBy === spki && text.includes(one.digest),
    ),
  )
}

test.for([
  { ca: 'cluster', rotated: 'oldCa', other: 'oldFrontProxyCa' },
  { ca: 'front-proxy', rotated: 'oldFrontProxyCa', other: 'oldCa' },
] as const)('the $ca CA alone: the other one stays as it is', async ({ ca, rotated, other }) => {
  const scene = new Scene(small, { cas: [ca] })
  const before = heldOf(scene, other)
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(heldOf(scene, rotated)).toEqual([])
  expect(heldOf(scene, other).map(([key]) => key)).toEqual(before.map(([key]) => key))
})

test.for([
  { settings: { newKeys: true } },
  { settings: { reason: 'compromise' } },
  { settings: { newKeys: true }, shape: { isByHand: true } },
] as const)('%o: no leaf keeps its key', async ({ settings, ...given }) => {
  const scene = new Scene({ ...small, ...('shape' in given ? given.shape : {}) }, settings)
  scene.clients.expectsBridge = false
  const keys = () => {
    const text = Object.values(scene.files()).join()
    const held = [...scene.cluster.certificates.values()].filter(
      ({ digest, isCa }) => !isCa && text.includes(digest),
    )
    return new Set(held.map(({ spki }) => spki))
  }
  const before = keys()
  await scene.runAll()
  expect(before.size).toBeGreaterThan(10)
  expect([...keys()].filter((key) => before.has(key))).toEqual([])
})

test('refuses to restart a single API server until the outage is accepted', async () => {
  const scene = new Scene({ controlPlanes: 1, workers: 1, allFlags: true })
  await scene.runAll(1, 4)
  await expect(scene.run(5)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: 'the only API server must be restarted',
    next: 'kcert rotate-ca --phase 5 --accept-outage',
  })
})

test('after a key leak, a rollback stops where controller-managers sign with the new key', async () => {
  const scene = new Scene(small, { reason: 'compromise' })
  scene.clients.expectsBridge = false
  await scene.runAll(1, 7)
  await expect(scene.undo(7)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: 'kcert does not switch controller-managers back to the old signing pair',
  })
})

test.for<{ shape: ClusterShape; settings?: Partial<Settings> }>([
  { shape: { allFlags: true } },
  { shape: { isPlain: true } },
  { shape: { isPlain: true, allFlags: true } },
  { shape: { isByHand: true } },
  { shape: { isByHand: true }, settings: { withBridge: false } },
  { shape: { isByHand: true }, settings: { newKeys: true } },
  { shape: {}, settings: { newKeys: true } },
  { shape: {}, settings: { keyType: 'ECDSA-P256' } },
  { shape: { isByHand: true }, settings: { keyType: 'RSA-3072' } },
])('%o: a rollback from phase 11 restores every byte', async ({ shape, settings }) => {
  const scene = new Scene({ ...small, ...shape }, settings)
  scene.clients.expectsBridge = settings?.withBridge !== false
  const [files, objects] = [scene.files(), scene.objects()]
  await scene.runAll(1, 11)
  for (let phase = 11; phase >= 1; phase--) await scene.undo(phase)
  await scene.cluster.time.pass(120_000)
  expect(scene.files()).toEqual(files)
  expect(scene.objects()).toEqual(objects)
  expect(scene.clients.failures).toEqual([])
})

test.for<{ shape: ClusterShape; when: 'before' | 'after' }>([
  { shape: {}, when: 'before' },
  { shape: {}, when: 'after' },
  { shape: { isByHand: true }, when: 'after' },
])('%o: a rollback killed at each action and run again restores every byte', async ({ shape, when }) => {
  const scene = new Scene({ ...small, ...shape })
  const [files, objects] = [scene.files(), scene.objects()]
  await scene.runAll(1, 11)
  const back = allPhases.slice(0, 11).toReversed()
  const kills = await scene.killedAtEachAct(when, back, (phase) => scene.undo(phase))
  await scene.cluster.time.pass(120_000)
  expect(kills).toBeGreaterThan(50)
  expect(scene.files()).toEqual(files)
  expect(scene.objects()).toEqual(objects)
  expect(scene.clients.failures).toEqual([])
  // A process that started before its files were restored would still use removed certificates.
  const loaded = [...scene.cluster.processes.values()].flatMap(({ id, node, loaded: its }) =>
    [...its].flatMap(([path, text]) =>
      scene.cluster.read(node, path)?.text === text ? [] : [`${id} ${path}`],
    ),
  )
  expect(loaded).toEqual([])
})
