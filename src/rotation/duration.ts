import type { Step } from './action.ts'
import { secondsOf } from './effects.ts'

/** Returns the duration of these steps in seconds. Lanes run in parallel, up to their limit. */
export function durationOf(steps: readonly Step[], nowMs: number): number {
  return steps.reduce((sum, step) => {
    if (step.kind !== 'together') return sum + secondsOf(step, nowMs)
    const lanes = step.lanes.map((lane) => durationOf(lane.steps, nowMs))
    return sum + longestLane(lanes, step.atOnce)
  }, 0)
}

/** The next lane starts when one finishes. */
function longestLane(lanes: readonly number[], atOnce: number): number {
  const busyUntil = new Array<number>(Math.min(atOnce, lanes.length)).fill(0)
  for (const lane of lanes) {
    const soonest = Math.min(...busyUntil)
    busyUntil[busyUntil.indexOf(soonest)] = soonest + lane
  }
  return Math.max(0, ...busyUntil)
}
