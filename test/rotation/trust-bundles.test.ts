import { expect, test } from 'vitest'
import { missingFor } from '../../src/rotation/conditions.ts'
import { blindInstant } from '../../src/rotation/convergence.ts'
import { forecast } from '../../src/rotation/model/forecast.ts'
import { phaseNumbered, playbook } from '../../src/rotation/playbook.ts'
import { type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import type { Target } from '../../src/rotation/target.ts'
import { Scene } from './scene.ts'

// Pods that take the CAs of API servers from ClusterTrustBundles, whose names depend on their content.

const small = { controlPlanes: 1, workers: 1, hasTrustBundles: true } as const
const verifier = 'Deployment default/verifier'
const named = 'Deployment default/named'

async function observeIn(scene: Scene): Promise<{ observed: Snapshot; target: Target }> {
  return scene.asProcess((rotation) => rotation.observe(sectionNames))
}

function bundlesIn(scene: Scene): string[] {
  return Object.keys(scene.objects()).filter((name) => name.startsWith('ClusterTrustBundle '))
}

/** Returns the workloads that a phase rolls out, and its questions. */
function planned(phase: number, { observed, target }: { observed: Snapshot; target: Target }) {
  const actions = phaseNumbered(phase)
    .plan(observed, target)
    .flatMap((step) => (step.kind === 'together' ? step.lanes.flatMap(({ steps }) => steps) : [step]))
  return {
    rolled: actions.flatMap((action) => (action.kind === 'rollout' ? [action.workload] : [])),
    asked: actions.flatMap((action) => (action.kind === 'confirm' ? [action.question] : [])),
  }
}

test('rolls out pods that mount a bundle by signerName, and keeps one bundle without the old CA', async () => {
  const scene = new Scene(small)
  const before = bundlesIn(scene)
  await scene.runAll()
  const after = bundlesIn(scene)
  expect([before.length, after.length]).toEqual([1, 1])
  expect(after).not.toEqual(before)
  expect(scene.cluster.workloads.get(verifier)?.annotation).toMatch(/^4-/)
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
})

test('assumes that a pod on an unreadable node has the content of its bundle 2 minutes after publication', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 3)
  const { observed, target } = await observeIn(scene)
  const pod = observed.pods.find(({ workload }) => workload === verifier)!
  const { volume: _, ...blind } = pod
  const publishedAtMs = observed.published.find(({ kind }) => kind === 'ClusterTrustBundle')!.changedAtMs
  const later = publishedAtMs + 3_600_000
  const gapsWith = (startedAtMs: number, changedAtMs: number): string[] =>
    phaseNumbered(4)
      .gaps(
        {
          ...observed,
          pods: [{ ...blind, startedAtMs }],
          published: observed.published.map((one) =>
            one.kind === 'ClusterTrustBundle' ? { ...one, changedAtMs } : one,
          ),
        },
        target,
      )
      .map(({ at }) => at)
  expect(gapsWith(later + 120_000, later)).toEqual([])
  expect(gapsWith(later + 119_999, later)).toEqual([`Pod ${pod.id} (ClusterTrustBundle)`])
  const withoutBundles = observed.published.filter(({ kind }) => kind !== 'ClusterTrustBundle')
  expect(blindInstant({ ...observed, published: withoutBundles }, blind)).toBe(Number.POSITIVE_INFINITY)
})

test('rolls out a workload once for its bundle, although its namespace has had the same content for long', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 3)
  const { observed, target } = await observeIn(scene)
  const annotationsAt = (changedAtMs: number): string[] => {
    const published = observed.published.map((one) =>
      one.kind === 'ClusterTrustBundle' ? { ...one, changedAtMs } : one,
    )
    return phaseNumbered(4)
      .plan({ ...observed, published }, target)
      .flatMap((step) => (step.kind === 'together' ? step.lanes : []))
      .flatMap(({ steps }) => steps)
      .flatMap((action) =>
        action.kind === 'rollout' && action.workload === verifier ? [action.annotation] : [],
      )
  }
  const [first] = annotationsAt(observed.atMs)
  const [second] = annotationsAt(observed.atMs + 60_000)
  expect(first).toMatch(/^4-/)
  expect(second).not.toBe(first)
})

test('counts a pod with two files once, and checks both files', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 4)
  const { observed, target } = await observeIn(scene)
  const pod = observed.pods.find(({ rereads }) => !rereads)
  const { oldCa } = target.changes.find(({ ca }) => ca === 'cluster')!
  const behind = { ...pod!, trustBundle: {}, volume: { trust: [oldCa.digest], changedAtMs: 0 } }
  const on = { observed: { ...observed, pods: [pod!, behind] }, target }
  expect(phaseNumbered(4).gaps(on.observed, target)).toEqual([
    { at: `Pod ${pod!.id} (ClusterTrustBundle)`, what: 'has the old CA' },
  ])
  expect(planned(4, on).rolled).toEqual([pod!.workload])
  expect(phaseNumbered(12).remarks!(on.observed, target)[0]).toMatch(/^1 pod keeps both CAs/)
})

