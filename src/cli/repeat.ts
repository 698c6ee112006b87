import { setTimeout as pauseFor } from 'node:timers/promises'
import type { Context } from './context.ts'
import { interruptible } from './interruption.ts'

// The cursor goes home and what was there is erased: less flicker than an empty screen in between.
const clearScreen = '\x1b[H\x1b[J'

/** Returns what --watch shows: on a terminal in place of what was there, with how often and when; elsewhere the text alone. */
export function watchFrame(
  { stdoutIsTerminal }: Pick<Context, 'stdoutIsTerminal'>,
  text: string,
  now: Date,
  every: string,
): string {
  if (!stdoutIsTerminal) return text
  const time = now.toISOString().slice(0, 19).replace('T', ' ')
  return `${clearScreen}every ${every}, now ${time} UTC, Ctrl-C ends\n\n${text}`
}

/**
 * Calls `act` at once and then every so often, one call after the other, until the operator presses Ctrl-C or the process is
 * told to end, or `isOver` says so after a call. Returns what the last call returned.
 */
export async function repeatUntilInterrupted<Result>(
  intervalMs: number,
  act: () => Promise<Result>,
  isOver: (last: Result) => boolean = () => false,
): Promise<Result> {
  using interruption = interruptible()
  const { signal } = interruption
  for (;;) {
    const result = await act()
    if (signal.aborted || isOver(result)) return result
    await pauseFor(intervalMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) return result
  }
}
