import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { type FakeCluster, fakeCluster, writeKubeconfig } from '../../test/cluster/fake-cluster.ts'
import type { Cluster, ClusterOptions } from './cluster.ts'

// Credentials for the API server: certificates, tokens, files, programs and proxies.

const ann = { username: 'ann', groups: ['shop'] }
const path = process.env.PATH

function addressed({ server }: FakeCluster): Record<string, unknown> {
  return {
    server: server.url,
    'certificate-authority-data': Buffer.from(server.caPem).toString('base64'),
  }
}

/** A credential program with the body `script`. The file `input` records its input. */
function program({ folder }: FakeCluster, script: string): Record<string, unknown> {
  const command = join(folder, 'login')
  const input = join(folder, 'input')
  writeFileSync(command, `#!/bin/sh\nprintf '%s\\n' "$KUBERNETES_EXEC_INFO" >> ${input}\n${script}\n`)
  chmodSync(command, 0o755)
  return { apiVersion: 'client.authentication.k8s.io/v1', command: './login', interactiveMode: 'Never' }
}

const credential = (status: object): string =>
  `echo '${JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status })}'`

async function openWithUser(
  fake: FakeCluster,
  user: object,
  options: Partial<ClusterOptions> = {},
): Promise<Cluster> {
  const file = writeKubeconfig(join(fake.folder, 'user'), addressed(fake), user)
  return fake.open(file, { surroundings: { env: { PATH: path }, stdinIsTerminal: false }, ...options })
}

const nameOf = async (cluster: Cluster): Promise<string | undefined> =>
  (await cluster.access.whoAmI())?.username

test('presents a client certificate, inline or in files next to the kubeconfig', async () => {
  const fake = await fakeCluster()
  const { certificate, key } = fake.server.issue('ann', ['shop'], { usage: 'clientAuth' })
  writeFileSync(join(fake.folder, 'ann.crt'), certificate)
  writeFileSync(join(fake.folder, 'ann.key'), key)
  const inFiles = await openWithUser(fake, { 'client-certificate': 'ann.crt', 'client-key': 'ann.key' })
  expect(await nameOf(inFiles)).toBe('ann')
  expect(inFiles.user).toMatchObject({
    name: 'u',
    credential: 'client certificate',
    certificate: { subject: 'CN=ann,O=shop', file: join(fake.folder, 'ann.crt') },
  })
})

test('prefers inline data to a named file', async () => {
  const fake = await fakeCluster()
  const { certificate, key } = fake.server.issue('ann', [], { usage: 'clientAuth' })
  const encoded = (text: string): string => Buffer.from(text).toString('base64')
  const user = {
    'client-certificate': 'absent',
    'client-certificate-data': encoded(certificate),
    'client-key': 'absent',
    'client-key-data': encoded(key),
  }
  expect(await nameOf(await openWithUser(fake, user))).toBe('ann')
})

test('reads a token file with a newline, and reads it again when the server rejects its token', async () => {
  const fake = await fakeCluster({ tokens: { second: ann } })
  const file = join(fake.folder, 'token')
  writeFileSync(file, 'first\n')
  const cluster = await openWithUser(fake, { tokenFile: 'token' })
  await expect(nameOf(cluster)).rejects.toMatchObject({ code: 'KCERT_API_UNAUTHORIZED' })
  writeFileSync(file, 'second\n')
  expect(await nameOf(cluster)).toBe('ann')
})

test('prefers a token to a token file and a program', async () => {
  const fake = await fakeCluster({ tokens: { known: ann } })
  const user = { token: 'known', tokenFile: 'absent', exec: program(fake, 'exit 1') }
  expect(await nameOf(await openWithUser(fake, user))).toBe('ann')
})

test('passes the exec information and the server to a credential program', async () => {
  const fake = await fakeCluster({ tokens: { known: ann } })
  const exec = { ...program(fake, credential({ token: 'known' })), provideClusterInfo: true }
  expect(await nameOf(await openWithUser(fake, { exec }))).toBe('ann')
  expect(JSON.parse(readFileSync(join(fake.folder, 'input'), 'utf8'))).toEqual({
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: { interactive: false, cluster: addressed(fake) },
  })
})

test('runs a credential program with its arguments and environment', async () => {
  const fake = await fakeCluster({ tokens: { 'known-by-flag': ann } })
  const answer = credential({ token: 'TOKEN' }).replace('TOKEN', `'"$A"-by-"$1"'`)
  const exec = { ...program(fake, answer), args: ['flag'], env: [{ name: 'A', value: 'known' }] }
  expect(await nameOf(await openWithUser(fake, { exec }))).toBe('ann')
})

test('accepts a client certificate from a credential program', async () => {
  const fake = await fakeCluster()
  const issued = fake.server.issue('ann', [], { usage: 'clientAuth' })
  const status = { clientCertificateData: issued.certificate, clientKeyData: issued.key }
  writeFileSync(
    join(fake.folder, 'answer'),
    JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status }),
  )
  const exec = program(fake, `cat ${join(fake.folder, 'answer')}`)
  expect(await nameOf(await openWithUser(fake, { exec }))).toBe('ann')
})

