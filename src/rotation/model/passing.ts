import type { Cell } from './board.ts'
import type { World } from './world.ts'

// Time in the model: what passes for certain, and what has happened by itself by then.

/** Files that are watched are read within 0.3 s (measured); what is read at each handshake, after at most 1 s. */
const hotMs = 1_000

/** Lets so much time pass; what was written long enough ago is read by now. */
export function pass(world: World, ms: number): void {
  world.clockMs += ms
  for (const [cell, { sinceMs, value, lagMs }] of world.unread) {
    if (sinceMs + lagMs > world.clockMs) continue
    world.unread.delete(cell)
    world.board.set(cell, [value])
  }
}

/** A hot value that will be the only one after the lag. */
export function soon(world: World, cell: Cell, value: number, lagMs = hotMs): void {
  world.board.add(cell, [value])
  world.unread.set(cell, { sinceMs: world.clockMs, value, lagMs })
}

export function settled(world: World, cell: Cell, values: readonly number[]): void {
  world.unread.delete(cell)
  world.board.set(cell, values)
}
