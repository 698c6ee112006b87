import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { afterAll, beforeEach, expect, test } from 'vitest'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { callFaults, limitFor } from '../fakes/api-server-faults.ts'
import { certificateIn, folderWithCa, issuanceLogIn, opensslAccepts } from './ca-files.ts'
import { conditionsOf, operatorOf, putServing, requestsKey } from './cluster-session.ts'

// A custom signer on a cluster: it signs approved requests by spec.usages, and uploads the certificate to the object.

let server: FakeApiServer
let at: string
let kcert: ReturnType<typeof operatorOf>

beforeEach(async () => {
  await server?.close()
  server = await startApiServer()
  at = folderWithCa()
  kcert = operatorOf(server, at)
})
afterAll(() => server.close())

const approved = { status: { conditions: [{ type: 'Approved', status: 'True' }] } }
const ours = { signerName: 'example.com/serving' }
const pair = ['--ca', 'ca.pem', '--ca-key', 'ca-key.pem']
const stored = (name: string) => server.peek(requestsKey, name) as unknown as RequestObject
const uploaded = (name: string) => {
  const { certificate } = stored(name).status ?? {}
  return certificate === undefined ? undefined : readCertificates(Buffer.from(certificate, 'base64'))[0]!
}
const sign = (...args: string[]) => kcert(['ca', 'sign', ...pair, ...args])

test('signs an approved request with spec.usages and spec.expirationSeconds', async () => {
  putServing(server, 'a', { ...ours, expirationSeconds: 3600 }, approved)
  const { exit, stdout } = await sign('--csr', 'a', '--out', 'a.crt')
  expect([exit, stdout]).toEqual([0, expect.stringMatching(/^a +signed/m)])
  const certificate = uploaded('a')!
  expect(certificate.keyUsage).toEqual(['digitalSignature'])
  expect(certificate.extendedKeyUsage).toEqual(['serverAuth'])
  expect((certificate.notAfter.getTime() - certificate.notBefore.getTime()) / 1000).toBe(3600 + 300)
  expect(certificateIn(at, 'a.crt').fingerprintSha256).toBe(certificate.fingerprintSha256)
  expect(opensslAccepts(at, 'ca.pem', 'a.crt')).toBe(true)
  expect(issuanceLogIn(at).map(({ serialNumber }) => serialNumber)).toContain(certificate.serialNumber)
  expect(conditionsOf(server, 'a')).toEqual(['Approved'])
})

test("limits certificates to the seed's cfssl configuration", async () => {
  const usages = ['digital signature', 'key encipherment', 'server auth']
  const config = { signing: { default: { usages, expiry: '876000h', ca_constraint: { is_ca: false } } } }
  writeFileSync(join(at, 'config.json'), JSON.stringify(config))
  putServing(server, 'a', ours, approved)
  putServing(server, 'client', { ...ours, usages: ['client auth'] }, approved)
  const { exit, stdout } = await sign('--csr', 'a,client', '--config', 'config.json')
  expect(exit).toBe(3)
  expect(stdout).toContain('the profile does not allow "client auth"')
  expect(uploaded('a')).toBeDefined()
  expect(uploaded('client')).toBeUndefined()
})

test('signs all pending requests of a signer, and skips those that are not approved', async () => {
  putServing(server, 'a', ours, approved)
  putServing(server, 'b', ours, approved)
  putServing(server, 'waiting', ours)
  putServing(server, 'other', { signerName: 'example.com/other' }, approved)
  const { exit, stdout } = await sign('--csr-signer', 'example.com/serving', '-o', 'json')
  expect(exit).toBe(0)
  const { requests } = JSON.parse(stdout)
  expect(requests.map(({ name, outcome }: Record<string, string>) => [name, outcome])).toEqual([
    ['a', 'signed'],
    ['b', 'signed'],
  ])
  expect(issuanceLogIn(at)).toHaveLength(3)
})

test('a named request that is not approved is skipped, with the next command', async () => {
  putServing(server, 'waiting', ours)
  const { exit, stdout } = await sign('--csr', 'waiting')
  expect([exit, stdout]).toEqual([3, expect.stringContaining('kcert csr approve waiting')])
  expect(issuanceLogIn(at)).toHaveLength(1)
})

