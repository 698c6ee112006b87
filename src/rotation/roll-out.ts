import type { Action, Step } from './action.ts'
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
  const workloads = new Set<string>()
  const asks: Action[] = []
  for (const { id, workload } of pods) {
    if (workload !== undefined && rollable.has(workload)) workloads.add(workload)
    else if (workload === undefined) asks.push(askForPod(phase, id))
    else workloads.add(workload)
  }
  const publishedAt = new Map(seen.published.map(({ name, changedAtMs }) => [name, changedAtMs]))
  const annotationOf = (workload: string): string =>
    annotationFor(phase, change, publishedAt.get(`${namespaceOf(workload)}/kube-root-ca.crt`))
  const lanes = [...workloads].flatMap((workload) =>
    rollable.has(workload)
      ? [
          {
            name: workload,
            steps: roll(phase, workload, annotationOf(workload), wantedTrust(target, change)),
          },
        ]
      : [{ name: workload, steps: [askForWorkload(phase, workload)] }],
  )
  return [...together(target.atOnce, lanes), ...asks]
}

/** Returns the value by which a workload is rolled once for what its pods are to read: the CA, and since when it is there. */
export function annotationFor(phase: number, { newCa }: CaChange, sinceMs = 0): string {
  return `${phase}-${newCa.digest.slice(0, 8)}-${Math.floor(sinceMs / 1000).toString(36)}`
}

/** "Deployment default/web" → "default" */
function namespaceOf(workload: string): string {
  return workload.slice(workload.indexOf(' ') + 1, workload.lastIndexOf('/'))
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
