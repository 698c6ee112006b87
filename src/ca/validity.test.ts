import { expect, test } from 'vitest'
import { grantedTtlMs, validityOf } from './validity.ts'

const now = new Date('2026-11-21T09:00:00.750Z')
const [minute, hour] = [60_000, 3_600_000]
const caUntil = (notAfter: Date) => ({ notAfter, ca: 'ca.pem', key: 'ca-key.pem' })
const policy = { ttlMs: 24 * hour, backdateMs: 5 * minute, shortMs: 8 * hour }

test('is in whole seconds, as in the certificate', () => {
  expect(validityOf(policy, now)).toEqual({
    notBefore: new Date('2026-11-21T08:55:00Z'),
    notAfter: new Date('2026-11-22T08:55:00Z'),
    isClamped: false,
  })
})

test('backdating shortens a validity of eight hours, but not one that is a millisecond shorter', () => {
  const endsAt = (ttlMs: number) => validityOf({ ...policy, ttlMs }, now).notAfter.toISOString()
  expect(endsAt(8 * hour)).toBe('2026-11-21T16:55:00.000Z')
  expect(endsAt(8 * hour - 1)).toBe('2026-11-21T17:00:00.000Z')
})

test('ends no later than the CA, and the CA signs nothing from that instant on', () => {
  const end = new Date('2026-11-21T10:00:00Z')
  expect(validityOf(policy, now, caUntil(end))).toMatchObject({ notAfter: end, isClamped: true })
  expect(() => validityOf(policy, end, caUntil(end))).toThrow(
    'the CA ca.pem has expired, and its certificates would be expired, too',
  )
  const later = new Date('2026-11-21T10:05:00Z')
  expect(() => validityOf(policy, later, caUntil(end))).toThrow('before the certificate would be valid')
})

test('grants at most the lifetime of the signer, and at least ten minutes', () => {
  expect([undefined, hour, 3 * hour, minute, -minute].map((asked) => grantedTtlMs(asked, 2 * hour))).toEqual([
    2 * hour,
    hour,
    2 * hour,
    10 * minute,
    10 * minute,
  ])
})
