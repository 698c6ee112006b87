import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatToken, parseToken } from '../../src/bootstrap/token.ts'
import { clusterInfoData, putClusterInfo, putToken, someToken } from '../bootstrap/joining.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import type { FakeUser } from '../fakes/api-server-access.ts'
import { kcertBeside, type Session } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Sessions of an operator who joins nodes to a cluster: cluster-info and tokens, in whole-program runs.

const at = temporaryFolder('joining')
const tokens: Record<string, FakeUser> = {}
const token = someToken()
let server: FakeApiServer

beforeAll(async () => {
  server = await startApiServer({
    tokens,
    rules: [
      { user: 'system:anonymous', verbs: ['get'], groups: [''], resources: ['configmaps'] },
      {
        group: 'system:bootstrappers:kubeadm:default-node-token',
        verbs: ['*'],
        groups: ['certificates.k8s.io'],
        resources: ['certificatesigningrequests', 'certificatesigningrequests/nodeclient'],
      },
      {
        group: 'system:nodes',
        verbs: ['create'],
        groups: ['certificates.k8s.io'],
        resources: ['certificatesigningrequests/selfnodeclient'],
      },
      {
        group: 'system:bootstrappers:kubeadm:default-node-token',
        verbs: ['get'],
        groups: [''],
        resources: ['configmaps', 'nodes'],
      },
    ],
  })
  tokens[formatToken(token)] = {
    username: `system:bootstrap:${token.id}`,
    groups: ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token'],
  }
  putToken(server, token)
  putClusterInfo(server, [token])
  server.writeKubeconfig(join(at, 'admin.conf'))
  writeFileSync(join(at, 'token'), `${formatToken(token)}\n`, { mode: 0o600 })
  writeFileSync(join(at, 'ca.crt'), server.caPem)
})
afterAll(() => server?.close())

function kcert(args: readonly string[], stdin = ''): Promise<Session> {
  return kcertBeside(args, { cwd: at, stdin, env: { KUBECONFIG: join(at, 'admin.conf') } })
}

async function report(args: readonly string[], kind: string, exit = 0): Promise<Record<string, unknown>> {
  const session = await kcert([...args, '-o', 'json'])
  expect([session.exit, session.stderr], args.join(' ')).toEqual([exit, ''])
  const document = JSON.parse(session.stdout) as Record<string, unknown>
  expect(violations(kind, document)).toEqual([])
  return document
}

test('prints a new token only on standard output of create', async () => {
  const { exit, stdout, stderr } = await kcert(['token', 'create', '--ttl', '2h', '--description', 'rack 12'])
  expect(exit).toBe(0)
  const [, text = ''] = /^kubeadm join \S+ --token (\S+) --discovery-token-ca-cert-hash sha256:\S+\n$/.exec(
    stdout,
  )!
  const made = parseToken(text)
  expect(stderr).toContain(`token        ${made.id} created`)
  expect(stderr).not.toContain(made.secret)
  const others = [
    await kcert(['token', 'list', '-o', 'json']),
    await kcert(['token', 'check', made.id, '-o', 'yaml']),
    await kcert(['token', 'delete', text]),
  ]
  for (const session of others) expect(session.stdout + session.stderr).not.toContain(made.secret)
  expect(others[2]!.stdout).toBe(`token ${made.id}  deleted\n`)
})

test('writes the token only to a file of mode 0600 with --out', async () => {
  const made = await report(['token', 'create', '--out', 'join.sh'], 'CreatedToken')
  expect(made).not.toHaveProperty('token')
  expect(made).not.toHaveProperty('joinCommand')
  expect(statSync(join(at, 'join.sh')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(at, 'join.sh'), 'utf8')).toMatch(
    new RegExp(`^kubeadm join \\S+ --token ${String(made.id)}\\.[a-z0-9]{16} `),
  )
  expect((await kcert(['token', 'create', '--out', 'join.sh'])).exit).toBe(5)
  // No signer signs cluster-info for it here.
  expect((await kcert(['token', 'delete', String(made.id)])).exit).toBe(0)
})

