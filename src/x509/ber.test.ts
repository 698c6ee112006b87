import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { derFromBer } from './ber.ts'
import { derLimits } from './der.ts'
import { element, octetString, sequence } from './der-writer.ts'
import '../../test/seeded.ts'

const der = (...bytes: number[]): string =>
  Buffer.from(derFromBer(Uint8Array.from(bytes), 'PKCS#12')).toString('hex')
const reasonOf = (bytes: Uint8Array): string => thrownBy(() => derFromBer(bytes, 'PKCS#12')).message

describe('converts BER to DER', () => {
  test.each([
    ['an indefinite length', [0x30, 0x80, 0x05, 0x00, 0x00, 0x00], '30020500'],
    ['nested indefinite lengths', [0x30, 0x80, 0xa0, 0x80, 0x05, 0x00, 0, 0, 0, 0], '3004a0020500'],
    ['a long form for a short length', [0x30, 0x81, 0x02, 0x05, 0x00], '30020500'],
    ['a length with leading zeros', [0x04, 0x84, 0, 0, 0, 1, 0xff], '0401ff'],
    ['a string in pieces', [0x24, 0x80, 0x04, 1, 0x61, 0x04, 2, 0x62, 0x63, 0, 0], '0403616263'],
    ['a string in pieces of pieces', [0x24, 0x06, 0x24, 0x04, 0x04, 0x02, 1, 2], '04020102'],
  ])('%s', (_, bytes, expected) => {
    expect(der(...bytes)).toBe(expected)
  })

  test('returns DER unchanged, without a copy', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (strings) => {
        const original = sequence(...strings.map(octetString))
        expect(derFromBer(original, 'PKCS#12')).toBe(original)
      }),
    )
  })
})

describe('rejects invalid BER', () => {
  let deep: Uint8Array = element(0x04)
  for (let i = 0; i <= derLimits.depth; i++) deep = element(0x24, deep)
  test.each<[string, Uint8Array, string]>([
    ['nothing', new Uint8Array(0), 'offset 0: truncated'],
    ['data after the value', Uint8Array.of(0x05, 0, 0x05, 0), 'offset 2: 2 bytes too many'],
    ['a primitive of indefinite length', Uint8Array.of(0x04, 0x80, 0, 0), 'indefinite length of a primitive'],
    ['an indefinite length without end', Uint8Array.of(0x30, 0x80, 0x05, 0), 'truncated'],
    ['a length past the end', Uint8Array.of(0x30, 0x05, 0x05, 0), 'truncated'],
    [
      'a child past the end of its parent',
      Uint8Array.of(0x24, 0x03, 0x04, 0x02, 1, 1),
      'reaches past the end of its parent',
    ],
    ['a tag number above 30', Uint8Array.of(0x3f, 0x81, 0, 0), 'tag number above 30'],
    ['a length in five bytes', Uint8Array.of(0x30, 0x85, 0, 0, 0, 0, 0), 'length in 5 bytes'],
    ['a string with a number in it', Uint8Array.of(0x24, 0x03, 0x02, 0x01, 1), 'a piece of another type'],
    ['strings in strings without end', deep, 'nested deeper than 32'],
    ['more than any keystore has', new Uint8Array(derLimits.containerBytes + 1), 'that kcert reads'],
  ])('%s', (_, bytes, reason) => {
    expect(reasonOf(bytes)).toContain(reason)
  })

  test.each([
    ['that must be rewritten', Uint8Array.of(0x24, 0x80, 0, 0)],
    ['of a list that must be', Uint8Array.of(0x05, 0)],
  ])('a million elements %s', (_, unit) => {
    const hostile = Buffer.concat([Uint8Array.of(0x30, 0x80), Buffer.alloc(4_000_000, unit)])
    expect(reasonOf(hostile)).toContain('more than 100000 elements that are not DER')
  })

  test('turns random bytes into DER or a KcertError', () => {
    const byte = fc.constantFrom(0, 1, 2, 4, 0x24, 0x30, 0x80, 0x81, 0x82, 0xa0)
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 30 }), (bytes) => {
        const input = Uint8Array.from(bytes)
        try {
          const once = derFromBer(input, 'PKCS#12')
          expect(Buffer.from(derFromBer(once, 'PKCS#12'))).toEqual(Buffer.from(once))
        } catch (error) {
          expect(error).toMatchObject({ code: 'KCERT_X509_MALFORMED' })
        }
      }),
      { numRuns: 3000 },
    )
  })
})
