import { setTimeout as pauseFor } from 'node:timers/promises'
import type { Pause } from './api-client.ts'

/** Waits for a time. Rejects when the signal aborts. */
export const waiting: Pause = (milliseconds, signal) =>
  pauseFor(milliseconds, undefined, signal && { signal })

/** Waits for a time, or until the signal aborts. */
export async function restUntil(pause: Pause, milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
