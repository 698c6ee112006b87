import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import type { AccessRule } from '../fakes/api-server-access.ts'
import { freePort } from '../node/ports.ts'
import { conditionsOf, operatorOf, putCluster, putServing } from './cluster-session.ts'
import { Daemon } from './daemon.ts'
import { temporaryFolder } from './temporary-folder.ts'

// `kcert controller --approve` on the fake API server.

const folder = temporaryFolder('controller')
const leases = {
  group: 'coordination.k8s.io',
  version: 'v1',
  resource: 'leases',
  namespace: 'kube-system',
} as const
const events = { group: '', version: 'v1', resource: 'events', namespace: 'default' } as const
let server: FakeApiServer
let kcert: ReturnType<typeof operatorOf>

beforeEach(async () => {
  await server?.close()
  server = await startApiServer({
    tokens: { pod: { username: 'approver', groups: ['system:authenticated'] } },
  })
  putCluster(server)
  // A replica that creates the Lease acts 15 s later.
  server.put(leases, { metadata: { name: 'kcert-controller' }, spec: { holderIdentity: '' } })
  kcert = operatorOf(server, folder)
})
afterEach(() => Daemon.killAll())
afterAll(() => server.close())

async function start(
  args: readonly string[] = [],
  kubeconfig = 'admin.conf',
  standard: readonly string[] = ['--approve', 'builtin'],
) {
  const port = await freePort()
  const line = ['controller', '--kubeconfig', kubeconfig, '--listen', `127.0.0.1:${port}`]
  const daemon = new Daemon([...line, ...(args.includes('--approve') ? [] : standard), ...args], folder)
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: answer.status, text: await answer.text() }
  }
  return { daemon, get }
}

/** A process that gets no processor time for 10 s loses the Lease, and exits. */
const onBusyMachines = { retry: 2 }

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_200; tries++) {
    if (await isTrue()) return
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error(`it never became true: ${isTrue}`)
}

const isApproved = (name: string) => (): boolean => conditionsOf(server, name).includes('Approved')
const holder = (): string => {
  const lease = server.peek(leases, 'kcert-controller') as { spec?: { holderIdentity?: string } } | undefined
  return lease?.spec?.holderIdentity ?? ''
}

