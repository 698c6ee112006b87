import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import YAML from 'yaml'
import { readAnyYaml, readDocuments } from './documents.ts'
import { isTrue, type Node, plainType, textOf, valueAt } from './node.ts'
import { readPlainYaml } from './plain-yaml.ts'
import '../../test/seeded.ts'

/** Returns the node without positions, as JSON types where they matter. */
function plainOf(node: Node): unknown {
  if (node.kind === 'list') return node.items.map(plainOf)
  if (node.kind === 'map')
    return Object.fromEntries([...node.entries].map(([key, { value }]) => [key, plainOf(value)]))
  return node.type === 'string' ? node.text : { [node.type]: node.text }
}

const word = fc.oneof(
  fc.constantFrom(
    'name',
    'user',
    'true',
    'null',
    '~',
    '1',
    '0x1f',
    '-',
    '- a',
    'a: b',
    'a #b',
    'a:b',
    "it's",
    '"',
    '|',
    '',
    ' ',
    'é',
    'x\ny',
    'x\n',
    '\n',
    'yes',
    '.5',
    '2020-01-01',
    '<<',
    '#',
    '[',
    '{}',
    'tab\there',
    '---',
    '...',
    '\u00a0',
    'client auth',
  ),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.base64String({ maxLength: 60 }),
)
const value = fc.letrec((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    word,
    fc.constantFrom(true, false, null, 1, -2.5, 1e30),
    fc.array(tie('node'), { maxLength: 4 }),
    fc.dictionary(word, tie('node'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).node

const layout = fc.record({
  indentSeq: fc.boolean(),
  defaultStringType: fc.constantFrom(
    'PLAIN' as const,
    'QUOTE_DOUBLE' as const,
    'QUOTE_SINGLE' as const,
    'BLOCK_LITERAL' as const,
  ),
  collectionStyle: fc.constantFrom('any' as const, 'block' as const, 'flow' as const),
  lineWidth: fc.constantFrom(0, 40),
})

async function agrees(text: string): Promise<boolean> {
  const plain = readPlainYaml(text)
  if (!Array.isArray(plain)) return false
  const { documents, defects } = await readAnyYaml(text)
  expect({ text, defects }).toEqual({ text, defects: [] })
  expect({ text, documents: plain.map(plainOf) }).toEqual({ text, documents: documents.map(plainOf) })
  return true
}

describe('the plain reader', () => {
  test('agrees with the yaml library on every text it accepts', async () => {
    let read = 0
    await fc.assert(
      fc.asyncProperty(value, layout, async (content, options) => {
        if (await agrees(YAML.stringify(content, options))) read++
      }),
      { numRuns: 2000 },
    )
    expect(read).toBeGreaterThan(500)
  })

  test('agrees with the yaml library on texts with a few characters changed', async () => {
    const base = [
      'apiVersion: v1\nclusters:\n- cluster:\n    server: https://a:1 # b\n  name: "x"\nusers:\n  - name: u\n    user: {}\n',
      'a: |\n  one\n\n   two\nb: |-\n  x\nc:\n- - 1\n  - d: e\n    f:\n    - g\n---\nh: [a, "b", {c: d}]\n',
      '{"a": [1, "b\\n", null], "c": {"d": ""}}\n',
      "k: 'it''s'\n# note\nl:\n\n  m: n\n  o:   p\nq:\n",
    ]
    const edit = fc.tuple(
      fc.nat(130),
      fc.nat(3),
      fc.constantFrom(
        '',
        ' ',
        '\n',
        '  ',
        ':',
        '- ',
        '#',
        ' #',
        '"',
        "'",
        '|',
        '\t',
        'a',
        '-',
        '[',
        '}',
        ',',
        '---\n',
        '\r\n',
        '&a ',
        '*a',
        '>',
        '? ',
        '!',
        '\n\n',
        '|+',
      ),
    )
    let read = 0
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...base),
        fc.array(edit, { minLength: 1, maxLength: 4 }),
        async (text, edits) => {
          let edited = text
          for (const [at, length, insert] of edits)
            edited = edited.slice(0, at) + insert + edited.slice(at + length)
          if (await agrees(edited)) read++
        },
      ),
      { numRuns: 5000 },
    )
    expect(read).toBeGreaterThan(500)
  })

  test.each([
    [
      'a kubeconfig as kubectl writes it',
      'apiVersion: v1\nclusters:\n- cluster:\n    server: https://10.0.0.1:6443\n  name: k\ncontexts: []\nusers: null\n',
    ],
    [
      'a literal',
      'data:\n  ca.crt: |\n    -----BEGIN CERTIFICATE-----\n    MIIB\n    -----END CERTIFICATE-----\n',
    ],
    [
      'a list in JSON over several lines',
      '{\n  "kind": "List",\n  "items": [\n    {"a": 1},\n    {}\n  ]\n}\n',
    ],
    ['windows line ends', 'a: b\r\nc:\r\n- d\r\ne: |\r\n  f\r\n  g\r\n'],
    ['several documents', '---\na: 1\n---\n# nothing\n---\nb: 2\n'],
    ['flow words', 'usages: [client auth, digital signature]\n'],
  ])('reads %s without the library', async (_name, text) => {
    expect(await agrees(text)).toBe(true)
  })
})

