import { spawn } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { readPair } from '../../src/kubelet/pair.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { freePort } from '../node/ports.ts'
import { putCluster, requestsKey } from './cluster-session.ts'
import { Daemon } from './daemon.ts'
import { kcertBeside, type Session } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// `kcert kubelet manage` on an API server on loopback. Its kube-controller-manager signs the requests that this test approves.

const folder = temporaryFolder('kubelet-manage')
const at = (name: string): string => join(folder, name)
/** Sorted by the time of the last write. */
const requests = (): RequestObject[] =>
  (server.all(requestsKey) as unknown as RequestObject[]).toSorted(
    (a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion),
  )
let server: FakeApiServer
let approver: NodeJS.Timeout
let decision: 'Approved' | 'Denied' = 'Approved'

beforeAll(async () => {
  server = await startApiServer({
    signer: 'controller',
    tokens: {
      'abcdef.0123456789abcdef': { username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] },
    },
    rules: [{ verbs: ['*'], groups: ['*'], resources: ['*'] }],
  })
  putCluster(server)
  server.writeKubeconfig(at('admin.conf'))
  server.writeKubeconfig(at('bootstrap.conf'), { token: 'abcdef.0123456789abcdef' })
  approver = setInterval(() => {
    for (const object of server.all(requestsKey)) {
      const { status } = object as { status?: { conditions?: unknown } }
      if (status?.conditions !== undefined) continue
      const conditions = [{ type: decision, status: 'True', lastUpdateTime: new Date().toISOString() }]
      server.put(requestsKey, { ...object, status: { conditions } })
    }
  }, 20)
})
afterAll(() => {
  clearInterval(approver)
  return server.close()
})
beforeEach(() => {
  decision = 'Approved'
  rmSync(at('pki'), { recursive: true, force: true })
})
afterEach(() => Daemon.killAll())

const manage = (...args: string[]): Promise<Session> =>
  kcertBeside(['kubelet', 'manage', '--cert-dir', 'pki', ...args], { cwd: folder })
const ci = ['--user', 'ci', '--org', 'builders', '--pair-name', 'ci']
const own = ['--kubeconfig', 'admin.conf']

const current = (name = 'ci') => readPair(readFileSync(at(`pki/${name}-current.pem`)), name)

class Manager extends Daemon {
  constructor(...args: string[]) {
    super(['kubelet', 'manage', '--cert-dir', 'pki', ...args], folder)
  }
}

test('creates a pair from a bootstrap token, and a kubeconfig that references it and is used the next time', async () => {
  const bootstrap = ['--bootstrap-kubeconfig', 'bootstrap.conf', '--kubeconfig', 'ci.conf', '--once']
  const first = await manage(...ci, ...bootstrap, '-o', 'json')
  expect(first.stderr).toContain('ci.conf written')
  expect(first.exit).toBe(0)
  const report = JSON.parse(first.stdout)
  expect(violations('ManagedCertificate', report)).toEqual([])
  expect(report).toMatchObject({
    renewals: 1,
    failures: 0,
    certificate: { subject: { organization: ['builders'] } },
  })
  expect(requests().at(-1)?.spec.username).toBe('system:bootstrap:abcdef')

  const link = at('pki/ci-current.pem')
  expect(lstatSync(link).isSymbolicLink()).toBe(true)
  expect(readlinkSync(link)).toMatch(/\/pki\/ci-\d{4}(-\d\d){5}\.pem$/)
  expect(statSync(link).mode & 0o777).toBe(0o600)
  expect(readFileSync(link, 'utf8')).toMatch(
    /^-----BEGIN CERTIFICATE-----[\s\S]*-----BEGIN EC PRIVATE KEY-----/,
  )
  const kubeconfig = readFileSync(at('ci.conf'), 'utf8')
  expect(kubeconfig).toContain(`client-certificate: ${link}`)
  expect(kubeconfig).toContain(`client-key: ${link}`)

  const before = requests().length
  const second = await manage(...ci, ...bootstrap)
  expect([second.exit, requests().length]).toEqual([0, before])
  const forced = await manage(...ci, ...bootstrap, '--force-renewal')
  expect(forced.exit).toBe(0)
  expect(requests().at(-1)?.spec.username).toBe('ci')
  expect(readdirSync(at('pki')).filter((name) => /\d\.pem$/.test(name))).toHaveLength(2)
})