test('approves what the policy approves, and explains what it leaves pending', onBusyMachines, async () => {
  putServing(server, 'csr-1')
  putServing(server, 'csr-2', { username: 'system:node:node-2' })
  const { daemon, get } = await start(['--log-format', 'json'])
  await until(isApproved('csr-1'))
  putServing(server, 'csr-3')
  await until(isApproved('csr-3'))
  await until(async () => (await get('/metrics')).text.includes('events_total{result="created"} 3'))
  expect(conditionsOf(server, 'csr-2')).toEqual([])

  const [event] = server.all(events).filter(({ type }) => type === 'Warning')
  expect(event).toMatchObject({ reason: 'NotApproved', involvedObject: { name: 'csr-2' } })
  expect(event!.message).toMatch(/^policy kubelet-serving: identity unmet, .*requester: /)
  const { status, text } = await get('/metrics')
  expect(status).toBe(200)
  expect(text).toContain('kcert_controller_leader 1\n')
  expect(text).toContain('kcert_controller_decisions_total{outcome="approved",reason="policy"} 2\n')
  expect(text).toContain('kcert_controller_decisions_total{outcome="skipped",reason="requester"} 1\n')
  expect(text).toContain('kcert_controller_pending_requests{reason="requester"} 1\n')
  expect(text).not.toMatch(/csr-|node-/)
  expect(await get('/readyz')).toEqual({
    status: 200,
    text: '[+]lease ok\n[+]policy ok\n[+]permissions ok\n[+]watch ok\n',
  })
  expect((await get('/healthz')).status).toBe(200)
  expect((await get('/')).status).toBe(404)

  for (const line of daemon.stderr.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('level')
  expect(holder()).not.toBe('')
  expect(await daemon.kill('SIGTERM')).toBe(0)
  expect(holder()).toBe('')
  expect(daemon.stdout).toBe('')

  const explained = await kcert(['csr', 'explain', 'csr-2'])
  expect(explained.stdout.replaceAll(/\s+/g, ' ')).toContain(
    `says: ${String(event!.message)}`.replaceAll(/\s+/g, ' '),
  )
  // The same rule by hand.
  const byHand = await kcert(['csr', 'approve', 'csr-2', '--dry-run', '-o', 'json'])
  expect(JSON.parse(byHand.stdout).requests[0].reason).toMatch(/^requester: /)
})

test(
  'hostile names and a token in the kubeconfig: bounded metrics, whole lines, no secret',
  onBusyMachines,
  async () => {
    const hostile = 'x"\n{"level":"info","msg":"approved"}\u202e\u001b[2J'
    const token = 'secret-token-7f3a'
    await server.close()
    server = await startApiServer({
      tokens: { [token]: { username: 'approver', groups: ['system:masters'] } },
    })
    putCluster(server)
    server.put(leases, { metadata: { name: 'kcert-controller' }, spec: { holderIdentity: '' } })
    server.writeKubeconfig(join(folder, 'pod.conf'), { token })
    for (let one = 0; one < 20; one++)
      putServing(server, `csr-${one}`, {
        username: `${hostile}${one}`,
        groups: [`${hostile}${one}`],
        ...(one % 2 === 0 && { signerName: `evil.example.com/${hostile}${one}` }),
      })
    const { daemon, get } = await start(['--log-format', 'json'], 'pod.conf')
    await daemon.says(/"msg":"skipped"/, 20)
    const { text } = await get('/metrics')
    const series = text.match(/^kcert_controller_(?:pending_requests|decisions_total)\{.*/gm) ?? []
    expect(series.length).toBeLessThanOrEqual(4)
    expect(text).toMatch(/^kcert_controller_pending_requests\{reason="[a-z-]+"\} 10$/m)
    expect(text + (await get('/readyz')).text).not.toMatch(/evil|approved|secret-token/)
    await until(() => server.all(events).length === 20)
    expect(await daemon.kill('SIGTERM')).toBe(0)
    const lines = daemon.stderr.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).msg)).not.toContain('approved')
    const written = daemon.stderr + JSON.stringify(server.all(events).map(({ message }) => message))
    expect(written).not.toMatch(/secret-token|[\u202e\u001b]/)
  },
)

test('of two replicas one acts, and the other takes over when it stops', onBusyMachines, async () => {
  const first = await start()
  await first.daemon.says(/became the leader/)
  const second = await start()
  await second.daemon.says(/started/)
  putServing(server, 'csr-1')
  await until(isApproved('csr-1'))
  expect((await second.get('/metrics')).text).toContain('kcert_controller_leader 0\n')
  await until(async () => (await second.get('/readyz')).status === 200)
  expect(await first.daemon.kill('SIGTERM')).toBe(0)
  await second.daemon.says(/became the leader/)
  putServing(server, 'csr-2')
  await until(isApproved('csr-2'))
})

// Decisions and the Lease use no time of the API server. Its certificates must be valid by our clock.
test.each([
  ['2000 hours behind: both approve', -2_000, 0, 200],
  ['50 hours ahead: neither trusts its certificate', 50, 3, 503],
] as const)(
  'acts as csr approve when the clock of the API server is %s',
  onBusyMachines,
  async (_, aheadHours, exit, status) => {
    await server.close()
    server = await startApiServer({ now: () => new Date(Date.now() + aheadHours * 3_600_000) })
    putCluster(server)
    server.put(leases, { metadata: { name: 'kcert-controller' }, spec: { holderIdentity: '' } })
    kcert = operatorOf(server, folder)
    putServing(server, 'csr-1')
    putServing(server, 'csr-2')
    const byHand = await kcert(['csr', 'approve', 'csr-1', '--yes'])
    expect(byHand.exit).toBe(exit)
    const { daemon, get } = await start()
    await daemon.says(/started/)
    const untrusted = /certificate CN=kube-apiserver is not valid before /
    if (exit === 0) await until(isApproved('csr-2'))
    else {
      expect(byHand.stderr).toMatch(untrusted)
      await until(async () => untrusted.test((await get('/readyz')).text))
    }
    expect((await get('/readyz')).status).toBe(status)
    for (const name of ['csr-1', 'csr-2'])
      expect(conditionsOf(server, name)).toEqual(exit === 0 ? ['Approved'] : [])
  },
)

