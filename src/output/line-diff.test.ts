import { expect, test } from 'vitest'
import { lineDiff } from './line-diff.ts'

test('returns no difference for equal texts', () => {
  expect(lineDiff('a\nb\n', 'a\nb\n')).toEqual([])
})

test('shows a changed line between its neighbours and leaves out distant lines', () => {
  const before = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].join('\n')
  expect(lineDiff(before, before.replace('e', 'E'))).toEqual([
    '  c',
    '  d',
    '- e',
    '+ E',
    '  f',
    '  g',
    '  …',
  ])
})

test('shows only added or removed lines', () => {
  expect(lineDiff('a\nb\nc\n', 'a\nc\n')).toEqual(['  a', '- b', '  c'])
  expect(lineDiff('a\nc\n', 'a\nb\nc\n')).toEqual(['  a', '+ b', '  c'])
})

test('shortens long values so that two with the same beginning are distinguishable', () => {
  const [one, two] = ['A'.repeat(99), `${'A'.repeat(98)}B`]
  const [minus, plus] = lineDiff(`ca: ${one}\n`, `ca: ${two}\n`)
  expect(minus).toMatch(/^- ca: A{16}… \(99 characters, sha256 [0-9a-f]{8}…\)$/)
  expect(plus).not.toBe(minus?.replace('-', '+'))
})

test.each([
  'token: abcdef.0123456789abcdef',
  'client-key-data: LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0t',
  '- user: {token: abcdef.0123456789abcdef, other: 1}',
  '"password": "hunter22hunter"',
])('never shows a credential: %s', (line) => {
  const shown = lineDiff(`${line}\n`, 'x: 1\n').join('\n')
  expect(shown).toContain('(hidden)')
  expect(shown).not.toMatch(/0123456789|LS0tLS1CRUdJ|hunter22/)
})
