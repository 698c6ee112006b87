import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'

// The validity of certificates: kube-controller-manager's rules (pkg/controller/certificates/{signer,authority}).

const minute = 60_000
const hour = 60 * minute

/** A certificate is valid from this long before now, so that machines whose clock is behind accept it. */
export const kubernetesBackdateMs = 5 * minute

/** Backdating does not shorten a validity below this: 5 minutes are 1 % of 8 hours. */
export const kubernetesShortMs = 8 * hour

/** The default of --cluster-signing-duration. */
export const kubernetesTtlMs = 8760 * hour

/** Minimum validity: twice the backdating. */
const minimumMs = 10 * minute

export interface ValidityPolicy {
  readonly ttlMs: number
  /** Default: kube-controller-manager's. */
  readonly backdateMs?: number | undefined
  /** Backdating does not shorten a validity below this (default 0). */
  readonly shortMs?: number
}

export interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
  /** True when the validity is capped at the expiry of the CA. */
  readonly isClamped: boolean
}

/** Returns the validity for spec.expirationSeconds: the requested one, at most the signer's and at least 10 minutes. */
export function grantedTtlMs(requestedMs: number | undefined, signerTtlMs: number): number {
  if (requestedMs === undefined || requestedMs > signerTtlMs) return signerTtlMs
  return Math.max(requestedMs, minimumMs)
}

/** The CA that a certificate must not outlive, and its files. */
export interface SigningCa {
  readonly notAfter: Date
  readonly ca: string
  readonly key: string
}

/**
 * Returns notBefore and notAfter of a certificate that is signed now; notAfter is at most that of the CA. Fractions of a second
 * are cut off, as in the certificate. Throws KCERT_CA_UNFIT when the CA has expired.
 */
export function validityOf(policy: ValidityPolicy, now: Date, ca?: SigningCa): Validity {
  const { ttlMs, backdateMs = kubernetesBackdateMs, shortMs = 0 } = policy
  const start = now.getTime()
  const end = start + ttlMs - (ttlMs < shortMs ? 0 : backdateMs)
  const limit = ca?.notAfter.getTime() ?? Number.POSITIVE_INFINITY
  if (ca && start - backdateMs >= limit) throw expired(ca, ' before the certificate would be valid')
  if (ca && start >= limit) throw expired(ca, ', and its certificates would be expired, too')
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
  return new KcertError('KCERT_CA_UNFIT', `the CA ${ca} has expired${what}`, {
    why: `its notAfter is ${notAfter.toISOString()}; kcert ca renew keeps its name and key`,
    next: commandLine`kcert ca renew --ca ${ca} --ca-key ${key}`,
  })
}
