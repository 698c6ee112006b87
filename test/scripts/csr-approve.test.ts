import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { afterAll, beforeEach, expect, test } from 'vitest'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { requestPem } from '../csr/made-requests.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { callFaults, limitFor } from '../fakes/api-server-faults.ts'
import {
  conditionsOf,
  foreignRequest,
  operatorOf,
  putCluster,
  putServing,
  requestsKey,
} from './cluster-session.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Whole sessions of an approver, on the test's API server.

const folder = temporaryFolder('approve')
let server: FakeApiServer
let kcert: ReturnType<typeof operatorOf>

beforeEach(async () => {
  await server?.close()
  server = await startApiServer()
  putCluster(server)
  kcert = operatorOf(server, folder)
})
afterAll(() => server.close())

const stored = (name: string) => server.peek(requestsKey, name) as unknown as RequestObject
const userRequest = (organization: string[]): Partial<RequestObject['spec']> => ({
  request: Buffer.from(requestPem({ subject: { commonName: 'ann', organization } })).toString('base64'),
  signerName: 'kubernetes.io/kube-apiserver-client',
  usages: ['client auth'],
  username: 'ann',
  groups: ['system:authenticated'],
})

test('approves by name, also in the form that kubectl prints, at once, and reports both duties', async () => {
  putServing(server, 'csr-1')
  putServing(server, 'csr-2')
  const printed = 'certificatesigningrequest.certificates.k8s.io/csr-1'
  const { stdout, exit } = await kcert(['csr', 'approve', printed, '-o', 'json'])
  expect(exit).toBe(0)
  const [decided] = JSON.parse(stdout).requests
  expect(decided).toMatchObject({ name: 'csr-1', outcome: 'approved', username: 'system:node:node-1' })
  expect(decided.duties.map(({ name, outcome }: Record<string, string>) => [name, outcome])).toEqual([
    ['identity', 'met'],
    ['entitlement', 'met'],
  ])
  expect(conditionsOf(server, 'csr-1')).toEqual(['Approved'])
  expect(conditionsOf(server, 'csr-2')).toEqual([])
})

test('uses the reason and message of the command line', async () => {
  putServing(server, 'csr-1')
  const flags = ['--reason', 'Batch7', '--message', 'seen by ann']
  expect((await kcert(['csr', 'approve', 'csr-1', ...flags])).exit).toBe(0)
  expect(stored('csr-1').status!.conditions![0]).toMatchObject({ reason: 'Batch7', message: 'seen by ann' })
})

test('approves a user by name, and shows what it cannot verify', async () => {
  putServing(server, 'ann', userRequest(['devs']))
  const { stdout, exit } = await kcert(['csr', 'approve', 'ann'])
  expect(exit).toBe(0)
  expect(stdout).toContain('identity')
  expect(stdout).toContain('entitlement')
  expect(stdout).toContain('not verified: "ann" is who the request says')
})

test('--force=false, --yes=false and --dry-run=false approve nothing, and --dry-run=none approves', async () => {
  putServing(server, 'eve', userRequest(['system:masters']))
  putServing(server, 'csr-1', {}, { labels: { batch: '7' } })
  for (const [flag, ...line] of [
    ['--force', 'eve', '--force=false'],
    ['--force', '--force=false', 'eve'],
    ['--yes', '-l', 'batch=7', '--yes=false'],
    ['-y', '-l', 'batch=7', '-y=false'],
  ]) {
    const { stdout, stderr, exit } = await kcert(['csr', 'approve', ...line])
    expect([stdout, exit]).toEqual(['', 2])
    expect(stderr).toContain(`KCERT_USAGE: ${flag} takes no value, but "false" was given`)
    expect(stderr).toContain(`why: ${flag} is a boolean flag: write it without "=" or leave it out`)
  }
  for (const [value, what] of [
    ['false', 'invalid --dry-run value "false"'],
    ['server', '--dry-run=server is not available for this command'],
  ]) {
    const { stderr, exit } = await kcert(['csr', 'approve', 'csr-1', `--dry-run=${value}`])
    expect(exit).toBe(2)
    expect(stderr).toContain(`KCERT_USAGE: ${what}`)
  }
  expect((await kcert(['csr', 'approve', 'csr-1', '--dry-run=client'])).stdout).toContain('dry run: nothing')
  expect([...conditionsOf(server, 'eve'), ...conditionsOf(server, 'csr-1')]).toEqual([])

  expect((await kcert(['csr', 'approve', 'csr-1', '--dry-run=none'])).exit).toBe(0)
  expect(conditionsOf(server, 'csr-1')).toEqual(['Approved'])
})

