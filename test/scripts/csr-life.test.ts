import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import type { FaultKind } from '../fakes/api-server-faults.ts'
import { kcert, kcertBeside, type Session } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// The requester's and the reader's commands against an API server on loopback; the lab has the same life on a real one.

const key = { group: 'certificates.k8s.io', version: 'v1', resource: 'certificatesigningrequests' } as const
const folder = temporaryFolder('csr-life')
let server: FakeApiServer
let number = 0
/** A folder of its own for each test, and a name that no other has. */
let at: (file: string) => string
let name: string

beforeAll(async () => {
  server = await startApiServer({ signer: 'controller' })
  server.writeKubeconfig(join(folder, 'admin.conf'))
})
afterAll(() => server.close())
beforeEach(() => {
  server.faults.clear()
  number++
  name = `user-${number}`
  at = (file) => join(folder, `${number}-${file}`)
})

function run(...args: string[]): Promise<Session> {
  return kcertBeside(args, { env: { KUBECONFIG: join(folder, 'admin.conf') } })
}

function stored(): RequestObject | undefined {
  return server.peek(key, name) as unknown as RequestObject | undefined
}

/** Approves or denies as another program would. */
function decide(type: 'Approved' | 'Denied', reason = 'ByTest', message = 'so it is'): void {
  const object = server.peek(key, name)!
  const lastUpdateTime = new Date().toISOString()
  server.put(key, {
    ...object,
    status: { conditions: [{ type, status: 'True', reason, message, lastUpdateTime }] },
  })
}

function makeRequest(...more: string[]): void {
  const made = kcert([
    'csr',
    'create',
    '--cn',
    name,
    '--key-out',
    at('key.pem'),
    '--out',
    at('a.csr'),
    ...more,
  ])
  expect(made.exit).toBe(0)
}

const user = ['--signer', 'kubernetes.io/kube-apiserver-client']

test('a request is submitted with the usages of its signer, listed, explained, approved, and fetched with its key', async () => {
  makeRequest('--org', 'dev')
  const submitted = await run('csr', 'submit', at('a.csr'), ...user)
  expect(submitted).toMatchObject({ exit: 0, stderr: '' })
  expect(submitted.stdout).toContain(`kcert csr approve ${name}`)
  expect(stored()?.spec.usages).toEqual(['digital signature', 'client auth'])

  const listed = await run('csr', 'list', '--pending')
  expect(listed.stdout).toMatch(new RegExp(`${name} .*Pending +${name} \\(dev\\) .*kubernetes-admin`))
  const stuck = await run('csr', 'explain', `csr/${name}`)
  expect(stuck.exit).toBe(3)
  expect(stuck.stdout).toContain('waits-for-a-person')

  expect((await run('csr', 'check', name)).stdout).toContain('requester')
  decide('Approved')
  const fetched = await run(
    'csr',
    'fetch',
    name,
    '--wait',
    '10s',
    '--key',
    at('key.pem'),
    '--out',
    at('a.crt'),
  )
  expect(fetched).toMatchObject({ exit: 0 })
  expect(fetched.stdout).toContain('check key          ok')
  expect(kcert(['inspect', at('a.crt'), at('key.pem'), '-o', 'json']).stdout).toContain('"matches": true')

  const described = await run('csr', 'describe', name)
  expect(described.exit).toBe(0)
  expect(described.stdout).toMatch(/serial number +[0-9a-f]+/)
  expect(described.stdout).toContain('an hour after the approval, once issued')
  expect((await run('csr', 'explain', name)).exit).toBe(0)
})

test('a manifest of several is submitted at once, and again without doing anything', async () => {
  const manifests = ['x', 'y'].map((suffix) =>
    kcert([
      'csr',
      'create',
      '--user',
      `${name}-${suffix}`,
      '--key-out',
      at(`${suffix}.pem`),
      '-o',
      'manifest',
    ]),
  )
  const text = manifests.map(({ stdout }) => stdout).join('---\n')
  const submit = () =>
    kcertBeside(['csr', 'submit', '-', '-o', 'json'], {
      stdin: text,
      env: { KUBECONFIG: join(folder, 'admin.conf') },
    })
  const outcomesOf = ({ stdout }: Session): string[] =>
    (JSON.parse(stdout) as { submissions: { outcome: string }[] }).submissions.map(({ outcome }) => outcome)
  expect(outcomesOf(await submit())).toEqual(['created', 'created'])
  expect(outcomesOf(await submit())).toEqual(['present', 'present'])
})

