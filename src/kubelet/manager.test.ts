import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  currentCertificate,
  type Effect,
  type ManagerEvent,
  type ManagerState,
  managerState,
  step,
  wakesAtMs,
} from './manager.ts'
import { type HeldCertificate, type Template, templateOf, unmetBy } from './template.ts'
import '../../test/seeded.ts'

const day = 86_400_000
const begin = Date.parse('2026-11-21T22:00:00Z')
const node = templateOf({
  commonName: 'system:node:w1',
  organization: ['system:nodes'],
  dns: ['w1'],
  ip: ['10.0.0.5'],
})

/** The cluster's response to a request at a given time. */
interface Answer {
  readonly outcome: 'issued' | 'refused' | 'denied' | 'silent' | 'not-stored'
  readonly afterMs: number
  readonly isServerHealthy?: boolean
}

interface World {
  readonly lifetimeMs: number
  readonly backdateMs?: number
  template: Template | undefined
  answer: (atMs: number) => Answer
  readonly draw?: () => number
}

/** Runs the manager in simulated time that advances from event to event. */
class Simulation {
  nowMs = begin
  state: ManagerState
  readonly world: World
  readonly effects: (Effect & { readonly atMs: number })[] = []
  /** Each held certificate with its period. */
  readonly held: { readonly from: number; readonly certificate: HeldCertificate }[] = []
  private pending: { atMs: number; event: ManagerEvent; certificate?: HeldCertificate }[] = []
  private made: HeldCertificate | undefined

  constructor(world: World, present?: HeldCertificate, forceRenewal = false) {
    this.world = world
    this.state = managerState(present, this.nowMs, { forceRenewal })
    if (this.state.held) this.held.push({ from: begin, certificate: this.state.held })
  }

  happen(event: ManagerEvent): void {
    const { template, draw = Math.random } = this.world
    const { state, effects } = step(this.state, event, { nowMs: this.nowMs, template, draw })
    if (state.held !== this.state.held && state.held)
      this.held.push({ from: this.nowMs, certificate: state.held })
    this.state = state
    for (const effect of effects) {
      this.effects.push({ ...effect, atMs: this.nowMs })
      this.act(effect)
    }
  }

  /** Advances to this time, or until no event is left. */
  until(atMs: number): void {
    for (;;) {
      this.pending.sort((one, other) => one.atMs - other.atMs)
      const [next] = this.pending
      const wakes = wakesAtMs(this.state)
      const soonest = Math.min(next?.atMs ?? Number.POSITIVE_INFINITY, wakes ?? Number.POSITIVE_INFINITY)
      if (soonest > atMs) break
      this.nowMs = Math.max(this.nowMs, soonest)
      if (next !== undefined && next.atMs <= this.nowMs) {
        this.pending.shift()
        this.made = next.certificate ?? this.made
        this.happen(next.event)
      } else this.happen({ kind: 'time' })
    }
    this.nowMs = atMs
  }

  change(template: Template | undefined): void {
    this.world.template = template
    this.happen({ kind: 'template' })
  }

  count(kind: Effect['do']): number {
    return this.effects.filter((effect) => effect.do === kind).length
  }

  private later(afterMs: number, event: ManagerEvent, certificate?: HeldCertificate): void {
    this.pending.push({ atMs: this.nowMs + afterMs, event, ...(certificate && { certificate }) })
  }

  private act(effect: Effect): void {
    if (effect.do === 'request') {
      const { attempt, template } = effect
      const { outcome, afterMs, isServerHealthy = false } = this.world.answer(this.nowMs)
      if (outcome === 'refused') {
        this.later(afterMs, { kind: 'not-requested', attempt, isServerHealthy })
        return
      }
      this.later(0, { kind: 'requested', attempt })
      const notBeforeMs = this.nowMs + afterMs - (this.world.backdateMs ?? 0)
      const notAfterMs = this.nowMs + afterMs + this.world.lifetimeMs
      if (outcome === 'denied') this.later(afterMs, { kind: 'not-issued', attempt })
      else if (outcome !== 'silent')
        this.later(afterMs, { kind: 'issued', attempt }, { ...template, notBeforeMs, notAfterMs })
    }
    if (effect.do === 'store') {
      const { outcome } = this.world.answer(this.nowMs)
      const { attempt } = effect
      if (outcome === 'not-stored') this.happen({ kind: 'not-stored', attempt })
      else this.happen({ kind: 'stored', attempt, certificate: this.made! })
    }
  }
}

