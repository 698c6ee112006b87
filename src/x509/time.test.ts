import { describe, expect, test } from 'vitest'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { DerReader, tags } from './der.ts'
import { element, time } from './der-writer.ts'
import { readTime } from './time.ts'

const read = (tag: number, text: string): number =>
  readTime(new DerReader(element(tag, Buffer.from(text, 'latin1')), 'certificate'), 'notAfter')

describe('UTCTime', () => {
  test.each([
    ['260101000000Z', '2026-01-01T00:00:00Z'],
    ['491231235959Z', '2049-12-31T23:59:59Z'],
    ['500101000000Z', '1950-01-01T00:00:00Z'],
    ['991231235959Z', '1999-12-31T23:59:59Z'],
    ['2601010000Z', '2026-01-01T00:00:00Z'],
    ['260101000000+0130', '2025-12-31T22:30:00Z'],
    ['2601010000-0100', '2026-01-01T01:00:00Z'],
    ['240229120000Z', '2024-02-29T12:00:00Z'],
  ])('%s is %s', (text, iso) => {
    expect(new Date(read(tags.utcTime, text)).toISOString()).toBe(new Date(iso).toISOString())
  })

  test.each([
    '',
    'Z',
    '260101000000',
    '26010100000Z',
    '261301000000Z',
    '260100000000Z',
    '230229000000Z',
    '260101240000Z',
    '260101006000Z',
    '260101000060Z',
    '260101000000+0000',
    '260101000000-0000',
    '260101000000+2500',
    '260101000000+0060',
    '260101000000z',
    '2601010000 0Z',
    '20260101000000Z',
    '+60101000000Z',
    '260101000000.5Z',
  ])('"%s" is malformed', (text) => {
    expect(thrownBy(() => read(tags.utcTime, text)).message).toBe(
      'certificate: notAfter at offset 2: malformed UTCTime',
    )
  })
})

describe('GeneralizedTime', () => {
  test.each([
    ['20500101000000Z', '2050-01-01T00:00:00.000Z'],
    ['99991231235959Z', '9999-12-31T23:59:59.000Z'],
    ['00000101000000Z', '0000-01-01T00:00:00.000Z'],
    ['00501231235959Z', '0050-12-31T23:59:59.000Z'],
    ['20000229000000Z', '2000-02-29T00:00:00.000Z'],
    ['20260101000000+2400', '2025-12-31T00:00:00.000Z'],
  ])('%s is %s', (text, iso) => {
    expect(new Date(read(tags.generalizedTime, text)).toISOString()).toBe(iso)
  })

  test.each(['19000229000000Z', '2050010100Z', '20500101000000.5Z', '20500101000000', '500101000000Z'])(
    'rejects "%s"',
    (text) => {
      expect(thrownBy(() => read(tags.generalizedTime, text)).message).toContain('malformed GeneralizedTime')
    },
  )
})

test('rejects every other type', () => {
  expect(thrownBy(() => read(tags.ia5String, '260101000000Z')).message).toContain(
    'neither UTCTime nor GeneralizedTime',
  )
})

test('writes UTCTime until 2049 and GeneralizedTime from 2050, without fractions', () => {
  const text = (iso: string): string => Buffer.from(time(new Date(iso))).toString('latin1')
  expect(text('2049-12-31T23:59:59.999Z')).toBe('\x17\r491231235959Z')
  expect(text('2050-01-01T00:00:00Z')).toBe('\x18\x0f20500101000000Z')
  expect(text('1950-01-01T00:00:00Z')).toBe('\x17\r500101000000Z')
  expect(text('1949-12-31T00:00:00Z')).toBe('\x18\x0f19491231000000Z')
})
