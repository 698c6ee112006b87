import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Dice } from '../../test/fuzz/mutator.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { StatusError } from './failures.ts'
import type { ObjectOf } from './kinds.ts'
import { Election, type ElectionTimes, electionTimes, type Instant } from './leader-election.ts'
import { LeaseHolder } from './lease-holder.ts'
import type { ApiObject } from './malformed.ts'

// One candidate against hostile Leases, and several candidates on a simulated API server that delays, loses and refuses calls.

type Lease = ObjectOf<'leases'>

const at = (seconds: number, wallSeconds = seconds): Instant => ({
  monotonicMs: seconds * 1000,
  wallMs: Date.UTC(2026, 10, 26) + wallSeconds * 1000,
})
const leaseOf = (version: number, spec: Lease['spec'] = {}, uid = 'one'): Lease => ({
  metadata: { name: 'x', uid, resourceVersion: String(version) },
  spec,
})
const heldBy = (holderIdentity: string, version: number, more: Lease['spec'] = {}): Lease =>
  leaseOf(version, { holderIdentity, leaseDurationSeconds: 10, leaseTransitions: 3, ...more })

/** Returns an election that holds the Lease since second 0, with resourceVersion 10. */
function leading(): Election {
  const election = new Election('me')
  election.next(heldBy('', 9), at(0))
  election.wrote(heldBy('me', 10), at(0), at(0))
  return election
}

describe('a candidate', () => {
  test('creates a Lease at once, and acts 10 s later: the holder of a deleted one may not know yet', () => {
    const election = new Election('me')
    expect(election.next(undefined, at(0))).toMatchObject({
      holderIdentity: 'me',
      leaseDurationSeconds: 10,
      leaseTransitions: 0,
      renewTime: '2026-11-26T00:00:00.000000Z',
    })
    election.wrote(heldBy('me', 10), at(0), at(0))
    expect(election.isLeader(at(0))).toBe(false)
    expect(election.next(heldBy('me', 10), at(6))).toMatchObject({ holderIdentity: 'me' })
    election.wrote(heldBy('me', 11), at(6), at(6))
    expect(election.isLeader(at(9.9))).toBe(false)
    expect(election.isLeader(at(10))).toBe(true)
  })

  test('acts 10 s after a late answer to the creation', () => {
    const election = new Election('me')
    election.next(undefined, at(0))
    election.wrote(heldBy('me', 10), at(0), at(20))
    election.next(heldBy('me', 10), at(28))
    election.wrote(heldBy('me', 11), at(28), at(28))
    expect(election.isLeader(at(29.9))).toBe(false)
    expect(election.isLeader(at(30))).toBe(true)
  })

  test('waits 10 s again when the Lease that it created is deleted', () => {
    const election = new Election('me')
    election.next(undefined, at(0))
    election.wrote(heldBy('me', 10), at(0), at(0))
    expect(election.next(undefined, at(9))).toMatchObject({ leaseTransitions: 4 })
    election.wrote(heldBy('me', 11), at(9), at(9))
    election.next(heldBy('me', 11), at(15))
    election.wrote(heldBy('me', 12), at(15), at(15))
    expect(election.isLeader(at(18.9))).toBe(false)
    expect(election.isLeader(at(19))).toBe(true)
  })

  test('acquires a released Lease at once', () => {
    expect(new Election('me').next(heldBy('', 10), at(0))).toMatchObject({ leaseTransitions: 4 })
  })

  test('is not the leader before the answer to its write, nor when the answer names another holder', () => {
    const election = new Election('me')
    election.next(undefined, at(0))
    expect(election.isLeader(at(0))).toBe(false)
    election.wrote(heldBy('other', 10), at(0), at(0))
    expect(election.isLeader(at(0))).toBe(false)
  })

  test('takes over 10 s after it first observed the last renewal, whatever the times in the Lease', () => {
    const election = new Election('me')
    const old = heldBy('other', 10, { renewTime: '1970-01-01T00:00:00.000000Z' })
    expect(election.next(old, at(0))).toBeUndefined()
    expect(election.next(old, at(9.9))).toBeUndefined()
    expect(
      election.next({ ...old, metadata: { ...old.metadata, resourceVersion: '11' } }, at(10)),
    ).toBeUndefined()
    expect(election.next(heldBy('other', 11), at(19.9))).toBeUndefined()
    expect(election.next(heldBy('other', 11), at(20))).toMatchObject({ leaseTransitions: 4 })
  })

  test('does not count a jump of the wall clock as time without renewals', () => {
    const election = new Election('me')
    election.next(heldBy('other', 10), at(0))
    expect(election.next(heldBy('other', 10), at(1, 3_600))).toBeUndefined()
  })

  test.each([
    [2 ** 31 - 1, 299.9, 300],
    [-5, 9.9, 10],
    [0, 9.9, 10],
    [1, 9.9, 10],
    [Number.NaN, 9.9, 10],
    [60, 59.9, 60],
  ])(
    'waits its own duration or longer, and at most 300 s: leaseDurationSeconds %d',
    (seconds, tooEarly, enough) => {
      const election = new Election('me')
      const lease = heldBy('other', 10, { leaseDurationSeconds: seconds })
      election.next(lease, at(0))
      expect(election.next(lease, at(tooEarly))).toBeUndefined()
      expect(election.next(lease, at(enough))).toBeDefined()
    },
  )

  test('waits for a Lease that goes backwards, because its holder may not know yet', () => {
    const older = heldBy('', 5, { leaseTransitions: 2 })
    const election = new Election('me')
    election.next(heldBy('other', 10), at(0))
    expect(election.next(older, at(1))).toBeUndefined()
    expect(election.next(older, at(10.9))).toBeUndefined()
    expect(election.next(older, at(11))).toMatchObject({ holderIdentity: 'me', leaseTransitions: 4 })
  })

  test('writes transitions that the API server accepts', () => {
    for (const leaseTransitions of [2 ** 31 - 1, 2 ** 53, 0.5, Number.NaN]) {
      const spec = new Election('me').next(heldBy('', 1, { leaseTransitions }), at(0))
      expect(spec?.leaseTransitions).toSatisfy((value: number) => Number.isInteger(value) && value < 2 ** 31)
    }
  })
})

