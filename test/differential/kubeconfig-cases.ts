// Kubeconfigs for the comparison with client-go: every field with values of every type, plain scalars, edge cases of YAML and
// JSON, users and clusters that clients reject, and a text with a few characters changed. The cases are always the same, so that
// client-go's answers can be recorded.

export interface KubeconfigCase {
  readonly name: string
  readonly content: Uint8Array
  /** Also compares whether clients can be created from the contexts. */
  readonly asksForUsability?: true
}

/** Returns all of them, in a fixed order. */
export function kubeconfigCases(): KubeconfigCase[] {
  return [...typedCases(), ...scalarCases(), ...edgeCases(), ...usabilityCases(), ...brokenCases()]
}

type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value }

const base: Value = {
  apiVersion: 'v1',
  kind: 'Config',
  preferences: { colors: true, extensions: [{ name: 'p', extension: { a: 1 } }] },
  clusters: [
    {
      name: 'k',
      cluster: {
        server: 'https://127.0.0.1:6443',
        'tls-server-name': 'kube',
        'insecure-skip-tls-verify': false,
        'certificate-authority': 'ca.crt',
        'certificate-authority-data': 'QUJD',
        'proxy-url': 'http://127.0.0.1:3128',
        'disable-compression': true,
        extensions: [{ name: 'c', extension: {} }],
      },
    },
  ],
  users: [
    {
      name: 'u',
      user: {
        'client-certificate': 'u.crt',
        'client-certificate-data': 'QUJD',
        'client-key': 'u.key',
        'client-key-data': 'QUJD',
        token: 't',
        tokenFile: 'token',
        as: 'ann',
        'as-uid': 'uid',
        'as-groups': ['dev'],
        'as-user-extra': { scope: ['a'] },
        username: 'n',
        password: 'p',
        'auth-provider': { name: 'oidc', config: { 'client-id': 'x' } },
        exec: {
          command: 'aws',
          args: ['a'],
          env: [{ name: 'A', value: 'b' }],
          apiVersion: 'client.authentication.k8s.io/v1',
          installHint: 'h',
          provideClusterInfo: true,
          interactiveMode: 'Never',
        },
        extensions: [{ name: 'x', extension: 'any' }],
      },
    },
  ],
  contexts: [{ name: 'c', context: { cluster: 'k', user: 'u', namespace: 'd', extensions: [] } }],
  'current-context': 'c',
  extensions: [{ name: 'e', extension: [1] }],
  unknown: { a: [1] },
}

const replacements: readonly Value[] = [
  ...[5, 1.5, true, false, null, 'text', '', 'QUJD', 'QUJ'],
  ...[[], ['x'], ['x', null], [['x']], [{}], [{ name: 5 }], [{ name: 'x' }], [{ name: 'x' }, { name: 'x' }]],
  ...[{}, { a: 'x' }, { a: 5 }, { a: ['x'] }, { a: null }, { name: 'x' }],
]

function* typedCases(): Generator<KubeconfigCase> {
  for (const path of pathsOf(base))
    for (const value of replacements)
      yield written(
        `${path.join('.')} = ${JSON.stringify(value)}`,
        JSON.stringify(replaced(base, path, value)),
      )
}

function* pathsOf(value: Value, path: readonly string[] = []): Generator<readonly string[]> {
  if (path.length > 0) yield path
  if (typeof value !== 'object' || value === null) return
  for (const [key, its] of Object.entries(value)) yield* pathsOf(its, [...path, key])
}

function replaced(value: Value, [key, ...rest]: readonly string[], by: Value): Value {
  if (key === undefined) return by
  if (Array.isArray(value))
    return value.map((item, at) => (String(at) === key ? replaced(item, rest, by) : item))
  const fields = value as Record<string, Value>
  return { ...fields, [key]: replaced(fields[key]!, rest, by) }
}

