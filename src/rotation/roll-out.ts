import type { Step, Task } from './action.ts'
import { hasLostBundle, publishedFor } from './convergence.ts'
import type { Observed, PodSnapshot } from './snapshot.ts'
import { type CaChange, type Target, wantedTrust } from './target.ts'
import { ask, inLanes, wait } from './tasks.ts'

// Controllers roll out their own workloads, so PodDisruptionBudgets and update strategies apply.

/**
 * Returns the steps that replace these pods. Workloads are rolled out, up to a limit in parallel. Pods that no controller would
 * create again require a confirmation. The annotation contains the phase, the CA and the time of its publication. A second run
 * therefore does not roll out the same workloads again, but a run after a rollback does.
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
    const until = { kind: 'pods-converged', workload, contains: wantedTrust(target, change) } as const
    return [
      { kind: 'rollout', workload, annotation },
      wait(until, `pods of ${workload} started with the new CA`, 600_000),
    ]
  })
  return [...rolls, ...Array.from(bare, askForPod)]
}

/** Returns the annotation that rolls out a workload once: the CA, and the time since which its pods can read it. */
export function annotationFor(phase: number, { newCa }: CaChange, sinceMs = 0): string {
  return `${phase}-${newCa.digest.slice(0, 8)}-${Math.floor(sinceMs / 1000).toString(36)}`
}

function askForPod(id: string): Task {
  return ask(
    id,
    `Pod ${id} has no controller: restart it yourself, or accept that it loses its connection in phase 12.`,
  )
}

/** kube-controller-manager deletes the object when it publishes another bundle. A pod created after that finds none. */
function askForBundle(id: string, name = ''): Task {
  const bundle = `ClusterTrustBundle ${JSON.stringify(name)}`
  return ask(id, `${id} mounts ${bundle}, which was deleted: mount it by signerName and restart its pods.`)
}
