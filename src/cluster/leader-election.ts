import type { ObjectOf } from './kinds.ts'
import { leaseSeconds, longestLeaseSeconds } from './lease.ts'

// Leader election on a Lease, with the rules of client-go (tools/leaderelection): a holder acts until the renew deadline, and a
// candidate takes over a Lease that it has observed unchanged for the whole lease duration. Both count on their own clock only, and
// every write names the resourceVersion that was read. Stricter than client-go: a Lease that is older than one observed before is not
// free at once, and the candidate that creates a Lease acts only after the lease duration. Another client may have deleted the last
// one, and its holder acts until it notices.

/** A point in time on two clocks of this machine. */
export interface Instant {
  /** Never goes back. It may stop while the machine sleeps. */
  readonly monotonicMs: number
  /** Advances while the machine sleeps. A person may set it. */
  readonly wallMs: number
}

export interface ElectionTimes {
  readonly leaseMs: number
  readonly renewDeadlineMs: number
  readonly retryMs: number
}

/**
 * Shorter than client-go's, so that another replica leads within 15 s after the leader was killed. The difference between the first two
 * is the time in which a write of a former leader may arrive.
 */
export const electionTimes: ElectionTimes = { leaseMs: 10_000, renewDeadlineMs: 7_000, retryMs: 1_500 }

type Lease = ObjectOf<'leases'>
type LeaseSpec = NonNullable<Lease['spec']>

const mostTransitions = 2 ** 31 - 1

/** The state of one candidate. It does no I/O: the caller reads and writes the Lease, and passes the time. */
export class Election {
  readonly identity: string
  readonly #times: ElectionTimes
  /** When the last successful write of this process began: other candidates cannot have observed it earlier. */
  #heldSince: Instant | undefined
  #ownVersion: string | undefined
  #isCreating = false
  /** On the monotonic clock: the holder of a deleted Lease cannot act any more. */
  #actsFromMs = 0
  #observed: { readonly version: string; readonly since: Instant } | undefined
  /** The highest leaseTransitions observed. */
  #transitions: number | undefined

  /** `identity` must be unique for each process. */
  constructor(identity: string, times = electionTimes) {
    this.identity = identity
    this.#times = times
  }

  /** Returns whether this process may act now. */
  isLeader(now: Instant): boolean {
    if (this.#heldSince === undefined || now.monotonicMs < this.#actsFromMs) return false
    // The larger difference counts: a sleep stops one clock, and setting the time changes the other one.
    const { monotonicMs, wallMs } = this.#heldSince
    return Math.max(now.monotonicMs - monotonicMs, now.wallMs - wallMs) < this.#times.renewDeadlineMs
  }

  /** Returns the spec to write, given the Lease as just read; undefined: do not write, read it again later. */
  next(lease: Lease | undefined, now: Instant): LeaseSpec | undefined {
    this.#isCreating = lease === undefined
    const { spec = {} } = lease ?? {}
    const { holderIdentity = '', leaseDurationSeconds } = spec
    const transitions = transitionsOf(spec)
    const version = versionOf(lease)
    if (this.#observed?.version !== version) this.#observed = { version, since: now }
    if (holderIdentity === this.identity) {
      // Nobody else can have held it since the own write, even if that was long ago: the write would be a conflict.
      if (this.isLeader(now) || version === this.#ownVersion) return this.#specAt(now, spec)
    } else this.#heldSince = undefined
    const isBackward = this.#transitions !== undefined && transitions < this.#transitions
    this.#transitions =
      lease === undefined ? this.#transitions : Math.max(transitions, this.#transitions ?? 0)
    const isFree = lease === undefined || (holderIdentity === '' && !isBackward)
    const { leaseMs } = this.#times
    const seconds = Math.min(leaseSeconds(leaseDurationSeconds, leaseMs / 1000), longestLeaseSeconds)
    const isOver = now.monotonicMs - this.#observed.since.monotonicMs >= Math.max(leaseMs, seconds * 1000)
    return isFree || isOver ? this.#specAt(now, spec) : undefined
  }

  /** Records the server's answer to a write that began at `begun`. The server may have acted at any time between. */
  wrote(lease: Lease, begun: Instant, answered: Instant): void {
    if (lease.spec?.holderIdentity !== this.identity) return
    this.#heldSince = begun
    if (this.#isCreating) this.#actsFromMs = answered.monotonicMs + this.#times.leaseMs
    this.#ownVersion = versionOf(lease)
    this.#observed = { version: this.#ownVersion, since: begun }
    this.#transitions = transitionsOf(lease.spec)
  }

  /** Ends the leadership. Returns the spec that releases the Lease; undefined if this process does not hold it. */
  release({ spec = {} }: Lease, now: Instant): LeaseSpec | undefined {
    const isHeld = this.isLeader(now) && spec.holderIdentity === this.identity
    this.#heldSince = undefined
    return isHeld
      ? { ...spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: timeOf(now) }
      : undefined
  }

  #specAt(now: Instant, before: LeaseSpec): LeaseSpec {
    const time = timeOf(now)
    const isOwn = before.holderIdentity === this.identity
    const next = this.#transitions === undefined ? 0 : Math.min(this.#transitions + 1, mostTransitions)
    return {
      ...before,
      holderIdentity: this.identity,
      leaseDurationSeconds: Math.ceil(this.#times.leaseMs / 1000),
      renewTime: time,
      ...(isOwn ? {} : { acquireTime: time, leaseTransitions: next }),
    }
  }
}

function versionOf(lease: Lease | undefined): string {
  return lease === undefined ? 'absent' : `${lease.metadata.uid} ${lease.metadata.resourceVersion}`
}

function transitionsOf({ leaseTransitions = 0 }: LeaseSpec): number {
  return Number.isSafeInteger(leaseTransitions) ? leaseTransitions : 0
}

/** Returns a MicroTime, for people. No replica reads it. */
function timeOf({ wallMs }: Instant): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z')
}
