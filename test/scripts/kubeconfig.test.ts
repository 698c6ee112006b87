import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writePem } from '../../src/x509/pem.ts'
import { someCa } from '../bootstrap/some-ca.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { mlDsaKeys, mlDsaLeafOfEcdsaCa } from '../fixtures/ml-dsa.ts'
import { kcertBeside, type Session } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// `kcert kubeconfig` in whole-program runs: which fields change, which do not, and which contexts work afterwards.

const at = temporaryFolder('kubeconfig')
const token = 'some-token.of-a-service-account'
let server: FakeApiServer

beforeAll(async () => {
  server = await startApiServer({
    tokens: { [token]: { username: 'system:serviceaccount:a:b', groups: [] } },
  })
  const ann = server.issue('ann', ['dev'], { usage: 'clientAuth' })
  const bob = server.issue('bob', ['dev'], { usage: 'clientAuth' })
  const put = (name: string, text: string) => writeFileSync(join(at, name), text, { mode: 0o600 })
  put('ca.crt', server.caPem)
  put('other.crt', someCa('kubernetes', new Date()).pem)
  put('ann.crt', ann.certificate)
  put('ann.key', ann.key)
  put('bob.crt', bob.certificate)
  put('bob.key', bob.key)
  put('token', `${token}\n`)
  server.writeKubeconfig(join(at, 'admin.conf'))
})
afterAll(() => server?.close())

const withComments = (): string => `# mine
apiVersion: v1
kind: Config
current-context: ann@a   # the usual one
clusters:
- name: a
  cluster: {server: "${server.url}", certificate-authority: /nowhere/ca.crt}
- cluster:
    server: https://192.0.2.1:6443   # not this one
  name: b
users:
- name: ann
  user:
    client-certificate: old.crt
    client-key: old.key
contexts:
- {name: ann@a, context: {cluster: a, user: ann}}
`

function kcert(args: readonly string[], stdin = ''): Promise<Session> {
  return kcertBeside(args, { cwd: at, stdin, env: { KUBECONFIG: join(at, 'admin.conf') } })
}

async function report(args: readonly string[], kind: string, exit = 0, stdin = '') {
  const session = await kcert([...args, '-o', 'json'], stdin)
  expect([session.exit, session.stderr], args.join(' ')).toEqual([exit, ''])
  const document = JSON.parse(session.stdout) as Record<string, unknown>
  expect(violations(kind, document)).toEqual([])
  return document
}

test('sets CAs and client pair, changes nothing else, and verifies that the context works', async () => {
  const file = join(at, 'mine.conf')
  writeFileSync(file, withComments(), { mode: 0o640 })
  const ca = await report(['kubeconfig', 'set-ca', 'mine.conf', '--ca', 'ca.crt'], 'KubeconfigEdit')
  expect(ca).toMatchObject({ outcome: 'edited', clusters: ['a'] })
  const pair = ['--cert', 'ann.crt', '--key', 'ann.key', '--verify']
  const client = await report(['kubeconfig', 'set-client', 'mine.conf', ...pair], 'KubeconfigEdit')
  expect(client.contexts).toMatchObject([{ name: 'ann@a', outcome: 'works', username: 'ann' }])
  expect(JSON.stringify(client)).not.toContain('PRIVATE')

  const text = readFileSync(file, 'utf8')
  for (const line of [
    '# mine',
    'current-context: ann@a   # the usual one',
    '    server: https://192.0.2.1:6443   # not this one',
  ])
    expect(text.split('\n')).toContain(line)
  expect(text).not.toMatch(/nowhere|old\.(?:crt|key)/)
  expect(statSync(file).mode & 0o777).toBe(0o640)
  expect(readFileSync(join(at, String(ca.backup)), 'utf8')).toBe(withComments())
  const again = await report(['kubeconfig', 'set-ca', 'mine.conf', '--ca', 'ca.crt'], 'KubeconfigEdit')
  expect(again).toMatchObject({ outcome: 'unchanged', diff: [] })
})

