import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { hiddenCharacters } from '../../src/errors/hidden-text.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { requestPem } from '../csr/made-requests.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { adviceOf, PastingShell } from './advised-commands.ts'
import { folderWithCa, inFolder } from './ca-files.ts'
import { putCluster, putServing } from './cluster-session.ts'
import { kcertBeside, type Session } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Names come from files, API responses and other users, and an operator pastes the advice of a message as root. bash runs each
// line of advice as printed. It must run no part of a name, and a program must receive the name unchanged.

const place = temporaryFolder('hostile-names')
const shell = new PastingShell(place)

const names = [
  'a;touch INJ;.pem',
  'c; touch INJ #',
  '$(touch INJ)',
  '`touch INJ`',
  "it's; touch INJ; '",
  'a\ntouch INJ\n',
  '& touch INJ',
  '> INJ',
  '-rf',
  '--help',
  'a\u2800\u202e\u001b[31m;touch INJ',
]

let server: FakeApiServer

beforeAll(async () => {
  server = await startApiServer()
  putCluster(server)
})
afterAll(() => server.close())

/**
 * Every name is shown unambiguously: none ends a line, moves the cursor, hides or reorders text around it, or becomes an element
 * of a page.
 */
function expectReadable({ stdout, stderr }: Session): void {
  const text = `${stdout}${stderr}`
  expect(text).not.toMatch(/\n\s+at .*\.js/)
  expect(text.replaceAll('\n', '').match(hiddenCharacters())).toBeNull()
  expect(text).not.toMatch(/^touch INJ/m)
  if (text.startsWith('<!')) expect(text).not.toContain('<b>INJ')
}

/** Pastes all advice of a session. `expected` is the word that a program in the advice receives, or the end of one. */
function expectHarmless(session: Session, expected: string): void {
  expectReadable(session)
  const advice = adviceOf(session)
  expect(advice).not.toEqual([])
  const words = advice.flatMap((line) => {
    const { words: got, isInjected } = shell.paste(line)
    expect({ line, isInjected }).toEqual({ line, isInjected: false })
    return got
  })
  const isThere = words.some((word) => word === expected || word.endsWith(expected))
  expect({ advice, words: isThere ? [expected] : words }).toEqual({ advice, words: [expected] })
}

/** Offline sessions: the content stored under the name, and the command that names it. */
const offline: readonly (readonly [
  what: string,
  args: (name: string) => string[],
  put: string | undefined,
])[] = [
  ['a file that is not a certificate', (name) => ['ca', 'bundle', `./${name}`], 'request'],
  ['a certificate without roots', (name) => ['verify', `./${name}`], 'certificate'],
  ['roots without a certificate', (name) => ['verify', 'ca.pem', '--roots', `./${name}`], 'request'],
  ['a missing file in a folder', (name) => ['inspect', `./${name}/absent`], 'folder'],
  ['the key of another CA', (name) => ['ca', 'renew', '--ca', 'ca.pem', '--ca-key', `./${name}`], 'key'],
  ['a kubeconfig as a key', (name) => ['csr', 'create', '--cn', 'x', '--key', `./${name}`], 'kubeconfig'],
  [
    'a kubeconfig without contexts',
    (name) => ['csr', 'list', '--kubeconfig', `./${name}`],
    'empty kubeconfig',
  ],
  ['a kubeconfig without --cluster', (name) => ['inspect', '--kubeconfig', `./${name}`], 'kubeconfig'],
  [
    'output into a missing folder',
    (name) => ['key', 'generate', '--out', `./absent${name}/x.key`],
    undefined,
  ],
  ['a folder that is a file', (name) => ['key', 'generate', '--out', `./${name}/x.key`], 'key'],
  [
    'a kubeconfig as a certificate',
    (name) => ['kubeconfig', 'set-client', `./${name}`, '--cert', `./${name}`, '--key', 'ca-key.pem'],
    'kubeconfig',
  ],
]

test.each(offline)('offline: %s', (_what, args, put) => {
  const made = folderWithCa()
  const run = inFolder(made)
  for (const name of names) {
    const path = join(made, name)
    if (put === 'folder') mkdirSync(path)
    else if (put !== undefined) writeFileSync(path, contentsOf(put, made), { mode: 0o600 })
    const session = run(args(name))
    expectHarmless(session, name)
  }
})