test('exits with 4 when another holds the Lease, and approves nothing after that', async () => {
  const { daemon } = await start()
  await daemon.says(/became the leader/)
  const lease = server.peek(leases, 'kcert-controller')!
  server.put(leases, { ...lease, spec: { ...(lease.spec as object), holderIdentity: 'other' } })
  expect(await daemon.over).toBe(4)
  expect(daemon.stderr).toContain('the Lease kube-system/kcert-controller was lost')
  putServing(server, 'csr-1')
  await new Promise((done) => setTimeout(done, 500))
  expect(conditionsOf(server, 'csr-1')).toEqual([])
  expect(holder()).toBe('other')
})

test(
  'writes no decision whose evaluation was in progress when the Lease was lost',
  onBusyMachines,
  async () => {
    const answer = (response: ServerResponse, result: object | undefined): void =>
      void setTimeout(() => response.end(JSON.stringify(result)), 4_000)
    server.faults.add({ verb: 'get', resource: 'nodes', times: 1_000, kind: 'hostile', answer })
    putServing(server, 'csr-1')
    const { daemon } = await start()
    await until(() => server.calls.some(({ resource }) => resource === 'nodes'))
    const lease = server.peek(leases, 'kcert-controller')!
    server.put(leases, { ...lease, spec: { ...(lease.spec as object), holderIdentity: 'other' } })
    expect(await daemon.over).toBe(4)
    await new Promise((done) => setTimeout(done, 4_500))
    expect(server.calls.filter(({ subresource }) => subresource === 'approval')).toEqual([])
    expect(conditionsOf(server, 'csr-1')).toEqual([])
    expect(holder()).toBe('other')
  },
)

test('keeps the last policy while the file is malformed, and says so', onBusyMachines, async () => {
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, 'apiVersion: kcert/v1\nkind: ApprovalPolicy\nrules:\n- builtin: kubelet-serving\n', {
    mode: 0o600,
  })
  const { daemon, get } = await start(['--approve', 'policy.yaml'])
  await daemon.says(/became the leader/)
  writeFileSync(policy, 'rules:\n- builtin: kubelet-servin\n')
  await daemon.says(/the policy cannot be used, the earlier one stays in use.*KCERT_POLICY_INVALID/)
  const { status, text } = await get('/readyz')
  expect(status).toBe(503)
  expect(text).toMatch(/^\[-\]policy failed: policy.yaml.*kubelet-servin.*stays in use$/m)
  expect((await get('/metrics')).text).toContain('kcert_controller_policy_valid 0\n')
  putServing(server, 'csr-1')
  await until(isApproved('csr-1'))
  writeFileSync(policy, 'apiVersion: kcert/v1\nkind: ApprovalPolicy\nrules:\n- builtin: kubelet-client\n')
  await daemon.says(/the policy was read again/)
  expect((await get('/readyz')).status).toBe(200)
  putServing(server, 'csr-2')
  await daemon.says(/skipped csr="csr-2"/)
  expect(conditionsOf(server, 'csr-2')).toEqual([])
})