test('what would fail for good is not sent, unless it is sent all the same', async () => {
  makeRequest()
  const refused = await run('csr', 'submit', at('a.csr'), ...user, '--usage', 'server auth')
  expect(refused.exit).toBe(3)
  expect(refused.stderr).toContain('KCERT_CSR_SIGNER_REFUSED')
  expect(refused.stderr).toContain('next: ask for --usage "digital signature" --usage "client auth"')
  expect(stored()).toBeUndefined()
  const forced = await run('csr', 'submit', at('a.csr'), ...user, '--usage', 'server auth', '--force')
  expect(forced.exit).toBe(0)
  expect(forced.stderr).toContain('note: sent all the same')
  decide('Approved')
  const failed = await run('csr', 'fetch', name, '--wait', '10s', '--out', at('a.crt'))
  expect(failed.exit).toBe(3)
  expect(failed.stderr).toContain('has failed')
  expect((await run('csr', 'explain', name)).stdout).toContain('signer-refused')
})

test('a dry run asks the API server and leaves nothing', async () => {
  makeRequest()
  const dry = await run('csr', 'submit', at('a.csr'), ...user, '--dry-run')
  expect(dry.stdout).toContain('would be created')
  expect(stored()).toBeUndefined()
})

test('a name that is taken by another request is a conflict that says what differs', async () => {
  makeRequest()
  await run('csr', 'submit', at('a.csr'), ...user)
  expect(kcert(['csr', 'create', '--cn', name, '--key-out', at('b.pem'), '--out', at('b.csr')]).exit).toBe(0)
  const taken = await run('csr', 'submit', at('b.csr'), ...user)
  expect(taken.exit).toBe(3)
  expect(taken.stderr).toContain('KCERT_API_CONFLICT')
  expect(taken.stderr).toContain('it is for another key')
})

test('a certificate for another key is not taken', async () => {
  makeRequest()
  await run('csr', 'submit', at('a.csr'), ...user)
  decide('Approved')
  expect(kcert(['key', 'generate', '--out', at('b.pem')]).exit).toBe(0)
  const wrong = await run('csr', 'fetch', name, '--wait', '10s', '--key', at('b.pem'), '--out', at('a.crt'))
  expect(wrong.exit).toBe(3)
  expect(wrong.stderr).toContain('KCERT_CERTIFICATE_UNFIT')
  expect(existsSync(at('a.crt'))).toBe(false)
})

test('a Secret is printed only when its key may be, and goes to a file that nobody else reads', async () => {
  makeRequest('--dns', 'my-svc')
  await run('csr', 'submit', at('a.csr'), ...user)
  decide('Approved')
  const fetch = (...more: string[]) =>
    run(
      'csr',
      'fetch',
      name,
      '--wait',
      '10s',
      '--key',
      at('key.pem'),
      '--secret',
      'server.my-ns',
      '-o',
      'manifest',
      ...more,
    )
  const refused = await fetch()
  expect(refused.exit).toBe(5)
  expect(refused.stderr).toContain('KCERT_KEY_EXPOSED')
  expect(refused.stdout).toBe('')
  const filed = await fetch('--configmap', 'ca.my-ns', '--out', at('secret.yaml'))
  expect(filed).toMatchObject({ exit: 0, stdout: '' })
  expect(statSync(at('secret.yaml')).mode & 0o777).toBe(0o600)
  const printed = await fetch('--configmap', 'ca.my-ns', '--print-key')
  expect(printed.stdout).toBe(readFileSync(at('secret.yaml'), 'utf8'))
  expect(printed.stdout).toMatch(
    /kind: Secret[\s\S]*type: kubernetes.io\/tls[\s\S]*---[\s\S]*kind: ConfigMap/,
  )
})

