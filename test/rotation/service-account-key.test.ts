import { expect, test } from 'vitest'
import { keyPlaybook } from '../../src/rotation/service-account-key/playbook.ts'
import type { Settings } from '../../src/rotation/target-reading.ts'
import type { ClusterShape } from '../fakes/simulated-cluster.ts'
import { Scene } from './scene.ts'

// The rotation of the service account key on a simulated cluster. Every pod shows its token to every API server after every event.

const shape: ClusterShape = { controlPlanes: 3, workers: 2, namespaces: 3, hasTokens: true }
const nodes = ['cp1', 'cp2', 'cp3']
const apis = nodes.map((node) => `${node}/kube-apiserver`)
const phases = [1, 2, 3, 4, 5, 6, 7, 8]
/** The hour of `counters` has tests of its own. */
const accepted = {
  acceptedVersions: new Set(['1.36']),
  proof: 'audit',
  waivers: new Set(['audit-log']),
} as const

function sceneOf(settings: Partial<Settings> = {}, given: Partial<ClusterShape> = {}): Scene {
  return new Scene({ ...shape, ...given }, { ...accepted, ...settings }, keyPlaybook)
}

async function run(scene: Scene, from: number, to: number): Promise<void> {
  for (let phase = from; phase <= to; phase++) await scene.asProcess((rotation) => rotation.run(phase))
}

/** Returns what each process verifies and signs with: `old`, `new`. */
function keysOf({ cluster }: Scene): Record<string, string> {
  const name = (key: string | undefined) =>
    key === cluster.oldKey ? 'old' : key === undefined ? 'none' : 'new'
  return Object.fromEntries(
    [...cluster.processes.values()].flatMap((process) => {
      if (process.name === 'kube-apiserver')
        return [
          [process.id, `${cluster.verifiedBy(process).map(name).join()} ${name(cluster.signedBy(process))}`],
        ]
      return process.name === 'kube-controller-manager' ? [[process.id, name(cluster.signedBy(process))]] : []
    }),
  )
}

function allWith(verifies: string, signs: string): Record<string, string> {
  return Object.fromEntries([
    ...apis.map((id) => [id, `${verifies} ${signs}`]),
    ...nodes.map((node) => [`${node}/kube-controller-manager`, signs]),
  ])
}

function mountedKeys({ cluster }: Scene): readonly string[] {
  return [
    ...new Set(
      [...cluster.pods.values()].map(({ token }) => (token?.key === cluster.oldKey ? 'old' : 'new')),
    ),
  ]
}

/** Returns keys and manifests. Copies stay. */
function bytes(scene: Scene): Record<string, string> {
  return Object.fromEntries(Object.entries(scene.files()).filter(([key]) => /\/sa\.|manifests/.test(key)))
}

test('changes the key in three passes, and no token is rejected', async () => {
  const scene = sceneOf()
  const { cluster } = scene
  const manifests = Object.entries(bytes(scene)).filter(([key]) => key.includes('/manifests/'))
  cluster.restarts.length = 0
  await run(scene, 1, 1)
  expect(cluster.restarts).toEqual([])
  expect(cluster.objects.has('Secret kube-system/kubeadm-certs')).toBe(false)
  await run(scene, 2, 3)
  expect(cluster.restarts.splice(0)).toEqual(apis)
  expect(keysOf(scene)).toEqual(allWith('old,new', 'old'))
  expect(cluster.processes.get(apis[0]!)?.flags['shutdown-delay-duration']).toBe('15s')
  await run(scene, 4, 4)
  // Standbys first, the leader last.
  const managers = ['cp2', 'cp3', 'cp1'].map((node) => `${node}/kube-controller-manager`)
  expect(cluster.restarts.splice(0)).toEqual([...apis, ...managers])
  expect(keysOf(scene)).toEqual(allWith('new,old', 'new'))
  await run(scene, 5, 5)
  expect(mountedKeys(scene)).toEqual(['new'])
  expect(cluster.restarts.splice(0).sort()).toEqual([...nodes, 'w1', 'w2'].map((node) => `${node}/kubelet`))
  await cluster.time.pass(70_000)
  await run(scene, 6, 8)
  expect(cluster.restarts).toEqual(apis)
  expect(keysOf(scene)).toEqual(allWith('new', 'new'))
  expect(scene.clients.failures).toEqual([])
  // Manifests are as before, and nothing of kcert is left beside the keys.
  const after = scene.files()
  expect(Object.entries(after).filter(([key]) => key.includes('/manifests/'))).toEqual(manifests)
  expect(Object.keys(after).filter((key) => key.includes('/kcert/'))).toEqual([])
})

test.each(['before', 'after'] as const)(
  'ends in the same place when kcert is killed %s each action',
  async (when) => {
    const scene = sceneOf()
    const kills = await scene.killedAtEachAct(when, phases, async (phase) => {
      // Clients read their tokens again before the old key goes.
      if (phase === 7) await scene.cluster.time.pass(70_000)
      await scene.asProcess((rotation) => rotation.run(phase))
    })
    expect(kills).toBeGreaterThan(40)
    expect(keysOf(scene)).toEqual(allWith('new', 'new'))
    expect(mountedKeys(scene)).toEqual(['new'])
    expect(scene.clients.failures).toEqual([])
  },
)

test.each([1, 2, 3, 4, 5, 6, 7])(
  'rolls back from phase %i to the same bytes and the same keys',
  async (last) => {
    const scene = sceneOf()
    const [before, keys] = [bytes(scene), keysOf(scene)]
    await run(scene, 1, Math.min(last, 6))
    if (last === 7) {
      await scene.cluster.time.pass(70_000)
      await run(scene, 7, 7)
    }
    for (let phase = last; phase >= 1; phase--) {
      // A client still uses the token that its kubelet replaced in the rollback of phase 4.
      if (phase === 2) await scene.cluster.time.pass(70_000)
      await scene.asProcess((rotation) => rotation.undo(phase))
    }
    expect(bytes(scene)).toEqual(before)
    expect(keysOf(scene)).toEqual(keys)
    expect(mountedKeys(scene)).toEqual(['old'])
    expect(scene.clients.failures).toEqual([])
    // The next rotation starts from the beginning.
    await run(scene, 1, 6)
    await scene.cluster.time.pass(70_000)
    await run(scene, 7, 8)
    expect(keysOf(scene)).toEqual(allWith('new', 'new'))
    expect(scene.clients.failures).toEqual([])
  },
)