test('skips the signers of Kubernetes, unless --kubernetes-signers replaces kube-controller-manager', async () => {
  putServing(server, 'node', {}, approved)
  expect((await sign('--csr', 'node')).exit).toBe(5)
  expect(uploaded('node')).toBeUndefined()
  expect((await sign('--csr', 'node', '--kubernetes-signers')).exit).toBe(0)
  expect(uploaded('node')!.subject.commonName).toBe('system:node:node-1')
})

test('reports a rule violation, and sets the condition Failed only with --fail', async () => {
  putServing(server, 'bad', { usages: ['client auth'] }, approved)
  const args = ['--csr', 'bad', '--kubernetes-signers']
  expect((await sign(...args)).exit).toBe(3)
  expect(conditionsOf(server, 'bad')).toEqual(['Approved'])
  const { exit, stdout } = await sign(...args, '--fail')
  expect([exit, stdout]).toEqual([3, expect.stringContaining('marked Failed')])
  expect(conditionsOf(server, 'bad')).toEqual(['Approved', 'Failed'])
})

test('signs and writes nothing in a dry run', async () => {
  putServing(server, 'a', ours, approved)
  const { exit, stdout } = await sign('--csr', 'a', '--dry-run')
  expect([exit, stdout]).toEqual([0, expect.stringContaining('would sign')])
  expect(issuanceLogIn(at)).toHaveLength(1)
  expect(uploaded('a')).toBeUndefined()
})

test('does not mix requests of files and of a cluster, and does not print certificates of a cluster', async () => {
  expect((await kcert(['ca', 'sign', 'a.csr', ...pair, '--csr', 'a'])).exit).toBe(2)
  expect((await sign('--csr', 'a', '--out', '-')).exit).toBe(2)
  expect(server.calls).toEqual([])
})

const kinds = callFaults.filter((kind) => kind !== 'hang')

test.each(kinds.flatMap((kind) => (['get', 'update'] as const).map((verb) => ({ kind, verb }))))(
  '$kind at $verb: uploads one certificate, records it in the issuance log, and signs no other when run again',
  async (fault) => {
    putServing(server, 'a', ours, approved)
    server.faults.add({ ...fault, resource: 'certificatesigningrequests', retryAfterSeconds: 0 })
    const first = await sign('--csr', 'a', ...limitFor(fault.kind))
    if (fault.kind === 'conflict' && fault.verb === 'get') expect(first.exit).toBe(3)
    else expect([first.exit, first.stderr]).toEqual([0, ''])
    const again = await sign('--csr', 'a')
    expect(again.exit).toBe(0)
    const { serialNumber } = uploaded('a')!
    expect(issuanceLogIn(at).filter((line) => line.serialNumber === serialNumber)).toHaveLength(1)
    expect(issuanceLogIn(at)).toHaveLength(2)
  },
)

test('uses another serial number after a run that ended between the issuance log and the upload', async () => {
  putServing(server, 'a', ours, approved)
  server.faults.add({ kind: 'internal', verb: 'update', times: 1000 })
  const cut = await sign('--csr', 'a')
  expect(cut.exit).toBe(4)
  expect([issuanceLogIn(at).length, uploaded('a')]).toEqual([2, undefined])
  server.faults.clear()
  expect((await sign('--csr', 'a')).exit).toBe(0)
  const serials = issuanceLogIn(at).map(({ serialNumber }) => serialNumber)
  expect([serials.length, new Set(serials).size]).toEqual([3, 3])
  expect(serials[2]).toBe(uploaded('a')!.serialNumber)
})

test('prints a report that is valid against its schema', async () => {
  putServing(server, 'a', ours, approved)
  putServing(server, 'node', {}, approved)
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const validate = ajv.compile(JSON.parse(readFileSync('docs/schemas/SignedRequests.json', 'utf8')))
  const { stdout } = await sign('--csr', 'a,node,nobody', '-o', 'json')
  validate(JSON.parse(stdout))
  expect(validate.errors ?? []).toEqual([])
})