const words = [
  ...'y Y yes Yes YES yEs n N no No NO true True TRUE tRUE false False FALSE on On ON off Off OFF oN'.split(
    ' ',
  ),
  ...'null Null NULL nULL ~ 0 1 -1 +1 00 08 010 0o17 0O17 0x1F 0X1f 0xg 0b11 0B11 0b12 -0b1 1_000 _1 1__0 1_'.split(
    ' ',
  ),
  ...'1.5 1. .5 +.5 -.5 .5_0 1.e3 1e3 1E-3 1e 1e999 . .. -. +. - -- .inf -.inf +.inf .Inf .INF .nan -.nan .NaN .iNf'.split(
    ' ',
  ),
  ...'99999999999999999999 18446744073709551615 18446744073709551616 0xFFFFFFFFFFFFFFFF 0xFFFFFFFFFFFFFFFFF -0x8000000000000000'.split(
    ' ',
  ),
  ...'-0x8000000000000001 1:30 2026-01-02 2026-1-2 2026-01-02T03:04:05Z 2026-13-01 = << 1,2 1-2 a:b a#b'.split(
    ' ',
  ),
  ...[
    'a #b',
    '!!str 5',
    '!!str y',
    '!!int 5',
    '!!int x',
    '!!bool y',
    '!!bool 5',
    '!!null x',
    '!!null ~',
    '!!float 1',
    '!other 5',
  ],
  ...[
    '!!binary YWJj',
    '!!binary "YW=="',
    '!!binary Y',
    '!<tag:yaml.org,2002:str> 5',
    '"y"',
    "'y'",
    '|\n    y',
    '>-\n    n',
    '"a',
    "'a",
  ],
]

function* scalarCases(): Generator<KubeconfigCase> {
  for (const word of words) {
    yield written(`server: ${word}`, block({ server: word }))
    yield written(`insecure-skip-tls-verify: ${word}`, block({ insecure: word }))
    yield written(`name: ${word}`, block({ name: word }))
    yield written(`unknown key ${word}`, `${word}: 1\n${block({})}`)
    yield written(`unknown value ${word}`, `x: {a: ${word}}\n${block({})}`)
  }
}

function block({ server = 'https://127.0.0.1:6443', insecure = 'true', name = 'k' }): string {
  return `apiVersion: v1
kind: Config
clusters:
- cluster:
    server: ${server}
    insecure-skip-tls-verify: ${insecure}
  name: ${name}
contexts:
- context:
    cluster: k
    user: u
  name: c
current-context: c
users:
- name: u
  user:
    token: abc
`
}

