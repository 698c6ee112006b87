import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatIp, maskOf, parseIp, prefixLength } from './ip.ts'
import '../../test/seeded.ts'

describe('formatIp', () => {
  // RFC 5952 section 4, and IPv4-mapped IPv6 as Go prints it.
  test.each([
    ['0a000001', '10.0.0.1'],
    ['20010db8000000000000000000000001', '2001:db8::1'],
    ['20010db8000000010001000100010001', '2001:db8:0:1:1:1:1:1'],
    ['20010000000000010000000000000001', '2001:0:0:1::1'],
    ['20010db8000000000001000000000001', '2001:db8::1:0:0:1'],
    ['00000000000000000000000000000000', '::'],
    ['fd000000000000000000000000000000', 'fd00::'],
    ['00000000000000000000ffff0a000001', '10.0.0.1'],
  ])('%s is %s', (hex, text) => {
    expect(formatIp(Buffer.from(hex, 'hex'))).toBe(text)
  })
})

describe('parseIp', () => {
  test('reads back what formatIp prints', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 4, maxLength: 4 }),
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      fc
        .array(fc.constantFrom(0, 0, 0, 1, 255), { minLength: 16, maxLength: 16 })
        .map((list) => Uint8Array.from(list)),
    )
    fc.assert(
      fc.property(bytes, (address) => {
        const read = parseIp(formatIp(address))!
        expect(formatIp(read)).toBe(formatIp(address))
        if (read.length === address.length) expect(read).toEqual(address)
      }),
    )
  })

  test.each(['::1.2.3.4', '1:2:3:4:5:6:7::', '::ffff:10.0.0.1', 'FD00::ABCD'])('%s is an address', (text) => {
    expect(parseIp(text)).toHaveLength(16)
  })

  test.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.1.1.1',
    '1.2.3.4 ',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '12345::',
    '1:2:3:4:5:6:7:8:9',
    '1.2.3.4::',
    '::1%eth0',
    'g::',
    '1:2:3:4:5:6:7::8',
    '1:',
    ':1',
  ])('rejects "%s"', (text) => {
    expect(parseIp(text)).toBeUndefined()
  })
})

test('returns a prefix length for a mask whose ones are all at the front', () => {
  for (const length of [4, 16] as const) {
    for (let prefix = 0; prefix <= length * 8; prefix++)
      expect(prefixLength(maskOf(prefix, length))).toBe(prefix)
  }
  expect(prefixLength(Uint8Array.of(255, 0, 255, 0))).toBeUndefined()
  expect(prefixLength(Uint8Array.of(1, 2, 3, 4))).toBeUndefined()
})