test('refuses a dangerous request with exit code 5, and approves it with --force', async () => {
  putServing(server, 'eve', userRequest(['system:masters']))
  const refused = await kcert(['csr', 'approve', 'eve'])
  expect(refused.exit).toBe(5)
  expect(refused.stdout).toContain('REFUSED')
  expect(refused.stdout).toContain('system:masters')
  expect(conditionsOf(server, 'eve')).toEqual([])
  expect((await kcert(['csr', 'approve', 'eve', '--force'])).exit).toBe(0)
  expect(conditionsOf(server, 'eve')).toEqual(['Approved'])
})

test('a dry run shows every decision, and writes nothing', async () => {
  putServing(server, 'good')
  putServing(server, 'bad', { username: 'system:node:node-2' })
  const { stdout, exit } = await kcert(['csr', 'approve', '--policy', 'builtin', '--dry-run'])
  expect(exit).toBe(3)
  expect(stdout).toMatch(/good +would approve/)
  expect(stdout).toMatch(/bad +skipped/)
  expect(stdout).toContain('nothing was written')
  expect(server.calls.filter(({ verb }) => verb === 'update')).toEqual([])
})

test('a dry run with -o yaml prints the object that would be sent', async () => {
  putServing(server, 'good')
  const { stdout, exit } = await kcert(['csr', 'approve', 'good', '--dry-run', '-o', 'yaml'])
  expect(exit).toBe(0)
  expect(stdout).toContain('name: good')
  expect(stdout).toMatch(/conditions:\n +- type: Approved\n +status: "?True"?\n +reason: ApprovedByOperator/)
  expect(conditionsOf(server, 'good')).toEqual([])
})

test('a policy evaluates all pending requests, approves some, and skips the rest', async () => {
  putServing(server, 'good')
  putServing(server, 'bad', { username: 'system:node:node-2' })
  putServing(server, 'other', { signerName: 'example.com/serving' })
  putServing(server, 'done', {}, { status: { conditions: [{ type: 'Denied', status: 'True' }] } })
  const { stdout, exit } = await kcert(['csr', 'approve', '--policy', 'builtin', '-o', 'json'])
  expect(exit).toBe(3)
  expect(JSON.parse(stdout).counts).toEqual({ approved: 1, skipped: 2 })
  expect(['good', 'bad', 'other'].map((name) => conditionsOf(server, name))).toEqual([['Approved'], [], []])
  expect(stored('good').status!.conditions![0]).toMatchObject({ reason: 'ApprovedByPolicy' })
})

test('exits with 0 when policies approve all of their requests and skip the rest', async () => {
  putServing(server, 'good')
  putServing(server, 'other', { signerName: 'example.com/serving' })
  expect((await kcert(['csr', 'approve', '--policy', 'kubelet-serving'])).exit).toBe(0)
  expect((await kcert(['csr', 'approve', 'other', '--policy', 'kubelet-serving'])).exit).toBe(3)
})

test('decides approvals and denials by a policy file', async () => {
  writeFileSync(
    join(folder, 'policy.yaml'),
    `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- {builtin: kubelet-serving, onViolation: deny}
`,
  )
  putServing(server, 'good')
  putServing(server, 'bad', { username: 'system:node:node-2' })
  expect((await kcert(['csr', 'approve', '--policy', 'policy.yaml'])).exit).toBe(3)
  expect(conditionsOf(server, 'bad')).toEqual([])
  expect((await kcert(['csr', 'deny', '--policy', 'policy.yaml'])).exit).toBe(0)
  expect(conditionsOf(server, 'bad')).toEqual(['Denied'])
  expect(conditionsOf(server, 'good')).toEqual(['Approved'])
})