test('deletes a token whose secret cannot be written', async () => {
  const before = (await kcert(['token', 'list', '-o', 'name'])).stdout
  expect((await kcert(['token', 'create', '--out', 'no/such/folder'])).exit).toBe(4)
  expect((await kcert(['token', 'list', '-o', 'name'])).stdout).toBe(before)
})

test('a dry run contacts the API server and creates no token', async () => {
  const made = await report(['token', 'create', '--dry-run'], 'CreatedToken')
  expect(made).toMatchObject({ outcome: 'would-create' })
  expect(made).not.toHaveProperty('token')
  const { tokens: listed } = await report(['token', 'list'], 'TokenList')
  expect((listed as { id: string }[]).map(({ id }) => id)).not.toContain(made.id)
})

test('reports that a node can join with a token, given by ID or in full', async () => {
  expect(await report(['token', 'check', token.id], 'TokenCheck')).toMatchObject({ verdict: 'ok' })
  const whole = await report(['token', 'check', '--token-file', 'token'], 'TokenCheck')
  expect(whole).toMatchObject({ verdict: 'ok' })
  expect((whole.checks as { id: string }[]).map(({ id }) => id)).toContain('secret')
})

test('distinguishes a mistyped token from a missing one', async () => {
  const mistyped = formatToken({ ...token, secret: 'aaaaaaaaaaaaaaaa' })
  const { exit, stdout } = await kcert(['token', 'check', '--token-file', '-'], mistyped)
  expect(exit).toBe(3)
  expect(stdout).toMatch(/NO {2}secret/)
  const onTheLine = await kcert(['token', 'check', mistyped])
  expect(onTheLine.stdout).toBe(stdout)
  expect(onTheLine.stderr).toMatch(/^note: .*use --token-file instead\n$/)
  expect(onTheLine.stdout + onTheLine.stderr).not.toContain('aaaaaaaaaaaaaaaa')
  const absent = await report(['token', 'check', 'zzzzzz'], 'TokenCheck', 3)
  expect(absent.checks).toMatchObject([{ id: 'exists', outcome: 'failed' }])
})

test('verifies a bootstrap kubeconfig by signature and CA cert hash, by a kubeconfig, and by server and CA alone', async () => {
  const args = ['bootstrap', 'kubeconfig', '--token-file', 'token', '--ca', 'ca.crt']
  const written = await report([...args, '--out', 'bootstrap-kubelet.conf'], 'BootstrapKubeconfig')
  expect(written).toMatchObject({ server: server.url, tokenId: token.id })
  expect(JSON.stringify(written)).not.toContain(token.secret)
  expect(statSync(join(at, 'bootstrap-kubelet.conf')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(at, 'bootstrap-kubelet.conf'), 'utf8')).toContain(formatToken(token))
  const place = ['--server', `127.0.0.1:${server.port}`]
  const alone = await report([...args, ...place, '--out', 'other.conf'], 'BootstrapKubeconfig')
  expect(alone.verification).toHaveLength(3)
  expect(readFileSync(join(at, 'other.conf'), 'utf8')).toBe(
    readFileSync(join(at, 'bootstrap-kubelet.conf'), 'utf8'),
  )
})

test.each<[string, string[], string, number]>([
  ['another pin', ['--token-file', 'token', '--pin', `sha256:${'0'.repeat(64)}`], '', 3],
  ['a token of another cluster', ['--token-file', '-'], 'abcdef.0123456789abcdef', 3],
  ['a mistyped token', ['--token-file', '-'], `${token.id}.aaaaaaaaaaaaaaaa`, 3],
  ['a place without a pin', ['--token-file', 'token', '--server', '127.0.0.1:6443'], '', 2],
])('%s creates no bootstrap kubeconfig', async (_, args, stdin, exit) => {
  const {
    exit: code,
    stdout,
    stderr,
  } = await kcert(['bootstrap', 'kubeconfig', ...args, '--out', 'never.conf'], stdin)
  expect([code, stdout]).toEqual([exit, ''])
  expect(stderr).not.toMatch(/0123456789abcdef|aaaaaaaaaaaaaaaa/)
})