const issues =
  (afterMs = 2_000) =>
  (): Answer => ({ outcome: 'issued', afterMs })
const valid = (over: Partial<HeldCertificate> = {}): HeldCertificate => ({
  ...node,
  notBeforeMs: begin - day,
  notAfterMs: begin + 9 * day,
  ...over,
})

function running(world: Partial<World>, present?: HeldCertificate, forceRenewal = false): Simulation {
  const simulation = new Simulation(
    { lifetimeMs: 365 * day, template: node, answer: issues(), ...world },
    present,
    forceRenewal,
  )
  simulation.happen({ kind: 'start' })
  return simulation
}

describe('renewal', () => {
  test('renews certificates of a year at 70 to 90 % of their lifetime for twenty years, without a gap', () => {
    const simulation = running({})
    simulation.until(begin + 20 * 365 * day)
    const lives = simulation.held.slice(1).map(({ from }, index) => {
      const { notBeforeMs, notAfterMs } = simulation.held[index]!.certificate
      return (from - notBeforeMs) / (notAfterMs - notBeforeMs)
    })
    expect(simulation.held.length).toBeGreaterThan(20)
    expect(Math.min(...lives)).toBeGreaterThanOrEqual(0.7)
    // Signing takes two seconds of a year.
    expect(Math.max(...lives)).toBeLessThan(0.9 + 1e-6)
    expect(simulation.count('tell-failed')).toBe(0)
    expect(simulation.count('request')).toBe(simulation.held.length)
  })

  test('has at most one request in flight and keeps a valid certificate, whatever the cluster does', () => {
    const outcomes = fc.constantFrom<Answer['outcome']>('issued', 'refused', 'denied', 'silent', 'not-stored')
    fc.assert(
      fc.property(
        fc.array(fc.tuple(outcomes, fc.integer({ min: 0, max: 3_600_000 })), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 40 }),
        fc.array(
          fc.tuple(
            fc.constantFrom('template', 'force', 'time', 'stop-start'),
            fc.integer({ min: 1, max: 30 }),
          ),
          {
            maxLength: 20,
          },
        ),
        (answers, days, disturbances) => {
          let call = 0
          const answer = (): Answer => {
            const [outcome, afterMs] = answers[call++ % answers.length]!
            return { outcome, afterMs }
          }
          const simulation = running({ lifetimeMs: days * day, answer })
          disturbances.forEach(([kind, afterDays], index) => {
            simulation.until(simulation.nowMs + afterDays * 3_600_000)
            if (kind === 'template')
              simulation.change(templateOf({ ...node, dns: ['w1', `w1-${index % 3}`] }))
            else if (kind === 'stop-start') {
              simulation.happen({ kind: 'stop' })
              simulation.happen({ kind: 'start' })
            } else simulation.happen({ kind } as ManagerEvent)
          })
          simulation.until(simulation.nowMs + 3 * day)
          let open = 0
          for (const effect of simulation.effects) {
            if (effect.do === 'request') open++
            if (effect.do === 'cancel' || effect.do.startsWith('tell')) open = 0
            expect(open).toBeLessThanOrEqual(1)
          }
          const { held } = simulation.state
          expect(held === undefined || held === simulation.held.at(-1)!.certificate).toBe(true)
          expect(wakesAtMs(simulation.state) !== undefined || simulation.state.activity.at !== 'off').toBe(
            true,
          )
        },
      ),
      { numRuns: 60 },
    )
  })

  test('renews an existing, matching certificate at its deadline and not before', () => {
    const simulation = running({ draw: () => 0.5 }, valid())
    // 80 % of ten days, of which one has passed.
    simulation.until(begin + 7 * day - 1)
    expect(simulation.count('request')).toBe(0)
    simulation.until(begin + 7 * day)
    expect(simulation.effects[0]).toMatchObject({ do: 'request', attempt: 1 })
    simulation.until(begin + 8 * day)
    expect(simulation.effects.at(-1)).toMatchObject({ do: 'tell-renewed', usedSeconds: 8 * 86_400 + 2 })
  })

  test('does not request a certificate of two minutes every second when it is backdated by five minutes', () => {
    const simulation = running({ lifetimeMs: 120_000, backdateMs: 300_000, draw: () => 0 })
    simulation.until(begin + 600_000)
    const times = simulation.effects.filter((effect) => effect.do === 'request').map(({ atMs }) => atMs)
    expect(times.length).toBeGreaterThan(5)
    const between = times.slice(1).map((at, index) => at - times[index]!)
    expect(Math.min(...between)).toBeGreaterThanOrEqual(32_000)
  })
})

