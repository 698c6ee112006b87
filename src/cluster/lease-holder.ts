import { KcertError, wordsOf } from '../errors/kcert-error.ts'
import type { Pause } from './api-client.ts'
import { type ObjectOf, resources } from './kinds.ts'
import { Election, type ElectionTimes, electionTimes, type Instant } from './leader-election.ts'
import type { ObjectsApi } from './objects.ts'
import { getOne } from './readable.ts'
import { restUntil } from './resting.ts'

export interface LeaseOptions {
  readonly objects: Pick<ObjectsApi, 'get' | 'create' | 'replace'>
  readonly name: string
  readonly namespace: string
  readonly identity: string
  readonly now: () => Instant
  readonly pause: Pause
  /** Returns a number from 0 to 1. */
  readonly draw: () => number
  /** Called when an attempt fails in another way than the last one. Undefined: it succeeded again. */
  readonly tell: (failure: KcertError | undefined) => void
  readonly times?: ElectionTimes
}

// For candidates. A takeover takes up to two of their intervals longer than the lease.
const jitter = 0.2

/** A Lease for which this process is a candidate, and which it renews while it is the leader. */
export class LeaseHolder {
  readonly #options: LeaseOptions
  readonly #election: Election
  readonly #times: ElectionTimes
  #failure: KcertError | undefined
  #attemptedAt: Instant

  constructor(options: LeaseOptions) {
    this.#options = options
    this.#times = options.times ?? electionTimes
    this.#election = new Election(options.identity, this.#times)
    this.#attemptedAt = options.now()
  }

  /** Returns whether this process may act now. Call it right before each write. */
  isLeader(): boolean {
    return this.#election.isLeader(this.#options.now())
  }

  /** Why the last attempt to read or write the Lease failed. */
  get failure(): KcertError | undefined {
    return this.#failure
  }

  /** Milliseconds since the last attempt ended. */
  get idleMs(): number {
    return this.#options.now().monotonicMs - this.#attemptedAt.monotonicMs
  }

  /**
   * Waits until this process is the leader, then runs `act` and renews the Lease meanwhile. Its signal aborts at the loss of the
   * Lease or when `ended` aborts. Returns after `act` has returned and the Lease is released. Throws KCERT_LOCKED at the loss of
   * the Lease, without waiting for `act`.
   */
  async lead(act: (signal: AbortSignal) => Promise<void>, ended: AbortSignal): Promise<void> {
    while (!this.isLeader()) {
      await this.#attempt()
      if (this.isLeader()) break
      await restUntil(this.#options.pause, this.#times.retryMs * (1 + jitter * this.#options.draw()), ended)
      if (ended.aborted) return
    }
    const lost = new AbortController()
    const over = new AbortController()
    // A hanging attempt must not delay the notice of the loss.
    const watchdog = setInterval(() => this.isLeader() || lost.abort(), this.#times.retryMs / 8)
    const losing = new Promise<never>((_, reject) => {
      lost.signal.addEventListener('abort', () => reject(this.#lost()))
    })
    const acting = act(AbortSignal.any([ended, lost.signal])).finally(() => over.abort())
    const renewing = this.#renew(over.signal)
    try {
      await Promise.race([Promise.all([acting, renewing]), losing])
    } finally {
      clearInterval(watchdog)
      // An attempt after the release would acquire the Lease again.
      if (over.signal.aborted && !lost.signal.aborted) await renewing.then(() => this.#release())
    }
  }

  async #renew(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await restUntil(this.#options.pause, this.#times.retryMs, over)
      if (!over.aborted) await this.#attempt()
    }
  }

  async #attempt(): Promise<void> {
    const { now, objects, namespace, name, tell } = this.#options
    const before = this.#failure
    try {
      const lease = await getOne(objects, this.#resource)
      const spec = this.#election.next(lease, now())
      if (spec !== undefined) {
        const begun = now()
        const metadata = { name, namespace }
        const written =
          lease === undefined
            ? await objects.create({ ...resources.leases, namespace }, { ...kind, metadata, spec })
            : await objects.replace(this.#resource, { ...lease, ...kind, spec })
        this.#election.wrote(written as ObjectOf<'leases'>, begun, now())
      }
      this.#failure = undefined
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      // Another candidate wrote first. That is how the election works.
      this.#failure = error.code === 'KCERT_API_CONFLICT' ? undefined : error
    }
    this.#attemptedAt = now()
    if (before?.code !== this.#failure?.code) tell(this.#failure)
  }

  async #release(): Promise<void> {
    const { now, objects } = this.#options
    try {
      const lease = await getOne(objects, this.#resource)
      const spec = lease && this.#election.release(lease, now())
      if (lease !== undefined && spec !== undefined)
        await objects.replace(this.#resource, { ...lease, ...kind, spec })
    } catch (error) {
      // The next leader takes over when the Lease expires.
      if (!(error instanceof KcertError)) throw error
    }
  }

  get #resource() {
    const { namespace, name } = this.#options
    return { ...resources.leases, namespace, name }
  }

  #lost(): KcertError {
    const { namespace, name } = this.#options
    return new KcertError('KCERT_LOCKED', `the Lease ${namespace}/${name} was lost`, {
      why:
        this.#failure === undefined
          ? 'another replica holds it, or it was deleted or not renewed in time'
          : `it was not renewed in time: ${wordsOf(this.#failure)}`,
      fix: 'start it again; in a pod, the kubelet does that',
    })
  }
}

const kind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' } as const
