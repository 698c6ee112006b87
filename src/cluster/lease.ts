/** A user who may write a Lease can set it to 2^31 - 1 s, which is 68 years. */
export const longestLeaseSeconds = 300

/**
 * Returns how long a Lease is held. A duration of 0 s or less is ignored: the API server never stores it, and client-go acquires
 * such a Lease at once.
 */
export function leaseSeconds(said: number | undefined, otherwise: number): number {
  const seconds = Number(said)
  return seconds >= 1 ? seconds : otherwise
}