describe('the leader', () => {
  test('acts for 7 s after its last renewal began, on either clock', () => {
    expect(leading().isLeader(at(6.9))).toBe(true)
    expect(leading().isLeader(at(7))).toBe(false)
    expect(leading().isLeader(at(1, 7))).toBe(false)
    expect(leading().isLeader(at(7, -3_600))).toBe(false)
  })

  test('renews without a transition, also after an edit by another client', () => {
    const spec = leading().next(heldBy('me', 12), at(2))
    expect(spec).toMatchObject({ holderIdentity: 'me', leaseTransitions: 3 })
    expect(spec).not.toHaveProperty('acquireTime')
  })

  test('stops when another holds the Lease, when it is released, and when it is gone', () => {
    for (const lease of [heldBy('other', 11), heldBy('', 11), undefined]) {
      const election = leading()
      election.next(lease, at(2))
      expect(election.isLeader(at(2))).toBe(false)
    }
  })

  test('writes again after the deadline only to the version that it wrote itself', () => {
    expect(leading().next(heldBy('me', 10), at(60))).toBeDefined()
    expect(leading().next(heldBy('me', 11), at(60))).toBeUndefined()
    // A Lease of a restored backup names it, too.
    expect(leading().next(heldBy('me', 5), at(60))).toBeUndefined()
  })

  test('is over when the Lease is released', () => {
    const election = leading()
    expect(election.release(heldBy('me', 10), at(2))).toMatchObject({
      holderIdentity: '',
      leaseDurationSeconds: 1,
    })
    expect(election.isLeader(at(2))).toBe(false)
    expect(leading().release(heldBy('other', 11), at(2))).toBeUndefined()
    expect(leading().release(heldBy('me', 10), at(11))).toBeUndefined()
  })
})

