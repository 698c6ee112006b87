import { KcertError } from '../../errors/kcert-error.ts'
import type { Action } from '../../rotation/action.ts'
import { nodeOf } from '../../rotation/effects.ts'
import { type PhaseTable, phaseCommand } from '../../rotation/phase-table.ts'
import type { Pace } from '../../rotation/ports.ts'

export const pauses = ['nodes', 'phases'] as const
export type PauseBetween = (typeof pauses)[number]

interface Pauses {
  readonly table: PhaseTable
  readonly between: PauseBetween | undefined
  readonly rollEveryMs: number
  readonly pace: Pace
  /** Asks whether to continue with a node. */
  readonly goesOn: (node: string) => Promise<boolean>
  /** Throws if the operator has pressed Ctrl-C. */
  readonly stop: () => void
  /** The last step before an action, after all checks. */
  readonly begin: (action: Action) => Promise<void>
}

/**
 * Returns the wait before each action: for the operator's confirmation before another node, and for the interval between
 * two workloads. Concurrent lanes wait one after the other.
 */
export function pausing({ table, between, rollEveryMs, pace, goesOn, stop, begin }: Pauses) {
  let lastNode: string | undefined
  let lastRollMs = Number.NEGATIVE_INFINITY
  let turn: Promise<void> = Promise.resolve()
  const before = async (action: Action): Promise<void> => {
    stop()
    const node = between === 'nodes' ? nodeOf(action) : undefined
    if (node !== undefined && node !== lastNode) {
      if (lastNode !== undefined && !(await goesOn(node)))
        throw new KcertError('KCERT_ROTATION_INTERRUPTED', `stopped before node ${node}`, {
          why: 'you answered no; completed actions stay in place',
          next: phaseCommand(table, action.phase),
        })
      lastNode = node
    }
    if (action.kind === 'rollout' && rollEveryMs > 0) {
      const restMs = lastRollMs + rollEveryMs - pace.now()
      if (restMs > 0) await pace.sleep(restMs)
      stop()
      lastRollMs = pace.now()
    }
    await begin(action)
  }
  return (action: Action): Promise<void> => {
    const mine = turn.then(() => before(action))
    turn = mine.catch(() => {})
    return mine
  }
}