function contentsOf(kind: string, made: string): string {
  switch (kind) {
    case 'certificate':
      return readFileSync(join(made, 'ca.pem'), 'utf8')
    case 'key':
      return generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' }).export({
        format: 'pem',
        type: 'pkcs8',
      }) as string
    case 'kubeconfig':
      return 'apiVersion: v1\nkind: Config\nusers: [{name: u, user: {client-certificate-data: aGVsbG8=, client-key-data: aGVsbG8=}}]\n'
    case 'empty kubeconfig':
      return 'apiVersion: v1\nkind: Config\nusers: [{name: u, user: {}}]\n'
    default:
      return requestPem({ subject: { commonName: 'x' } })
  }
}

test('offline: a FIFO', () => {
  const made = folderWithCa()
  for (const name of names.filter((one) => !one.startsWith('-'))) {
    execFileSync('mkfifo', ['--', join(made, name)])
    const both = openSync(join(made, name), constants.O_RDWR)
    const session = inFolder(made)(['inspect', `./${name}`])
    expectReadable(session)
    expect(session.stderr).toContain('devices, sockets and FIFOs')
    for (const line of adviceOf(session)) expect(shell.paste(line).isInjected).toBe(false)
    closeSync(both)
  }
})

/** Returns a kubeconfig with these names. */
function kubeconfigWith(
  file: string,
  { context, cluster = 'c', user = 'u', server: at = server.url, token }: Readonly<Record<string, string>>,
): string {
  const config = JSON.parse(readFileSync(server.writeKubeconfig(join(place, 'admin.conf')), 'utf8'))
  config.clusters[0].name = cluster
  config.clusters[0].cluster.server = at
  config.users[0].name = user
  if (token !== undefined) config.users[0].user = { token }
  config.contexts[0] = { name: context, context: { cluster, user } }
  config['current-context'] = context
  writeFileSync(join(place, file), JSON.stringify(config), { mode: 0o600 })
  return join(place, file)
}

const asked = (kubeconfig: string, args: readonly string[]) =>
  kcertBeside(args, { cwd: place, env: { KUBECONFIG: kubeconfig } })

test.each(names)('cluster: context %j', async (context) => {
  const kubeconfig = kubeconfigWith('context.conf', { context, token: 'unknown' })
  const session = await asked(kubeconfig, ['csr', 'list'])
  expectHarmless(session, context)
})

test.each(names)('cluster: kubeconfig, user and cluster %j', async (name) => {
  const file = kubeconfigWith(`./${name}`, {
    context: 'x',
    cluster: name,
    user: name,
    server: 'ftp://127.0.0.1',
  })
  expectHarmless(await asked(`${join(place, 'absent')}:${file}`, ['csr', 'list']), name)
})

test('cluster: quotes each of several kubeconfigs separately', async () => {
  const files = names
    .filter((name) => !name.includes(':'))
    .map((name) => kubeconfigWith(`./${name}`, { context: 'x', user: 'u', server: 'ftp://127.0.0.1' }))
  const session = await asked(files.join(':'), ['csr', 'list'])
  for (const file of files) expectHarmless(session, file)
})

test.each(names)('cluster: request %j', async (name) => {
  putServing(server, name)
  const kubeconfig = server.writeKubeconfig(join(place, 'admin.conf'))
  const word = name.startsWith('-') ? `csr/${name}` : name
  for (const args of [
    ['csr', 'explain'],
    ['csr', 'fetch', '--out', 'x.crt'],
  ]) {
    const session = await asked(kubeconfig, [...args, word])
    expectHarmless(session, name)
  }
  // These may print no advice.
  for (const args of [
    ['csr', 'describe'],
    ['csr', 'check', '--cluster'],
  ]) {
    const session = await asked(kubeconfig, [...args, word])
    expectReadable(session)
    for (const line of adviceOf(session)) expect(shell.paste(line)).toMatchObject({ isInjected: false })
  }
})

test.each(names)('cluster: namespace and Secret %j', async (name) => {
  const key = { group: '', version: 'v1', resource: 'secrets', namespace: name } as const
  const data = { 'tls.crt': Buffer.from('no certificate').toString('base64'), 'tls.key': '!' }
  server.put(key, { metadata: { name, namespace: name }, type: 'kubernetes.io/tls', data })
  const kubeconfig = server.writeKubeconfig(join(place, 'admin.conf'))
  const session = await asked(kubeconfig, ['inspect', '--cluster'])
  server.remove(key, name)
  expectReadable(session)
  for (const line of adviceOf(session)) expect(shell.paste(line)).toMatchObject({ isInjected: false })
})

