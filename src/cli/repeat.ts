import { setTimeout as pauseFor } from 'node:timers/promises'
import type { Context } from './context.ts'
import { interruptible } from './interruption.ts'

// Moves the cursor home and erases the old text, which flickers less than clearing the screen first.
const clearScreen = '\x1b[H\x1b[J'

/**
 * Returns the output of --watch: on a terminal it replaces the old text and shows interval and time; elsewhere it is the text
 * only.
 */
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
 * Calls `act` at once and then at an interval, one call after the other, until the operator presses Ctrl-C, the process receives
 * SIGTERM, or `isOver` accepts the result of a call. Returns the result of the last call.
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
