import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { formatToken } from '../../src/bootstrap/token.ts'
import { createRequest } from '../../src/x509/issuing.ts'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'
import { writePem } from '../../src/x509/pem.ts'
import { putClusterInfo, putToken, someToken } from '../bootstrap/joining.ts'
import { requestPem } from '../csr/made-requests.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { putCluster, putServing, requestsKey } from './cluster-session.ts'
import { kcert, kcertBeside, type Session } from './program.ts'
import { tracesOf } from './secret-traces.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Keys, tokens and passwords of known bytes are in every place that a command may read, right or wrong. Every command runs in
// every format, with every debug switch, on a cluster that responds, refuses or is unreachable. None of the secrets may appear in
// its output or in a file that is not for keys.

const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
  commands: Record<string, { flags: Record<string, { options?: string[]; helpValue?: string }> }>
}

const at = temporaryFolder('canary')
const password = 'canary-password-correct-horse'
const token = 'canary-token.0123456789abcdef0123456789abcdef'
const wrongToken = 'canary-wrong.fedcba9876543210fedcba9876543210'
const debug = { DEBUG: '*', OCLIF_DEBUG: '1', KCERT_DEBUG: '1', VERBOSE: '1', NODE_DEBUG: '' }
const pair = ['--ca', 'ca.pem', '--ca-key', 'ca-key.pem']
const encrypted = ['--ca', 'enc-ca.pem', '--ca-key', 'enc.key']
const signer = ['--signer', 'example.com/serving', '--usage', 'server auth']
// No node in this inventory is reachable.
const site = ['--inventory', 'kcert.yaml']
let server: FakeApiServer
let traces: string[]

/**
 * Command → command lines, without the format. Each command has at least one valid line, and one with a secret in a wrong place.
 */
