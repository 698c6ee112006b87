import type { Step } from '../action.ts'
import type { PendingItem, Phase, Playbook, Refusal } from '../phase.ts'
import { isPast } from '../progress.ts'
import type { Snapshot } from '../snapshot.ts'
import type { Target } from '../target.ts'
import { imagine, reissuedByOwners } from './imagined.ts'

// The whole rotation before it starts. Each phase is planned and checked on the snapshot that the earlier phases will leave.

export interface ForecastPhase {
  readonly phase: Phase
  /** Pending items at the start of the phase. */
  readonly gaps: readonly PendingItem[]
  readonly steps: readonly Step[]
  readonly remarks: readonly string[]
  /** The predicted snapshot, and the target. */
  readonly observed: Snapshot
  readonly target: Target
  /** Why its steps would break a connection. */
  readonly broken?: Refusal
  /** Items that would stay pending although every step succeeds. */
  readonly open: readonly PendingItem[]
  /** Estimated duration, from measurements. */
  readonly durationMs: number
}

/** A phase observes again after its first steps: first volumes, then the clients that read them. */
const mostRounds = 4

/**
 * Returns a prediction of every remaining phase, one after another. A caller that does not keep them needs the memory of only
 * one. kcert does not ask; questions to the operator count as confirmed.
 */
export function* forecast(
  playbook: Playbook,
  observed: Snapshot,
  target: Target,
): Generator<ForecastPhase, void> {
  let now = { observed, target }
  for (const phase of playbook.phases) {
    if (phase.waitsForOwners) now = { ...now, observed: reissuedByOwners(now.observed, now.target) }
    const before = now
    const gaps = isPast(phase, target) ? [] : phase.gaps(before.observed, before.target)
    const steps: Step[] = []
    let open = gaps
    let broken: Refusal | undefined
    let planned: readonly Step[] = []
    for (let round = 1; open.length > 0 && round <= mostRounds; round++) {
      const again = phase.plan(now.observed, now.target)
      // Steps that left items pending once leave them pending again.
      if (again.length === 0 || isSame(again, planned)) break
      planned = again
      broken ??= playbook.check(now.observed, now.target, planned)
      for (const step of planned) steps.push(step)
      now = imagine(now.observed, now.target, planned)
      open = phase.gaps(now.observed, now.target)
    }
    const remarks = phase.remarks(before.observed, before.target)
    const durationMs = now.observed.atMs - before.observed.atMs
    yield { phase, gaps, steps, remarks, ...before, ...(broken && { broken }), open, durationMs }
  }
}

function isSame(one: readonly Step[], other: readonly Step[]): boolean {
  return one.length === other.length && JSON.stringify(one) === JSON.stringify(other)
}
