import { kubeletRotationWindow } from '../pki/kubelet.ts'

// When a certificate is renewed, and when a renewal that failed is tried again (client-go util/certificate).

/** Returns a number of [0, 1). */
export type Draw = () => number

/** What a certificate lasts. */
export interface Validity {
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** Returns when a certificate is renewed: at 70–90 % of its life, so that nodes made together do not renew together. */
export function rotationDeadlineMs({ notBeforeMs, notAfterMs }: Validity, draw: Draw): number {
  const { earliest, latest } = kubeletRotationWindow(new Date(notBeforeMs), new Date(notAfterMs))
  return earliest.getTime() + (latest.getTime() - earliest.getTime()) * draw()
}

/** The time to wait for a certificate; then kcert requests it again, with another key. */
export const certificateWaitMs = 15 * 60_000

/** Between two looks at what there is to do. */
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
 * Returns when a certificate that came at `storedMs` may be renewed at the earliest. Signers put notBefore five minutes back, so that 70 % of
 * a life of some minutes are over when it begins: without a pause it would be asked for each second.
 */
export function restedMs({ notAfterMs }: Validity, storedMs: number): number {
  return storedMs + Math.min(steadyPauseMs, Math.max(restMs, (notAfterMs - storedMs) / 2))
}
