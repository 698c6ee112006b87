import type { Pause } from './api-client.ts'

/** Waits for a time, or until the signal aborts. */
export async function restUntil(pause: Pause, milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
