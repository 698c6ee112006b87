import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { printable } from './terminal.ts'
import { displayWidth, padded, shortened, wrapped } from './width.ts'
import '../../test/seeded.ts'

const longestWord = (line: string) =>
  Math.max(...line.trim().split(' ').map(displayWidth)) + line.length - line.trim().length
const sentences = fc
  .array(fc.stringMatching(/^[a-z]{0,12}$/), { maxLength: 12 })
  .map((words) => words.join(' '))
const text = fc.string({ unit: 'grapheme', maxLength: 60 }).map(printable)

test.each([
  ['kubernetes', 10],
  ['東京', 4],
  ['ｱｲｳ', 3],
  ['한국어', 6],
  ['e\u0301', 1],
  ['हिन्दी', 5],
  ['😀', 2],
  ['…', 1],
])('%s takes %i cells', (shown, cells) => {
  expect(displayWidth(shown)).toBe(cells)
})

test('agrees with the widths that Node uses for its console, character by character', () => {
  // Node composes text first, and counts conjoining vowels and marks of Hangul and kana as letters. Those are left out.
  const program = `
    const { getStringWidth } = require('internal/util/inspect')
    const widths = []
    for (let point = 0x20; point < 0x110000; point++) {
      const character = String.fromCodePoint(point)
      const skipped = (point >= 0xd800 && point < 0xe000) || /[\\p{Cn}\\p{Co}\\p{M}]/u.test(character)
      if (!skipped && character.normalize('NFC') === character) widths.push(point, getStringWidth(character))
    }
    process.stdout.write(JSON.stringify(widths))`
  const answer = execFileSync(process.execPath, ['--expose-internals', '-e', program], { maxBuffer: 1e8 })
  const widths = JSON.parse(answer.toString()) as number[]
  const others: string[] = []
  for (let i = 0; i < widths.length; i += 2) {
    const character = String.fromCodePoint(widths[i]!)
    const isJoiningVowel = widths[i]! >= 0x1160 && widths[i]! <= 0x11ff
    if (printable(character) !== character || isJoiningVowel) continue
    if (displayWidth(character) !== widths[i + 1]) others.push(`U+${widths[i]!.toString(16)}`)
  }
  expect(widths.length).toBeGreaterThan(200_000)
  expect(others).toEqual([])
})

describe('shortened', () => {
  test('cuts at the end, or in the middle where both ends matter', () => {
    expect(shortened('kube-apiserver', 9)).toBe('kube-api…')
    expect(shortened('pki/etcd/healthcheck-client.crt', 15, 'middle')).toBe('pki/etc…ent.crt')
    expect(shortened('pki/apiserver-etcd-client.crt', 16, 'start')).toBe('…etcd-client.crt')
    expect(shortened('東京支社', 6)).toBe('東京…')
  })

  test('never exceeds the given width, and keeps text that fits', () => {
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: 0, max: 40 }),
        fc.constantFrom('end' as const, 'middle' as const),
        (name, width, cut) => {
          const shown = shortened(name, width, cut)
          expect(displayWidth(shown)).toBeLessThanOrEqual(width)
          if (displayWidth(name) <= width) expect(shown).toBe(name)
        },
      ),
    )
  })
})

test('padded fills to the width in cells, not in characters', () => {
  expect(padded('東京', 6)).toBe('東京  ')
  expect(padded('kubernetes', 4)).toBe('kubernetes')
})

test('wrapped breaks at spaces, loses nothing, and keeps long words whole', () => {
  expect(wrapped('the certificate expired 3 days ago', 16)).toEqual([
    'the certificate',
    'expired 3 days',
    'ago',
  ])
  expect(wrapped('sha256:0123456789abcdef fits', 10)).toEqual(['sha256:0123456789abcdef', 'fits'])
  fc.assert(
    fc.property(sentences, fc.integer({ min: 1, max: 40 }), (sentence, width) => {
      const lines = wrapped(sentence, width)
      expect(lines.join(' ')).toBe(sentence)
      for (const line of lines.filter((one) => one.trim().includes(' '))) {
        expect(displayWidth(line)).toBeLessThanOrEqual(Math.max(width, longestWord(line)))
      }
    }),
  )
})
