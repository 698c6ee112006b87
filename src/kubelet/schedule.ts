import { kubeletRotationWindow } from '../pki/kubelet.ts'

// When a certificate is renewed, and when a failed renewal is retried (client-go util/certificate).

/** Returns a number in [0, 1). */
export type Draw = () => number

/** The validity of a certificate. */
export interface Validity {
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** Returns when a certificate is renewed: at 70–90 % of its lifetime, so that nodes created together do not renew together. */
export function rotationDeadlineMs({ notBeforeMs, notAfterMs }: Validity, draw: Draw): number {
  const { earliest, latest } = kubeletRotationWindow(new Date(notBeforeMs), new Date(notAfterMs))
  return earliest.getTime() + (latest.getTime() - earliest.getTime()) * draw()
}

/** How long kcert waits for a certificate; then it requests it again, with another key. */
export const certificateWaitMs = 15 * 60_000

/** The interval between two checks for work. */
export const restMs = 1_000

const firstPauseMs = 2_000
const pauseFactor = 2
const pauseJitter = 0.1
const quickTries = 5
const steadyPauseMs = 32_000

/** Returns how long to wait after a number of failed tries in a row: 2 s, 4 s, 8 s and 16 s, up to a tenth longer, then 32 s each time. */
export function pauseAfterMs(failedTries: number, draw: Draw): number {
  if (failedTries >= quickTries) return steadyPauseMs
  return firstPauseMs * pauseFactor ** (failedTries - 1) * (1 + pauseJitter * draw())
}

/**
 * Returns the earliest renewal time of a certificate that was stored at `storedMs`. Signers backdate notBefore by five minutes,
 * so 70 % of a lifetime of a few minutes has already passed: without a pause, it would be requested every second.
 */
export function restedMs({ notAfterMs }: Validity, storedMs: number): number {
  return storedMs + Math.min(steadyPauseMs, Math.max(restMs, (notAfterMs - storedMs) / 2))
}