function* edgeCases(): Generator<KubeconfigCase> {
  const yaml = block({})
  const json = JSON.stringify(replaced(base, ['clusters', '0', 'cluster', 'tls-server-name'], 'kube'))
  const pretty = JSON.stringify(base, null, 2)
  const texts: Record<string, string> = {
    'CR line ends': yaml.replaceAll('\n', '\r'),
    'CR LF line ends': yaml.replaceAll('\n', '\r\n'),
    'LF CR line ends': yaml.replaceAll('\n', '\n\r'),
    'U+0085 for a line end': yaml.replace('\nkind', '\u0085kind'),
    'U+2028 for a line end': yaml.replace('\nkind', '\u2028kind'),
    'U+2029 for a line end': yaml.replace('\nkind', '\u2029kind'),
    'U+0085 in a comment': `# a\u0085b: c\n${yaml}`,
    'a byte order mark': `\ufeff${yaml}`,
    'two byte order marks': `\ufeff\ufeff${yaml}`,
    'a byte order mark before JSON': `\ufeff${json}`,
    'empty apiVersion and kind': yaml.replace('v1', '""').replace('Config', '""'),
    'null apiVersion and kind': yaml.replace('v1', '').replace('Config', '~'),
    'no apiVersion and kind': yaml.replace('apiVersion: v1\nkind: Config\n', ''),
    'apiVersion /v1': yaml.replace('v1', '/v1'),
    'apiVersion /': yaml.replace('v1', '/'),
    'apiVersion v1/': yaml.replace('v1', 'v1/'),
    'apiVersion a/v1': yaml.replace('v1', 'a/v1'),
    'apiVersion a/b/v1': yaml.replace('v1', 'a/b/v1'),
    'apiVersion v2': yaml.replace('v1', 'v2'),
    'kind config': yaml.replace('Config', 'config'),
    'kind Pod': yaml.replace('Config', 'Pod'),
    'CLUSTERS in capitals': yaml.replace('clusters:', 'CLUSTERS:'),
    'Server in capitals': yaml.replace('server:', 'Server:'),
    'an empty text': '',
    'a blank line': '\n',
    'a comment alone': '# nothing\n',
    'a list': '- a\n',
    'a text': 'hello\n',
    'a number': '5\n',
    null: 'null\n',
    '{}': '{}',
    'an empty first document': `---\n---\n${yaml}`,
    'an empty first document with a comment': `---\n# nothing\n---\n${yaml}`,
    'an empty document that ends': `---\n...\n${yaml}`,
    'a document mark': `---\n${yaml}`,
    'a document mark with a comment': `--- # first\n${yaml}`,
    'comments before a document mark': `# one\n\n# two\n---\n${yaml}`,
    'a second document': `${yaml}---\nkind: Pod\n`,
    'a second document that is broken': `${yaml}---\na: [\n`,
    'an end mark and rubbish': `${yaml}...\n]]]\n`,
    'JSON on the mark': `--- ${json}\n`,
    'a second object behind JSON': `${json}\n${json}`,
    'a second object on the line': `${json} {}`,
    'text behind JSON': `${json}\ntrailing\n`,
    'a bracket behind JSON': `${json}}`,
    'a key behind JSON': `${json}\na: b\n`,
    'a document behind JSON': `${json}\n---\na: [\n`,
    'JSON over lines': pretty,
    'JSON with tabs': JSON.stringify(base, null, '\t'),
    'JSON that is cut off': json.slice(0, -2),
    'JSON with a comma at the end': json.replace(/\}$/, ',}'),
    'JSON with \\/': json.replace('//127', '\\/\\/127'),
    'JSON with \\u002f': json.replace('//127', '\\u002f\\u002f127'),
    'JSON with half a surrogate pair': json.replace('"kube"', '"\\ud800"'),
    'JSON with a surrogate pair': json.replace('"kube"', '"\\ud83d\\ude00"'),
    'JSON with \\u0000': json.replace('"kube"', '"\\u0000"'),
    'JSON with \\\\/': json.replace('"kube"', '"\\\\/"'),
    'JSON with U+2028 in a text': json.replace('"kube"', '"a\u2028b"'),
    'JSON with a key twice': json.replace('"kind":', '"kind":"Pod","kind":'),
    'JSON with a comment': `# c\n${json}`,
    'JSON without a space behind colons, over lines': pretty.replaceAll('": ', '":'),
    'a tag of JSON keys in apostrophes': pretty.replaceAll('"', "'"),
    '%YAML 1.1': `%YAML 1.1\n---\n${yaml}`,
    '%YAML 1.2': `%YAML 1.2\n---\n${yaml}`,
    '%YAML 1.10': `%YAML 1.10\n---\n${yaml}`,
    '%TAG': `%TAG ! tag:example.com,2026:\n---\n${yaml}`,
    '%OTHER': `%OTHER x\n---\n${yaml}`,
    '%YAML without a mark': `%YAML 1.1\n${yaml}`,
    'a null key': `~: 1\n${yaml}`,
    'an empty key': `: 1\n${yaml}`,
    'an empty complex key': `? \n: 1\n${yaml}`,
    'a list for a key': `? [a]\n: 1\n${yaml}`,
    'a quoted empty key': `"": 1\n${yaml}`,
    'a key twice': yaml.replace('kind: Config', 'kind: Pod\nkind: Config'),
    'a control character in a comment': `# \u0007\n${yaml}`,
    'NUL in a comment': `# \0\n${yaml}`,
    'DEL in a comment': `# \x7f\n${yaml}`,
    'U+FFFE in a comment': `# \ufffe\n${yaml}`,
    'U+FEFF in a comment': `# a\ufeffb\n${yaml}`,
    'an emoji in a comment': `# \u{1f600}\n${yaml}`,
    'a tab for indentation': yaml.replace('    server', '\tserver'),
    'a tab behind a colon': yaml.replace('server: ', 'server:\t'),
    'a tab at the end': yaml.replace(':6443', ':6443\t'),
    'spaces at the end': yaml.replace(':6443', ':6443   '),
    'no line end at the end': yaml.trimEnd(),
    'a merge before': merged('<<: *a\n    server: https://127.0.0.2'),
    'a merge behind': merged('server: https://127.0.0.2\n    <<: *a'),
    'a merge of two': merged('<<: [*b, *a]'),
    'a merge of two behind': merged('server: https://127.0.0.2\n    <<: [*a, *b]'),
    'a merge of a map': merged('server: https://127.0.0.2\n    <<: {server: "https://127.0.0.3"}'),
    'a merge of a text': merged('<<: x'),
    'a merge of null': merged('<<:'),
    'a merge of an alias to a text': merged('<<: *t'),
    'a merge of a list with a text': merged('<<: [*a, x]'),
    'a quoted merge key': merged('"<<": *a'),
    'a tagged merge key': merged('!!merge <<: *a'),
    'an alias': yaml.replace('token: abc', 'token: &t abc\n- name: v\n  user: {token: *t}'),
    'an alias without an anchor': yaml.replace('abc', '*nothing'),
    'an alias within itself': yaml.replace('- name: u', 'x: &x [*x]\n- name: u'),
    'a self-referring alias': `x: &x [*x]\n${yaml}`,
    'a text over two lines': yaml.replace('token: abc', 'token: abc\n      def'),
    'quotes over two lines': yaml.replace('token: abc', 'token: "abc\n      def"'),
    'quotes over two lines at the margin': yaml.replace('token: abc', 'token: "abc\ndef"'),
    'a list over lines at the margin': `x: [a,\nb]\n${yaml}`,
    'a folded text': yaml.replace('token: abc', 'token: >-\n      abc\n      def'),
    'a literal with a number': yaml.replace('token: abc', 'token: |2\n      abc'),
    'a map in one line': `{clusters: [{name: k, cluster: {server: "https://a"}}]}\n`,
    'a map without a space': `{clusters: [{name: k, cluster: {server:x}}]}\n`,
    'a colon in a plain text': yaml.replace('abc', 'a: b'),
    'a number sign in a plain text': yaml.replace('abc', 'a#b'),
    'an at sign': yaml.replace('abc', '@abc'),
    'a backtick': yaml.replace('abc', '`abc'),
    'a percent sign': yaml.replace('abc', '%abc'),
    'a star': yaml.replace('abc', '*'),
    'an exclamation mark': yaml.replace('abc', '!'),
    'a question mark': yaml.replace('abc', '?'),
    'a dash': yaml.replace('abc', '- abc'),
    'a Windows path': yaml.replace('token: abc', 'client-certificate: C:\\users\\ud800\\/a'),
    'a Windows path in quotes': yaml.replace('token: abc', 'client-certificate: "C:\\users"'),
    'an escape of libyaml': yaml.replace('abc', '"a\\e\\x41\\N\\_\\P"'),
    'an unknown escape': yaml.replace('abc', '"a\\q"'),
  }
  for (const [name, text] of Object.entries(texts)) yield written(name, text)
  const bytes = (name: string, ...parts: readonly (string | readonly number[])[]): KubeconfigCase => ({
    name,
    content: Buffer.concat(parts.map((part) => Buffer.from(part as string))),
  })
  yield bytes('Latin-1 in a comment', '# caf', [0xe9], `\n${yaml}`)
  yield bytes('Latin-1 in a text', yaml.replace('token: abc\n', 'token: abc'), [0xe9], '\n')
  yield bytes('UTF-8 that is cut off', yaml, '# ', [0xe2, 0x82])
  yield bytes('an overlong UTF-8 slash', '# ', [0xc0, 0xaf], `\n${yaml}`)
  yield bytes('a surrogate in UTF-8', '# ', [0xed, 0xa0, 0x80], `\n${yaml}`)
  yield { name: 'UTF-16 LE with a mark', content: Buffer.from(`\ufeff${yaml}`, 'utf16le') }
  yield { name: 'UTF-16 BE with a mark', content: Buffer.from(`\ufeff${yaml}`, 'utf16le').swap16() }
}

