import { expect, test } from 'vitest'
import { parseName } from './name.ts'
import { encodeName } from './name-encoding.ts'
import {
  hiddenSubjectValues,
  isDnsName,
  isNormalUri,
  isPlainDnsName,
  isPlainMailbox,
  isSubdomain,
  moreThanUserAndGroups,
} from './plain-names.ts'

const label = (length: number): string => 'a'.repeat(length)
const labels = (length: number): string => `${label(63)}.${label(63)}.${label(63)}.${label(length - 192)}`

test.each([
  ['a', true],
  ['a-b.1c', true],
  [label(64), true],
  [labels(253), true],
  [labels(254), false],
  ['', false],
  ['a..b', false],
  ['a.', false],
  ['-a', false],
  ['a-', false],
  ['a_b', false],
  ['A', false],
  ['a\n', false],
])('%j as a subdomain: %s', (name, expected) => {
  expect(isSubdomain(name)).toBe(expected)
})

test.each([
  [label(63), true],
  [`b.${label(63)}`, true],
  [`b.${label(64)}`, false],
  [`${label(64)}.b`, false],
  [labels(253), true],
  ['-a', false],
])('%j as a DNS name: %s', (name, expected) => {
  expect(isDnsName(name)).toBe(expected)
})

test.each([
  ['a.example.com', true],
  ['A.Example.com', true],
  ['*.example.com', true],
  ['*', false],
  ['a.*.com', false],
  ['127.1', false],
  ['0x7f000001', false],
  ['0X7F', false],
  ['a.0x', false],
  ['1.a', true],
])('%j as a plain DNS name: %s', (name, expected) => {
  expect(isPlainDnsName(name)).toBe(expected)
})

test.each([
  ['a@example.com', true],
  ['a@b,c@d', false],
  ['"a b"@example.com', false],
  ['a@*.example.com', false],
  ['a@127.1', false],
  ['a', false],
])('%j as one mailbox: %s', (text, expected) => {
  expect(isPlainMailbox(text)).toBe(expected)
})

test.each([
  ['urn:a', true],
  ['https://a', true],
  ['https://a/', true],
  ['https://ab.example.com:8443/b/c', true],
  ['https://[::1]:8443/b', true],
  ['https://[2001:db8::7]', true],
  ['spiffe://cluster.local/ns/a/sa/b', true],
  ['urn:a?b=c#d', true],
  ['urn:%C3%A9', true],
  ['urn:%20a', true],
  ['a', false],
  ['1a:b', false],
  [' urn:a', false],
  ['URN:a', false],
  ['https://', false],
  ['https:///a', false],
  ['https://A/', false],
  ['https://Aa/', false],
  ['https://aA/', false],
  ['https://a@b/', false],
  ['https://a@b', false],
  ['https://[zz]/', false],
  ['https://a:8x/', false],
  ['https://a:/', false],
  ['https://a//b', false],
  ['https://a/./b', false],
  ['https://a/../b', false],
  ['urn:..', false],
  ['urn:a/..', false],
  ['urn:\u00e9a', false],
  ['urn:a\u00e9', false],
  ['urn:a?\u00e9', false],
  ['urn:a#\u00e9', false],
  ['urn:a#b\nc', false],
  ['urn:%c3%a9', false],
  ['urn:%C', false],
  ['urn:%ZZ', false],
  ['urn:%41', false],
  ['urn:%2F', false],
  ['urn:%5C', false],
  ['urn:%25', false],
  ['urn:%00', false],
  ['urn:%1F', false],
  ['urn:%7F', false],
  ['urn:%2E%2E', false],
  ['urn:%20%41', false],
])('%j as a normal URI: %s', (uri, expected) => {
  expect(isNormalUri(uri)).toBe(expected)
})

const subject = parseName(
  encodeName(
    [
      ['CN', 'a\u200bb'],
      ['O', 'system:nodes'],
      ['O', 'c\u0000d'],
      ['OU', 'x'],
      ['C', 'US'],
    ].map(([type, value]) => [{ type: type!, value: value! }]),
  ),
)

test('lists the attributes of a subject other than CN, O and the allowed ones', () => {
  expect(moreThanUserAndGroups(subject)).toEqual(['OU', 'C'])
  expect(moreThanUserAndGroups(subject, ['OU'])).toEqual(['C'])
  expect(moreThanUserAndGroups(subject, ['OU', 'C'])).toEqual([])
})

test('lists a common name whose value is not text', () => {
  // The value is an INTEGER; RFC 5280 requires a DirectoryString.
  const name = parseName(Buffer.from('300c310a30080603550403020107', 'hex'))
  expect(moreThanUserAndGroups(name)).toEqual(['CN'])
})

test('lists the values of a subject with an invisible character', () => {
  expect(hiddenSubjectValues(subject)).toEqual(['a\u200bb', 'c\u0000d'])
  expect(hiddenSubjectValues(parseName(encodeName({ commonName: 'a' })))).toEqual([])
})