test('a daemon renews when the file changes and on a signal, runs hooks, updates metrics, and exits cleanly', async () => {
  const template = (dns: string): string =>
    `apiVersion: kcert/v1\nkind: CertificateTemplate\nsubject: {commonName: web}\nsubjectAltNames: {dns: [${dns}]}\n`
  writeFileSync(at('web.yaml'), template('web.shop'))
  // It records each SIGHUP, and runs for at most five minutes.
  const script = `trap 'echo x >> ${at('hups')}' HUP; : > ${at('listening')}; for i in $(seq 3000); do sleep 0.1; done`
  const other = spawn('/bin/sh', ['-c', script])
  Daemon.children.push(other)
  await expect.poll(() => existsSync(at('listening')), { timeout: 120_000 }).toBe(true)
  writeFileSync(at('other.pid'), `${other.pid}\n`)
  const port = await freePort()
  const flags = [
    ...[...own, '--template', 'web.yaml', '--pair-name', 'web', '--metrics-address', `127.0.0.1:${port}`],
    ...['--signer', 'kubernetes.io/kube-apiserver-client', '--usage', 'digital signature,client auth'],
  ]
  const after = [
    '--exec',
    `echo "$KCERT_PAIR" >> ${at('told')}`,
    '--signal',
    'HUP',
    '--pid-file',
    'other.pid',
  ]
  const daemon = new Manager(...flags, ...after)
  await daemon.says(/next renewal at/)
  const second = await manage(...flags)
  expect([second.exit, second.stderr]).toEqual([4, expect.stringContaining('KCERT_LOCKED')])

  writeFileSync(at('web.yaml'), template('web.shop, www.shop'))
  await daemon.says(/next renewal at/, 2)
  expect(current('web').chain[0].subjectAltNames.dns).toEqual(['web.shop', 'www.shop'])
  writeFileSync(at('web.yaml'), 'kind: [')
  await daemon.says(/KCERT_TEMPLATE_INVALID/)
  daemon.send('SIGUSR2')
  await daemon.says(/next renewal at/, 3)

  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  expect(metrics).toContain('kcert_certificate_manager_renewals_total{pair="web"} 3\n')
  expect(metrics).toContain('kcert_certificate_manager_server_healthy{pair="web"} 1\n')
  expect(metrics).toMatch(/not_after_timestamp_seconds\{pair="web"\} \d{10}\n/)
  expect(metrics).toContain('rotation_age_seconds_count{pair="web"} 2\n')

  expect(await daemon.kill('SIGTERM')).toBe(0)
  expect(daemon.stdout).toMatch(/renewals +3, and 0 failed attempts/)
  const link = at('pki/web-current.pem')
  expect(readFileSync(at('told'), 'utf8')).toBe(`${link}\n`.repeat(3))
  await expect.poll(() => existsSync(at('hups')), { timeout: 120_000 }).toBe(true)
  expect(readFileSync(at('hups'), 'utf8')).toMatch(/^(x\n){1,3}$/)
  expect(readdirSync(at('pki')).filter((name) => name.includes('kcert-tmp'))).toEqual([])
})

test("requests the addresses of the Node for a kubelet's serving certificate; a dry run only reports this", async () => {
  const serving = ['--kubelet-serving', 'node-1', ...own]
  const before = requests().length
  const dry = await manage(...serving, '--dry-run', '-o', 'json')
  expect(JSON.parse(dry.stdout)).toMatchObject({ dryRun: true, renewal: { due: 'there is no certificate' } })
  expect([requests().length, existsSync(at('pki'))]).toEqual([before, false])

  const done = await manage(...serving, '--once', '--metrics-file', 'manage.prom')
  expect(done.exit).toBe(0)
  const { chain } = current('kubelet-server')
  const { addresses } = (server.all({ group: '', version: 'v1', resource: 'nodes' })[0] as never as Node)
    .status
  const names = [...chain[0].subjectAltNames.dns, ...chain[0].subjectAltNames.ip]
  expect(new Set(names)).toEqual(new Set(addresses.map(({ address }) => address)))
  expect(readFileSync(at('manage.prom'), 'utf8')).toContain('renewals_total{pair="kubelet-server"} 1')
})

interface Node {
  readonly status: { readonly addresses: readonly { readonly address: string }[] }
}

