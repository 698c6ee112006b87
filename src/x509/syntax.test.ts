import { describe, expect, test } from 'vitest'
import { isValidDomain, parseMailbox, uriDefect } from './syntax.ts'

// Each result is that of Go 1.26. test/differential compares more of them.

describe('URIs', () => {
  test.each([
    '',
    '*',
    '/',
    '?',
    '#',
    'a',
    'a/b:c',
    '//',
    '///a',
    '//example.com/x',
    'http:',
    'urn:a%zz',
    'spiffe://cluster.local/ns/x',
    'http://user:p%40ss@example.com:8080/a%20b?q=%zz#f%20',
    'http://a@b@example.com',
    'http://[::1]:443/',
    'http://[fe80::1%25en0]/',
    'mongodb://a:1,b:2/',
    'http://example.com:',
    'x:#\x01',
    '+',
  ])('accepts "%s"', (uri) => {
    expect(uriDefect(uri)).toBeUndefined()
  })

  test.each([
    [':', 'missing scheme before the colon'],
    ['1:/', 'colon in the first path segment'],
    ['a\x7f', 'control character'],
    ['a\tb', 'control character'],
    ['a%2', 'invalid escape "%2"'],
    ['#%zz', 'invalid escape "%zz"'],
    ['http://exa mple.com', 'invalid character " " in the host'],
    ['http://ex%41mple.com', 'invalid escape "%41"'],
    ['http://ex%80mple.com', 'invalid domain'],
    ['http://example.com.', 'invalid domain'],
    ['http://.example.com', 'invalid domain'],
    ['http://example.com:80a', 'invalid port ":80a"'],
    ['http://a:1,b:2', 'invalid port ":1,b:2"'],
    ['mongodb://a:1,b:x', 'invalid port ":x"'],
    ['http://[::1', 'missing "]" in the host'],
    ['http://[1.2.3.4]', 'invalid IP literal'],
    ['http://[::1]x', 'invalid port "x"'],
    ['http://a[::1]', 'invalid IP literal'],
    ['http://[::1%25]', 'invalid zone'],
    ['http://[::1%25%41%2f]', 'invalid zone'],
    ['http://a b@example.com', 'invalid user information'],
    ['http://a%zz:b@example.com', 'invalid escape "%zz"'],
    ['http://a%4:1b@example.com', 'invalid escape "%4"'],
  ])('"%s": %s', (uri, defect) => {
    expect(uriDefect(uri)).toBe(defect)
  })
})

describe('domains', () => {
  test.each(['', 'a', 'a.b', '*.a', 'a_b', 'x'.repeat(300)])('"%s" is a name', (domain) => {
    expect(isValidDomain(domain, false)).toBe(true)
  })

  test.each(['.', 'a.', '.a', 'a..b', 'a b', 'ä'])('rejects "%s"', (domain) => {
    expect(isValidDomain(domain, false)).toBe(false)
  })

  test('accepts a leading dot in a constraint, not in a name', () => {
    expect(isValidDomain('.example.com', true)).toBe(true)
    expect(isValidDomain('..example.com', true)).toBe(false)
    expect(isValidDomain('.', true)).toBe(false)
  })
})

describe('mailboxes', () => {
  test.each([
    ['a@b', 'a', 'b'],
    ['first.last@example.com', 'first.last', 'example.com'],
    ['"a b"@c', 'a b', 'c'],
    ['"a\\"b"@c', 'a"b', 'c'],
    ['a\\@b@c', 'a@b', 'c'],
    ['a@', 'a', ''],
  ])('%s', (text, local, domain) => {
    expect(parseMailbox(text)).toEqual({ local, domain })
  })

  test.each([
    '',
    '@b',
    'a',
    '.a@b',
    'a.@b',
    'a..b@c',
    'a b@c',
    '"a@b',
    '"a"b@c',
    'a@b.',
    'a@.b',
    'a\\',
    '"\n"@b',
    '"\\\0"@b',
  ])('rejects "%s"', (text) => {
    expect(parseMailbox(text)).toBeUndefined()
  })
})