/** An API server with one Lease. Each call takes a random time before and after the server acts, and may fail in both. */
class LeaseServer {
  stored: Lease | undefined
  version = 100
  isSilent = false
  readonly #draw: () => number
  readonly #faults: number

  constructor(draw: () => number, faults: number) {
    this.#draw = draw
    this.#faults = faults
  }

  clientOf() {
    const call = async <Answer>(act: () => Answer): Promise<Answer> => {
      await this.#delay()
      if (this.isSilent || this.#draw() < this.#faults) {
        await later(5_000)
        throw new KcertError('KCERT_UNREACHABLE', 'no answer')
      }
      if (this.#draw() < this.#faults / 4) throw refused(403)
      const answer = structuredClone(act())
      await this.#delay()
      // The write happened, and the answer is lost.
      if (this.#draw() < this.#faults) throw new KcertError('KCERT_UNREACHABLE', 'no answer')
      return answer
    }
    const store = (object: ApiObject): Lease => {
      const metadata = { name: 'x', uid: 'one', resourceVersion: String(++this.version) }
      this.stored = structuredClone({ ...object, metadata }) as Lease
      return this.stored
    }
    return {
      get: () => call(() => this.stored),
      create: (_: unknown, object: ApiObject) =>
        call(() => {
          if (this.stored !== undefined) throw refused(409)
          return store(object)
        }),
      replace: (_: unknown, object: ApiObject) =>
        call(() => {
          const { resourceVersion } = (object as Lease).metadata
          if (this.stored?.metadata.resourceVersion !== resourceVersion) throw refused(409)
          return store(object)
        }),
    }
  }

  /** Mostly fast, sometimes slower than the lease duration. */
  #delay(): Promise<void> {
    const slow = this.#draw() < 0.05 ? 20_000 : 400
    return later(this.#draw() * slow)
  }
}

const refused = (status: number): StatusError =>
  new StatusError(
    status === 409 ? 'KCERT_API_CONFLICT' : 'KCERT_API_FORBIDDEN',
    'refused',
    {},
    { status, reason: '' },
  )

function later(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new Error('aborted'))
    if (signal?.aborted) stop()
    setTimeout(resolve, ms)
    signal?.addEventListener('abort', stop)
  })
}

interface Simulated {
  /** The largest number of replicas that could act at the same time. */
  readonly most: number
  /** How often a replica became the leader, and how often one lost the Lease. */
  readonly terms: number
  readonly losses: number
}

/** Runs three replicas, which start again after a loss or at random, as the kubelet and an operator would do it. */
async function simulate(
  seed: number,
  {
    minutes = 10,
    faults = 0.05,
    times = electionTimes,
    disturb = () => {},
  }: {
    minutes?: number
    faults?: number
    times?: ElectionTimes
    disturb?: (server: LeaseServer, second: number) => void
  } = {},
): Promise<Simulated> {
  const dice = new Dice(seed)
  const draw = (): number => dice.draw(2 ** 20) / 2 ** 20
  const server = new LeaseServer(draw, faults)
  const acting = new Map<string, LeaseHolder>()
  const counts = { most: 0, terms: 0, losses: 0 }
  const count = (): void => {
    const now = [...acting.values()].filter((holder) => holder.isLeader()).length
    counts.most = Math.max(counts.most, now)
  }
  const end = new AbortController()
  const replica = async (index: number): Promise<void> => {
    // Its clocks differ from those of the others, also in rate, by up to 5 %.
    const rate = 0.95 + draw() * 0.1
    const offset = draw() * 1e9
    for (let run = 0; !end.signal.aborted; run++) {
      const stop = new AbortController()
      const identity = `replica-${index}-${run}`
      setTimeout(() => stop.abort(), draw() * 240_000)
      const holder = new LeaseHolder({
        objects: server.clientOf() as never,
        name: 'x',
        namespace: 'kube-system',
        identity,
        now: () => ({ monotonicMs: Date.now() * rate + offset, wallMs: Date.now() + offset }),
        pause: (ms, signal) => later(ms / rate, signal),
        draw,
        tell: () => {},
        times,
      })
      const act = async (signal: AbortSignal): Promise<void> => {
        counts.terms++
        acting.set(identity, holder)
        count()
        await later(3_600_000, signal).catch(() => {})
        // The last write may take a while after the signal.
        await later(draw() * 3_000)
        acting.delete(identity)
      }
      await holder.lead(act, AbortSignal.any([stop.signal, end.signal])).catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'KCERT_LOCKED' })
        counts.losses++
      })
      acting.delete(identity)
      await later(draw() * 2_000)
    }
  }
  const running = [0, 1, 2].map(replica)
  for (let tick = 0; tick < minutes * 600; tick++) {
    await vi.advanceTimersByTimeAsync(100)
    count()
    if (tick % 10 === 0) disturb(server, tick / 10)
  }
  end.abort()
  await vi.advanceTimersByTimeAsync(120_000)
  await Promise.all(running)
  return counts
}

