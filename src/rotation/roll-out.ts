import type { Action, Step } from './action.ts'
import { hasLostBundle, publishedFor } from './convergence.ts'
import type { PodPicture, Seen } from './picture.ts'
import { together } from './restart.ts'
import { type CaChange, type Target, wantedTrust } from './target.ts'

// Workloads are rolled by their own controllers, which keep to PodDisruptionBudgets and update strategies.

/**
 * Returns the steps that replace these pods: their workloads rolled, so many at a time; and a question for each that nobody would
 * make again. The annotation names phase, CA and when it was published there, so that a second run does not roll what the first one
 * rolled, and one after a way back does.
 */
export function rollOut(
  seen: Seen<'workloads' | 'published'>,
  phase: number,
  pods: readonly PodPicture[],
  change: CaChange,
  target: Target,
): readonly Step[] {
  const rollable = new Set(seen.workloads.flatMap(({ id, mayRoll }) => (mayRoll ? [id] : [])))
  const asks = new Map<string, Action>()
  for (const pod of pods) if (pod.workload === undefined) asks.set(pod.id, askForPod(phase, pod.id))
  const lanes = [...Map.groupBy(pods, ({ workload }) => workload)].flatMap(([workload, its]) => {
    if (workload === undefined) return []
    const lost = its.find((pod) => hasLostBundle(seen, pod))
    const sinceMs = its.flatMap((pod) => publishedFor(seen, pod)).map(({ changedAtMs }) => changedAtMs)
    const annotation = annotationFor(phase, change, Math.max(0, ...sinceMs))
    const steps =
      lost !== undefined
        ? [askForBundle(phase, workload, lost.trustBundle?.name)]
        : rollable.has(workload)
          ? roll(phase, workload, annotation, wantedTrust(target, change))
          : [askForWorkload(phase, workload)]
    return [{ name: workload, steps }]
  })
  return [...together(target.atOnce, lanes), ...asks.values()]
}

/** Returns the value by which a workload is rolled once for what its pods are to read: the CA, and since when it is there. */
export function annotationFor(phase: number, { newCa }: CaChange, sinceMs = 0): string {
  return `${phase}-${newCa.digest.slice(0, 8)}-${Math.floor(sinceMs / 1000).toString(36)}`
}

function roll(phase: number, workload: string, annotation: string, holds: readonly string[]): Action[] {
  return [
    { kind: 'roll', phase, workload, annotation },
    {
      kind: 'wait',
      phase,
      until: { kind: 'pods-converged', workload, holds },
      because: `pods of ${workload} started with the new CA`,
      deadlineMs: 600_000,
    },
  ]
}

function askForPod(phase: number, id: string): Action {
  return {
    kind: 'ask',
    phase,
    id,
    question: `Pod ${id} has no controller: restart it yourself, or let it lose its connection in phase 12`,
  }
}

function askForWorkload(phase: number, id: string): Action {
  return { kind: 'ask', phase, id, question: `${id} is not to be rolled: restart its pods yourself` }
}

/** kube-controller-manager deletes the object when it publishes another bundle: a pod that is made then finds none. */
function askForBundle(phase: number, id: string, name = ''): Action {
  return {
    kind: 'ask',
    phase,
    id,
    question: `${id} mounts ClusterTrustBundle ${JSON.stringify(name)}, which is gone: mount it by signerName, and restart its pods`,
  }
}
