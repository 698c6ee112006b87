import type { Step, Task } from './action.ts'
import { type PhaseId, type PhaseRow, type PhaseTable, phaseRow } from './phase-table.ts'
import type { RotationPlan, RotationStatus } from './report.ts'
import type { CopySnapshot, Observed, SectionName, Snapshot } from './snapshot.ts'
import { type CaChange, changeOf, type Target } from './target.ts'
import type { Remembered, Settings } from './target-reading.ts'
import { inPhase } from './tasks.ts'

/** One difference between the snapshot and the completed phase. */
export type PendingItem = Readonly<RotationStatus['phases'][number]['pending'][number]>

/** Returns the first of these items, and how many more there are. */
export function firstOf([first, ...others]: readonly PendingItem[]): string {
  return `${first?.at}: ${first?.what}${others.length > 0 ? ` (and ${others.length} more)` : ''}`
}

/** Why a phase or a rotation cannot start. */
export type Refusal = Readonly<RotationStatus['blockers'][number]>

export type Undo =
  | { readonly kind: 'steps'; readonly steps: readonly Step[] }
  | { readonly kind: 'impossible'; readonly refusal: Refusal }

/**
 * A step of the playbook as a value. It reads, writes and prints nothing: it turns a snapshot into pending items and actions. The
 * same input gives the same output.
 */
export interface Phase<Section extends SectionName = SectionName> extends PhaseRow {
  /** The only sections that the observer must fetch. */
  readonly sees: readonly Section[]
  /** Returns the pending items of this phase; empty when it is complete. No later phase makes an item pending again. */
  gaps(observed: Observed<Section>, target: Target): readonly PendingItem[]
  /** Returns the steps that complete the pending items, in order. */
  plan(observed: Observed<Section>, target: Target): readonly Step[]
  /** Returns the steps that restore `now` from the copies of the phase, or why this is impossible. */
  undo(copies: readonly CopySnapshot[], now: Observed<Section>, target: Target): Undo
  /** Returns why the phase cannot start yet. Nothing is planned unless this is empty. */
  refusals(observed: Observed<Section>, target: Target): readonly Refusal[]
  /** Returns information for the operator that requires no action: "no API server has --kubelet-certificate-authority". */
  remarks(observed: Observed<Section>, target: Target): readonly string[]
}

/**
 * The phases of one rotation, and what the runner, the reports and the session need to know about it. They contain no phase and no
 * CA of their own.
 */
export interface Playbook extends PhaseTable {
  /** The phases in order. */
  readonly phases: readonly Phase[]
  /** The sections that its reports and rollbacks need. */
  readonly sections: readonly SectionName[]
  /** The sections that determine the target. */
  readonly targetSections: readonly SectionName[]
  /** The sections that `check` needs. */
  readonly modelSections: readonly SectionName[]
  /** Returns the target of a run. `remembered`: CAs and key in the journal. */
  targetOf(observed: Snapshot, settings: Settings, remembered: Remembered): Target
  /** Returns why the steps would break a connection, in any order and wherever they stop; undefined if none breaks. */
  check(observed: Snapshot, target: Target, steps: readonly Step[]): Refusal | undefined
  /** Returns why a phase is refused for this cluster in its current state. */
  preflight(observed: Snapshot, target: Target, phase: Phase): readonly Refusal[]
  /** Returns why no phase can be reported as complete: nodes that kcert cannot see. */
  unseenNodes(observed: Snapshot): readonly Refusal[]
  positionOf(observed: Snapshot, target: Target): RotationStatus['position']
  /** Returns descriptions of changes that another program reverted, by phase. */
  revertedPhases(observed: Snapshot, target: Target): ReadonlyMap<number, readonly string[]>
  /** Returns what the rotation affects, for its plan. */
  impactOf(observed: Snapshot, target: Target): Impact
}

/** The parts of a plan that depend on the playbook. */
export type Impact = Pick<
  RotationPlan,
  'trustHolders' | 'credentialHolders' | 'assumptions' | 'blastRadius' | 'keyType'
>

/** Returns the phase with this number. Throws RangeError. */
export function phaseOf({ phases }: Pick<Playbook, 'phases'>, number: number): Phase {
  const phase = phases[number - 1]
  if (phase === undefined) throw new RangeError(`no phase ${number}`)
  return phase
}

/** A phase as its file defines it: steps without its number, and any iterable for lists. */
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

/** Returns the phase for this row (of the page, by its ID), with its sections inferred. It accepts a whole snapshot. */
export function definePhase<const Section extends SectionName>(
  id: PhaseId | PhaseRow,
  { sees, gaps, plan, undo, refusals, remarks }: PhaseDraft<Section>,
): Phase {
  const row = typeof id === 'string' ? phaseRow(id) : id
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

/** A part of a phase: its pending items, and the steps that complete them. */
export type Part<Section extends SectionName = SectionName> = (
  observed: Observed<Section>,
  target: Target,
) => { readonly gaps: Iterable<PendingItem>; readonly steps: Iterable<Step<Task>> }

/** Returns a part that does nothing unless the cluster CA is rotated. */
export function clusterPart<const Section extends SectionName>(
  part: (observed: Observed<Section>, target: Target, change: CaChange) => ReturnType<Part>,
): Part<Section> {
  return (observed, target) => {
    const change = changeOf(target, 'cluster')
    return change === undefined ? { gaps: [], steps: [] } : part(observed, target, change)
  }
}

/** Returns the pending items and the plan of a phase that consists of these parts, in this order. */
export function inParts<Section extends SectionName>(
  ...parts: readonly Part<Section>[]
): Pick<PhaseDraft<Section>, 'gaps' | 'plan'> {
  return {
    gaps: (observed, target) => parts.flatMap((part) => [...part(observed, target).gaps]),
    plan: (observed, target) => parts.flatMap((part) => [...part(observed, target).steps]),
  }
}
