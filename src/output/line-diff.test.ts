import { expect, test } from 'vitest'
import { lineDiff } from './line-diff.ts'

test('equal texts have no difference', () => {
  expect(lineDiff('a\nb\n', 'a\nb\n')).toEqual([])
})

test('a changed line stands between the lines around it, and far ones are left out', () => {
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

test('lines that are added or taken out are shown alone', () => {
  expect(lineDiff('a\nb\nc\n', 'a\nc\n')).toEqual(['  a', '- b', '  c'])
  expect(lineDiff('a\nc\n', 'a\nb\nc\n')).toEqual(['  a', '+ b', '  c'])
})

test('long values are shortened so that two that begin alike are told apart', () => {
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
])('a credential is never shown: %s', (line) => {
  const shown = lineDiff(`${line}\n`, 'x: 1\n').join('\n')
  expect(shown).toContain('(hidden)')
  expect(shown).not.toMatch(/0123456789|LS0tLS1CRUdJ|hunter22/)
})