test('runs the hook at the next start if a crash prevented it', async () => {
  await manage(...ci, ...own, '--once')
  writeFileSync(at('pki/.ci.told'), 'another\n')
  const again = await manage(...ci, ...own, '--once', '--exec', `echo told > ${at('made-good')}`)
  expect([again.exit, readFileSync(at('made-good'), 'utf8')]).toEqual([0, 'told\n'])
})

test('reports a hook that fails after a renewal, and keeps the certificate', async () => {
  const { exit, stderr } = await manage(...ci, ...own, '--once', '--exec', 'echo no such service; exit 5')
  expect(exit).toBe(0)
  expect(stderr).toMatch(/no such service[\s\S]*KCERT_HOOK_FAILED[\s\S]*exited with status 5/)
  expect(current().chain).toHaveLength(1)
})

test('--once exits with 3 on a denial, and with 4 without an API server; nothing is written', async () => {
  decision = 'Denied'
  const denied = await manage(...ci, ...own, '--once')
  expect([denied.exit, denied.stderr]).toEqual([3, expect.stringContaining('is denied')])
  const gone = readFileSync(at('admin.conf'), 'utf8').replace(/https:..[\w.]+:\d+/, 'https://127.0.0.1:1')
  writeFileSync(at('gone.conf'), gone)
  const lost = await manage(...ci, '--kubeconfig', 'gone.conf', '--once')
  expect([lost.exit, lost.stderr]).toEqual([4, expect.stringContaining('KCERT_UNREACHABLE')])
  expect(readdirSync(at('pki')).filter((name) => name.endsWith('.pem'))).toEqual([])
})

test('--once ends at once for a Node without an address, and for a folder that cannot be created', async () => {
  const nobody = await manage('--kubelet-serving', 'nobody', ...own, '--once')
  expect([nobody.exit, nobody.stderr]).toEqual([3, expect.stringContaining('has no IP address')])
  const args = ['kubelet', 'manage', ...ci, ...own, '--cert-dir', '/proc/nowhere/pki', '--once']
  const { exit, stderr } = await kcertBeside(args, { cwd: folder })
  expect([exit, stderr]).toEqual([4, expect.stringContaining('cannot create the folder /proc/nowhere')])
})

test('refuses and keeps a regular file in the place of the link', async () => {
  await manage(...ci, ...own, '--once')
  const text = readFileSync(at('pki/ci-current.pem'), 'utf8')
  rmSync(at('pki/ci-current.pem'))
  writeFileSync(at('pki/ci-current.pem'), text)
  const { exit, stderr } = await manage(...ci, ...own, '--once', '--force-renewal')
  expect([exit, stderr]).toEqual([5, expect.stringContaining('KCERT_PAIR_STORE')])
  expect(readFileSync(at('pki/ci-current.pem'), 'utf8')).toBe(text)
})

describe('is wrong usage:', () => {
  test.each([
    ['no certificate', ['--pair-name', 'x'], 'no subject or SAN given'],
    ['no name for the files', ['--user', 'ci'], '--pair-name is required'],
    ['a name that leaves the folder', ['--user', 'ci', '--pair-name', '../x'], 'is not a file name'],
    ['metrics for everybody', [...ci, '--metrics-address', '0.0.0.0:9464'], 'not a loopback address'],
    ['no such signal', [...ci, '--signal', 'LOUD', '--pid-file', 'x'], 'is not a signal'],
    ['no usages', ['--cn', 'x', '--signer', 'a.b/c', '--pair-name', 'x'], '--usage is required'],
    [
      'a bootstrap for a server',
      ['--kubelet-serving', 'n', '--bootstrap-kubeconfig', 'bootstrap.conf', '--kubeconfig', 'x.conf'],
      'for client certificates',
    ],
  ])('%s', async (_, args, said) => {
    const { exit, stderr } = await manage(...args)
    expect([exit, stderr]).toEqual([2, expect.stringContaining(said)])
  })

  test('does not send a request that its signer would never sign', async () => {
    const before = requests().length
    const { exit, stderr } = await manage('--kubelet-client', 'n', '--usage', 'server auth', ...own)
    expect([exit, stderr]).toEqual([3, expect.stringContaining('KCERT_CSR_SIGNER_REFUSED')])
    expect(requests()).toHaveLength(before)
  })
})