test('requires --yes for a selection without a terminal, and approves only the selected requests', async () => {
  putServing(server, 'a', {}, { labels: { batch: '7' } })
  putServing(server, 'b', {}, { labels: { batch: '8' } })
  const asked = await kcert(['csr', 'approve', '-l', 'batch=7'])
  expect([asked.exit, asked.stderr]).toEqual([2, expect.stringContaining('--yes')])
  expect(conditionsOf(server, 'a')).toEqual([])
  expect((await kcert(['csr', 'approve', '-l', 'batch=7', '--yes'])).exit).toBe(0)
  expect([conditionsOf(server, 'a'), conditionsOf(server, 'b')]).toEqual([['Approved'], []])
})

test('rejects a call without names as wrong usage, before it contacts a cluster', async () => {
  expect((await kcert(['csr', 'approve', ''])).exit).toBe(2)
  const { exit, stderr } = await kcert(['csr', 'approve'])
  expect([exit, server.calls.length]).toEqual([2, 0])
  expect(stderr).toContain('name requests, or select them with -f, -l, --signer or --policy')
})

test('approves only the request in a manifest, and no other request of that name', async () => {
  putServing(server, 'csr-1')
  const { status, ...manifest } = stored('csr-1')
  writeFileSync(join(folder, 'csr.json'), JSON.stringify({ ...manifest, kind: 'CertificateSigningRequest' }))
  server.remove(requestsKey, 'csr-1')
  putServing(server, 'csr-1', { request: foreignRequest() })
  const swapped = await kcert(['csr', 'approve', '-f', 'csr.json'])
  expect([swapped.exit, conditionsOf(server, 'csr-1')]).toEqual([5, []])
  expect(swapped.stdout).toContain('its request differs from csr.json')

  server.remove(requestsKey, 'csr-1')
  putServing(server, 'csr-1')
  const text = readFileSync(join(folder, 'csr.json'), 'utf8').replace(/"uid":"[^"]+",/, '')
  const same = await kcert(['csr', 'approve', '-f', '-'], text)
  expect([same.exit, conditionsOf(server, 'csr-1')]).toEqual([0, ['Approved']])
})

test('distinguishes missing, denied and already approved requests', async () => {
  putServing(server, 'denied', {}, { status: { conditions: [{ type: 'Denied', status: 'True' }] } })
  putServing(server, 'approved', {}, { status: { conditions: [{ type: 'Approved', status: 'True' }] } })
  const { stdout, exit } = await kcert(['csr', 'approve', 'approved', 'denied', 'nobody', '-o', 'json'])
  expect(exit).toBe(3)
  const outcomes = JSON.parse(stdout).requests.map(({ outcome }: { outcome: string }) => outcome)
  expect(outcomes).toEqual(['already-decided', 'skipped', 'not-found'])
  expect((await kcert(['csr', 'approve', 'approved'])).exit).toBe(0)
})

test('a denial contains the reason for the requester', async () => {
  putServing(server, 'eve', userRequest(['system:masters']))
  expect((await kcert(['csr', 'deny', 'eve', '--message', 'not as system:masters'])).exit).toBe(0)
  expect(stored('eve').status!.conditions![0]).toMatchObject({
    type: 'Denied',
    reason: 'DeniedByOperator',
    message: 'not as system:masters',
  })
})

test('approves 2,000 requests in one run, over few connections, with progress on standard error', async () => {
  for (let index = 0; index < 2000; index++) putServing(server, `csr-${index}`)
  const { stdout, stderr, exit } = await kcert(['csr', 'approve', '--policy', 'builtin', '-o', 'json'])
  expect(exit).toBe(0)
  expect(JSON.parse(stdout).counts).toEqual({ approved: 2000 })
  expect(stderr).toContain('approved 2,000 of 2,000')
  expect(server.connections).toBeLessThan(40)
  // Nodes, ranges and endpoints were listed once.
  expect(server.calls.filter(({ verb, resource }) => verb === 'list' && resource === 'nodes')).toHaveLength(1)
  expect(server.calls.filter(({ verb }) => verb === 'update')).toHaveLength(2000)
})

