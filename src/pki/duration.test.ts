import { expect, test } from 'vitest'
import { formatDuration, parseDuration } from './duration.ts'

const hour = 3_600_000

test.each([
  ['876000h', 876_000 * hour],
  ['8760h0m0s', 8760 * hour],
  ['1h30m', 1.5 * hour],
  ['1.5h', 1.5 * hour],
  ['.5s', 500],
  ['-5m', -300_000],
  ['90d', 90 * 24 * hour],
  ['1d12h', 36 * hour],
  ['250ms', 250],
  ['0', 0],
])('%s is %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each(['', '5', '1y', 'h', '1h ', '1 h', '0x1h', '1e3h', '--1h', '999999999h', `${'1h'.repeat(60)}`])(
  '"%s" is not a duration',
  (text) => {
    expect(() => parseDuration(text)).toThrow(/is not a duration/)
  },
)

test('prints a duration as Go does', () => {
  expect([8760 * hour, 90_000, 5000, -90_000, 0].map(formatDuration)).toEqual([
    '8760h0m0s',
    '1m30s',
    '5s',
    '-1m30s',
    '0s',
  ])
})
