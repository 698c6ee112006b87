import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import YAML from 'yaml'
import { KcertError } from '../errors/kcert-error.ts'
import { editYaml, type YamlEdit, type YamlPath } from './edit-yaml.ts'
import '../../test/seeded.ts'

const pod = `# by hand
apiVersion: v1
metadata:
  labels: {tier: control-plane}   # flow
  name: 'x'
spec:
  containers:
  - command:
    - kube-controller-manager
    # the CA
    - --root-ca-file=/ca.crt  # trusted
    - "--leader-elect=true"
    name: c
  volumes: []
status: {}
`

async function edited(text: string, ...edits: YamlEdit[]): Promise<string> {
  return editYaml(text, edits)
}

const command: YamlPath = ['spec', 'containers', 0, 'command']

describe('editYaml', () => {
  test('replaces a scalar, keeps its quotes and its comment', async () => {
    expect(await edited(pod, { do: 'set', path: [...command, 1], value: '--root-ca-file=/bundle.crt' })).toBe(
      pod.replace('/ca.crt', '/bundle.crt'),
    )
    expect(await edited(pod, { do: 'set', path: [...command, 2], value: '--leader-elect=false' })).toBe(
      pod.replace('elect=true', 'elect=false'),
    )
    expect(await edited(pod, { do: 'set', path: ['metadata', 'name'], value: "it's" })).toBe(
      pod.replace("'x'", "'it''s'"),
    )
  })

  test('adds an item at the end of its list, and removes one with its line', async () => {
    expect(await edited(pod, { do: 'append', path: command, value: '--v=2' })).toBe(
      pod.replace('    name: c', '    - --v=2\n    name: c'),
    )
    expect(await edited(pod, { do: 'remove', path: [...command, 1] })).toBe(
      pod.replace('    - --root-ca-file=/ca.crt  # trusted\n', ''),
    )
  })

  test('adds an entry with the missing maps above it', async () => {
    expect(
      await edited(pod, { do: 'set', path: ['metadata', 'annotations', 'ca-rotation'], value: '1' }),
    ).toBe(pod.replace("name: 'x'\n", `name: 'x'\n  annotations:\n    ca-rotation: "1"\n`))
  })

  test('keeps flow style', async () => {
    expect(await edited(pod, { do: 'set', path: ['metadata', 'labels', 'a/b'], value: 'c' })).toBe(
      pod.replace('control-plane}', 'control-plane, "a/b": "c"}'),
    )
    expect(await edited(pod, { do: 'append', path: ['spec', 'volumes'], value: { name: 'n' } })).toBe(
      pod.replace('volumes: []', 'volumes: [{"name":"n"}]'),
    )
    const json = '{\n  "a": {"b": "c", "d": 1},\n  "e": []\n}\n'
    expect(await edited(json, { do: 'remove', path: ['a', 'b'] })).toBe(json.replace('"b": "c", ', ''))
    expect(await edited(json, { do: 'remove', path: ['a', 'd'] })).toBe(json.replace(', "d": 1', ''))
  })

  test('writes a block without its only entry as empty', async () => {
    expect(await edited('user:\n  token: x # c\nname: n\n', { do: 'remove', path: ['user', 'token'] })).toBe(
      'user: {} # c\nname: n\n',
    )
  })

  test('keeps the dash when it removes the first entry after it', async () => {
    const text = '- # first\n  a: 1\n  b: 2\n- c: 3\n  # kept\n  d: 4\n'
    expect(await edited(text, { do: 'remove', path: [1, 'c'] })).toBe(text.replace('- c: 3', '-'))
  })

  test('fills an empty value and keeps a Windows line end', async () => {
    expect(await edited('a:\r\nb: 1\r\n', { do: 'set', path: ['a'], value: 'x' })).toBe('a: x\r\nb: 1\r\n')
    expect(await edited('a:\r\nb: 1\r\n', { do: 'set', path: ['a', 'c'], value: 'x' })).toBe(
      'a:\r\n  c: x\r\nb: 1\r\n',
    )
    expect(await edited('a: 1', { do: 'set', path: ['b'], value: 'x' })).toBe('a: 1\nb: x')
  })

  test.each([
    ['an anchor that another place uses', 'a: &x {b: c}\nd: *x\n', ['a', 'b']],
    ['a merged entry', 'a: &x\n  b: c\nd:\n  <<: *x\n', ['d', 'b']],
    ['a list instead of a scalar', 'a: [b]\n', ['a']],
    ['no such item', 'a: [b]\n', ['a', 7]],
  ] as const)('rejects %s', async (_what, text, path) => {
    await expect(edited(text, { do: 'set', path, value: 'x' })).rejects.toMatchObject({
      code: 'KCERT_EDIT_REFUSED',
    })
  })

  test('rejects text that cannot be read', async () => {
    for (const text of ['a: [', '', '# nothing\n']) {
      await expect(edited(text, { do: 'set', path: ['a'], value: 'x' })).rejects.toBeInstanceOf(KcertError)
    }
  })
})

