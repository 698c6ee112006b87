import { describe, expect, test } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import { defaultThresholds, parseThreshold, parseThresholds, thresholdMs } from './thresholds.ts'

const hour = 3_600_000
const day = 24 * hour

describe('parseThreshold', () => {
  test.each([
    ['30d', { durationMs: 30 * day }],
    ['12h', { durationMs: 12 * hour }],
    ['1w', { durationMs: 7 * day }],
    ['1d12h', { durationMs: 36 * hour }],
    ['720h0m0s', { durationMs: 30 * day }],
    ['1.5h', { durationMs: 1.5 * hour }],
    ['20%', { percent: 20 }],
    ['2.5 %', { percent: 2.5 }],
    ['30d,20%', { durationMs: 30 * day, percent: 20 }],
    ['30d, 10d, 20%, 5%', { durationMs: 10 * day, percent: 5 }],
    ['0s', { durationMs: 0 }],
  ])('reads %j', (text, expected) => {
    expect(parseThreshold(text)).toEqual(expected)
  })

  test.each(['', '30', 'd', '30 d', '-1d', '101%', '1d%', '1d,', 'tomorrow', `${'9'.repeat(400)}d`])(
    'rejects %j as wrong usage',
    (text) => {
      expect(() => parseThreshold(text)).toThrow(KcertError)
      expect(() => parseThreshold(text)).toThrow(/^invalid threshold/)
    },
  )
})

describe('parseThresholds', () => {
  test.each([
    ['7d', '30d'],
    ['5%', '20%'],
    ['7d,5%', '30d,20%'],
  ])('rejects a warning limit that begins after the critical one: %s, %s', (warn, crit) => {
    expect(() => parseThresholds(warn, crit)).toThrow(`--warn ${warn} is less than --crit ${crit}`)
  })

  test.each([
    ['30d', '7d'],
    ['30d', '30d'],
    ['7d', '20%'],
    ['7d,20%', '30d,5%'],
  ])('accepts %s and %s: for some lifetimes the warning comes first', (warn, crit) => {
    expect(parseThresholds(warn, crit)).toEqual({ warn: parseThreshold(warn), crit: parseThreshold(crit) })
  })
})

describe('defaultThresholds', () => {
  test.each([
    ['a year', 365 * day, 30 * day, 7 * day],
    ['90 days', 90 * day, 18 * day, 4.5 * day],
    ['24 hours', day, 4.8 * hour, 1.2 * hour],
  ])('is the smaller of days and share for %s', (_name, lifetime, warn, crit) => {
    expect(thresholdMs(defaultThresholds.warn, lifetime)).toBeCloseTo(warn)
    expect(thresholdMs(defaultThresholds.crit, lifetime)).toBeCloseTo(crit)
  })
})
