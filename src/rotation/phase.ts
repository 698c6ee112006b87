import type { Step, Task } from './action.ts'
import { type PhaseId, type PhaseRow, phaseRow } from './phase-table.ts'
import type { CopySnapshot, Observed, SectionName } from './snapshot.ts'
import { type CaChange, changeOf, type Target } from './target.ts'
import { inPhase } from './tasks.ts'

/** One thing that separates the snapshot from the phase being done. */
export interface PendingItem {
  /** A node, file, object, pod or process. */
  readonly at: string
  /** What is not so yet, as a fragment: "holds the old CA alone". */
  readonly what: string
}

/** Returns the first of these gaps, and how many more there are. */
export function firstOf([first, ...others]: readonly PendingItem[]): string {
  return `${first?.at}: ${first?.what}${others.length > 0 ? ` (and ${others.length} more)` : ''}`
}

/** Why a phase, or a rotation, is not begun. */
export interface Refusal {
  readonly what: string
  readonly why: string
  readonly next: string
}

export type Undo =
  | { readonly kind: 'steps'; readonly steps: readonly Step[] }
  | { readonly kind: 'impossible'; readonly refusal: Refusal }

/**
 * A step of the playbook as a value. It reads nothing, writes nothing and prints nothing: it turns what was seen into gaps and
 * actions. Same input, same output.
 */
export interface Phase<Section extends SectionName = SectionName> extends PhaseRow {
  /** What the observer must fetch, and nothing else. */
  readonly sees: readonly Section[]
  /** What separates the cluster from "at least this far"; empty when the phase holds. No later phase opens a gap again. */
  gaps(observed: Observed<Section>, target: Target): readonly PendingItem[]
  /** The steps that close the gaps, in order. */
  plan(observed: Observed<Section>, target: Target): readonly Step[]
  /** The steps that bring `now` back to what the copies of the phase say of the time before it, or why there are none. */
  undo(copies: readonly CopySnapshot[], now: Observed<Section>, target: Target): Undo
  /** Why it must not be begun yet; nothing is planned while this is not empty. */
  refusals(observed: Observed<Section>, target: Target): readonly Refusal[]
  /** What the operator should know although there is nothing to do: "no API server has --kubelet-certificate-authority". */
  remarks(observed: Observed<Section>, target: Target): readonly string[]
}

/** A phase as its file says it: steps without its number, and lists in whatever form. */
interface PhaseDraft<Section extends SectionName> {
  readonly sees: readonly Section[]
  gaps(observed: Observed<Section>, target: Target): Iterable<PendingItem>
  plan(observed: Observed<Section>, target: Target): Iterable<Step<Task>>
  undo(
    copies: readonly CopySnapshot[],
    now: Observed<Section>,
    target: Target,
  ): Iterable<Step<Task>> | Refusal
  refusals?(observed: Observed<Section>, target: Target): Iterable<Refusal>
  remarks?(observed: Observed<Section>, target: Target): Iterable<string>
}

/** Returns the phase of that row with its sections inferred, as one that can be given a whole snapshot. */
export function definePhase<const Section extends SectionName>(
  id: PhaseId,
  { sees, gaps, plan, undo, refusals, remarks }: PhaseDraft<Section>,
): Phase {
  const row = phaseRow(id)
  return {
    ...row,
    sees,
    gaps: (observed, target) => [...gaps(observed, target)],
    plan: (observed, target) => inPhase(row.number, plan(observed, target)),
    undo(copies, now, target) {
      const back = undo(copies, now, target)
      if ('what' in back) return { kind: 'impossible', refusal: back }
      return { kind: 'steps', steps: inPhase(row.number, back) }
    },
    refusals: (observed, target) => [...(refusals?.(observed, target) ?? [])],
    remarks: (observed, target) => [...(remarks?.(observed, target) ?? [])],
  }
}

/** A part of a phase: what is open in it, and the steps that close that. */
export type Part<Section extends SectionName = SectionName> = (
  observed: Observed<Section>,
  target: Target,
) => { readonly gaps: Iterable<PendingItem>; readonly steps: Iterable<Step<Task>> }

/** Returns a part that has nothing to do unless the cluster's CA is rotated. */
export function clusterPart<const Section extends SectionName>(
  part: (observed: Observed<Section>, target: Target, change: CaChange) => ReturnType<Part>,
): Part<Section> {
  return (observed, target) => {
    const change = changeOf(target, 'cluster')
    return change === undefined ? { gaps: [], steps: [] } : part(observed, target, change)
  }
}

/** Returns the gaps and the plan of a phase that consists of these parts, in this order. */
export function inParts<Section extends SectionName>(
  ...parts: readonly Part<Section>[]
): Pick<PhaseDraft<Section>, 'gaps' | 'plan'> {
  return {
    gaps: (observed, target) => parts.flatMap((part) => [...part(observed, target).gaps]),
    plan: (observed, target) => parts.flatMap((part) => [...part(observed, target).steps]),
  }
}