describe('readDocuments', () => {
  test('gives every node its position', async () => {
    const text = 'users:\n- name: "a b"\n  user:\n    token: x-y # no\n    data: |\n      z\n'
    for (const { documents } of [await readDocuments(text), await readAnyYaml(text)]) {
      const user = valueAt(documents[0], 'users')
      expect(user?.kind === 'list' && text.slice(...valueAt(user.items[0], 'name')!.range)).toBe('"a b"')
      expect(user?.kind === 'list' && text.slice(...valueAt(user.items[0], 'user', 'token')!.range)).toBe(
        'x-y',
      )
    }
  })

  test('follows anchors and merges', async () => {
    const { documents } = await readDocuments('base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n')
    expect(plainOf(valueAt(documents[0], 'use')!)).toEqual({ x: { number: '1' }, y: { number: '3' } })
  })

  test('merges in the order of the text, as Go does: a merge after a key overrides it', async () => {
    const { documents } = await readDocuments('b: &b {x: 1}\nc: &c {x: 2}\nuse:\n  x: 3\n  <<: [*b, *c]\n')
    expect(plainOf(valueAt(documents[0], 'use')!)).toEqual({ x: { number: '1' } })
    expect((await readDocuments('a: 1\n<<: text\n')).defects[0]!.reason).toBe(
      'the value of "<<" is not a map',
    )
  })

  test.each([
    ['y', 'boolean'],
    ['N', 'boolean'],
    ['off', 'boolean'],
    ['yEs', 'string'],
    ['0B11', 'number'],
    ['0b12', 'string'],
    ['1e999', 'string'],
    ['.5_0', 'number'],
    ['08', 'number'],
    ['18446744073709551615', 'number'],
    ['0x1FFFFFFFFFFFFFFFF', 'string'],
    ['-.INF', 'number'],
    ['2026-01-02', 'string'],
  ])('reads %s as a %s, as go-yaml does', (text, type) => {
    expect(plainType(text)).toBe(type)
  })

  test('reads yes as true, as Go does', async () => {
    const { documents } = await readDocuments('a: yes\nb: "yes"\n')
    expect([isTrue(valueAt(documents[0], 'a')), isTrue(valueAt(documents[0], 'b'))]).toEqual([true, false])
  })

  test('uses the last value of a duplicate key', async () => {
    for (const text of ['a: 1\na: 2\n', 'a: 1\na: !!str 2\n']) {
      expect(textOf(valueAt((await readDocuments(text)).documents[0], 'a'))).toBe('2')
    }
  })

  test('keeps the documents before a malformed one', async () => {
    const { documents, defects } = await readDocuments('a: 1\n---\nb: [\n')
    expect(documents).toHaveLength(1)
    expect(defects[0]).toMatchObject({ line: 4 })
  })

  test.each([
    [
      'aliases that grow',
      `${'a'.repeat(1)}0: &a0 [x,x,x,x,x,x,x,x,x,x]\n${[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `a${n}: &a${n} [${`*a${n - 1},`.repeat(10)}]`).join('\n')}\n`,
      /aliases expand it/,
    ],
    [
      'aliases of nothing that grow',
      `a0: &a0 ["","","","","","","","","",""]\n${[1, 2, 3, 4, 5, 6].map((n) => `a${n}: &a${n} [${`*a${n - 1},`.repeat(10)}]`).join('\n')}\n`,
      /aliases expand it/,
    ],
    ['an alias within itself', 'a: &a [*a]\n', /is inside its own anchor/],
    ['flow lists without end', '['.repeat(50_000), /levels deep/],
    ['block lists without end', `${'- '.repeat(50_000)}x`, /levels deep/],
    [
      'maps one in the other',
      Array.from({ length: 80 }, (_, n) => `${' '.repeat(n)}a:`).join('\n'),
      /levels deep/,
    ],
    [
      'much that is not plain',
      `a: &x ${'b'.repeat(300_000)}`,
      /up to 150,000 characters, and this has 300,006/,
    ],
    ['much JSON that is cut off', `{"kind":"List","items":["${'b'.repeat(300_000)}"`, /^malformed JSON$/],
    ['more keys than it may hold', `[${'0,'.repeat(600_000)}0]`, /^more than 500,000 keys, values and items/],
    ['a bracket too many', 'a: ]\n', /./],
  ])('rejects %s with a reason', async (_name, text, reason) => {
    const { documents, defects } = await readDocuments(text)
    expect(documents).toEqual([])
    expect(defects[0]!.reason).toMatch(reason)
  })

  // A password without quotes may start with a character that YAML reserves.
  test.each([
    ['token: *canary-secret', /starts with "\*" is an alias/],
    ['a: {<<: *canary-secret}', /starts with "\*" is an alias/],
    ['token: &canary-secret [*canary-secret]', /inside its own anchor/],
    ['token: |canary-secret', /^Block scalar header includes extra characters$/],
    ['token: !canary-secret!x 2', /starts with "!" is a tag/],
    ['token: !<canary-secret 2', /./],
    ['token: !!canary-secret! 2', /./],
    ['token: "\\Ucanary-secret"', /^Invalid escape sequence \\U$/],
    ['token: "canary-secret', /./],
    ['token: @canary-secret', /start with reserved character @/],
    ['%canary-secret\ntoken: [', /./],
  ])('quotes no value of a malformed document: %s', async (text, reason) => {
    const { defects } = await readDocuments(`apiVersion: v1\n${text}\n`)
    expect(defects[0]?.reason).toMatch(reason)
    expect(JSON.stringify(defects)).not.toMatch(/canary|secret/)
  })

  test('never throws', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 300 }), async (text) => {
        const { documents, defects } = await readDocuments(text)
        expect(documents.length + defects.length).toBeGreaterThanOrEqual(0)
      }),
      { numRuns: 1000 },
    )
  })
})
