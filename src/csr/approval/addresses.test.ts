import { expect, test } from 'vitest'
import { canonicalIp, cidrOf, isInRanges, isSpecialAddress, parseCidr } from './addresses.ts'

test.each(['10.0.0.0/8', '10.0.0.1', '0.0.0.0/0', 'fd00::/64', '::/0', '2001:db8::1/128'])(
  'parses %s as a range',
  (text) => {
    expect(parseCidr(text)).toBeDefined()
  },
)

test.each([
  '10.0.0.0/33',
  '10.0.0/8',
  'fd00::/129',
  '10.0.0.0/08',
  '10.0.0.0/',
  '10.0.0.0/8/8',
  'example.com',
  '',
  '10.0.0.0/-1',
])('rejects %s as a range', (text) => {
  expect(parseCidr(text)).toBeUndefined()
})

test('cidrOf throws for a text that is not a range', () => {
  expect(cidrOf('10.0.0.0/8')).toEqual(parseCidr('10.0.0.0/8'))
  expect(() => cidrOf('10.0.0.0/33')).toThrow(new TypeError('10.0.0.0/33 is not a range of addresses'))
})

test.each([
  ['10.1.255.255', '10.1.0.0/16', true],
  ['10.2.0.0', '10.1.0.0/16', false],
  ['10.1.0.127', '10.1.0.0/25', true],
  ['10.1.0.128', '10.1.0.0/25', false],
  ['::ffff:10.1.0.1', '10.1.0.0/16', true],
  ['fd00::1', '10.0.0.0/8', false],
  ['fd00:0:0:1::', 'fd00::/64', false],
  ['192.0.2.1', '0.0.0.0/0', true],
  ['2001:db8::1', '0.0.0.0/0', false],
])('%s in %s: %s', (address, range, expected) => {
  expect(isInRanges(address, [parseCidr(range)!])).toBe(expected)
})

test('returns one canonical spelling for every spelling of an address', () => {
  expect(canonicalIp('2001:0DB8:0:0:0:0:0:1')).toBe('2001:db8::1')
  expect(canonicalIp('::ffff:192.0.2.1')).toBe('192.0.2.1')
  expect(canonicalIp('node-1')).toBeUndefined()
})

test.each([
  '127.0.0.1',
  '::1',
  '0:0:0:0:0:0:0:1',
  '::ffff:127.0.0.1',
  '0.0.0.0',
  '255.255.255.255',
  '224.0.0.1',
  'ff02::1',
])('%s does not identify a single node', (address) => {
  expect(isSpecialAddress(address)).toBe(true)
})
