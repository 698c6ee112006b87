/** A user who may write a Lease can write up to 2^31 - 1 s into it, which is 68 years. */
export const longestLeaseSeconds = 300

/** Returns for how long a Lease is held. One of 0 s or less, which client-go takes at once and the API server never stores, says nothing. */
export function leaseSeconds(said: number | undefined, otherwise: number): number {
  const seconds = Number(said)
  return seconds >= 1 ? seconds : otherwise
}