const rows: Readonly<Record<string, readonly (readonly string[])[]>> = {
  version: [[], ['--client'], ['-o', 'json']],
  audit: [
    ['.', '--ca', 'ca.pem', '--sa-key', 'key.pem', '--known', '.', '--cluster', '--all'],
    ['key.pem', 'secrets.yaml'],
    ['secrets.yaml', '--ca', 'key.pem'],
    ['secrets.yaml', '--sa-key', 'enc.key'],
    ['secrets.yaml', '--known', 'token.conf', '--known', 'admin.conf'],
  ],
  'audit:policy': [[], ['--check', 'key.pem'], ['--check', 'secrets.yaml']],
  'bootstrap:check': [['node-1'], ['node-1', '--token-id', 'abcdef'], ['node-1', '--token-id', token]],
  'bootstrap:kubeconfig': [
    ['--token-file', 'joining.conf', '--out', 'bootstrap.conf', '--force'],
    ['--token-file', 'joining.conf', '--out', 'bootstrap.conf', '--ca', 'ca.pem', '--force'],
    ['--token-file', 'key.pem', '--out', 'bootstrap.conf', '--force'],
    ['--token-file', 'joining.conf', '--out', '-'],
    ['--token-file', 'joining.conf', '--out', 'b.conf', '--ca', 'key.pem'],
  ],
  'bootstrap:rbac': [[], ['--group', 'key.pem']],
  'ca:bundle': [['ca.pem', '--out', '-'], ['key.pem'], ['secrets.yaml']],
  'ca:init': [
    ['--cn', 'x', '--out', 'new-ca.pem', '--key-out', 'new-ca.key', '--force'],
    ['--cn', 'x', '--key', 'key.pem', '--out', '-'],
    ['--cfssl', 'key.pem', '--out', '-', '--key-out', 'new-ca.key', '--force'],
    ['--cn', 'x', '--key', 'enc.key', '--password-file', 'key.pem', '--out', '-'],
  ],
  'ca:renew': [
    [...pair, '--out', '-'],
    [...encrypted, '--ca-password-file', 'password', '--out', '-'],
    [...encrypted, '--ca-password-file', 'key.pem', '--out', '-'],
    ['--ca', 'key.pem', '--ca-key', 'ca-key.pem', '--out', '-'],
  ],
  'ca:sign': [
    ['a.csr', ...pair, '--profile', 'server', '--out', '-'],
    ['key.pem', ...pair, '--profile', 'server', '--out', '-'],
    ['a.csr', ...pair, '--config', 'key.pem', '--out', '-'],
    ['--csr', 'approved,pending,nobody', ...pair],
    ['--csr-signer', 'example.com/serving', ...encrypted, '--ca-password-file', 'password', '--dry-run'],
  ],
  'cluster-info:pin': [[], ['ca.pem'], ['key.pem'], ['secrets.yaml']],
  'cluster-info:show': [[]],
  'cluster-info:update': [
    ['--ca', 'server-ca.pem', '--ca', 'ca.pem', '--backup', 'none', '--yes'],
    ['--ca', 'server-ca.pem', '--dry-run'],
    ['--ca', 'key.pem', '--yes'],
    ['--ca', 'secrets.yaml', '--yes'],
  ],
  'cluster-info:verify': [[], ['--ca', 'ca.pem'], ['--ca', 'key.pem']],
  completion: [['bash'], ['zsh'], ['fish'], ['kubectl', 'inspect', 'key.pem', ''], ['key.pem']],
  controller: [
    ['--approve', 'key.pem'],
    ['--approve', 'secrets.yaml', '--log-format', 'json'],
    ['--approve', 'builtin', '--listen', 'key.pem'],
    [],
  ],
  'controller:check': [
    ['--approve', 'builtin'],
    ['--approve', 'key.pem'],
    ['--approve', 'secrets.yaml'],
  ],
  'controller:manifest': [
    ['--approve', 'key.pem', '--image', 'x'],
    ['--approve', 'secrets.yaml', '--image', 'x'],
    ['--approve', 'builtin', '--image', 'x', '--api-server-port', 'key.pem'],
  ],
  'csr:approve': [
    ['pending', 'nobody', '--dry-run'],
    ['--policy', 'builtin'],
    ['pending', '--message', 'by a test'],
    ['--policy', 'key.pem'],
    ['-f', 'secrets.yaml'],
    ['-f', 'key.pem'],
  ],
  'csr:check': [
    ['a.csr', ...signer],
    ['key.pem', ...signer],
    ['a.csr', ...signer, '--policy', 'secrets.yaml'],
    ['a.csr', ...signer, '--nodes', 'secrets.yaml'],
    ['secrets.yaml'],
    ['csr/pending'],
  ],
  'csr:create': [
    ['--cn', 'x', '--key', 'key.pem', '--out', 'made.csr', '--force'],
    ['--cn', 'x', '--key-out', 'made.key', '--out', 'made.csr', '--force'],
    ['--cn', 'x', '--key', 'enc.key', '--password-file', 'password', '--out', '-'],
    ['--cn', 'x', '--key', 'enc.key', '--password-file', 'key.pem', '--out', '-'],
    ['--cfssl', 'key.pem', '--key-out', 'made.key', '--out', 'made.csr', '--force'],
  ],
  'csr:deny': [['pending', '--dry-run'], ['--policy', 'key.pem'], ['denied'], ['-f', 'secrets.yaml']],
  'csr:describe': [['pending', 'issued'], ['nobody'], ['secrets.yaml']],
  'csr:explain': [['pending'], ['approved'], ['nobody']],
  'csr:fetch': [
    ['issued', '--key', 'key.pem', '--out', 'fetched.crt', '--force'],
    ['issued', '--key', 'key.pem', '--kubeconfig-out', 'fetched.conf', '--force'],
    ['issued', '--key', 'enc.key', '--password-file', 'password'],
    ['issued', '--key', 'enc.key', '--password-file', 'key.pem'],
    ['issued', '--key', 'secrets.yaml'],
    ['pending', '--key', 'key.pem'],
    ['issued', 'pending', 'nobody', '--out-dir', 'certs'],
    ['--signer', 'example.com/serving', '--ca', 'key.pem', '--out-dir', 'certs'],
  ],
  'csr:list': [[], ['--signer', 'example.com/serving']],
  'csr:request': [
    [
      ...['--user', 'ann', '--key-out', 'ann.key', '--out', 'ann.crt', '--kubeconfig-out', 'ann.conf'],
      ...['--wait', '1s', '--force'],
    ],
    ['--user', 'ann', '--key', 'key.pem', '--out', 'ann.crt', '--wait', '1s', '--force'],
    ['--user', 'ann', '--key', 'secrets.yaml', '--out', 'ann.crt', '--wait', '1s', '--force'],
  ],
  'csr:submit': [
    ['a.csr', ...signer, '--name', 'submitted'],
    ['a.csr', ...signer, '--dry-run'],
    ['key.pem', ...signer],
    ['secrets.yaml'],
  ],
  'explain-error': [
    ['key.pem'],
    ['secrets.yaml'],
    ['token.conf'],
    [`Authorization: Bearer ${token} https://${token}@192.0.2.1 password=${password} tls: bad certificate`],
  ],
  'fleet:inspect': [
    ['admin.conf', 'token.conf', 'wrong.conf', 'away.conf', '--deadline', '3s'],
    ['.', '--deadline', '3s'],
    ['key.pem', 'secrets.yaml'],
    ['--from', 'cluster-api,argocd', '--deadline', '3s'],
    ['--from', 'clusterprofile', '--clusterprofile-provider-file', 'secrets.yaml'],
  ],
  'fleet:probe': [
    ['admin.conf', 'token.conf', 'away.conf', '--api-servers', '--timeout', '1s', '--deadline', '3s'],
    ['key.pem', 'secrets.yaml'],
  ],
  'fleet:status': [
    ['admin.conf', 'wrong.conf', '--deadline', '3s'],
    ['key.pem', 'secrets.yaml'],
  ],
  inspect: [
    ['--cluster'],
    ['.'],
    ['key.pem', 'secrets.yaml', 'admin.conf', 'token.conf'],
    ['enc.key', '--password-file', 'password'],
    ['enc.key', '--password-file', 'key.pem'],
  ],
  'key:generate': [
    ['--out', 'generated.key', '--force'],
    ['--out', 'generated.key', '--password-file', 'password', '--force'],
    ['--out', 'key.pem'],
  ],
  'kubelet:forecast': [['--node', 'nobody'], ['.'], ['key.pem', 'secrets.yaml']],
  'kubelet:manage': [
    ['--user', 'ann', '--cert-dir', 'pairs', '--pair-name', 'ann', '--dry-run'],
    ['--template', 'secrets.yaml', ...signer, '--cert-dir', 'pairs', '--pair-name', 'ann', '--once'],
    ['--template', 'key.pem', ...signer, '--cert-dir', 'pairs', '--pair-name', 'ann', '--once'],
    ['--user', 'ann', '--cert-dir', '.', '--pair-name', 'ca-key', '--metrics-file', 'key.pem', '--once'],
  ],
  probe: [
    ['127.0.0.1:1', '--ca', 'ca.pem', '--timeout', '1s'],
    ['127.0.0.1:1', '--ca', 'key.pem'],
    ['127.0.0.1:1', '--client-certificate', 'key.pem', '--timeout', '1s'],
    ['127.0.0.1:1', '--client-certificate', 'ca.pem', '--client-key', 'ca-key.pem', '--timeout', '1s'],
    ['--api-servers', '--timeout', '1s'],
    [...site, '--timeout', '1s'],
    ['--inventory', 'secrets.yaml'],
  ],
  'kubeconfig:create': [
    ['--csr', 'issued', '--key', 'key.pem', '--out', 'created.conf', '--force'],
    ['--user', 'a', '--token-file', 'joining.conf', '--out', 'created.conf', '--force', '--verify'],
    ['--user', 'a', '--token-file', 'secrets.yaml', '--out', 'created.conf', '--force'],
    ['--cert', 'key.pem', '--key', 'key.pem', '--out', 'created.conf', '--force'],
    ['--user', 'a', '--token-file', 'joining.conf', '--out', '-'],
  ],
  'kubeconfig:set-ca': [
    ['edited.conf', '--ca', 'ca.pem', '--verify'],
    ['edited.conf', '--ca', 'key.pem'],
    ['key.pem', '--ca', 'ca.pem'],
    ['secrets.yaml', '--ca', 'ca.pem', '--dry-run'],
  ],
  'kubeconfig:set-client': [
    ['edited.conf', '--cert', 'ca.pem', '--key', 'ca-key.pem'],
    ['edited.conf', '--cert', 'ca.pem', '--key', 'ca-key.pem', '--by-path', '--dry-run'],
    ['edited.conf', '--cert', 'ca.pem', '--key', 'key.pem'],
    ['edited.conf', '--cert', 'key.pem', '--key', 'secrets.yaml'],
  ],
  'kubelet:doctor': [
    ['--root', 'tree'],
    ['--root', 'tree', '--fix', '--yes'],
    ['--root', 'tree', '--fix'],
    ['--inventory', 'secrets.yaml'],
    [...site],
  ],
  renew: [
    [...site, '--all', '--yes'],
    ['--inventory', 'secrets.yaml'],
    ['--inventory', 'key.pem', 'apiserver'],
  ],
  'rotate-ca': [
    [...site],
    [...site, '--phase', '1', '--yes'],
    [...site, '--phase', '1', '--dry-run', '--ca-cert', 'ca.pem', '--ca-key', 'ca-key.pem'],
    ['--inventory', 'key.pem'],
    ['--inventory', 'secrets.yaml'],
    [...site, '--journal', 'key.pem'],
    [...site, '--phase', '1', '--yes', '--ca-cert', 'key.pem', '--ca-key', 'secrets.yaml'],
    [...site, '--destroy-old-key', '--yes'],
    [...site, '--archive-old-key', 'key.pem', '--yes'],
  ],
  'rotate-ca:discover': [
    ['--access', 'command:false', '--dry-run'],
    ['--access', 'command:false', '--out', 'key.pem'],
  ],
  'rotate-ca:plan': [[...site], ['--inventory', 'secrets.yaml'], [...site, '--sources', '.']],
  'rotate-sa-key': [
    [...site],
    [...site, '--phase', '1', '--yes', '--accept-untested-version', '1.36'],
    ['--inventory', 'key.pem'],
    ['--inventory', 'secrets.yaml', '--phase', '1', '--yes'],
    [...site, '--journal', 'key.pem'],
  ],
  'rotate-sa-key:rollback': [
    [...site, '--yes'],
    ['--inventory', 'secrets.yaml', '--to', '0', '--yes'],
  ],
  'rotate-sa-key:verify': [[...site], ['--inventory', 'key.pem'], [...site, '--journal', 'secrets.yaml']],
  'rotate-sa-key:status': [[...site], ['--inventory', 'key.pem'], [...site, '--journal', 'secrets.yaml']],
  'rotate-sa-key:runbook': [
    ['scripts', ...site, '--phase', '1'],
    ['key.pem', ...site, '--phase', '1'],
    ['scripts', ...site, '--phase', '1', '--journal', 'secrets.yaml'],
  ],
  'rotate-sa-key:plan': [[...site], [...site, '--reason', 'compromise'], ['--inventory', 'secrets.yaml']],
  'rotate-ca:recover': [
    [...site, '--dry-run'],
    ['--inventory', 'secrets.yaml', '--yes'],
  ],
  'rotate-ca:rollback': [
    [...site, '--yes'],
    [...site, '--dry-run', '--journal', 'secrets.yaml'],
  ],
  'rotate-ca:runbook': [
    ['scripts', ...site, '--phase', '1'],
    ['key.pem', ...site, '--phase', '1'],
  ],
  'rotate-ca:status': [[...site], [...site, '--journal', 'key.pem']],
  'rotate-ca:verify': [
    [...site, '--soak', '1s'],
    [...site, '--evidence', 'key.pem'],
  ],
  'token:check': [['abcdef'], ['--token-file', 'joining.conf'], ['--token-file', 'key.pem']],
  'token:create': [
    ['--out', 'join.conf', '--force'],
    ['--token-file', 'joining.conf', '--out', 'join.conf', '--force'],
    ['--token-file', 'key.pem'],
    ['--token-file', 'secrets.yaml', '--dry-run'],
  ],
  'token:delete': [['abcdef'], ['--expired', '--dry-run'], [token]],
  'token:list': [[]],
  verify: [
    ['ca.pem', '--roots', 'ca.pem'],
    ['key.pem', '--roots', 'ca.pem'],
    ['ca.pem', '--roots', 'secrets.yaml'],
  ],
}

