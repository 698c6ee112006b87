import { expect, test } from 'vitest'
import { fits, placeholdersOf } from './patterns.ts'

test.each([
  ['a.example.com', '*.example.com', true],
  ['a.b.example.com', '*.example.com', false],
  ['.example.com', '*.example.com', false],
  ['example.com', '*.example.com', false],
  ['a.example.com.evil', '*.example.com', false],
  ['web-1.example.com', 'web-*.example.com', true],
  ['web-.example.com', 'web-*.example.com', false],
  ['a.b.example.com', '*.*.example.com', true],
  ['a.example.com', '**.example.com', true],
  ['a.b.example.com', '**.example.com', false],
  ['example.com', 'example.com', true],
  ['example.com.', 'example.com', false],
  ['aab', '*ab', true],
  ['', '*', false],
  ['', '', true],
  ['a.b', 'a?b', false],
  ['axb', 'a.b', false],
])('%s against %s: %s', (text, pattern, expected) => {
  expect(fits(text, pattern, '.')).toBe(expected)
})

test('stops a "*" at the given boundary', () => {
  expect(fits('system:serviceaccount:shop:web', 'system:serviceaccount:shop:*', ':')).toBe(true)
  expect(fits('system:serviceaccount:shop:web', 'system:*', ':')).toBe(false)
  expect(fits('example.com/serving', '*/serving', '/')).toBe(true)
})

test('matches a placeholder with the requester’s value, and never as a pattern', () => {
  const pattern = '*.{namespace}.svc'
  expect(fits('web.shop.svc', pattern, '.', { namespace: 'shop' })).toBe(true)
  expect(fits('web.other.svc', pattern, '.', { namespace: 'shop' })).toBe(false)
  expect(fits('web.other.svc', pattern, '.', { namespace: '*' })).toBe(false)
  expect(fits('web..svc', pattern, '.', { namespace: '' })).toBe(false)
  expect(fits('web.shop.svc', '*.{constructor}.svc', '.', {})).toBe(false)
  expect(placeholdersOf(pattern)).toEqual(['namespace'])
})

test('matches many stars against a long name in bounded time, unlike backtracking', () => {
  expect(fits('a'.repeat(20_000), `${'*a'.repeat(50)}b`, '.')).toBe(false)
})