test(
  'names each missing permission, and approves nothing without the right for the signer',
  onBusyMachines,
  async () => {
    const certificates = ['certificates.k8s.io']
    const own = (verbs: string[], groups: string[], ...resources: string[]): AccessRule => ({
      ...{ user: 'approver', verbs, groups, resources },
    })
    server.rules = [
      own(['get', 'list'], certificates, 'certificatesigningrequests'),
      own(['update'], certificates, 'certificatesigningrequests/approval'),
      own(['create'], ['coordination.k8s.io'], 'leases'),
      own(['create'], [''], 'events'),
      { ...own(['get', 'update'], ['coordination.k8s.io'], 'leases'), names: ['kcert-controller'] },
      own(
        ['*'],
        ['', 'networking.k8s.io', 'discovery.k8s.io'],
        'nodes',
        'servicecidrs',
        'endpointslices',
        'configmaps',
      ),
    ]
    server.writeKubeconfig(join(folder, 'pod.conf'), { token: 'pod' })
    putServing(server, 'csr-1')
    const { daemon, get } = await start([], 'pod.conf')
    const signers = 'signers.certificates.k8s.io kubernetes.io'
    const missing = [
      'watch certificatesigningrequests.certificates.k8s.io',
      `approve ${signers}/kube-apiserver-client-kubelet`,
      `approve ${signers}/kubelet-serving`,
      'create subjectaccessreviews.authorization.k8s.io',
    ].join(', ')
    await daemon.says(new RegExp(`missing="${missing}"`))
    const ready = await get('/readyz')
    expect(ready.status).toBe(503)
    expect(ready.text).toContain(`[-]permissions failed: ${missing}\n`)
    await daemon.says(/the watch of requests failed.*not allowed to watch certificatesigningrequests/)
    expect((await get('/readyz')).text).toMatch(/^\[-\]watch failed: not allowed to watch /m)
    const { text } = await get('/metrics')
    expect(text.match(/^kcert_controller_missing_permission\{.*/gm)).toEqual([
      'kcert_controller_missing_permission{verb="watch",resource="certificatesigningrequests"} 1',
      // For two signers.
      'kcert_controller_missing_permission{verb="approve",resource="signers"} 1',
      'kcert_controller_missing_permission{verb="create",resource="subjectaccessreviews"} 1',
    ])
    await daemon.says(/failed csr="csr-1".*KCERT_API_FORBIDDEN.*kubernetes.io\/kubelet-serving/)
    await until(() => server.all(events).length === 1)
    expect(server.all(events)[0]).toMatchObject({ reason: 'NotApproved' })
    expect(server.all(events)[0]!.message).toContain('kubernetes.io/kubelet-serving')
    expect(conditionsOf(server, 'csr-1')).toEqual([])
  },
)

test('survives lost connections and an expired resourceVersion', onBusyMachines, async () => {
  const { daemon } = await start()
  await daemon.says(/became the leader/)
  putServing(server, 'csr-1')
  await until(isApproved('csr-1'))
  server.compact()
  server.dropConnections()
  putServing(server, 'csr-2')
  await until(isApproved('csr-2'))
})

test('is not ready while it cannot list requests', onBusyMachines, async () => {
  const requests = 'certificatesigningrequests'
  server.faults.add({ kind: 'unavailable', verb: 'list', resource: requests, times: 1_000 })
  const { daemon, get } = await start()
  await daemon.says(/the watch of requests failed.*KCERT_UNREACHABLE/)
  const { status, text } = await get('/readyz')
  expect(status).toBe(503)
  expect(text).toMatch(/^\[-\]watch failed: .* could not list certificatesigningrequests/m)
  server.faults.clear()
  await daemon.says(/the watch of requests works again/)
  expect((await get('/readyz')).status).toBe(200)
})

test(
  '--watch: only the leader reads the cluster, and both parts run in one process',
  onBusyMachines,
  async () => {
    const first = await start(['--watch'])
    await first.daemon.says(/became the leader/)
    await until(async () =>
      (await first.get('/metrics')).text.includes('kcert_scan_failed{part="clustertrustbundles"}'),
    )
    const { text } = await first.get('/metrics')
    expect(text).toContain('kcert_certificate_remaining_seconds{kind="api-server"')
    expect(text).not.toContain('part="secrets"')
    putServing(server, 'csr-1')
    await until(isApproved('csr-1'))
    const second = await start(['--watch'])
    await second.daemon.says(/started/)
    const calls = server.calls.filter(({ resource }) => resource === 'apiservices').length
    expect((await second.get('/metrics')).text).not.toContain('kcert_scan_')
    expect(server.calls.filter(({ resource }) => resource === 'apiservices')).toHaveLength(calls)
  },
)

test(
  '--watch without --approve reads, writes nothing but the Lease, and has no policy',
  onBusyMachines,
  async () => {
    const { daemon, get } = await start(['--watch', '--watch-secrets'], 'admin.conf', [])
    await daemon.says(/became the leader/)
    await until(async () =>
      (await get('/metrics')).text.includes('kcert_scan_failed{part="clustertrustbundles"}'),
    )
    const { text } = await get('/metrics')
    expect(text).toContain('kcert_scan_failed{part="secrets"} 0\n')
    expect(text).not.toContain('policy')
    expect(await get('/readyz')).toEqual({ status: 200, text: '[+]lease ok\n[+]permissions ok\n' })
    const writes = server.calls.filter(({ verb }) => !['get', 'list'].includes(verb))
    expect(new Set(writes.map(({ resource }) => resource))).toEqual(
      new Set(['leases', 'selfsubjectaccessreviews', 'subjectaccessreviews']),
    )
    expect(await daemon.kill('SIGTERM')).toBe(0)
    expect(holder()).toBe('')
  },
)

test(
  '--watch --request-timeout 0: a part whose call never ends works again after it',
  onBusyMachines,
  async () => {
    server.faults.add({ kind: 'hang', verb: 'list', resource: 'apiservices', times: 1 })
    const { daemon } = await start(['--watch', '--watch-interval', '10s', '--request-timeout', '0'])
    await daemon.says(/the scan failed part="webhooks"/)
    await daemon.says(/the scan works again part="webhooks"/)
  },
)

describe('SIGTERM during an evaluation', () => {
  const lookup = { verb: 'get', resource: 'nodes', times: 1_000 } as const

  test('writes no decision after it, and releases the Lease', onBusyMachines, async () => {
    const answer = (response: ServerResponse, result: object | undefined): void =>
      void setTimeout(() => response.end(JSON.stringify(result)), 1_500)
    server.faults.add({ ...lookup, kind: 'hostile', answer })
    putServing(server, 'csr-1')
    const { daemon } = await start()
    await until(() => server.calls.some(({ resource }) => resource === 'nodes'))
    expect(await daemon.kill('SIGTERM')).toBe(0)
    expect(daemon.stderr).toMatch(/failed csr="csr-1".*this replica received a signal to stop/)
    expect(conditionsOf(server, 'csr-1')).toEqual([])
    expect(holder()).toBe('')
  })

  test('ends it within 8 s when the API server does not respond', onBusyMachines, async () => {
    server.faults.add({ ...lookup, kind: 'hang' })
    putServing(server, 'csr-1')
    const { daemon } = await start()
    await until(() => server.calls.some(({ resource }) => resource === 'nodes'))
    const began = performance.now()
    expect(await daemon.kill('SIGTERM')).toBe(0)
    expect(performance.now() - began).toBeLessThan(15_000)
    expect(holder()).toBe('')
  })
})

describe('wrong usage', () => {
  test.each([
    [[], 'nothing to do: --approve and --watch are missing'],
    [['--watch', '--watch-interval', '1s'], 'invalid --watch-interval 1s'],
    [['--watch', '--watch-interval', '30d'], 'invalid --watch-interval 30d'],
    [['--approve', 'builtin', '--listen', '9465'], 'invalid --listen "9465"'],
    [['--approve', 'absent.yaml'], 'absent.yaml'],
    [['--approve', '-'], '--approve - is not a file'],
  ])('%j', async (args, message) => {
    const { stderr, exit } = await kcert(['controller', ...args])
    expect(exit).toBe(2)
    expect(stderr).toContain(message)
  })
})