describe('the certificate at the start', () => {
  test('is not returned when expired, and a new one is requested at once', () => {
    const simulation = running({ answer: issues(0) }, valid({ notAfterMs: begin - 1 }))
    expect(simulation.effects[0]).toMatchObject({ do: 'request', atMs: begin })
    expect(currentCertificate(managerState(valid({ notAfterMs: begin - 1 }), begin), begin)).toBeUndefined()
  })

  test('is returned until it expires when no new one is issued', () => {
    const simulation = running({ answer: () => ({ outcome: 'refused', afterMs: 0 }) }, valid())
    simulation.until(begin + 9 * day)
    expect(currentCertificate(simulation.state, simulation.nowMs)).toBeDefined()
    simulation.until(begin + 9 * day + 1)
    expect(currentCertificate(simulation.state, simulation.nowMs)).toBeUndefined()
  })

  test.each([
    ['another common name', { commonName: 'system:node:w2' }],
    ['a missing name', { dns: [] }],
    ['a missing address', { ip: ['10.0.0.6'] }],
    ['a missing group', { organization: [] }],
  ])('is renewed at once: %s', (_, over) => {
    expect(running({}, valid(over)).count('request')).toBe(1)
  })

  test('is not renewed for more names than the template has', () => {
    const simulation = running({}, valid({ dns: ['w1', 'other'], ip: ['10.0.0.5', '::1'] }))
    expect(simulation.count('request')).toBe(0)
  })

  test('is renewed once when forced', () => {
    const simulation = running({ draw: () => 0 }, valid(), true)
    simulation.until(begin + 200 * day)
    expect(simulation.count('request')).toBe(1)
  })

  test('is renewed when forced before the template is known', () => {
    const simulation = running({ template: undefined }, valid(), true)
    simulation.until(begin + 60_000)
    expect(simulation.count('request')).toBe(0)
    simulation.change(node)
    simulation.until(begin + 62_000)
    expect(simulation.count('request')).toBe(1)
  })

  test('is not requested without a template, which is not a failure', () => {
    const simulation = running({ template: undefined })
    simulation.until(begin + day)
    expect(simulation.effects).toEqual([])
  })
})

