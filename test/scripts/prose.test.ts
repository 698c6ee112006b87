import { expect, test } from 'vitest'
import { avoidedIn, avoidedWords } from '../../scripts/avoided-words.ts'
import { avoidedWordsOf, beyond, brokenLinksOf, longSentencesOf, lowered } from '../../scripts/prose.ts'
import { avoidedInDescriptions, avoidedInSource } from '../../scripts/source-words.ts'

// The check of texts in `npm run check`: words, links, and sentence length in README.md.

test.each(avoidedWords)('finds "$example"', ({ example, instead }) => {
  expect(avoidedIn(example).map((found) => found.instead)).toContain(instead)
})

test('finds avoided words in any case, in order, with their position', () => {
  expect(avoidedIn('Nobody, and whoever else')).toEqual([
    { text: 'Nobody', instead: 'name the person or program', index: 0 },
    { text: 'whoever', instead: 'who, or name the person or program', index: 12 },
  ])
})

test.each([
  'an octet string',
  'subject alternative names (SANs)',
  'a feature gate of the kubelet',
  'the bridge certificate of phase 9',
  'recommend, amendment and renewal',
  'the mended-pair option of another program',
])('accepts "%s"', (text) => {
  expect(avoidedIn(text)).toEqual([])
})

test('names the line of an avoided word in a page', () => {
  const page = ['# Title', '', '```', 'whoever', '```', '', 'Ask whoever knows.'].join('\n')
  expect(avoidedWordsOf('a.md', page)).toEqual([
    'a.md:7: "whoever": write who, or name the person or program',
  ])
})

test.each([
  ['fenced code', 'Text\n\n```console exit=3\n$ kcert x\nwhoever\n```\n'],
  ['indented code', 'Text\n\n    whoever\n\nText\n'],
  ['code in a sentence', 'It prints `whoever`.'],
  ['quoted output', 'It prints "whoever presents it".'],
  ['the target of a link', '[page](whoever.md)'],
  ['a comment', '<!-- whoever -->'],
  ['a generated table', '<!-- table a: written by `npm run docs` -->\n| whoever |\n<!-- end -->'],
  ['output of a command that writes it', '<!-- fuzz -->\nwhoever\n<!-- /fuzz -->'],
  ['what was released', '# Changelog\n\n## [Unreleased]\n\n## [1.0.0] - 2026-12-01\n\n- whoever\n'],
])('reads no words in %s', (_, page) => {
  expect(avoidedWordsOf('a.md', page)).toEqual([])
})

test('reads words in text, tables, lists, headings and the unreleased part of a changelog', () => {
  const page = '# Changelog\n\n## [Unreleased] whoever\n\n- whoever\n\n| whoever |\n\n## [1.0.0]\n\nwhoever\n'
  expect(avoidedWordsOf('a.md', page)).toHaveLength(3)
})

const words = (count: number): string => `${'word '.repeat(count - 1)}end.`

test.each([
  ['a sentence of 26 words', words(26), 1],
  ['a sentence of 25 words', words(25), 0],
  ['two sentences of 20 words', `${words(20)} ${words(20)}`.replaceAll('. w', '. W'), 0],
  ['a sentence over two lines', words(26).replace(' word', '\nword'), 1],
  ['list items without a full stop', `- ${words(20).slice(0, -1)}\n- ${words(20)}`, 0],
  ['a command of many words', `Run \`${words(30)}\`.`, 0],
  ['a link of many words', `See [${words(26)}](a.md)`, 1],
])('counts the words of %s', (_, text, found) => {
  expect(longSentencesOf('a.md', text)).toHaveLength(found)
})

test.each([
  ['[a](docs/policy.md#builtin-kubelet-serving)', []],
  ['[a](https://example.com/none)', []],
  ['`[a](none.md)`... [a](#here)\n\n## Here', []],
  ['[a](docs/none.md)', ['README.md: no file for the link docs/none.md']],
  ['[a](docs/policy.md#none)', ['README.md: no heading for the link docs/policy.md#none']],
  ['[a](#none)\n\n## Here', ['README.md: no heading for the link #none']],
])('follows the links of %s', (page, found) => {
  expect(brokenLinksOf('README.md', page)).toEqual(found)
})

const value = '$' + '{name}'

test.each([
  ['a string', "const why = 'whoever asks'", 1],
  ['a template', `const why = \`whoever asks ${value}\``, 1],
  ['a tagged template', `const next = commandLine\`${value} whoever asks\``, 1],
  ['a text of several lines', 'const help = `two\nwhoever asks`', 2],
])('finds an avoided word in %s of a source', (_, source, line) => {
  expect(avoidedInSource('a.ts', source)).toEqual([
    `a.ts:${line}: "whoever": write who, or name the person or program`,
  ])
})

test.each([
  ['a comment', '// whoever asks'],
  ['the path of an import', "import { a } from './ledger.ts'"],
  ['a value without a space', "const kind = 'judged'"],
  ['a name', 'const wish = 1'],
])('reads no words in %s of a source', (_, source) => {
  expect(avoidedInSource('a.ts', source)).toEqual([])
})

test('finds avoided words in descriptions of a schema, but not in values', () => {
  const schema = JSON.stringify(
    { properties: { wish: { enum: ['ledger'], description: 'the ledger' } } },
    undefined,
    2,
  )
  expect(avoidedInDescriptions('a.json', schema)).toEqual(['a.json:7: "ledger": write issuance log'])
})

test('allows a file its number of exceptions, and no more', () => {
  const found = new Map([
    ['a.ts', ['one', 'two']],
    ['b.ts', ['three']],
  ])
  expect(beyond({ 'a.ts': 2 }, found)).toEqual(['three'])
  expect(beyond({ 'a.ts': 1, 'b.ts': 1 }, found)).toEqual(['one', 'two'])
  expect(lowered({ 'a.ts': 5, 'c.ts': 1 }, found)).toEqual({ 'a.ts': 2 })
})
