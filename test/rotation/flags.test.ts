import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { SimulatedOperator } from './operator.ts'
import { Scene } from './scene.ts'

// The operator's choices for a rotation, and their effects.

const small = { controlPlanes: 2, workers: 1 } as const
const yes = { yes: true } as const
const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1)

/** Observes the cluster after every event. */
function watch(scene: Scene, observe: () => void): void {
  const { time } = scene.cluster
  const tryAll = time.afterEach
  time.afterEach = () => {
    tryAll()
    observe()
  }
}

/** Returns when each workload was first rolled out. */
function rollsOf(scene: Scene): Map<string, number> {
  const { cluster } = scene
  const rolls = new Map<string, number>()
  const roll = cluster.roll.bind(cluster)
  cluster.roll = (id, annotation) => {
    rolls.set(id, rolls.get(id) ?? cluster.time.nowMs)
    roll(id, annotation)
  }
  return rolls
}

test.for([1, 2, 5])(
  '--max-unavailable %i: restarts this number of kubelets at the same time, the first one alone',
  async (atOnce) => {
    const scene = new Scene({ controlPlanes: 1, workers: 6 }, { atOnce })
    const { cluster } = scene
    await scene.runAll(1, 8)
    const kubelets = [...cluster.nodes.keys()].map((node) => `${node}/kubelet`)
    const started = new Map(kubelets.map((id) => [id, cluster.processes.get(id)!.startedAtMs]))
    const away = (): string[] => kubelets.filter((id) => cluster.processes.get(id)?.isHealthy !== true)
    const observed = { most: 0, besideFirst: 0 }
    watch(scene, () => {
      const now = away()
      observed.most = Math.max(observed.most, now.length)
      const isFirstDone = kubelets.some((id) => {
        const process = cluster.processes.get(id)
        return process?.isHealthy === true && process.startedAtMs !== started.get(id)
      })
      if (!isFirstDone) observed.besideFirst = Math.max(observed.besideFirst, now.length)
    })
    await scene.run(9)
    expect(observed).toEqual({ most: atOnce, besideFirst: 1 })
    expect(scene.clients.failures).toEqual([])
  },
)

test('--max-unavailable also limits workloads', async () => {
  const scene = new Scene({ ...small, deployments: { count: 9, podsEach: 2 } }, { atOnce: 3 })
  const { cluster } = scene
  await scene.runAll(1, 3)
  const rolling = new Set<string>()
  let most = 0
  const roll = cluster.roll.bind(cluster)
  cluster.roll = (id, annotation) => {
    rolling.add(id)
    roll(id, annotation)
  }
  watch(scene, () => {
    for (const id of rolling) {
      const pods = [...cluster.pods.values()].filter(({ workload }) => workload === id)
      if (pods.every(({ trust }) => trust.length === 2)) rolling.delete(id)
    }
    most = Math.max(most, rolling.size)
  })
  await scene.run(4)
  expect(most).toBe(3)
})

test('--pace: waits this long between the starts of two rollouts', async () => {
  const scene = new Scene({ ...small, deployments: { count: 4, podsEach: 1 } })
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(3)), yes)
  const rolls = rollsOf(scene)
  await operator.command((session) => session.run([4]), { ...yes, options: { rollEveryMs: 45_000 } })
  const times = [...rolls.values()].sort((a, b) => a - b)
  expect(times.length).toBeGreaterThan(4)
  const least = Math.min(...times.slice(1).map((time, index) => time - times[index]!))
  expect(least).toBeGreaterThanOrEqual(45_000)
  expect(least).toBeLessThan(50_000)
})

test('never rolls a workload that a selector excludes: its owner confirms, or uses --waive', async () => {
  const scene = new Scene(small)
  const id = 'Deployment default/ping'
  scene.cluster.workloads.get(id)!.mayRoll = false
  const rolls = rollsOf(scene)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run(upTo(3)), yes)
  const stopped = await operator
    .command((session) => session.run([4]), yes)
    .catch((error: unknown) => error as KcertError)
  expect(stopped).toBeInstanceOf(KcertError)
  expect(operator.stderr).toContain(
    `not confirmed: kcert must not restart ${id}: restart its pods yourself.\n  to accept the risk: --waive '${id}'`,
  )
  for (const pod of scene.cluster.pods.values()) if (pod.workload === id) scene.clients.waived.add(pod.id)
  const waived = { ...yes, settings: { waivers: new Set([id]) } }
  await operator.command((session) => session.run(upTo(10)), waived)
  scene.cluster.reissueHandlers(scene.newCa())
  scene.clients.expectsBridge = false
  await operator.command((session) => session.run(upTo(12)), waived)
  expect([...rolls.keys()]).not.toContain(id)
  expect(rolls.size).toBeGreaterThan(0)
  expect(scene.clients.failures).toEqual([])
})

test('--ca-cert and --ca-key: uses the supplied CA as the new one, and removes the old one everywhere', async () => {
  const scene = new Scene(small)
  const own = scene.cluster.makeCa('our-own-ca', true)
  scene.settings = { ...scene.settings, given: { cluster: own } }
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
  const trust = scene.observer.snapshot.clusterInfo?.trust
  expect(trust).toEqual([own.digest])
})
