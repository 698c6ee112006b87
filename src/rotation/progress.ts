import { firstOf, type PendingItem, type Phase, type Playbook, type Refusal } from './phase.ts'
import { phaseCommand } from './phase-table.ts'
import type { Position } from './position.ts'
import type { Snapshot } from './snapshot.ts'
import { hasBegun, type Target } from './target.ts'

// The state of a rotation, phase by phase, from one snapshot and regardless of the journal.

export interface PhaseStatus {
  readonly phase: Phase
  readonly gaps: readonly PendingItem[]
  /** `waiting`: an earlier phase that must be complete first has pending items. */
  readonly state: 'complete' | 'incomplete' | 'waiting'
  readonly remarks: readonly string[]
}

export interface RotationProgress {
  readonly playbook: Playbook
  readonly state: 'not-started' | 'in-progress' | 'finished'
  readonly position: Position
  readonly phases: readonly PhaseStatus[]
  /** The first phase with pending items; undefined when nothing is left. */
  readonly next: number | undefined
  /** Why the next phase would be refused; empty when it may start. */
  readonly blockers: readonly Refusal[]
  /** Descriptions of changes that another program reverted, by phase. */
  readonly takenBack: ReadonlyMap<number, readonly string[]>
}

/** Returns the state of the rotation. */
export function progressOf(playbook: Playbook, observed: Snapshot, target: Target): RotationProgress {
  const position = playbook.positionOf(observed, target)
  const back = playbook.revertedPhases(observed, target)
  const found = playbook.phases.map((phase) => ({
    phase,
    gaps: isPast(phase, target) ? [] : phase.gaps(observed, target),
    remarks: [...phase.remarks(observed, target), ...(back.get(phase.number) ?? [])],
  }))
  const open = new Set(found.flatMap(({ phase, gaps }) => (gaps.length > 0 ? [phase.number] : [])))
  const phases = found.map((one): PhaseStatus => {
    if (one.gaps.length === 0) return { ...one, state: 'complete' }
    const isLater =
      !target.isDropping && needed(playbook, [one.phase.number]).some((number) => open.has(number))
    return { ...one, state: isLater ? 'waiting' : 'incomplete' }
  })
  const next = phases.find(({ gaps }) => gaps.length > 0)?.phase
  return {
    playbook,
    state: stateOf(target, next),
    position,
    phases,
    next: next?.number,
    blockers: blockersOf(playbook, observed, target, next),
    takenBack: back,
  }
}

/** Returns why these phases, run in sequence, cannot start: earlier phases that are incomplete. */
export function outOfOrder(
  { playbook, phases, position, takenBack: back }: RotationProgress,
  numbers: readonly number[],
): readonly Refusal[] {
  if (position === 'removing') return []
  return needed(playbook, numbers).flatMap((number) => {
    const gaps = phases[number - 1]?.gaps ?? []
    const cause = (back.get(number) ?? []).map((remark) => `; ${remark}`).join('')
    if (gaps.length === 0) return []
    return [
      {
        what: `phase ${numbers[0]} cannot start before phase ${number} is complete`,
        why: `pending in phase ${number}: ${firstOf(gaps)}${cause}`,
        next: phaseCommand(playbook, number),
      },
    ]
  })
}

/** Returns the phases that must be complete before these can run in sequence, lowest first. */
function needed({ rows }: Playbook, numbers: readonly number[]): readonly number[] {
  const found = new Set<number>()
  const queue = numbers.flatMap((number) => rows[number - 1]?.after ?? [])
  for (let number = queue.pop(); number !== undefined; number = queue.pop()) {
    if (found.has(number) || numbers.includes(number)) continue
    found.add(number)
    queue.push(...(rows[number - 1]?.after ?? []))
  }
  return [...found].sort((a, b) => a - b)
}

/** Once the old CA is being dropped, only the phase that drops it runs. */
export function isPast({ dropsOld }: Phase, { isDropping }: Target): boolean {
  return isDropping && dropsOld !== true
}

function stateOf(target: Target, next: Phase | undefined): RotationProgress['state'] {
  if (target.isDropping) return next === undefined ? 'finished' : 'in-progress'
  return hasBegun(target) ? 'in-progress' : 'not-started'
}

function blockersOf(
  playbook: Playbook,
  observed: Snapshot,
  target: Target,
  next: Phase | undefined,
): readonly Refusal[] {
  if (next === undefined) return []
  return [...playbook.preflight(observed, target, next), ...next.refusals(observed, target)]
}