test('a node without certificates stopped at its request; a running one has completed its bootstrap', async () => {
  const waiting = await report(['bootstrap', 'check', 'node-7'], 'BootstrapProgress', 3)
  expect(waiting).toMatchObject({ verdict: 'stopped', stoppedAt: 'request' })
  const { stdout } = await kcert(['bootstrap', 'check', 'node-7'])
  expect(stdout).toContain('stopped at step 7, request')
  server.put(
    { group: '', version: 'v1', resource: 'nodes' },
    {
      metadata: { name: 'node-8' },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    },
  )
  server.put(
    { group: 'storage.k8s.io', version: 'v1', resource: 'csinodes' },
    { metadata: { name: 'node-8' } },
  )
  server.put(
    { group: 'coordination.k8s.io', version: 'v1', resource: 'leases', namespace: 'kube-node-lease' },
    {
      metadata: { name: 'node-8' },
      spec: { renewTime: new Date().toISOString(), leaseDurationSeconds: 600 },
    },
  )
  const watched = await kcert(['bootstrap', 'check', 'node-8', '--watch', '--every', '1h'])
  expect(watched.exit).toBe(0)
  expect(await report(['bootstrap', 'check', 'node-8'], 'BootstrapProgress')).toMatchObject({
    verdict: 'joined',
  })
})

test("creates RBAC objects with kubeadm's names for its group, and other names for another group", async () => {
  const { stdout } = await kcert(['bootstrap', 'rbac'])
  expect(stdout.match(/^kind: \w+/gm)).toHaveLength(5)
  expect(stdout).toContain('name: "kubeadm:node-autoapprove-bootstrap"')
  const other = await kcert(['bootstrap', 'rbac', '--group', 'system:bootstrappers:edge', '-o', 'json'])
  expect(other.stdout).not.toContain('"kubeadm:kubelet-bootstrap"')
  expect((await kcert(['bootstrap', 'rbac', '--group', 'system:masters'])).exit).toBe(2)
})

test('shows, verifies and hashes cluster-info', async () => {
  const shown = await report(['cluster-info', 'show'], 'ClusterInfo')
  expect(shown).toMatchObject({ server: server.url, faults: [] })
  const verified = await report(['cluster-info', 'verify', '--ca', 'ca.crt'], 'ClusterInfoVerification')
  expect(verified).toMatchObject({ verdict: 'ok' })
  const pins = await report(['cluster-info', 'pin', 'ca.crt'], 'CaPins')
  expect(pins.cas).toEqual(shown.cas)
})

test('saves the previous object to a file on update, and signs the new one', async () => {
  await kcert(['ca', 'init', '--cn', 'kubernetes', '--out', 'new.crt', '--key-out', 'new.key'])
  const before = clusterInfoData(server).kubeconfig!
  const args = ['cluster-info', 'update', '--ca', 'new.crt', '--ca', 'ca.crt']
  expect((await kcert(args)).exit).toBe(5)
  const would = await report([...args, '--dry-run'], 'ClusterInfoUpdate')
  expect([would.outcome, clusterInfoData(server).kubeconfig]).toEqual(['would-update', before])
  const done = await report([...args, '--yes', '--backup', 'before.yaml'], 'ClusterInfoUpdate')
  expect(done).toMatchObject({ outcome: 'updated', backup: 'before.yaml' })
  expect(done.signatures).toContainEqual({ tokenId: token.id, state: 'valid' })
  expect(readFileSync(join(at, 'before.yaml'), 'utf8')).toContain('kind: ConfigMap')
})

test('token create accepts the flag names of kubeadm', async () => {
  const kubeadm = ['--print-join-command', '--ttl', '1h', '--usages', 'signing,authentication']
  const groups = ['--groups', 'system:bootstrappers:a,system:bootstrappers:b']
  const { exit, stdout, stderr } = await kcert(['token', 'create', ...kubeadm, ...groups])
  expect([exit, stdout]).toEqual([0, expect.stringMatching(/^kubeadm join \S+ --token /)])
  expect(stderr).toContain('system:bootstrappers:a, system:bootstrappers:b')
  const both = await kcert(['token', 'create', '--print-join-command', '-o', 'token'])
  expect(both.exit).toBe(2)
  const old = await kcert(['token', 'create', '--group', 'system:bootstrappers:c', '--dry-run'])
  expect([old.exit, old.stdout]).toEqual([0, expect.stringContaining('system:bootstrappers:c')])
})