describe('failure', () => {
  test('is retried after 2, 4, 8 and 16 s plus up to a tenth, then every 32 s', () => {
    const simulation = running({ answer: () => ({ outcome: 'refused', afterMs: 0 }), draw: () => 0.999 })
    simulation.until(begin + day)
    const times = simulation.effects.filter((effect) => effect.do === 'request').map(({ atMs }) => atMs)
    const pauses = times.slice(1).map((at, index) => Math.round((at - times[index]!) / 10) / 100)
    expect(pauses.slice(0, 6)).toEqual([2.2, 4.4, 8.8, 17.6, 32, 32])
    expect(new Set(pauses.slice(4))).toEqual(new Set([32]))
    expect(times.length).toBeGreaterThan(2_600)
  })

  test('replaces a request without a decision after 15 min', () => {
    const simulation = running({ answer: () => ({ outcome: 'silent', afterMs: 0 }), draw: () => 0 })
    simulation.until(begin + 15 * 60_000)
    expect(simulation.effects.map((effect) => effect.do)).toEqual([
      'request',
      'wait',
      'cancel',
      'tell-failed',
    ])
    simulation.until(begin + 15 * 60_000 + 2_000)
    expect(simulation.effects.at(-2)).toMatchObject({ do: 'request' })
  })

  test('ignores a certificate for a request that it gave up on', () => {
    const simulation = running({ answer: () => ({ outcome: 'issued', afterMs: 16 * 60_000 }) })
    simulation.until(begin + 17 * 60_000)
    expect(simulation.state.held).toBeUndefined()
    expect(simulation.count('store')).toBe(0)
  })

  test('resets the backoff after a success', () => {
    let isUp = false
    const answer = (): Answer => ({ outcome: isUp ? 'issued' : 'denied', afterMs: 0 })
    const simulation = running({ answer, draw: () => 0, lifetimeMs: day })
    simulation.until(begin + 3_600_000)
    isUp = true
    simulation.until(begin + 3_700_000)
    isUp = false
    simulation.until(begin + 2 * day)
    const failures = simulation.effects.filter(
      ({ do: what, atMs }) => what === 'tell-failed' && atMs > begin + 3_700_000,
    )
    expect(failures[1]!.atMs - failures[0]!.atMs).toBe(2_000)
  })

  test.each([
    [true, 'answers that are refusals'],
    [false, 'no answer'],
  ])('the server is healthy=%s after %s, and healthy after a renewal', (isServerHealthy) => {
    let isUp = false
    const answer = (): Answer => ({ outcome: isUp ? 'issued' : 'refused', afterMs: 0, isServerHealthy })
    const simulation = running({ answer })
    expect(simulation.state.isServerHealthy).toBe(false)
    simulation.until(begin + 1)
    expect(simulation.state.isServerHealthy).toBe(isServerHealthy)
    isUp = true
    simulation.until(begin + 60_000)
    expect(simulation.state.isServerHealthy).toBe(true)
  })
})

describe('a change of the template', () => {
  const more = templateOf({ ...node, ip: ['10.0.0.5', '10.0.0.6'] })

  test('renews the certificate at once while none is due', () => {
    const simulation = running({}, valid())
    simulation.change(more)
    expect(simulation.effects).toMatchObject([{ do: 'request', template: more }])
  })

  test('cancels a pending request, and the next one uses the new template', () => {
    const simulation = running({ answer: () => ({ outcome: 'silent', afterMs: 0 }), draw: () => 0 })
    simulation.until(begin + 10_000)
    simulation.change(more)
    simulation.until(begin + 12_000)
    expect(simulation.effects.map((effect) => effect.do)).toEqual([
      ...['request', 'wait', 'cancel', 'tell-failed', 'request', 'wait'],
    ])
    expect(simulation.effects[4]).toMatchObject({ template: more })
    simulation.change(more)
    expect(simulation.effects).toHaveLength(6)
  })

  test('to fewer names, or to another order, has no effect', () => {
    const simulation = running({}, valid({ dns: ['w1', 'w1.example.com'] }))
    simulation.change(templateOf({ ...node, dns: ['w1.example.com', 'w1'] }))
    simulation.change(templateOf({ ...node, dns: [] }))
    expect(simulation.effects).toEqual([])
  })

  test('to another spelling of an address has no effect', () => {
    const held = valid({ ip: ['2001:db8::1'] })
    expect(unmetBy(held, templateOf({ ...node, ip: ['2001:DB8:0:0::1'] }))).toBeUndefined()
  })
})

describe('the operator', () => {
  test('forces a renewal while none is due, and without backoff after a failure', () => {
    const simulation = running({ answer: () => ({ outcome: 'refused', afterMs: 0 }) }, valid())
    simulation.happen({ kind: 'force' })
    simulation.until(begin + 1)
    expect(simulation.count('request')).toBe(1)
    simulation.happen({ kind: 'force' })
    expect(simulation.count('request')).toBe(2)
  })

  test('stops it: the pending request is canceled, and nothing happens until the next start', () => {
    const simulation = running({})
    simulation.until(begin + 100)
    simulation.happen({ kind: 'stop' })
    simulation.until(begin + day)
    expect(simulation.effects.map((effect) => effect.do)).toEqual(['request', 'wait', 'cancel'])
    simulation.happen({ kind: 'start' })
    simulation.until(begin + 2 * day)
    expect(simulation.count('tell-renewed')).toBe(1)
  })
})
