import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { DerReader, tags } from './der.ts'
import { element, ia5String, oid, sequence, setOf, utf8String } from './der-writer.ts'
import { type Name, readName } from './name.ts'
import { encodeName, type NameInput } from './name-encoding.ts'
import { oidOf } from './oids.ts'
import '../../test/seeded.ts'

const read = (der: Uint8Array, anyValue = false): Name =>
  readName(new DerReader(der, 'certificate'), 'subject', anyValue)
const nameOf = (input: NameInput): Name => read(encodeName(input))
const commonName = (tag: number, bytes: string): Uint8Array =>
  sequence(setOf(sequence(oid(oidOf('CN')), element(tag, Buffer.from(bytes, 'hex')))))

describe('RFC 4514 text', () => {
  // The examples of section 4 that fit the grammar of certificates.
  test.each<[string, NameInput]>([
    [
      'UID=jsmith,DC=example,DC=net',
      [
        [{ type: 'DC', value: 'net' }],
        [{ type: 'DC', value: 'example' }],
        [{ type: 'UID', value: 'jsmith' }],
      ],
    ],
    ['CN=James \\"Jim\\" Smith\\, III', { commonName: 'James "Jim" Smith, III' }],
    ['CN=Before\rAfter', { commonName: 'Before\rAfter' }],
    ['CN=Lučić', { commonName: 'Lučić' }],
    ['1.3.6.1.4.1.1466.0=#13024869', [[{ type: '1.3.6.1.4.1.1466.0', value: 'Hi' }]]],
    ['CN=\\ a \\ ', { commonName: ' a  ' }],
    ['CN=\\#a#', { commonName: '#a#' }],
    ['CN=\\ ', { commonName: ' ' }],
    ['CN=a\\00b', { commonName: 'a\0b' }],
    ['CN=\\+\\;\\<\\>\\\\=', { commonName: '+;<>\\=' }],
    ['CN=system:node:n1,O=system:nodes', { commonName: 'system:node:n1', organization: ['system:nodes'] }],
    ['CN=u,O=a+O=b', { commonName: 'u', organization: ['b', 'a'] }],
    ['', {}],
  ])('%s', (text, input) => {
    expect(nameOf(input).text).toBe(text)
  })

  test('keeps control and bidirectional characters: the output code escapes them', () => {
    expect(nameOf({ commonName: '\x1b[2J\u202e' }).text).toBe('CN=\x1b[2J\u202e')
  })
})

describe('string types', () => {
  test.each([
    ['PrintableString', tags.printableString, '6b63657274', 'kcert'],
    ['PrintableString with * and &, as Go takes it', tags.printableString, '2a2e6126', '*.a&'],
    ['UTF8String', tags.utf8String, 'c3a4e282ac', 'ä€'],
    ['T61String as Latin-1', tags.t61String, 'e4fc', 'äü'],
    ['BMPString', tags.bmpString, '00e420ac', 'ä€'],
    ['BMPString with a terminating NUL', tags.bmpString, '00e40000', 'ä'],
    ['IA5String', tags.ia5String, '614062', 'a@b'],
    ['NumericString', tags.numericString, '31203233', '1 23'],
  ])('reads %s', (_, tag, bytes, value) => {
    expect(read(commonName(tag, bytes)).commonName).toBe(value)
  })

  test.each([
    [
      'PrintableString with an underscore',
      tags.printableString,
      '5f',
      'bytes that are not a valid PrintableString',
    ],
    ['UTF8String that is none', tags.utf8String, 'c328', 'bytes that are not a valid UTF8String'],
    ['UTF8String with a surrogate', tags.utf8String, 'eda080', 'bytes that are not a valid UTF8String'],
    ['BMPString of odd length', tags.bmpString, '00e400', 'bytes that are not a valid BMPString'],
    ['BMPString with a surrogate', tags.bmpString, 'd83dde00', 'bytes that are not a valid BMPString'],
    ['BMPString with a noncharacter', tags.bmpString, 'fdd0', 'bytes that are not a valid BMPString'],
    ['IA5String above 7 bits', tags.ia5String, 'e4', 'bytes that are not a valid IA5String'],
    ['NumericString with a letter', tags.numericString, '41', 'bytes that are not a valid NumericString'],
    [
      'UniversalString',
      tags.universalString,
      '00000041',
      'UniversalString is not a string type that Go reads in names',
    ],
    ['INTEGER', tags.integer, '01', 'INTEGER is not a string type that Go reads in names'],
  ])('rejects %s in certificates', (_, tag, bytes, reason) => {
    expect(thrownBy(() => read(commonName(tag, bytes))).message).toMatch(
      new RegExp(`^certificate: subject\\.CN at offset \\d+: ${reason}$`),
    )
  })

  test('shows other types in requests, without a user or group from them', () => {
    const universal = read(commonName(tags.universalString, '000000e40001f600'), true)
    expect(universal.text).toBe('CN=ä😀')
    expect(universal.commonName).toBeUndefined()
    const group = sequence(
      setOf(sequence(oid(oidOf('O')), element(tags.universalString, Buffer.from('0000006d', 'hex')))),
    )
    expect(read(group, true).organization).toEqual([])
    expect(read(commonName(tags.octetString, '00ff'), true).text).toBe('CN=#040200ff')
  })
})

test('takes the last common name as the user and all organizations as groups', () => {
  const name = nameOf([
    [{ type: 'CN', value: 'first' }],
    [{ type: 'O', value: 'b' }],
    [
      { type: 'O', value: 'a' },
      { type: 'CN', value: 'last' },
    ],
  ])
  expect(name.commonName).toBe('last')
  expect(name.organization).toEqual(['b', 'a'])
  expect(nameOf({}).commonName).toBeUndefined()
})

test('compares names by their bytes', () => {
  const printable = nameOf({ commonName: 'kubernetes' })
  const utf8 = read(sequence(setOf(sequence(oid(oidOf('CN')), utf8String('kubernetes')))))
  expect(printable.equals(nameOf({ commonName: 'kubernetes' }))).toBe(true)
  expect(printable.equals(utf8)).toBe(false)
  expect(printable.text).toBe(utf8.text)
})

test('writes a parsed name with its original bytes', () => {
  const der = sequence(setOf(sequence(oid(oidOf('O')), ia5String('odd'))))
  expect(Buffer.from(encodeName(read(der)))).toEqual(Buffer.from(der))
})

test('reads back what it writes', () => {
  const attribute = fc.record({
    type: fc.constantFrom('CN', 'O', 'OU', '1.2.3.4'),
    value: fc.string({ unit: 'grapheme' }),
  })
  fc.assert(
    fc.property(fc.array(fc.array(attribute, { minLength: 1, maxLength: 3 }), { maxLength: 4 }), (rdns) => {
      const values = (list: readonly (readonly { value: string }[])[]): string[][] =>
        list.map((rdn) => rdn.map(({ value }) => value).sort())
      expect(values(nameOf(rdns).rdns)).toEqual(values(rdns))
    }),
  )
})