function request(...more: string[]): string[] {
  return [
    'csr',
    'request',
    '--user',
    name,
    '--key-out',
    at('key.pem'),
    '--out',
    at('a.crt'),
    '--kubeconfig-out',
    at('a.conf'),
    ...more,
  ]
}

/** Approves as soon as the object is there. */
async function approveWhenThere(): Promise<void> {
  while (stored() === undefined) await new Promise((resolve) => setTimeout(resolve, 20))
  if (stored()?.status?.conditions === undefined) decide('Approved')
}

test('in one go: key, request, object, certificate, and a kubeconfig by which the user is known', async () => {
  const [session] = await Promise.all([run(...request('--wait', '30s')), approveWhenThere()])
  expect(session).toMatchObject({ exit: 0 })
  expect(session.stderr).toMatch(new RegExp(`submitted as ${name}[^]*issued[^]*kubeconfig .* written`))
  for (const file of ['key.pem', 'a.conf']) expect(statSync(at(file)).mode & 0o777).toBe(0o600)
  const asUser = await kcertBeside(['csr', 'list'], { env: { KUBECONFIG: at('a.conf') } })
  expect(asUser.exit).toBe(3)
  expect(asUser.stderr).toContain(`User "${name}" cannot list`)

  const again = await run(...request())
  expect(again).toMatchObject({ exit: 0 })
  expect(again.stderr).toContain('is there already')
})

test('when the time is over the same command goes on: same key, same object', async () => {
  const over = await run(...request('--wait', '1s'))
  expect(over.exit).toBe(4)
  expect(over.stderr).toContain(`waiting for an approver: kcert csr approve ${name}`)
  expect(over.stderr).toContain('KCERT_CSR_WAIT_OVER')
  expect(over.stderr).toContain(`next: kcert csr explain ${name}`)
  const key = readFileSync(at('key.pem'), 'utf8')
  const uid = stored()?.metadata.uid
  decide('Approved')
  expect((await run(...request('--wait', '30s'))).exit).toBe(0)
  expect(readFileSync(at('key.pem'), 'utf8')).toBe(key)
  expect(stored()?.metadata.uid).toBe(uid)
})

test('a request whose file was lost is found again by its key', async () => {
  await run(...request('--wait', '1s'))
  const { rmSync } = await import('node:fs')
  rmSync(at('a.csr'))
  decide('Approved')
  const session = await run(...request('--wait', '30s'))
  expect(session).toMatchObject({ exit: 0 })
  expect(session.stderr).toContain('is on the cluster already')
})

test('Ctrl-C loses nothing', async () => {
  const stop = new AbortController()
  const before = server.calls.length
  const running = kcertBeside(request('--wait', '1m'), {
    env: { KUBECONFIG: join(folder, 'admin.conf') },
    signal: stop.signal,
  })
  while (stored() === undefined) await new Promise((resolve) => setTimeout(resolve, 20))
  // It watches by now, or is about to.
  while (!server.calls.slice(before).some((call) => call.verb === 'watch'))
    await new Promise((resolve) => setTimeout(resolve, 20))
  stop.abort()
  expect((await running).exit).toBe(4)
  decide('Approved')
  expect((await run(...request('--wait', '30s'))).exit).toBe(0)
})

test('a denial ends the wait, and says why', async () => {
  await run(...request('--wait', '1s'))
  decide('Denied', 'NotToday', 'ask Bob first')
  const denied = await run(...request('--wait', '30s'))
  expect(denied.exit).toBe(3)
  expect(denied.stderr).toContain('was denied')
  expect(denied.stderr).toContain('why: NotToday: ask Bob first')
  expect((await run('csr', 'explain', name)).stdout).toContain('NotToday: ask Bob first')
})

test('other names than those of an earlier run are not asked for with its files', async () => {
  await run(...request('--wait', '1s'))
  const other = await run(...request('--org', 'dev', '--wait', '1s'))
  expect(other.exit).toBe(5)
  expect(other.stderr).toContain('asks for something else')
})

const kinds: readonly FaultKind[] = [
  'conflict',
  'too-many-requests',
  'internal',
  'internal-after',
  'unavailable',
  'reset-before',
  'reset-after',
  'hang',
  'hang-after',
  'cut',
]

