import type { Action, Step } from './action.ts'
import type { PodPicture, Seen } from './picture.ts'
import { together } from './restart.ts'
import { type CaChange, type Target, wantedTrust } from './target.ts'

// Workloads are rolled by their own controllers, which keep to PodDisruptionBudgets and update strategies.

/**
 * Returns the steps that replace these pods: their workloads rolled, so many at a time; and a question for each that nobody would
 * make again. The annotation names phase and CA, so that a second run does not roll what the first one rolled.
 */
export function rollOut(
  seen: Seen<'workloads'>,
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
  const annotation = `${phase}-${change.newCa.digest.slice(0, 8)}`
  const lanes = [...workloads].flatMap((workload) =>
    rollable.has(workload)
      ? [{ name: workload, steps: roll(phase, workload, annotation, wantedTrust(target, change)) }]
      : [{ name: workload, steps: [askForWorkload(phase, workload)] }],
  )
  return [...together(target.atOnce, lanes), ...asks]
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