const key = fc.constantFrom('a', 'b', 'name', 'ca.crt', 'x/y', 'true', '1', 'k k', '')
const leaf = fc.oneof(
  fc.constantFrom(
    'x',
    '--f=/a',
    'a: b',
    ' #',
    '~',
    'yes',
    '1',
    '',
    'ä',
    'a\nb',
    '- x',
    '*',
    "'",
    '"',
    '\u2028',
  ),
  fc.string({ maxLength: 8 }),
)
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(leaf, fc.boolean(), fc.integer(), fc.constant(null)),
    fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
    fc.array(tie('tree'), { maxLength: 4 }),
  ),
}))

const writer = fc.constantFrom(
  (value: unknown) => YAML.stringify(value),
  (value: unknown) => YAML.stringify(value, { indentSeq: false, lineWidth: 0 }),
  (value: unknown) => YAML.stringify(value, { indent: 4, defaultStringType: 'QUOTE_DOUBLE' }),
  (value: unknown) => JSON.stringify(value),
  (value: unknown) => JSON.stringify(value, null, 2),
)

/** Returns every path in a value, with its content. */
function places(value: unknown, path: YamlPath = []): { path: YamlPath; value: unknown }[] {
  const children = Array.isArray(value)
    ? value.flatMap((item, index) => places(item, [...path, index]))
    : value !== null && typeof value === 'object'
      ? Object.entries(value).flatMap(([name, inner]) => places(inner, [...path, name]))
      : []
  return [{ path, value }, ...children]
}

/** Returns how much text was removed and added between the unchanged parts. */
function span(before: string, after: string): { gone: string; came: string } {
  let front = 0
  while (front < before.length && front < after.length && before[front] === after[front]) front++
  let back = 0
  while (back < Math.min(before.length, after.length) - front && before.at(-1 - back) === after.at(-1 - back))
    back++
  return { gone: before.slice(front, before.length - back), came: after.slice(front, after.length - back) }
}

describe('editYaml on random text', () => {
  const root = fc.dictionary(key, tree, { minKeys: 1, maxKeys: 4 })
  const runs = { numRuns: 400 }

  test('removes nothing when it adds an entry', async () => {
    let refused = 0
    await fc.assert(
      fc.asyncProperty(root, writer, fc.nat(), leaf, async (value, write, pick, content) => {
        const maps = places(value).filter(({ value: at }) => isMap(at))
        const { path } = maps[pick % maps.length]!
        const text = write(value)
        try {
          const after = await editYaml(text, [{ do: 'set', path: [...path, 'new-entry'], value: content }])
          expect(span(text, after).gone).toMatch(/^(?:\{\})?$/)
          expect(YAML.parse(after, { version: '1.2' })).toEqual(withNew(value, path, content))
        } catch (error) {
          if (!(error instanceof KcertError)) throw error
          refused++
        }
      }),
      runs,
    )
    expect(refused).toBe(0)
  })

  test('changes only the scalar that it sets', async () => {
    let refused = 0
    await fc.assert(
      fc.asyncProperty(root, writer, fc.nat(), leaf, async (value, write, pick, content) => {
        const scalars = places(value).filter(({ value: at }) => typeof at === 'string')
        if (scalars.length === 0) return
        const { path, value: old } = scalars[pick % scalars.length]!
        const text = write(value)
        try {
          const after = await editYaml(text, [{ do: 'set', path, value: content }])
          const back = await editYaml(after, [{ do: 'set', path, value: old as string }])
          expect(YAML.parse(back)).toEqual(YAML.parse(text))
          expect(span(text, after).gone.length).toBeLessThanOrEqual(6 * (old as string).length + 60)
        } catch (error) {
          if (!(error instanceof KcertError)) throw error
          refused++
        }
      }),
      runs,
    )
    expect(refused).toBe(0)
  })

  test('keeps everything else when it removes an entry', async () => {
    let refused = 0
    await fc.assert(
      fc.asyncProperty(root, writer, fc.nat(), async (value, write, pick) => {
        const parts = places(value).filter(({ path }) => path.length > 0)
        const { path } = parts[pick % parts.length]!
        const text = write(value)
        try {
          const after = await editYaml(text, [{ do: 'remove', path }])
          expect(span(text, after).came.length).toBeLessThanOrEqual(3)
        } catch (error) {
          if (!(error instanceof KcertError)) throw error
          refused++
        }
      }),
      runs,
    )
    expect(refused).toBeLessThan(80)
  })
})

function isMap(value: unknown): boolean {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

function withNew(value: unknown, path: YamlPath, content: string): unknown {
  const copy = structuredClone(value)
  let at = copy as Record<string | number, unknown>
  for (const step of path) at = at[step] as Record<string | number, unknown>
  at['new-entry'] = content
  return copy
}
