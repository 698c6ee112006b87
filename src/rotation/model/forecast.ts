import type { Step } from '../action.ts'
import type { Gap } from '../phase.ts'
import type { Picture } from '../picture.ts'
import { playbook } from '../playbook.ts'
import type { Target } from '../target.ts'
import { type BrokenEdge, checkPlan } from './check.ts'
import { imagine, reissuedByOwners } from './imagined.ts'

// The whole rotation before it begins: each phase is planned on the picture that the phases before it will leave, and checked there.

export interface ForecastPhase {
  readonly number: number
  /** What the phase will find open. */
  readonly gaps: readonly Gap[]
  readonly steps: readonly Step[]
  readonly remarks: readonly string[]
  /** What it will see, and what it is to reach. */
  readonly seen: Picture
  readonly target: Target
  /** The first connection that its steps would break. */
  readonly broken?: BrokenEdge
  /** What would stay open though all of it went well. */
  readonly open: readonly Gap[]
}

/** A phase sees anew what its first steps brought about: volumes first, then the clients that read them. */
const mostRounds = 4

/** Returns what every phase from now on will do. Nobody is asked; what the operator is asked counts as answered. */
export function forecast(seen: Picture, target: Target): readonly ForecastPhase[] {
  let now = { seen, target }
  return playbook.map((phase): ForecastPhase => {
    if (phase.number === 11) now = { ...now, seen: reissuedByOwners(now.seen, now.target) }
    const before = now
    const gaps = phase.gaps(before.seen, before.target)
    const steps: Step[] = []
    let open = gaps
    let broken: BrokenEdge | undefined
    for (let round = 1; open.length > 0 && round <= mostRounds; round++) {
      const planned = phase.plan(now.seen, now.target)
      broken ??= checkPlan(now.seen, now.target, planned)
      steps.push(...planned)
      now = imagine(now.seen, now.target, planned)
      open = phase.gaps(now.seen, now.target)
    }
    const remarks = phase.remarks?.(before.seen, before.target) ?? []
    return { number: phase.number, gaps, steps, remarks, ...before, ...(broken && { broken }), open }
  })
}