describe('three replicas', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2026, 10, 26) })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('with delays, lost answers and refusals, never two act at the same time', async () => {
    for (const seed of [1, 2, 3, 4]) {
      const { most, terms, losses } = await simulate(seed)
      expect(most).toBe(1)
      expect(terms).toBeGreaterThan(3)
      expect(losses).toBeGreaterThan(0)
    }
  }, 120_000)

  test('never two act when the API server is silent for a minute, or restores an older Lease', async () => {
    const disturb = (server: LeaseServer, second: number): void => {
      server.isSilent = second % 180 >= 120
      // A restored Lease without a holder is free at once (docs/decisions/0017-controller.md).
      const { holderIdentity } = server.stored?.spec ?? {}
      if (second % 45 === 0 && holderIdentity !== '') backup = structuredClone(server.stored)
      // A candidate that reads the same version twice, and nothing between, cannot know that others wrote.
      const version = backup?.metadata.resourceVersion
      if (second % 45 !== 40 || version === restored) return
      restored = version
      server.stored = backup
    }
    let backup: Lease | undefined
    let restored: string | undefined
    for (const seed of [5, 6, 7, 8]) {
      const { most, losses } = await simulate(seed, { faults: 0.01, disturb })
      expect(most).toBe(1)
      expect(losses).toBeGreaterThan(0)
    }
  }, 120_000)

  test('never two act when another client deletes the Lease, also while a replica starts', async () => {
    for (const seed of [9, 10]) {
      const { most, losses } = await simulate(seed, {
        disturb: (server, second) => {
          if (second % 45 === 0) server.stored = undefined
        },
      })
      expect(most).toBe(1)
      expect(losses).toBeGreaterThan(0)
    }
  }, 120_000)

  test('the simulation finds two at the same time with a deadline that is longer than the lease', async () => {
    const times = { ...electionTimes, renewDeadlineMs: 40_000 }
    const found = await simulate(1, { times, faults: 0.1, minutes: 20 })
    expect(found.most).toBeGreaterThan(1)
  }, 120_000)

  test.each([0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750])(
    'a SIGTERM hands over within seconds, also during a renewal (%d ms)',
    async (offset) => {
      const server = new LeaseServer(() => 0.5, 0)
      const made = (identity: string): LeaseHolder =>
        new LeaseHolder({
          objects: server.clientOf() as never,
          ...{ name: 'x', namespace: 'kube-system', identity, draw: () => 0.5, tell: () => {} },
          now: () => ({ monotonicMs: Date.now(), wallMs: Date.now() }),
          pause: later,
        })
      const stop = new AbortController()
      const act = (signal: AbortSignal): Promise<void> => later(3_600_000, signal).catch(() => {})
      const first = made('first')
      const second = made('second')
      const leading = first.lead(act, stop.signal)
      await vi.advanceTimersByTimeAsync(3_000)
      void second.lead(act, new AbortController().signal)
      await vi.advanceTimersByTimeAsync(60_000 + offset)
      expect([first.isLeader(), second.isLeader()]).toEqual([true, false])
      stop.abort()
      await vi.advanceTimersByTimeAsync(8_000)
      await leading
      expect([first.isLeader(), second.isLeader()]).toEqual([false, true])
    },
  )
})