test("writes a CA that did not issue the server's certificate, and --verify reports that the context does not work", async () => {
  writeFileSync(join(at, 'lost.conf'), readFileSync(join(at, 'admin.conf')))
  const args = ['kubeconfig', 'set-ca', 'lost.conf', '--ca', 'other.crt', '--verify']
  const edit = await report(args, 'KubeconfigEdit', 3)
  expect(edit.contexts).toMatchObject([{ outcome: 'fails', error: { code: 'KCERT_API_UNTRUSTED' } }])
})

test('a dry run shows the change without the key, and writes nothing', async () => {
  writeFileSync(join(at, 'dry.conf'), withComments())
  const before = readdirSync(at).length
  const args = ['kubeconfig', 'set-client', 'dry.conf', '--cert', 'ann.crt', '--key', 'ann.key', '--dry-run']
  const { exit, stdout } = await kcert(args)
  expect([exit, stdout]).toEqual([0, expect.stringContaining('client-key-data: (hidden)')])
  expect([readFileSync(join(at, 'dry.conf'), 'utf8'), readdirSync(at).length]).toEqual([
    withComments(),
    before,
  ])
})

test.each<[string, string[], string]>([
  ['another key', ['--cert', 'ann.crt', '--key', 'bob.key'], 'KCERT_CERTIFICATE_UNFIT'],
  [
    'a user that is not there',
    ['--cert', 'ann.crt', '--key', 'ann.key', '--user', 'x'],
    'KCERT_KUBECONFIG_UNUSABLE',
  ],
  ['a file that is none', ['--cert', 'token', '--key', 'ann.key'], 'KCERT_X509_MALFORMED'],
])('%s changes no kubeconfig', async (_, args, code) => {
  writeFileSync(join(at, 'kept.conf'), withComments())
  const { exit, stderr } = await kcert(['kubeconfig', 'set-client', 'kept.conf', ...args])
  expect([exit === 0, stderr]).toEqual([false, expect.stringContaining(code)])
  expect(readFileSync(join(at, 'kept.conf'), 'utf8')).toBe(withComments())
})

test('set-client without --client-key keeps the key of the user, inline or in its file', async () => {
  const pair = ['--client-certificate', 'ann.crt', '--client-key', 'ann.key']
  const set = (file: string, args: readonly string[]) =>
    report(['kubeconfig', 'set-client', file, ...args], 'KubeconfigEdit')
  writeFileSync(join(at, 'inline.conf'), withComments())
  await set('inline.conf', pair)
  await set('inline.conf', [...pair, '--embed-certs=false'])
  const byPath = readFileSync(join(at, 'inline.conf'), 'utf8')
  expect(byPath).toContain(`client-certificate: ${join(at, 'ann.crt')}`)
  // The path of the key is relative to the folder of the kubeconfig.
  writeFileSync(join(at, 'inline.conf'), byPath.replace(join(at, 'ann.key'), 'ann.key'))
  await set('inline.conf', ['--client-certificate', 'ann.crt'])
  expect(readFileSync(join(at, 'inline.conf'), 'utf8')).toContain('client-key: ann.key')
  await set('inline.conf', pair)
  const key = /client-key-data: .*/.exec(readFileSync(join(at, 'inline.conf'), 'utf8'))?.[0]
  await set('inline.conf', ['--client-certificate', 'ann.crt', '--no-embed-certs'])
  await set('inline.conf', ['--client-certificate', 'ann.crt', '--client-key', 'inline.conf'])
  expect(readFileSync(join(at, 'inline.conf'), 'utf8')).toContain(String(key))
})