test('refuses a pod that mounts a bundle by name before the bundle is deleted, unless it is waived', async () => {
  const scene = new Scene(small)
  const name = bundlesIn(scene)[0]!.split(' ')[1]!
  scene.cluster.addWorkload(named, { rereads: false, trustBundle: { name } })
  scene.cluster.startPod(named)
  const { observed, target } = await observeIn(scene)
  const { id } = observed.pods.find(({ workload }) => workload === named)!
  expect(phaseNumbered(2).refusals!(observed, target)).toEqual([
    {
      what: `pod ${id} mounts ClusterTrustBundle "${name}" by name`,
      why: `kube-controller-manager deletes this object in this phase, so the pod could not start again; mount it by signerName, or accept the risk with --waive ${id}`,
      next: 'kcert rotate-ca plan',
    },
  ])
  expect(phaseNumbered(2).refusals!(observed, { ...target, waivers: new Set([named]) })).toEqual([])
})

test('does not roll out a workload that mounts a deleted bundle, because its pods would not start', async () => {
  const scene = new Scene(small)
  const name = bundlesIn(scene)[0]!.split(' ')[1]!
  await scene.runAll(1, 3)
  const { observed, target } = await observeIn(scene)
  const pod = observed.pods.find(({ workload }) => workload === verifier)!
  const on = { observed: { ...observed, pods: [{ ...pod, trustBundle: { name } }] }, target }
  expect(planned(4, on)).toEqual({
    rolled: [],
    asked: [
      `${verifier} mounts ClusterTrustBundle "${name}", which was deleted: mount it by signerName and restart its pods.`,
    ],
  })
  expect(planned(4, { observed: { ...observed, pods: [pod] }, target }).rolled).toEqual([verifier])
})

test('keeps phase 3 and its wait pending for an API server whose bundles cannot be read', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 3)
  const { observed, target } = await observeIn(scene)
  const unknown = {
    kind: 'ClusterTrustBundle',
    name: 'cp2/kube-apiserver',
    isActive: true,
    unread: 'no answer within 5 s',
    changedAtMs: 0,
  } as const
  const published = [...observed.published, unknown]
  const missing = [{ at: 'ClusterTrustBundle cp2/kube-apiserver', what: 'no answer within 5 s' }]
  expect(phaseNumbered(3).gaps(observed, target)).toEqual([])
  expect(phaseNumbered(3).gaps({ ...observed, published }, target)).toEqual(missing)
  const until = { kind: 'published', contains: [], lacks: [], bundles: true } as const
  expect(missingFor(until, { ...observed, published })).toEqual(missing)
  expect(
    forecast(playbook, { ...observed, published }, target).find(({ phase }) => phase.number === 3)?.open,
  ).toEqual(missing)
  const pod = observed.pods.find(({ trustBundle }) => trustBundle !== undefined)!
  expect(blindInstant({ ...observed, published }, pod)).toBe(Number.POSITIVE_INFINITY)
})

test('during an upgrade, does not wait for a bundle that no pod mounts, and names it', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 11)
  const { observed, target: given } = await observeIn(scene)
  const target = { ...given, isDropping: true }
  const managed = (version: string) =>
    observed.components.map((one) => (one.name === 'kube-controller-manager' ? { ...one, version } : one))
  const free = observed.pods.filter(({ trustBundle }) => trustBundle === undefined)
  expect(free.length).toBeLessThan(observed.pods.length)
  const asked = (version: string, pods: Snapshot['pods']) => {
    const snapshot = { ...observed, pods, components: managed(version) }
    const phase = phaseNumbered(12)
    const waits = phase
      .plan(snapshot, target)
      .flatMap((step) => (step.kind === 'wait' && step.until.kind === 'published' ? [step.until] : []))
    return {
      gaps: phase.gaps(snapshot, target).filter(({ at }) => at.startsWith('ClusterTrustBundle ')).length,
      missing: waits.flatMap((until) =>
        missingFor(until, snapshot).filter(({ at }) => at.startsWith('ClusterTrustBundle ')),
      ).length,
      waits: waits.length,
      reported: phase.remarks!(snapshot, target).filter((one) => one.startsWith('ClusterTrustBundle '))
        .length,
    }
  }
  expect(asked('v1.36.3', free)).toEqual({ gaps: 0, missing: 0, waits: 1, reported: 1 })
  expect(asked('v1.37.2', free)).toEqual({ gaps: 1, missing: 1, waits: 1, reported: 0 })
  expect(asked('v1.36.3', observed.pods)).toEqual({ gaps: 1, missing: 1, waits: 1, reported: 0 })
  // An unreadable server may have a bundle that pods mount.
  const unread = {
    kind: 'ClusterTrustBundle',
    name: 'cp1/kube-apiserver',
    isActive: true,
    unread: 'x',
    changedAtMs: 0,
  } as const
  const third = phaseNumbered(3).gaps(
    { ...observed, pods: free, components: managed('v1.36.3'), published: [...observed.published, unread] },
    given,
  )
  expect(third).toEqual([{ at: 'ClusterTrustBundle cp1/kube-apiserver', what: 'x' }])
})
