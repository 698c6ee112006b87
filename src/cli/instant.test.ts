import { expect, test } from 'vitest'
import { parseDuration, parseInstant } from './instant.ts'

const now = new Date('2026-11-21T09:00:00Z')

test.each([
  ['2027-01-01', '2027-01-01T00:00:00.000Z'],
  ['2027-01-01T12:30', '2027-01-01T12:30:00.000Z'],
  ['2027-01-01 12:30:15', '2027-01-01T12:30:15.000Z'],
  ['2027-01-01T12:00:00Z', '2027-01-01T12:00:00.000Z'],
  ['2027-01-01t12:00:00z', '2027-01-01T12:00:00.000Z'],
  ['2027-01-01T12:00:00+02:00', '2027-01-01T10:00:00.000Z'],
  ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ['+90d', '2027-02-19T09:00:00.000Z'],
  ['-1h30m', '2026-11-21T07:30:00.000Z'],
])('%s is %s', (text, instant) => {
  expect(parseInstant(text, now).toISOString()).toBe(instant)
})

test.each([
  '',
  'now',
  'tomorrow',
  '2027',
  '2027-13-01',
  '2027-02-30',
  '2027-01-01T25:00',
  '+',
  '+20%',
  '1735689600',
  '01/02/2027',
])('rejects "%s" as wrong usage', (text) => {
  expect(() => parseInstant(text, now)).toThrow(expect.objectContaining({ code: 'KCERT_USAGE' }))
})

test('returns a duration in milliseconds, and rejects a missing one, a percentage and an invalid one', () => {
  expect(parseDuration('1m30s', '--timeout')).toBe(90_000)
  expect(parseDuration('0.5s', '--timeout')).toBe(500)
  expect(parseDuration('1s500ms', '--timeout')).toBe(1500)
  for (const text of ['0s', '5%', '5', '']) {
    expect(() => parseDuration(text, '--timeout')).toThrow(/^--timeout/)
  }
})