test('set-client refuses a certificate that does not match the key of the user', async () => {
  writeFileSync(join(at, 'mismatch.conf'), withComments())
  const set = (...args: readonly string[]) => kcert(['kubeconfig', 'set-client', 'mismatch.conf', ...args])
  expect((await set('--client-certificate', 'bob.crt', '--client-key', 'bob.key')).exit).toBe(0)
  const before = readFileSync(join(at, 'mismatch.conf'), 'utf8')
  const { exit, stderr } = await set('--client-certificate', 'ann.crt')
  expect([exit, stderr]).toEqual([
    3,
    expect.stringContaining('the certificate in ann.crt does not match the key in mismatch.conf'),
  ])
  expect(readFileSync(join(at, 'mismatch.conf'), 'utf8')).toBe(before)
})

test('set-client names the missing flag if the user has no key', async () => {
  writeFileSync(join(at, 'keyless.conf'), withComments().replace(/ {4}client-key: .*\n/, ''))
  const { exit, stderr } = await kcert([
    'kubeconfig',
    'set-client',
    'keyless.conf',
    '--client-certificate',
    'ann.crt',
  ])
  expect([exit, stderr]).toEqual([
    2,
    expect.stringContaining('--client-key is required: user "ann" of keyless.conf has no key'),
  ])
})

test('create --no-embed-certs stores the absolute paths of certificate and key', async () => {
  const create = (...args: readonly string[]) =>
    kcert(['kubeconfig', 'create', '--no-embed-certs', '--out', 'paths.conf', ...args])
  expect((await create('--client-certificate', 'bob.crt', '--client-key', 'bob.key', '--verify')).exit).toBe(
    0,
  )
  const text = readFileSync(join(at, 'paths.conf'), 'utf8')
  expect(text).toContain(`client-certificate: ${join(at, 'bob.crt')}\n`)
  expect(text).toContain(`client-key: ${join(at, 'bob.key')}\n`)
  expect(text).not.toMatch(/client-\w+-data/)
  const { exit, stderr } = await create('--user', 'robot', '--token-file', 'bob.key')
  expect([exit, stderr]).toEqual([2, expect.stringContaining('--no-embed-certs needs --client-certificate')])
})

test('create names the Kubernetes versions that cannot use the key', async () => {
  const key = mlDsaKeys['ML-DSA-65']
  const certificate = mlDsaLeafOfEcdsaCa(key, {
    extendedKeyUsage: ['clientAuth'],
    notAfter: new Date('2099-01-01T00:00:00Z'),
  })
  writeFileSync(join(at, 'pq.crt'), writePem('CERTIFICATE', certificate))
  writeFileSync(join(at, 'pq.key'), key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  const pair = ['--client-certificate', 'pq.crt', '--client-key', 'pq.key']
  const { exit, stderr } = await kcert(['kubeconfig', 'create', ...pair, '--out', 'pq.conf'])
  const note =
    /^note: the key of pq\.crt is ML-DSA-65, which Kubernetes up to 1\.37 .* do not support; Kubernetes 1\.38/
  expect([exit, stderr]).toEqual([0, expect.stringMatching(note)])
})

test('creates a working kubeconfig from a pair and from a token, with and without a cluster', async () => {
  const pair = ['--cert', 'bob.crt', '--key', 'bob.key', '--verify']
  const bob = await report(['kubeconfig', 'create', ...pair, '--out', 'bob.conf'], 'CreatedKubeconfig')
  expect(bob).toMatchObject({
    user: 'bob',
    cluster: 'fake',
    contexts: [{ outcome: 'works', username: 'bob' }],
  })
  expect(statSync(join(at, 'bob.conf')).mode & 0o777).toBe(0o600)
  const place = ['--server', server.url, '--ca', 'ca.crt', '--user', 'robot', '--token-file', '-', '--verify']
  const robot = await report(
    ['kubeconfig', 'create', ...place, '--out', 'robot.conf'],
    'CreatedKubeconfig',
    0,
    token,
  )
  expect(robot).toMatchObject({
    credential: 'token',
    contexts: [{ outcome: 'works', username: 'system:serviceaccount:a:b' }],
  })
  expect(JSON.stringify(robot)).not.toContain(token)
  expect((await kcert(['kubeconfig', 'create', ...pair, '--out', 'bob.conf'])).exit).toBe(5)
})