function merged(fields: string): string {
  return `x:\n- &a {server: "https://127.0.0.1", tls-server-name: a}\n- &b {server: "https://127.0.0.9"}\n- &t text\nclusters:\n- name: k\n  cluster:\n    ${fields}\n`
}

const exec = {
  command: 'aws',
  apiVersion: 'client.authentication.k8s.io/v1',
  interactiveMode: 'Never',
}
const oidc = { name: 'oidc', config: { 'idp-issuer-url': 'https://127.0.0.1', 'client-id': 'x' } }

function* usabilityCases(): Generator<KubeconfigCase> {
  const users: readonly Value[] = [
    ...[{}, { token: 't' }, { tokenFile: '/nowhere/token' }, { token: 't', tokenFile: '/nowhere/token' }],
    ...[{ username: 'a' }, { password: 'b' }, { username: 'a', password: 'b' }],
    ...[
      { token: 't', username: 'a' },
      { token: 't', password: 'b' },
      { token: '', username: 'a' },
    ],
    ...[
      { as: 'a' },
      { as: 'a', 'as-uid': 'x' },
      { 'as-uid': 'x' },
      { 'as-groups': ['x'] },
      { 'as-groups': [] },
    ],
    ...[{ 'as-user-extra': { a: ['b'] } }, { 'as-user-extra': {} }, { as: '', 'as-uid': 'x' }],
    ...[{ exec }, { exec, 'auth-provider': oidc }, { exec: {} }, { exec: null }, { 'auth-provider': oidc }],
    ...['command', 'apiVersion', 'interactiveMode'].map((field) => ({ exec: { ...exec, [field]: '' } })),
    ...['v1', 'v1beta1', 'v1alpha1', 'v2', 'v1x'].flatMap((version) => {
      const apiVersion = `client.authentication.k8s.io/${version}`
      return [{ exec: { ...exec, apiVersion } }, { exec: { command: 'aws', apiVersion } }]
    }),
    ...['Always', 'IfAvailable', 'Sometimes', 'never'].map((interactiveMode) => ({
      exec: { ...exec, interactiveMode },
    })),
    { exec: { ...exec, env: [{ name: 'A', value: '' }] } },
    { exec: { ...exec, env: [{ value: 'x' }] } },
    { exec: { ...exec, env: [null] } },
    ...['gcp', 'azure', 'openstack', '', 'OIDC', 'constructor'].map((name) => ({
      'auth-provider': { name },
    })),
    ...[{}, { 'client-id': 'x' }, { 'idp-issuer-url': 'https://127.0.0.1' }, null].map((config) => ({
      'auth-provider': { name: 'oidc', config },
    })),
    ...[{ 'auth-provider': {} }, { 'auth-provider': null }],
    ...[{ 'client-certificate': '/nowhere/a.crt' }, { 'client-certificate-data': 'QUJD' }],
    ...[{ 'client-key-data': 'QUJD' }, { 'client-key': '/nowhere/a.key' }],
  ]
  for (const user of users) yield usability(`user ${JSON.stringify(user)}`, user, {})
  const clusters: readonly Value[] = [
    ...[{ server: '' }, { server: null }, { 'certificate-authority': '/nowhere/ca.crt' }],
    ...[
      'http://127.0.0.1:1',
      'https://127.0.0.1',
      'socks5://127.0.0.1',
      'HTTP://127.0.0.1',
      'ftp://127.0.0.1',
    ].map((proxy) => ({ 'proxy-url': proxy })),
    ...['127.0.0.1:3128', 'localhost', '', '//127.0.0.1', 'http:'].map((proxy) => ({ 'proxy-url': proxy })),
  ]
  for (const cluster of clusters)
    yield usability(`cluster ${JSON.stringify(cluster)}`, { token: 't' }, cluster)
}

function usability(name: string, user: Value, cluster: Value): KubeconfigCase {
  const text = JSON.stringify({
    clusters: [{ name: 'k', cluster: { server: 'https://127.0.0.1:6443', ...(cluster as object) } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
  })
  return { ...written(name, text), asksForUsability: true }
}

function* brokenCases(): Generator<KubeconfigCase> {
  const random = seededRandom(20261122)
  const below = (count: number): number => Math.floor(random() * count)
  const inserts = [
    '',
    ' ',
    '\n',
    '  ',
    ':',
    ': ',
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
    ']',
    '{',
    '}',
    ',',
    '---\n',
  ]
  const texts = [block({}), JSON.stringify(base), `# c\n${block({ server: '"https://a" # b' })}`]
  for (let index = 0; index < 1500; index++) {
    let text = texts[below(texts.length)]!
    for (let edits = 1 + below(3); edits > 0; edits--) {
      const at = below(text.length)
      text = text.slice(0, at) + inserts[below(inserts.length)]! + text.slice(at + below(4))
    }
    yield written(`broken ${index}`, text)
  }
}

/** mulberry32 */
function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

function written(name: string, text: string): KubeconfigCase {
  return { name, content: Buffer.from(text) }
}