/** Files for secrets: those in the folder before the run, and those that a command line names. */
const isForSecrets = (name: string): boolean =>
  /\.(?:key|conf|bak)$|-?key\.pem$|^kubelet-client-.*\.pem$|^password$|^secrets\.yaml$/.test(name)

beforeAll(async () => {
  const local = (args: readonly string[]): void => {
    const { exit, stderr } = kcert(args, { cwd: at })
    if (exit !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
  }
  writeFileSync(join(at, 'password'), `${password}\n`)
  local(['key', 'generate', '--out', 'key.pem'])
  local(['key', 'generate', '--out', 'enc.key', '--password-file', 'password'])
  local(['ca', 'init', '--cn', 'canary', '--out', 'ca.pem', '--key-out', 'ca-key.pem'])
  const withPassword = ['--key', 'enc.key', '--password-file', 'password', '--out', 'enc-ca.pem']
  local(['ca', 'init', '--cn', 'canary', ...withPassword])
  local(['csr', 'create', '--cn', 'a', '--key', 'key.pem', '--out', 'a.csr'])
  mkdirSync(join(at, 'tree/var/lib/kubelet/pki'), { recursive: true })
  const store = ['ca.pem', 'key.pem'].map((name) => readFileSync(join(at, name), 'utf8'))
  writeFileSync(join(at, 'tree/var/lib/kubelet/pki/kubelet-client-current.pem'), store.join(''))
  const access = { by: 'command', argv: ['false'] }
  const node = { name: 'cp1', role: 'control-plane', addresses: ['192.0.2.1'], layout: 'kubeadm', access }
  const inventory = { apiVersion: 'kcert/v1', kind: 'Inventory', nodes: [node] }
  writeFileSync(join(at, 'kcert.yaml'), JSON.stringify(inventory))
  const text = (name: string): string => readFileSync(join(at, name), 'utf8')
  const data = { 'tls.key': text('key.pem'), token, password }
  writeFileSync(
    join(at, 'secrets.yaml'),
    JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'canary' }, stringData: data }),
  )
  traces = [
    ...tracesOf(text('key.pem')),
    ...tracesOf(text('ca-key.pem')),
    ...tracesOf(text('enc.key'), password),
    password,
    token,
    wrongToken,
    Buffer.from(token).toString('base64').slice(0, 24),
    Buffer.from(password).toString('base64').slice(0, 24),
  ]
})