test.each(names)('cluster: node %j', async (name) => {
  const key = { group: '', version: 'v1', resource: 'nodes' } as const
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }]
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: 1 } } }
  server.put(key, { metadata: { name }, status })
  putServing(server, 'csr-node', { username: `system:node:${name}` })
  const kubeconfig = server.writeKubeconfig(join(place, 'admin.conf'))
  for (const args of [
    ['kubelet', 'forecast', '--request-timeout', '2s'],
    ['csr', 'check', '--cluster', 'csr-node'],
    ['csr', 'describe', 'csr-node'],
    ['csr', 'explain', 'csr-node'],
  ]) {
    const session = await asked(kubeconfig, args)
    expectReadable(session)
    for (const line of adviceOf(session)) expect(shell.paste(line)).toMatchObject({ isInjected: false })
  }
  server.remove(key, name)
})

// Names that command lines and file names cannot contain may still be in API responses and files.
const answered = [...names, 'a\u0000\u0007\u009bb', '\u001b]0;INJ\u0007', '\u061c<b>INJ</b>', '\ud800']

test.each([
  [['csr', 'list']],
  [['csr', 'list', '-o', 'wide']],
  [['csr', 'list', '-o', 'json']],
  [['csr', 'list', '-o', 'yaml']],
  [['csr', 'approve', '--policy', 'builtin', '--dry-run']],
  [['inspect', '--cluster']],
  [['inspect', '--cluster', '-o', 'tree']],
  [['inspect', '--cluster', '-o', 'html']],
  [['inspect', '--cluster', '-o', 'prometheus']],
  [['kubelet', 'forecast', '--request-timeout', '2s']],
  [['token', 'list']],
  [['cluster-info', 'show']],
])('names in API responses are readable: %j', async (args) => {
  const cluster = await startApiServer()
  onTestFinished(() => cluster.close())
  putCluster(cluster)
  for (const [index, name] of answered.entries()) {
    putServing(cluster, name, { username: `system:node:${name}`, groups: [name] })
    const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }]
    const nodes = { group: '', version: 'v1', resource: 'nodes' } as const
    cluster.put(nodes, {
      metadata: { name },
      status: { addresses, daemonEndpoints: { kubeletEndpoint: { Port: 1 } } },
    })
    const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
    const data = { 'tls.crt': Buffer.from('no certificate').toString('base64'), 'tls.key': '!' }
    cluster.put(
      { ...secrets, namespace: name },
      { metadata: { name, namespace: name }, type: 'kubernetes.io/tls', data },
    )
    const tokenId = `abcde${String.fromCharCode(97 + index)}`
    const token = { 'token-id': tokenId, 'token-secret': 'x'.repeat(16), description: name, expiration: name }
    cluster.put(
      { ...secrets, namespace: 'kube-system' },
      {
        metadata: { name: `bootstrap-token-${tokenId}`, namespace: 'kube-system' },
        type: 'bootstrap.kubernetes.io/token',
        data: Object.fromEntries(
          Object.entries(token).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
        ),
      },
    )
  }
  const session = await asked(cluster.writeKubeconfig(join(place, 'answers.conf')), args)
  expect(`${session.stdout}${session.stderr}`).toMatch(/INJ|\S/)
  expectReadable(session)
})

test.each(['text', 'wide', 'tree', 'html', 'prometheus', 'json', 'yaml'])(
  'names in files are readable: inspect -o %s',
  (output) => {
    const made = folderWithCa()
    for (const [index, name] of answered.entries()) {
      const cluster = { name, cluster: { server: name, 'certificate-authority': name } }
      const user = { name, user: { 'client-certificate-data': name, exec: { command: name } } }
      const context = { name, context: { cluster: name, user: name } }
      const config = {
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [cluster],
        users: [user],
        contexts: [context],
      }
      writeFileSync(join(made, `${index}.conf`), JSON.stringify({ ...config, 'current-context': name }))
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, namespace: name },
        data: { [name]: name },
      }
      writeFileSync(join(made, `${index}.json`), JSON.stringify(secret))
    }
    for (const name of names) writeFileSync(join(made, name), contentsOf('certificate', made))
    const session = inFolder(made)(['inspect', '.', '-o', output])
    expect(session.stdout).toContain('INJ')
    expectReadable(session)
  },
)

test('refuses an inventory with a hostile node name, so that no runbook contains it', () => {
  const made = folderWithCa()
  for (const name of answered) {
    const nodes = [{ name, role: 'control-plane', ssh: { host: '127.0.0.1' } }]
    writeFileSync(
      join(made, 'kcert.yaml'),
      JSON.stringify({ apiVersion: 'kcert/v1', kind: 'Inventory', nodes }),
    )
    const session = inFolder(made)(['rotate-ca', 'runbook', 'x', '--phase', '2'])
    expect(session).toMatchObject({ exit: 2, stdout: '' })
    expectReadable(session)
  }
})
