import { expect, test } from 'vitest'
import { evaluate, parseSamples, type Sample, withoutLoneTimeouts } from './verdict.ts'

const at = (second: number): string => new Date(Date.UTC(2026, 10, 21, 9, 0, second)).toISOString()
const api = (second: number, outcome: string, trust = 'old'): Sample => ({
  at: at(second),
  kind: 'api',
  endpoint: 'cp1',
  trust,
  credential: 'token',
  outcome,
  ms: 3,
})
const counter = (second: number, failures: number): Sample => ({
  at: at(second),
  kind: 'counter',
  target: 'bare-plain',
  outcome: 'ok',
  ms: 1,
  counts: { attempts: second, failures, errors: {} },
})

test('requires ok for samples that match no row', () => {
  const verdict = evaluate([api(0, 'ok'), api(1, 'untrusted'), api(2, 'ok')], [])
  expect(verdict.holds).toBe(false)
  expect(verdict.unexpected.map((sample) => sample.outcome)).toEqual(['untrusted'])
  expect(verdict.cells).toEqual([
    { cell: 'api cp1 old token', samples: 3, unexpected: 1, longestGapMs: 2000, slowestMs: 3 },
  ])
})

test('applies a row from its first moment until before its last', () => {
  const samples = [api(0, 'untrusted'), api(10, 'untrusted'), api(19, 'untrusted'), api(20, 'untrusted')]
  const verdict = evaluate(samples, [{ trust: 'old', from: at(10), until: at(20), allow: ['untrusted'] }])
  expect(verdict.unexpected.map((sample) => sample.at)).toEqual([at(0), at(20)])
})

test('a row can require a failure: outcomes that it does not allow are unexpected', () => {
  const table = [{ trust: 'new', allow: ['untrusted'] }]
  expect(evaluate([api(0, 'ok', 'new')], table).holds).toBe(false)
  expect(evaluate([api(0, 'untrusted', 'new')], table).holds).toBe(true)
})

test('expects outcomes of either of two causes, in any order', () => {
  const replaced = { kind: 'api' as const, allow: ['ok', 'http'] }
  const restarted = { endpoint: 'cp1', allow: ['ok', 'refused'] }
  for (const table of [
    [replaced, restarted],
    [restarted, replaced],
  ]) {
    expect(evaluate([api(0, 'refused'), api(1, 'http')], table).holds).toBe(true)
    expect(evaluate([api(0, 'untrusted')], table).holds).toBe(false)
  }
})

test('evaluates a counter by the growth of its failures, not by its earlier value', () => {
  expect(evaluate([counter(0, 7), counter(2, 7)], []).holds).toBe(true)
  expect(evaluate([counter(0, 7), counter(2, 8)], []).holds).toBe(false)
})

test('a counter that restarts with its pod is not a failure', () => {
  expect(evaluate([counter(0, 7), counter(2, 0)], []).holds).toBe(true)
})

test('evaluates samples by time, in whatever order they were written', () => {
  expect(evaluate([counter(2, 8), counter(0, 8)], []).holds).toBe(true)
  expect(evaluate([counter(2, 7), counter(0, 8)], []).holds).toBe(true)
})

test('an answer after the time limit is a timeout; exec and logs may take longer than the others', () => {
  const slow = (kind: Sample['kind'], ms: number, outcome = 'ok'): Sample => ({
    ...api(0, outcome),
    kind,
    ms,
  })
  const late = [
    slow('api', 5_001),
    slow('logs', 15_001),
    slow('exec', 15_001),
    slow('api', 6_000, 'unauthorized'),
  ]
  const { unexpected } = evaluate(
    [...late, slow('api', 5_000), slow('exec', 14_999), slow('logs', 9_000)],
    [],
  )
  expect(unexpected).toEqual(late.map((sample) => ({ ...sample, outcome: 'timeout' })))
})

test('ignores a truncated line', () => {
  expect(parseSamples(`${JSON.stringify(api(0, 'ok'))}\n{"at":"2026`)).toHaveLength(1)
})

test('a timeout of exec or logs is slow if it is the only failure of its cell; every other failure stays', () => {
  const exec = (second: number, target: string, outcome = 'timeout'): Sample => ({
    ...api(second, outcome),
    kind: 'exec',
    target,
  })
  const lone = [exec(1, 'w1'), { ...exec(2, 'w1'), kind: 'logs' } as const]
  const others = [
    exec(3, 'cp1'),
    exec(9, 'cp1'),
    exec(4, 'cp2', 'untrusted'),
    exec(5, 'cp3'),
    exec(6, 'cp3', 'cut'),
    api(7, 'timeout'),
  ]
  expect(withoutLoneTimeouts([...lone, ...others])).toEqual({ failures: others, slow: lone })
})