beforeEach(async () => {
  await server?.close()
  server = await startApiServer({
    tokens: { [token]: { username: 'canary', groups: ['system:masters'] } },
    signer: 'controller',
  })
  putCluster(server)
  const joining = someToken()
  putToken(server, joining)
  putClusterInfo(server, [joining])
  writeFileSync(join(at, 'server-ca.pem'), server.caPem)
  writeFileSync(join(at, 'joining.conf'), formatToken(joining))
  const conditions = (type: string) => ({ status: { conditions: [{ type, status: 'True' }] } })
  const own = { signerName: 'example.com/serving' }
  putServing(server, 'pending')
  putServing(server, 'approved', own, conditions('Approved'))
  putServing(server, 'denied', own, conditions('Denied'))
  const { keyObject } = readPrivateKeyFile(readFileSync(join(at, 'key.pem')))
  const der = createRequest({ subject: { commonName: 'ann' } }, keyObject!)
  const request = Buffer.from(writePem('CERTIFICATE REQUEST', der)).toString('base64')
  const user = { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'], username: 'ann' }
  putServing(server, 'issued', { ...user, request }, conditions('Approved'))
  putServing(server, 'foreign', {
    ...own,
    request: Buffer.from(requestPem({ subject: {} })).toString('base64'),
  })
  const held = { 'tls.key': readFileSync(join(at, 'key.pem'), 'utf8'), token, password }
  server.put(
    { group: '', version: 'v1', resource: 'secrets', namespace: 'default' },
    {
      metadata: { name: 'held', namespace: 'default' },
      data: Object.fromEntries(
        Object.entries(held).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
      ),
    },
  )
  server.writeKubeconfig(join(at, 'admin.conf'))
  server.writeKubeconfig(join(at, 'edited.conf'))
  server.writeKubeconfig(join(at, 'token.conf'), { token })
  server.writeKubeconfig(join(at, 'wrong.conf'), { token: wrongToken })
  server.writeKubeconfig(join(at, 'away.conf'), { token }, { server: 'https://127.0.0.1:9' })
  // As if it came from an administrator's key.
  const admin = JSON.parse(readFileSync(join(at, 'admin.conf'), 'utf8'))
  const pem = Buffer.from(admin.users[0].user['client-key-data'], 'base64').toString()
  traces = [
    ...traces,
    ...tracesOf(pem),
    admin.users[0].user['client-key-data'].slice(60, 84),
    joining.secret,
    Buffer.from(joining.secret).toString('base64').slice(0, 20),
  ]
})
afterAll(() => server?.close())

test('has rows for every command of the program', () => {
  expect(Object.keys(manifest.commands).filter((id) => !(id in rows))).toEqual([])
})

test('finds the traces in a printed file', () => {
  for (const name of ['key.pem', 'ca-key.pem', 'password', 'secrets.yaml', 'admin.conf', 'token.conf'])
    expect(leaksIn(readFileSync(join(at, name), 'utf8')), name).not.toEqual([])
})

function leaksIn(text: string): string[] {
  return traces.filter((trace) => text.includes(trace))
}

async function expectSilent(args: readonly string[], kubeconfig: string, env = {}): Promise<Session> {
  const session = await kcertBeside(args, { cwd: at, env: { ...env, KUBECONFIG: join(at, kubeconfig) } })
  const line = `${args.join(' ')} (${kubeconfig})`
  // A key that this run created is as secret as the existing ones.
  const madeKeys = readdirSync(at).filter((name) => /^(?:made|generated|ann|new-ca)\.key$/.test(name))
  const made = madeKeys.flatMap((name) => tracesOf(readFileSync(join(at, name), 'utf8'), password))
  const shown = session.stdout + session.stderr
  expect(leaksIn(shown), line).toEqual([])
  expect(
    made.filter((trace) => shown.includes(trace)),
    line,
  ).toEqual([])
  // Exit code 1 is a defect, except as a warning of Nagios' plugins.
  const exits = args.includes('nagios') ? [0, 1, 2, 3] : [0, 2, 3, 4, 5, 6]
  expect(exits, `${line}: ${session.stderr}`).toContain(session.exit)
  return session
}

test.each(Object.keys(manifest.commands))(
  'kcert %s shows no secret with any arguments or failure',
  async (id) => {
    const command = id.split(':')
    const { flags } = manifest.commands[id]!
    const formats = flags.output?.options ?? []
    const isForClusters = 'kubeconfig' in flags
    for (const [index, args] of (rows[id] ?? []).entries()) {
      const configs = isForClusters ? ['admin.conf', 'token.conf'] : ['admin.conf']
      for (const [turn, format] of (formats.length > 0 ? formats : [undefined]).entries()) {
        const line = [...command, ...args, ...(format === undefined ? [] : ['-o', format])]
        await expectSilent(line, configs[turn % configs.length]!, turn % 2 === 0 ? debug : {})
      }
      if (!isForClusters) continue
      await expectSilent([...command, ...args], 'wrong.conf', debug)
      if (index === 0)
        await expectSilent([...command, ...args, '--request-timeout', '2s'], 'away.conf', debug)
    }
    await expectSilent([...command, '--no-such-flag', 'key.pem'], 'admin.conf', debug)
    await expectSilent([...command, '--help'], 'admin.conf', debug)
    for (const entry of readdirSync(at, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || isForSecrets(entry.name)) continue
      expect(leaksIn(readFileSync(join(entry.parentPath, entry.name), 'latin1')), entry.name).toEqual([])
    }
  },
  1_800_000,
)

test('passes no secret in the arguments and environment of the command that runs after a renewal', async () => {
  const hook = join(at, 'hook.sh')
  const script = `{ tr '\\0' '\\n' </proc/$PPID/cmdline; tr '\\0' '\\n' </proc/$$/cmdline; tr '\\0' '\\n' </proc/$PPID/environ; env; } >"${at}/hook.txt"\n`
  writeFileSync(hook, `#!/bin/sh\n${script}`, { mode: 0o700 })
  const signed = setInterval(() => approveAll(), 20)
  try {
    const line = [
      'kubelet',
      'manage',
      '--user',
      'ann',
      '--cert-dir',
      'hooked',
      '--pair-name',
      'ann',
      '--once',
    ]
    const { exit, stderr } = await expectSilent([...line, '--exec', hook], 'token.conf', debug)
    expect(exit, stderr).toBe(0)
  } finally {
    clearInterval(signed)
  }
  const seen = readFileSync(join(at, 'hook.txt'), 'utf8')
  expect(seen).toContain('KCERT_PAIR_FILE=')
  const pair = readFileSync(join(at, 'hooked/ann-current.pem'), 'utf8')
  const key = pair.slice(pair.search(/-----BEGIN [A-Z ]*PRIVATE KEY/))
  expect([...leaksIn(seen), ...tracesOf(key).filter((trace) => seen.includes(trace))]).toEqual([])
})

function approveAll(): void {
  for (const object of server.all(requestsKey)) {
    const { status } = object as { status?: { conditions?: unknown } }
    const conditions = [{ type: 'Approved', status: 'True', lastUpdateTime: new Date().toISOString() }]
    if (status?.conditions === undefined) server.put(requestsKey, { ...object, status: { conditions } })
  }
}

test.each([
  ['ca', 'sign', 'a.csr', ...pair, '--profile', 'server', '--out', 'crash.crt'],
  ['ca', 'init', '--cn', 'x', '--key', 'enc.key', '--password-file', 'password', '--out', 'crash.crt'],
  ['csr', 'create', '--cn', 'x', '--key-out', 'crash.key', '--out', 'crash.csr'],
  ['kubeconfig', 'create', '--user', 'a', '--token-file', 'joining.conf', '--out', 'crash.conf'],
])("a crash of kcert %s %s writes no secret into Node's report", async (...line) => {
  const reports = join(at, 'reports')
  rmSync(reports, { recursive: true, force: true })
  mkdirSync(reports)
  // It crashes when keys, passwords and tokens are in its memory: when it changes the owner of its first file.
  const preload = join(at, 'crash.cjs')
  writeFileSync(
    preload,
    `const fs = require('node:fs')
fs.fchmodSync = () => { setImmediate(() => { throw new Error('a defect') }); throw new TypeError('another') }
require('node:module').syncBuiltinESMExports()`,
  )
  const options = `--require ${preload} --report-uncaught-exception --report-directory=${reports}`
  const session = await kcertBeside(line, {
    cwd: at,
    env: { ...debug, NODE_OPTIONS: options, KUBECONFIG: join(at, 'admin.conf') },
  })
  expect(session.exit, session.stderr).not.toBe(0)
  const written = readdirSync(reports).map((name) => readFileSync(join(reports, name), 'utf8'))
  expect(written).toHaveLength(1)
  expect([session.stdout, session.stderr, ...written].flatMap(leaksIn)).toEqual([])
})
