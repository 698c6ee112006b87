import { expect, test } from 'vitest'
import { minuteOf, secondOf, timeLeft } from './time.ts'

const hour = 3600
const day = 24 * hour

test.each([
  [0, '0s'],
  [59.9, '59s'],
  [60, '1m'],
  [hour - 1, '59m'],
  [hour, '1h'],
  [hour + 61, '1h 1m'],
  [day - 1, '23h 59m'],
  [day + 3 * hour, '1d 3h'],
  [10 * day - 1, '9d 23h'],
  [10 * day, '10d'],
  [730 * day - 1, '729d'],
  [3650 * day - 1, '9y'],
  [-1, '1s ago'],
  [-(3 * day + hour), '3d 1h ago'],
  [-800 * day, '2y ago'],
])('%d seconds are %s', (seconds, text) => {
  expect(timeLeft(seconds)).toBe(text)
})

test('shortens a time to minutes for columns and shows it in full on a card', () => {
  expect(minuteOf('2027-11-20T08:57:31Z')).toBe('2027-11-20 08:57')
  expect(minuteOf('2027-11-20T08:57:31.000Z')).toBe('2027-11-20 08:57')
  expect(secondOf('2027-11-20T08:57:31.000Z')).toBe('2027-11-20 08:57:31 UTC')
})