const places = [
  { verb: 'list', resource: 'certificatesigningrequests' },
  { verb: 'get', resource: 'certificatesigningrequests' },
  { verb: 'update', resource: 'certificatesigningrequests' },
  { verb: 'list', resource: 'nodes' },
  { verb: 'list', resource: 'servicecidrs' },
] as const

test.each(callFaults.flatMap((kind) => places.map((place) => ({ kind, ...place }))))(
  '$kind at $verb of $resource: approves each request once, or reports that it did not',
  async (fault) => {
    const names = ['a', 'b', 'c']
    for (const name of names) putServing(server, name)
    // A conflict and an expired response occur for writes. For all other calls they are ordinary errors.
    server.faults.add({ ...fault, retryAfterSeconds: 0 })
    const args = ['csr', 'approve', '--policy', 'builtin', '-o', 'json']
    const { stdout, stderr, exit } = await kcert([...args, ...limitFor(fault.kind)])
    const approved = names.filter((name) => conditionsOf(server, name).includes('Approved'))
    if (exit === 0) {
      expect(approved).toEqual(names)
      expect(JSON.parse(stdout).counts).toEqual({ approved: 3 })
    } else {
      // The failure is reported, and the next run approves the rest.
      expect(stdout + stderr).toMatch(/KCERT_API_CONFLICT|KCERT_UNREACHABLE/)
      expect(fault.kind).toBe('conflict')
    }
    server.faults.clear()
    await kcert(args)
    for (const name of names) expect(conditionsOf(server, name)).toEqual(['Approved'])
  },
)

test('exits with 4 when the cluster stops responding, and reports the requests approved before', async () => {
  for (const name of ['a', 'b', 'c']) putServing(server, name)
  server.faults.add({ kind: 'reset-before', verb: 'update', at: 2, times: 1000 })
  const { stdout, exit } = await kcert(['csr', 'approve', 'a', 'b', 'c', '-o', 'json', '--concurrency', '1'])
  expect(exit).toBe(4)
  expect(JSON.parse(stdout).counts).toEqual({ approved: 1, failed: 2 })
  expect(conditionsOf(server, 'a')).toEqual(['Approved'])
})

test('does not try each pending request when the cluster stops responding', async () => {
  for (let index = 0; index < 50; index++) putServing(server, `csr-${index}`)
  server.faults.add({ kind: 'internal', verb: 'update', times: 100_000 })
  const args = ['csr', 'approve', '--policy', 'builtin', '-o', 'json']
  const { stdout, exit } = await kcert(args)
  expect(exit).toBe(4)
  const report = JSON.parse(stdout)
  expect(report.counts).toEqual({ failed: 50 })
  expect(report.requests[49].error).toMatchObject({
    code: 'KCERT_UNREACHABLE',
    what: expect.stringMatching(/^not tried/),
  })
  server.faults.clear()
  expect((await kcert(args)).exit).toBe(0)
})

test('exits with 6 for an approver without the right, and names the missing right', async () => {
  putServing(server, 'a')
  server.rules = [{ user: 'reader', verbs: ['get', 'list'], groups: ['*'], resources: ['*'] }]
  const kubeconfig = server.writeKubeconfig(join(folder, 'reader.conf'), { username: 'reader' })
  const { stdout, exit } = await kcert(['csr', 'approve', 'a', '--kubeconfig', kubeconfig])
  expect(exit).toBe(6)
  expect(stdout).toContain('not allowed to write')
})

test('prints a report that is valid against its schema', async () => {
  putServing(server, 'a')
  putServing(server, 'eve', userRequest(['system:masters']))
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const validate = ajv.compile(JSON.parse(readFileSync('docs/schemas/RequestDecisions.json', 'utf8')))
  for (const args of [
    ['a', 'eve', 'nobody'],
    ['a', 'eve', '--force', '--dry-run'],
  ]) {
    const { stdout } = await kcert(['csr', 'approve', ...args, '-o', 'json'])
    validate(JSON.parse(stdout))
    expect(validate.errors ?? []).toEqual([])
  }
})
