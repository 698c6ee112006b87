import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AskedNames, readKubeconfigs, selectContext } from './kubeconfig-files.ts'

// Which cluster and user a set of kubeconfigs selects: kubectl's precedence, and input that client-go rejects.

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kcert-kubeconfigs-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const write = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const oneCluster = (server: string, user = 'token: abc'): string => `apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {server: '${server}', certificate-authority: ca.crt}
users:
- name: u
  user:
    ${user}
contexts:
- name: x
  context: {cluster: c, user: u, namespace: shop}
current-context: x
`

const select = async (files: string[], context?: string, asked: AskedNames = {}) =>
  selectContext(await readKubeconfigs(files, { mustExist: true }), { context, ...asked })

test('uses the first of several entries with one name, and the first current-context', async () => {
  const first = write('first', oneCluster('https://first:6443'))
  const second = write(
    'second',
    `${oneCluster('https://second:6443').replace('current-context: x', 'current-context: z')}`,
  )
  const extra = write(
    'extra',
    'clusters: [{name: c2, cluster: {server: "https://c2"}}]\ncontexts: [{name: z, context: {cluster: c2, user: u}}]\n',
  )
  expect(await select([first, second, extra])).toMatchObject({
    contextName: 'x',
    cluster: { server: 'https://first:6443' },
  })
  const other = await select([second, first, extra])
  expect(other).toMatchObject({ contextName: 'z', cluster: { server: 'https://c2' }, user: { token: 'abc' } })
  expect(other.source).toBe([second, first, extra].join(', '))
})

test('resolves paths relative to the file that contains them', async () => {
  const file = write('paths', oneCluster('https://c', 'tokenFile: tokens/u\n    client-key: /etc/u.key'))
  expect(await select([file])).toMatchObject({
    cluster: { 'certificate-authority': join(folder, 'ca.crt') },
    user: { tokenFile: join(folder, 'tokens/u'), 'client-key': '/etc/u.key' },
    namespace: 'shop',
  })
})

test('finds a credential program next to the kubeconfig, and one without a slash in PATH', async () => {
  const commandOf = async (command: string): Promise<unknown> => {
    const file = write('exec', oneCluster('https://c', `exec: {apiVersion: v1, command: ${command}}`))
    return ((await select([file])).user.exec as { command: string }).command
  }
  expect(await commandOf('./bin/login')).toBe(join(folder, 'bin/login'))
  expect(await commandOf('aws')).toBe('aws')
})

test('skips default files that do not exist', async () => {
  const file = write('there', oneCluster('https://c'))
  const merged = await readKubeconfigs([join(folder, 'absent'), file, write('empty', '')], {
    mustExist: false,
  })
  expect(selectContext(merged, {}).source).toBe(`${file}, ${join(folder, 'empty')}`)
})

test('requires a named file to exist', async () => {
  await expect(select([join(folder, 'absent')])).rejects.toMatchObject({
    code: 'KCERT_FILE_NOT_FOUND',
    next: `ls -l ${join(folder, 'absent')}`,
  })
})

test.each([
  ['a context that is not there', oneCluster('https://c'), 'z', /has no context "z"/, /^its contexts: x$/],
  [
    'no current-context',
    'contexts: [{name: a, context: {}}]',
    undefined,
    /has no current-context/,
    /contexts: a$/,
  ],
  ['an empty file', '', undefined, /has no current-context/, /no contexts at all/],
  [
    'a context without its cluster',
    'contexts: [{name: x, context: {cluster: q, user: u}}]\ncurrent-context: x',
    undefined,
    /has no API server/,
    /no cluster is named "q"/,
  ],
  [
    'a context without its user',
    oneCluster('https://c').replace('user: u,', 'user: w,'),
    undefined,
    /has no user/,
    /no user is named "w"/,
  ],
  [
    'a number for a token',
    oneCluster('https://c', 'token: 1234'),
    undefined,
    /clients reject/,
    /users\[u\]\.token/,
  ],
  ['broken YAML', 'clusters: [', undefined, /is not YAML/, /./],
])('refuses %s with the reason', async (_, text, context, message, why) => {
  const file = write('wrong', text)
  const failure = await select([file], context).catch((error: unknown) => error as Error & { why: string })
  expect(failure).toMatchObject({ code: 'KCERT_KUBECONFIG_UNUSABLE' })
  expect((failure as Error).message).toMatch(message)
  expect((failure as { why: string }).why).toMatch(why)
})

test('uses the cluster and user named on the command line', async () => {
  const file = write(
    'named',
    `${oneCluster('https://c')}`.replace(
      'users:',
      "- {name: c2, cluster: {server: 'https://c2'}}\nusers:\n- {name: u2, user: {token: def}}",
    ),
  )
  expect(await select([file], undefined, { cluster: 'c2', user: 'u2' })).toMatchObject({
    contextName: 'x',
    clusterName: 'c2',
    cluster: { server: 'https://c2' },
    userName: 'u2',
    user: { token: 'def' },
  })
  await expect(select([file], undefined, { cluster: 'none' })).rejects.toMatchObject({
    why: 'no cluster is named "none"',
  })
  await expect(select([file], undefined, { cluster: 'none', server: 'https://d' })).rejects.toMatchObject({
    why: 'no cluster is named "none"',
  })
  await expect(select([file], undefined, { user: 'none' })).rejects.toMatchObject({
    why: 'no user is named "none"',
  })
})

test('needs no context and no kubeconfig when the command line names a server', () => {
  const none = {
    files: [],
    clusters: new Map(),
    users: new Map(),
    contexts: new Map(),
    currentContext: undefined,
  }
  expect(selectContext(none, { server: 'https://d:6443' })).toMatchObject({
    contextName: 'https://d:6443',
    cluster: { server: 'https://d:6443' },
    user: {},
    kubectl: 'kubectl',
  })
})