test('runs a program once, again when its credential expires, and again when the server rejects it', async () => {
  const fake = await fakeCluster({ tokens: { known: ann } })
  let now = new Date('2026-11-21T12:00:00Z')
  const answer = credential({ token: 'known', expirationTimestamp: '2026-11-21T12:00:30Z' })
  const cluster = await openWithUser(fake, { exec: program(fake, answer) }, { clock: () => now })
  const runs = (): number => readFileSync(join(fake.folder, 'input'), 'utf8').trim().split('\n').length
  await Promise.all([nameOf(cluster), nameOf(cluster)])
  await nameOf(cluster)
  expect(runs()).toBe(1)
  now = new Date('2026-11-21T12:00:31Z')
  await nameOf(cluster)
  expect(runs()).toBe(2)
  program(fake, credential({ token: 'unknown', expirationTimestamp: '2026-11-21T12:00:30Z' }))
  await expect(nameOf(cluster)).rejects.toMatchObject({ code: 'KCERT_API_UNAUTHORIZED' })
  expect(runs()).toBe(4)
})

test.each([
  ['that is not there', { command: 'no-such-program' }, '', 'command not found'],
  ['that fails', {}, 'echo canary; exit 3', 'its exit code was 3'],
  ['that prints what is not JSON', {}, 'echo canary', 'it printed what is not JSON'],
  ['that prints nothing', {}, '', 'it printed what is not JSON'],
  ['that prints no credential', {}, credential({}), 'it printed neither a token nor a certificate'],
  [
    'that needs a terminal',
    { interactiveMode: 'Always' },
    '',
    'it needs a terminal (interactiveMode: Always), and standard input is not a terminal',
  ],
  ['of an old API', { apiVersion: 'client.authentication.k8s.io/v1alpha1' }, '', /clients support/],
])('reports a program %s without its output', async (_, fields, script, why) => {
  const fake = await fakeCluster()
  const cluster = await openWithUser(fake, { exec: { ...program(fake, script), ...fields } })
  const failure = await nameOf(cluster).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'KCERT_KUBECONFIG_UNUSABLE' })
  expect((failure as { why: string }).why).toMatch(why)
  expect(inspect(failure, { depth: 9 })).not.toContain('canary')
})

test('sends groups, UID and extra of an impersonated user', async () => {
  const fake = await fakeCluster()
  const { certificate, key } = fake.server.issue('root', ['system:masters'], { usage: 'clientAuth' })
  const encoded = (text: string): string => Buffer.from(text).toString('base64')
  const cluster = await openWithUser(fake, {
    'client-certificate-data': encoded(certificate),
    'client-key-data': encoded(key),
    as: 'ann',
    'as-uid': '7',
    'as-groups': ['shop', 'staff'],
    'as-user-extra': { 'example.com/floor': ['3'] },
  })
  expect(await cluster.access.whoAmI()).toEqual({
    username: 'ann',
    uid: '7',
    groups: ['shop', 'staff', 'system:authenticated'],
    extra: { 'example.com/floor': ['3'] },
  })
})

// Each file is read at once, with limits on size and type. No network deadline ends the read of a file.
test.each(['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'])(
  'refuses a %s that is not a regular file, without waiting',
  async (field) => {
    const fake = await fakeCluster({ tokens: { known: ann } })
    execFileSync('mkfifo', [join(fake.folder, 'fifo')])
    for (const name of ['huge', 'empty']) writeFileSync(join(fake.folder, name), '')
    truncateSync(join(fake.folder, 'huge'), 20 * 1024 * 1024 + 1)
    for (const [file, why] of [
      ['/dev/zero', 'it is a device, which kcert does not read'],
      ['fifo', 'it is a FIFO, which kcert does not read'],
      ['.', 'it is a folder, which kcert does not read'],
      ['huge', 'it is larger than 20 MiB, the most that kcert reads of one file'],
      ['empty', 'it is empty'],
      ['/proc/self/mem', 'i/o error, read (EIO)'],
      ['none', 'it does not exist'],
    ] as const) {
      const path = join(fake.folder, file)
      const named = { [field]: file }
      const isCa = field === 'certificate-authority'
      const cluster = isCa ? { server: fake.server.url, ...named } : addressed(fake)
      const user = isCa ? { token: 'known' } : named
      const opened = await fake.open(writeKubeconfig(join(fake.folder, 'k'), cluster, user))
      const began = performance.now()
      await expect(nameOf(opened)).rejects.toMatchObject({
        code: 'KCERT_KUBECONFIG_UNUSABLE',
        message: `${field} ${file.startsWith('/') ? file : path} cannot be read`,
        why,
      })
      expect(performance.now() - began).toBeLessThan(5_000)
      if (isCa) expect(() => opened.connection()).toThrow('cannot be read')
    }
    expect(fake.server.calls).toEqual([])
  },
)

