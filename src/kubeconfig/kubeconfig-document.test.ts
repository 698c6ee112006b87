import { describe, expect, test } from 'vitest'
import { readKubeconfigDocument } from './kubeconfig-document.ts'
import { plainValue } from './node.ts'

const yaml = 'clusters: []\nusers: []\ncontexts: []\n'
const json = '{"clusters": [], "users": [], "contexts": []}'

const read = async (content: string | Uint8Array) => {
  const { documents, defects } = await readKubeconfigDocument(Buffer.from(content as string))
  return { value: documents[0] && plainValue(documents[0]), reasons: defects.map(({ reason }) => reason) }
}
const whole = { value: { clusters: [], users: [], contexts: [] }, reasons: [] }

describe('accepts, as client-go does,', () => {
  test.each([
    ['CR line ends', yaml.replaceAll('\n', '\r')],
    [
      'U+0085 and U+2028 for line ends',
      yaml.replace('\nusers', '\u0085users').replace('\ncontexts', '\u2028contexts'),
    ],
    ['text after JSON', `${json}\ntrailing`],
    ['a second object after JSON', `${json} {"clusters": 5}`],
    ['a bracket in a text of JSON', `${json.replace('[]', '["}", "\\\\"]')} rubbish`],
    ['a second document that is broken', `${yaml}---\na: [\n`],
    ['%YAML 1.1', `%YAML 1.1\n---\n${yaml}`],
  ])('%s', async (name, text) => {
    const { value, reasons } = await read(text)
    expect([Object.keys(value as object), reasons]).toEqual([['clusters', 'users', 'contexts'], []])
    if (name !== 'a bracket in a text of JSON') expect({ value, reasons }).toEqual(whole)
  })

  test.each([`---\n---\n${yaml}`, `---\n# nothing\n---\n${yaml}`, '', '# nothing\n'])(
    '%j as an empty kubeconfig',
    async (text) => {
      expect(await read(text)).toEqual({ value: undefined, reasons: [] })
    },
  )
})

describe('rejects, as client-go does, and reads as much as possible of', () => {
  test.each([
    [
      'Latin-1 in a comment',
      Buffer.concat([Buffer.from('# caf'), Buffer.from([0xe9, 0x0a]), Buffer.from(yaml)]),
      /^not UTF-8/,
    ],
    ['a control character', `# \u0007\n${yaml}`, /^a control character/],
    ['\\/ in JSON', json.replace('[]', '["\\/"]'), /^the escape \\\/, which client-go refuses, in JSON too$/],
    ['half a surrogate pair', json.replace('[]', '["\\ud800"]'), /^the escape \\ud800/],
    [
      '%YAML 1.2',
      `%YAML 1.2\n---\n${yaml}`,
      /^a directive that client-go refuses: it supports only %YAML 1\.1$/,
    ],
    ['a null key', `~: 1\n${yaml}`, /^a key that is null/],
    ['a number that JSON does not have', `x: .inf\n${yaml}`, /^a number that JSON does not have/],
    ['a key over lines', json.replace('"users":', '"users"\n:'), /^a key without its colon on the same line/],
  ])('%s', async (_name, content, reason) => {
    const { value, reasons } = await read(content)
    expect(reasons).toEqual([expect.stringMatching(reason)])
    expect(Object.keys(value as object)).toContain('users')
  })

  test('invalid base64 after !!binary', async () => {
    expect((await read(`x: !!binary Y\n${yaml}`)).reasons).toEqual([
      expect.stringMatching(/^!!binary: not base64/),
    ])
    expect((await read(`x: !!binary YWJj\n${yaml}`)).value).toMatchObject({ x: 'abc' })
  })
})

test('does not treat a backslash outside double quotes, or after another one, as an escape', async () => {
  for (const text of ["x: 'a\\/b'\n", 'x: C:\\users\\ud800\n', 'x: "\\\\/"\n'])
    expect((await read(text + yaml)).reasons).toEqual([])
})