// Every call of the command is hit once by every fault: create, watch (and its list), and get after a create that was cut off.
test.each(kinds.flatMap((kind) => ['create', 'list', 'watch'].map((verb) => [kind, verb] as const)))(
  'request survives %s at %s, or says to run it again, and the second run ends it with the same object',
  async (kind, verb) => {
    server.faults.add({ kind, verb, resource: key.resource, retryAfterSeconds: 0 })
    const args = request('--wait', '30s', '--request-timeout', '1s')
    const [first] = await Promise.all([run(...args), approveWhenThereOrGone()])
    if (first.exit !== 0) {
      expect([3, 4]).toContain(first.exit)
      server.faults.clear()
      const [second] = await Promise.all([run(...args), approveWhenThere()])
      expect(second).toMatchObject({ exit: 0 })
    }
    expect(server.all(key).filter(({ metadata }) => metadata.name === name)).toHaveLength(1)
    const certificate = kcert(['inspect', at('a.crt'), at('key.pem'), '-o', 'json'])
    expect(certificate.stdout).toContain('"matches": true')
  },
  90_000,
)

/** As approveWhenThere, for runs that may end before there is anything. */
async function approveWhenThereOrGone(): Promise<void> {
  for (let tries = 0; tries < 500 && stored() === undefined; tries++)
    await new Promise((resolve) => setTimeout(resolve, 20))
  if (stored() !== undefined && stored()?.status?.conditions === undefined) decide('Approved')
}

test.each(kinds)('fetch survives %s, or says to run it again', async (kind) => {
  makeRequest()
  await run('csr', 'submit', at('a.csr'), ...user)
  decide('Approved')
  server.faults.add({ kind, verb: 'get', resource: key.resource, retryAfterSeconds: 0 })
  const fetch = () =>
    run('csr', 'fetch', name, '--key', at('key.pem'), '--out', at('a.crt'), '--request-timeout', '1s')
  await new Promise((resolve) => setTimeout(resolve, 300))
  const first = await fetch()
  if (first.exit !== 0) expect((await fetch()).exit).toBe(0)
  expect(kcert(['inspect', at('a.crt'), at('key.pem'), '-o', 'json']).stdout).toContain('"matches": true')
})

test('every report is valid by its schema, and no private key is in any', async () => {
  const session = Promise.all([run(...request('--wait', '30s', '-o', 'json')), approveWhenThere()])
  const [{ stdout: requested }] = await session
  const documents = [
    ['FetchedCertificate', requested],
    ['FetchedCertificate', (await run('csr', 'fetch', name, '-o', 'json')).stdout],
    ['RequestList', (await run('csr', 'list', '-o', 'json')).stdout],
    ['RequestDescriptions', (await run('csr', 'describe', name, 'absent', '-o', 'json')).stdout],
    ['RequestExplanation', (await run('csr', 'explain', name, '-o', 'json')).stdout],
    [
      'SubmittedRequests',
      (await run('csr', 'submit', at('a.csr'), '--name', `${name}-again`, ...user, '-o', 'json')).stdout,
    ],
  ] as const
  for (const [kind, text] of documents) {
    expect(violations(kind, JSON.parse(text)), kind).toEqual([])
    expect(text).not.toMatch(/PRIVATE KEY/)
  }
})

test('hostile names reach no terminal as they are', async () => {
  const object = {
    metadata: { name: 'evil\u001b[31m\u202e' },
    spec: { request: 'bm90aGluZw==', signerName: 'example.com/a\u0007', usages: ['client auth'] },
  }
  server.put(key, object)
  for (const args of [['list'], ['list', '-o', 'name'], ['list', '-o', 'json']]) {
    const { stdout } = await run('csr', ...args)
    expect(stdout).not.toMatch(/[\u0007\u001b\u202e]/)
  }
  server.remove(key, object.metadata.name)
})

test('a name that is neither a file nor an object is said to be neither', async () => {
  const { exit, stderr } = await run('csr', 'check', 'no-such-thing')
  expect(exit).toBe(2)
  expect(stderr).toContain(
    'no-such-thing does not exist, and neither is there a request of this name on the cluster',
  )
})
