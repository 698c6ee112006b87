import type { Step, Task } from './action.ts'
import { hasLostBundle, publishedFor } from './convergence.ts'
import type { Observed, PodSnapshot } from './snapshot.ts'
import { type CaChange, type Target, wantedTrust } from './target.ts'
import { ask, inLanes, wait } from './tasks.ts'

// Workloads are rolled by their own controllers, which keep to PodDisruptionBudgets and update strategies.

/**
 * Returns the steps that replace these pods: roll out their workloads, so many at a time; and ask for each that no controller would
 * make again. The annotation names phase, CA and when it was published there, so that a second run does not roll what the first one
 * rolled, and one after a way back does.
 */
export function rollOut(
  observed: Observed<'workloads' | 'published'>,
  phase: number,
  pods: readonly PodSnapshot[],
  change: CaChange,
  target: Target,
): readonly Step<Task>[] {
  const rollable = new Set(observed.workloads.flatMap(({ id, mayRoll }) => (mayRoll ? [id] : [])))
  const workloads = Map.groupBy(pods, ({ workload }) => workload)
  const bare = new Set((workloads.get(undefined) ?? []).map(({ id }) => id))
  const named = [...workloads].flatMap(([id, its]) => (id === undefined ? [] : [{ id, its }]))
  const rolls = inLanes(target.atOnce, named, ({ id: workload, its }) => {
    const lost = its.find((pod) => hasLostBundle(observed, pod))
    if (lost !== undefined) return [askForBundle(workload, lost.trustBundle?.name)]
    if (!rollable.has(workload))
      return [ask(workload, `kcert must not restart ${workload}: restart its pods yourself.`)]
    const sinceMs = its.flatMap((pod) => publishedFor(observed, pod)).map(({ changedAtMs }) => changedAtMs)
    const annotation = annotationFor(phase, change, Math.max(0, ...sinceMs))
    const until = { kind: 'pods-converged', workload, holds: wantedTrust(target, change) } as const
    return [
      { kind: 'roll', workload, annotation },
      wait(until, `pods of ${workload} started with the new CA`, 600_000),
    ]
  })
  return [...rolls, ...Array.from(bare, askForPod)]
}

/** Returns the value by which a workload is rolled once for what its pods are to read: the CA, and since when it is there. */
export function annotationFor(phase: number, { newCa }: CaChange, sinceMs = 0): string {
  return `${phase}-${newCa.digest.slice(0, 8)}-${Math.floor(sinceMs / 1000).toString(36)}`
}

function askForPod(id: string): Task {
  return ask(
    id,
    `Pod ${id} has no controller: restart it yourself, or accept that it loses its connection in phase 12.`,
  )
}

/** kube-controller-manager deletes the object when it publishes another bundle: a pod that is made then finds none. */
function askForBundle(id: string, name = ''): Task {
  const bundle = `ClusterTrustBundle ${JSON.stringify(name)}`
  return ask(id, `${id} mounts ${bundle}, which was deleted: mount it by signerName and restart its pods.`)
}
