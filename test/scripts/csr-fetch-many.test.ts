import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { foreignRequest, operatorOf, putServing, requestsKey } from './cluster-session.ts'
import type { Session } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// kcert csr fetch --out-dir: many certificates in one pass, each in its own file.

const at = temporaryFolder('csr-fetch-many')
const signerName = 'kubernetes.io/kubelet-serving'
let server: FakeApiServer
let run: (args: readonly string[]) => Promise<Session>
let folder: string
let turn = 0

beforeAll(async () => {
  server = await startApiServer({ signer: 'controller' })
  run = operatorOf(server, at)
})
afterAll(() => server.close())
beforeEach(async () => {
  folder = join(at, `certs-${++turn}`)
  for (const { metadata } of server.all(requestsKey)) server.remove(requestsKey, metadata.name)
  const status = { conditions: [{ type: 'Approved', status: 'True' }] }
  for (const name of ['a', 'b', 'c']) putServing(server, name, {}, { status, labels: { batch: '7' } })
  putServing(server, 'waiting')
  putServing(server, 'other', { signerName: 'example.com/serving' })
  await expect
    .poll(() => ['a', 'b', 'c'].every((name) => certificateOf(name) !== undefined), { timeout: 60_000 })
    .toBe(true)
})

function certificateOf(name: string): string | undefined {
  return (server.peek(requestsKey, name) as unknown as RequestObject).status?.certificate
}

function outcomesOf({ stdout }: Session): Record<string, string> {
  const report = JSON.parse(stdout) as { requests: { name: string; outcome: string }[] }
  expect(violations('FetchedCertificates', report)).toEqual([])
  return Object.fromEntries(report.requests.map(({ name, outcome }) => [name, outcome]))
}

test('writes the issued certificates of a signer, and shows pending requests without failing', async () => {
  const { exit, stdout } = await run(['csr', 'fetch', '--signer', signerName, '--out-dir', folder])
  expect([exit, stdout]).toEqual([0, expect.stringContaining('3 fetched, 1 not issued')])
  expect(stdout).toContain('"waiting" is pending: it waits for approval')
  expect(readdirSync(folder).sort()).toEqual(['a.crt', 'b.crt', 'c.crt'])
  const own = Buffer.from(certificateOf('a')!, 'base64').toString()
  expect(readFileSync(join(folder, 'a.crt'), 'utf8').trim()).toBe(own.trim())
  const again = await run(['csr', 'fetch', '-l', 'batch=7', '--out-dir', folder, '-o', 'json'])
  expect(outcomesOf(again)).toEqual({ a: 'present', b: 'present', c: 'present' })
})

test('fails for a named request that is missing or not issued, and fetches the others', async () => {
  const session = await run(['csr', 'fetch', 'csr/a', 'waiting', 'nobody', '--out-dir', folder, '-o', 'json'])
  expect(session.exit).toBe(3)
  expect(outcomesOf(session)).toEqual({ a: 'fetched', waiting: 'not-issued', nobody: 'not-found' })
  expect(readdirSync(folder)).toEqual(['a.crt'])
})

test('writes no file for a certificate with another key than the request', async () => {
  const object = server.peek(requestsKey, 'b') as unknown as RequestObject
  const spec = { ...object.spec, request: foreignRequest() }
  server.put(requestsKey, { ...object, spec } as never)
  const session = await run(['csr', 'fetch', 'a', 'b', '--out-dir', folder, '-o', 'json'])
  expect([session.exit, outcomesOf(session)]).toEqual([3, { a: 'fetched', b: 'mismatch' }])
  expect(existsSync(join(folder, 'b.crt'))).toBe(false)
})

test('keeps an existing file with other content, unless --force; keeps a file with a private key always', async () => {
  const fetch = (...more: string[]) =>
    run(['csr', 'fetch', 'a', 'b', '--out-dir', folder, '-o', 'json', ...more])
  await fetch()
  writeFileSync(join(folder, 'a.crt'), 'mine')
  const refused = await fetch()
  expect([refused.exit, outcomesOf(refused)]).toEqual([5, { a: 'refused', b: 'present' }])
  expect(readFileSync(join(folder, 'a.crt'), 'utf8')).toBe('mine')
  expect(outcomesOf(await fetch('--force'))).toEqual({ a: 'fetched', b: 'present' })
  const key = '-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n'
  writeFileSync(join(folder, 'a.crt'), key)
  expect(outcomesOf(await fetch('--force'))).toEqual({ a: 'refused', b: 'present' })
})

test('writes nothing when the API server fails in the middle, and fetches all in the next run', async () => {
  server.faults.add({ kind: 'hang', verb: 'get', resource: requestsKey.resource, name: 'b', times: 99 })
  const args = ['csr', 'fetch', 'a', 'b', 'c', '--out-dir', folder, '-o', 'json']
  expect((await run([...args, '--request-timeout', '1s'])).exit).toBe(4)
  expect(existsSync(folder)).toBe(false)
  server.faults.clear()
  expect(outcomesOf(await run(args))).toEqual({ a: 'fetched', b: 'fetched', c: 'fetched' })
})

test.each([
  [['a', 'b'], 'many certificates need --out-dir FOLDER'],
  [['--signer', signerName], 'many certificates need --out-dir FOLDER'],
  [['a', 'b', '--out-dir', 'x', '--key', 'key.pem'], '--key is for one certificate'],
  [['a', '--out-dir', 'x', '--wait', '5s'], '--wait is for one certificate'],
  [['a', 'b', '--out-dir', 'x', '-o', 'manifest'], '-o manifest is for one certificate'],
  [[], 'no request given'],
])('kcert csr fetch %j is wrong usage', async (args, what) => {
  const { exit, stderr } = await run(['csr', 'fetch', ...args])
  expect([exit, stderr]).toEqual([2, expect.stringContaining(what)])
})

test('neither fetch nor request overwrites the key, even with --force', async () => {
  const key = join(at, 'key.pem')
  expect((await run(['key', 'generate', '--out', key])).exit).toBe(0)
  const before = readFileSync(key, 'utf8')
  const files = ['--key', key, '--out', key, '--force']
  for (const args of [
    ['csr', 'fetch', 'a'],
    ['csr', 'request', '--user', 'ann', '--wait', '1s'],
  ])
    expect(await run([...args, ...files])).toMatchObject({
      exit: 5,
      stderr: expect.stringContaining(`--out ${key} is also the input --key ${key}`),
    })
  expect(readFileSync(key, 'utf8')).toBe(before)
})
