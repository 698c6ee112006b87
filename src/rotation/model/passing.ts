import type { Board, Cell } from './board.ts'

// Time in the model: how much time has certainly passed, and what has happened by itself in this time.

/** The state of a model: values that processes may have, and time that has certainly passed. */
export interface ModelState {
  readonly board: Board
  /** Hot files that were written. They are certainly read a second later. */
  readonly unread: Map<Cell, { sinceMs: number; readonly value: number; readonly lagMs: number }>
  clockMs: number
}

/** A watched file is read within 0.3 s (measured). A file that is read at each handshake is read after at most 1 s. */
const hotMs = 1_000

/** Advances the clock. Files that were written long enough ago are read. */
export function pass(world: ModelState, ms: number): void {
  world.clockMs += ms
  for (const [cell, { sinceMs, value, lagMs }] of world.unread) {
    if (sinceMs + lagMs > world.clockMs) continue
    world.unread.delete(cell)
    world.board.set(cell, [value])
  }
}

/** Adds a hot value that becomes the only one after the lag. */
export function scheduleValue(world: ModelState, cell: Cell, value: number, lagMs = hotMs): void {
  world.board.add(cell, [value])
  world.unread.set(cell, { sinceMs: world.clockMs, value, lagMs })
}

export function settled(world: ModelState, cell: Cell, values: readonly number[]): void {
  world.unread.delete(cell)
  world.board.set(cell, values)
}
