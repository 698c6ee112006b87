import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'

// How long a certificate lives: kube-controller-manager's rules (pkg/controller/certificates/{signer,authority}).

const minute = 60_000
const hour = 60 * minute

/** So much earlier than now a certificate begins, so that machines whose clock is behind accept it. */
export const kubernetesBackdateMs = 5 * minute

/** A shorter life is not cut by the backdating: 5 minutes are 1 % of 8 hours. */
export const kubernetesShortMs = 8 * hour

/** --cluster-signing-duration where it is not set. */
export const kubernetesTtlMs = 8760 * hour

/** The least that is granted: twice the backdating. */
const minimumMs = 10 * minute

export interface ValidityPolicy {
  readonly ttlMs: number
  /** kube-controller-manager's unless given. */
  readonly backdateMs?: number | undefined
  /** A shorter life is not cut by the backdating; every life is unless given. */
  readonly shortMs?: number
}

export interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
  /** True when the CA ends first, so that the certificate got less than it was promised. */
  readonly isClamped: boolean
}

/** Returns the lifetime for spec.expirationSeconds: what was asked for, at most the signer's own and at least 10 minutes. */
export function grantedTtlMs(requestedMs: number | undefined, signerTtlMs: number): number {
  if (requestedMs === undefined || requestedMs > signerTtlMs) return signerTtlMs
  return Math.max(requestedMs, minimumMs)
}

/** The CA that a certificate must not outlive, and the files that it lies in. */
export interface SigningCa {
  readonly notAfter: Date
  readonly ca: string
  readonly key: string
}

/**
 * Returns when a certificate signed now begins and ends; never later than the CA. Fractions of a second are cut off, as in the
 * certificate. Throws KCERT_CA_UNFIT when the CA has expired.
 */
export function validityOf(policy: ValidityPolicy, now: Date, ca?: SigningCa): Validity {
  const { ttlMs, backdateMs = kubernetesBackdateMs, shortMs = 0 } = policy
  const start = now.getTime()
  const end = start + ttlMs - (ttlMs < shortMs ? 0 : backdateMs)
  const limit = ca?.notAfter.getTime() ?? Number.POSITIVE_INFINITY
  if (ca && start - backdateMs >= limit) throw expired(ca, 'before the certificate would begin')
  if (ca && start >= limit) throw expired(ca, 'and so would be what it signs')
  return {
    notBefore: wholeSeconds(start - backdateMs),
    notAfter: wholeSeconds(Math.min(end, limit)),
    isClamped: end > limit,
  }
}

function wholeSeconds(ms: number): Date {
  return new Date(Math.floor(ms / 1000) * 1000)
}

function expired({ notAfter, ca, key }: SigningCa, what: string): KcertError {
  return new KcertError('KCERT_CA_UNFIT', `the CA ${ca} has expired, ${what}`, {
    why: `its notAfter is ${notAfter.toISOString()}`,
    next: commandLine`renew it with the same key and name: kcert ca renew --ca ${ca} --ca-key ${key}`,
  })
}