test('warns of a server that is not verified, and refuses a CA together with insecure-skip-tls-verify', async () => {
  const fake = await fakeCluster({ tokens: { known: ann } })
  const warnings: string[] = []
  const opening = (cluster: object): Promise<Cluster> =>
    fake.open(writeKubeconfig(join(fake.folder, 'k'), cluster, { token: 'known' }), {
      warn: (text) => warnings.push(text),
    })
  const insecure = { server: fake.server.url, 'insecure-skip-tls-verify': true }
  expect(await nameOf(await opening(insecure))).toBe('ann')
  await opening({ server: 'http://192.0.2.1:8080' })
  await opening({ server: 'http://127.0.0.1:8001' })
  await opening({ ...addressed(fake), 'insecure-skip-tls-verify': false })
  expect(warnings).toEqual([
    `${fake.server.url} is not verified: context "x" sets insecure-skip-tls-verify, so any server that answers receives your credentials`,
    'http://192.0.2.1:8080 is not verified: context "x" uses plain HTTP, so any server can answer; no credentials are sent',
  ])
  for (const field of ['certificate-authority', 'certificate-authority-data'])
    await expect(opening({ ...insecure, [field]: 'Y2E=' })).rejects.toMatchObject({
      code: 'KCERT_KUBECONFIG_UNUSABLE',
      message: expect.stringContaining(`has both ${field} and insecure-skip-tls-verify`),
      why: expect.stringContaining('kubectl refuses both together'),
    })
})

test('sends no credential over plain HTTP', async () => {
  const seen: unknown[] = []
  const plain = createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.end('{"kind":"NodeList","items":[],"metadata":{}}')
  })
  const fake = await fakeCluster()
  const server = `http://127.0.0.1:${await listen(plain)}`
  const cluster = await fake.open(writeKubeconfig(join(fake.folder, 'k'), { server }, { token: 'secret' }))
  for await (const _ of cluster.objects.list({ group: '', version: 'v1', resource: 'nodes' }));
  expect(seen).toEqual([undefined])
})

test.each(['proxy-url', 'HTTPS_PROXY'])(
  'uses the proxy of %s and still verifies the server',
  async (kind) => {
    const tunnels: (string | undefined)[] = []
    const proxy = createServer()
    proxy.on('connect', (request, socket) => {
      tunnels.push(request.url)
      // The proxy resolves the name to the fake server, as a proxy with its own DNS does.
      const target = connect(Number(request.url?.split(':')[1]), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        target.pipe(socket).pipe(target)
      })
      target.on('error', () => socket.destroy())
      socket.on('error', () => target.destroy())
    })
    const proxyUrl = `http://127.0.0.1:${await listen(proxy)}`
    const fake = await fakeCluster({ tokens: { known: ann }, servingNames: { dns: ['api.example.com'] } })
    const given = { ...addressed(fake), server: `https://api.example.com:${fake.server.port}` }
    const isFlag = kind === 'proxy-url'
    const openThrough = (cluster: object): Promise<Cluster> =>
      fake.open(writeKubeconfig(join(fake.folder, 'k'), cluster, { token: 'known' }), {
        surroundings: { env: isFlag ? {} : { HTTPS_PROXY: proxyUrl }, stdinIsTerminal: false },
      })
    const cluster = await openThrough({ ...given, ...(isFlag && { 'proxy-url': proxyUrl }) })
    expect(await Promise.all([nameOf(cluster), nameOf(cluster)])).toEqual(['ann', 'ann'])
    expect(await nameOf(cluster)).toBe('ann')
    expect(tunnels[0]).toBe(`api.example.com:${fake.server.port}`)
    expect(tunnels.length).toBeLessThanOrEqual(2)
    const stranger = await openThrough({
      ...given,
      server: `https://other.example.com:${fake.server.port}`,
      ...(isFlag && { 'proxy-url': proxyUrl }),
    })
    await expect(nameOf(stranger)).rejects.toMatchObject({ code: 'KCERT_API_UNTRUSTED' })
  },
)

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

test('closes the connections of credentials that were read again', async () => {
  const fake = await fakeCluster()
  const { certificate, key } = fake.server.issue('ann', ['shop'], { usage: 'clientAuth' })
  writeFileSync(join(fake.folder, 'ann.crt'), certificate)
  writeFileSync(join(fake.folder, 'ann.key'), key)
  let now = Date.now()
  const user = { 'client-certificate': 'ann.crt', 'client-key': 'ann.key' }
  const cluster = await openWithUser(fake, user, { clock: () => new Date(now) })
  for (let minute = 0; minute < 5; minute++) {
    expect(await nameOf(cluster)).toBe('ann')
    now += 60_000
  }
  await expect.poll(() => fake.server.openConnections).toBe(1)
})
