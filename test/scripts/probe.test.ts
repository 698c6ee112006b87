import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { ProbeReport } from '../../src/probe/report.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { putServing } from './cluster-session.ts'
import { kcertBeside } from './program.ts'
import { client, createCa, folderWith, issued } from './small-pki.ts'

const ca = createCa()
const names = { dns: ['kubernetes'], ip: ['127.0.0.1'] }
const server = issued(
  { subject: { commonName: 'kube-apiserver' }, extendedKeyUsage: ['serverAuth'], subjectAltNames: names },
  ca,
)

const refusing = (socket: TLSSocket) =>
  socket.once('data', () => socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n'))

async function serving(
  options: TlsOptions = {},
  answer: (socket: TLSSocket) => void = refusing,
): Promise<number> {
  const listening = createServer({ cert: server.pem, key: server.keyPem, ...options }, (socket) => {
    socket.on('error', () => {})
    answer(socket)
  })
  listening.on('tlsClientError', () => {})
  onTestFinished(() => void listening.close())
  await new Promise<void>((ready) => listening.listen(0, '127.0.0.1', ready))
  return (listening.address() as AddressInfo).port
}

const reportIn = (text: string): ProbeReport => JSON.parse(text) as ProbeReport

test('checks HOST:PORT against --ca, names and a client certificate, and exits with 3 if one fails', async () => {
  const admin = client('admin', createCa('somebody else'))
  const cwd = folderWith({ 'ca.crt': ca.pem, 'admin.pem': admin.pem + admin.keyPem })
  const port = await serving({ requestCert: true, rejectUnauthorized: false, ca: ca.pem })
  const good = await kcertBeside(['probe', `127.0.0.1:${port}`, '--ca', 'ca.crt', '-o', 'json'], { cwd })
  expect([good.stderr, good.exit]).toEqual(['', 0])
  expect(reportIn(good.stdout).endpoints).toMatchObject([
    {
      name: `127.0.0.1:${port}`,
      status: 'ok',
      version: 'TLSv1.3',
      verdicts: [{ by: '--ca', trusted: true }],
      clientCas: ['CN=kubernetes'],
      client: { verdict: 'not-tested' },
    },
  ])
  const bad = await kcertBeside(
    [
      ...[
        'probe',
        `https://127.0.0.1:${port}/livez`,
        '--ca',
        'ca.crt',
        '--name',
        'example.com',
        '--tls',
        '1.2',
      ],
      ...['--client-certificate', 'admin.pem'],
    ],
    { cwd },
  )
  expect(bad.exit).toBe(3)
  expect(bad.stdout).toContain('TLSv1.2')
  expect(bad.stdout).toContain('NAME_NOT_COVERED: it is not valid for example.com')
  expect(bad.stdout).toContain(
    'CLIENT_REFUSED: it refuses the client certificate CN=admin of admin.pem: HTTP 401',
  )
})

test('fails with CLIENT_UNKNOWN where a server sends neither a TLS alert nor an HTTP status', async () => {
  const admin = client('admin', ca)
  const cwd = folderWith({ 'ca.crt': ca.pem, 'admin.pem': admin.pem + admin.keyPem })
  let accepted = 0
  const answers = {
    'closes at once': (socket: TLSSocket) => socket.end(),
    'closes after the request': (socket: TLSSocket) => socket.once('data', () => socket.end()),
    'resets the connection': (socket: TLSSocket) => socket.once('data', () => socket.destroy()),
    'speaks another protocol': (socket: TLSSocket) => socket.once('data', () => socket.end('-ERR\r\n')),
  }
  for (const [how, answer] of Object.entries(answers)) {
    const port = await serving({ requestCert: true, ca: ca.pem }, (socket) => {
      if (socket.authorized) accepted++
      answer(socket)
    })
    const args = ['probe', `127.0.0.1:${port}`, '--ca', 'ca.crt', '--client-certificate', 'admin.pem']
    const { stdout, exit } = await kcertBeside([...args, '-o', 'json'], { cwd })
    const [endpoint] = reportIn(stdout).endpoints
    expect([endpoint!.client?.verdict, endpoint!.status, exit], how).toEqual(['unknown', 'failed', 3])
    expect(endpoint!.problems, how).toEqual([
      {
        code: 'CLIENT_UNKNOWN',
        message: expect.stringContaining(
          'unknown whether it accepts the client certificate CN=admin of admin.pem: ',
        ),
        next: `kcert probe 127.0.0.1:${port} -o json`,
      },
    ])
  }
  expect(accepted).toBeGreaterThanOrEqual(4)
})

test('accepts a server that requests no client certificate although one is given', async () => {
  const admin = client('admin', ca)
  const cwd = folderWith({ 'ca.crt': ca.pem, 'admin.pem': admin.pem + admin.keyPem })
  const port = await serving({}, (socket) => socket.end())
  const args = ['probe', `127.0.0.1:${port}`, '--ca', 'ca.crt', '--client-certificate', 'admin.pem']
  const { stdout, exit } = await kcertBeside([...args, '-o', 'json'], { cwd })
  const [endpoint] = reportIn(stdout).endpoints
  expect([endpoint!.client, endpoint!.problems, exit]).toEqual([{ verdict: 'not-requested' }, [], 0])
})

test('exits with 4 for an unreachable server, 3 for a server without TLS, and 2 for wrong usage', async () => {
  const plain = createTcpServer((socket) => socket.end('SSH-2.0-x\r\n'))
  onTestFinished(() => void plain.close())
  await new Promise<void>((ready) => plain.listen(0, '127.0.0.1', ready))
  const { port } = plain.address() as AddressInfo
  const sessions = await Promise.all(
    [['127.0.0.1:1'], [`127.0.0.1:${port}`], [], ['kubernetes'], ['--name', 'x', '--nodes']].map((args) =>
      kcertBeside(['probe', ...args]),
    ),
  )
  expect(sessions.map(({ exit }) => exit)).toEqual([4, 3, 2, 2, 2])
  expect(sessions[0]!.stdout).toContain('UNREACHABLE: connection refused: nothing listens there')
  expect(sessions[1]!.stdout).toContain('NO_CERTIFICATE: the server does not use TLS')
  expect(sessions[2]!.stderr).toContain('next: kcert probe --all')
  expect(sessions[3]!.stderr).toContain('next: kcert probe kubernetes:6443')
})

let cluster: FakeApiServer
beforeAll(async () => {
  cluster = await startApiServer()
})
afterAll(() => cluster.close())

function putNode(name: string, port: number, server = cluster): void {
  server.put(
    { group: '', version: 'v1', resource: 'nodes' },
    {
      metadata: { name },
      status: {
        addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
        daemonEndpoints: { kubeletEndpoint: { Port: port } },
      },
    },
  )
}

test('finds API servers and kubelets through the API, and reports a kubelet that still serves its old certificate', async () => {
  // It expired an hour ago, and was renewed before that.
  const issue = (notAfter?: Date) =>
    cluster.issue('system:node:node-1', ['system:nodes'], {
      usage: 'serverAuth',
      names,
      ...(notAfter && { notAfter }),
    })
  const old = issue(new Date(Date.now() - 3_600_000))
  const renewed = issue()
  putNode('node-1', await serving({ cert: old.certificate, key: old.key }))
  const certificate = Buffer.from(renewed.certificate).toString('base64')
  putServing(cluster, 'csr-new', {}, { status: { certificate } })
  const folder = folderWith({})
  const kubeconfig = cluster.writeKubeconfig(join(folder, 'admin.conf'))
  const args = ['probe', '--api-servers', '--nodes', '--kubeconfig', kubeconfig, '-o', 'json']
  const { stdout, stderr, exit } = await kcertBeside(args)
  expect([stderr, exit]).toEqual(['', 3])
  const [api, kubelet] = reportIn(stdout).endpoints
  expect(api).toMatchObject({
    kind: 'api-server',
    status: 'ok',
    verdicts: [{ by: 'cluster CA', trusted: true }],
    client: { source: 'kubeconfig user someone', verdict: 'accepted', detail: 'as kubernetes-admin' },
  })
  expect(kubelet).toMatchObject({
    name: 'kubelet node-1',
    isVerified: false,
    issued: { source: 'csr/csr-new', state: 'renewed-not-served' },
    problems: [{ code: 'CERT_EXPIRED' }, { code: 'OLD_CERTIFICATE_SERVED' }],
  })
})

test('ignores a certificate that a kubelet requested before its restart and never used', async () => {
  let now = new Date()
  const own = await startApiServer({ now: () => now })
  onTestFinished(() => own.close())
  const atSecond = (second: number): void => {
    now = new Date(Math.floor(Date.now() / 1000) * 1000 - 60_000 + second * 1000)
  }
  const issue = () => own.issue('system:node:node-1', ['system:nodes'], { usage: 'serverAuth', names })
  const put = (name: string, pem: string): void =>
    putServing(own, name, {}, { status: { certificate: Buffer.from(pem).toString('base64') } })
  // Requested at 0 s and 4 s; issued in reverse order, a second apart.
  atSecond(14)
  const taken = issue()
  atSecond(15)
  const abandoned = issue()
  atSecond(0)
  put('csr-abandoned', abandoned.certificate)
  atSecond(4)
  put('csr-taken', taken.certificate)
  putNode('node-1', await serving({ cert: taken.certificate, key: taken.key }), own)
  const kubeconfig = own.writeKubeconfig(join(folderWith({}), 'admin.conf'))
  const { stdout, exit } = await kcertBeside(['probe', '--nodes', '--kubeconfig', kubeconfig, '-o', 'json'])
  const [kubelet] = reportIn(stdout).endpoints
  expect(kubelet).toMatchObject({ issued: { source: 'csr/csr-taken', state: 'served' }, problems: [] })
  expect(exit).toBe(0)
})

test("adds a note for a server at a node's address that is not its kubelet, or a kubelet with a custom certificate file", async () => {
  const { certificate: cert, key } = cluster.issue('printer', [], { usage: 'serverAuth', names })
  putNode('node-1', await serving({ cert, key }))
  const kubeconfig = cluster.writeKubeconfig(join(folderWith({}), 'admin.conf'))
  const { stdout } = await kcertBeside(['probe', '--nodes', '--kubeconfig', kubeconfig])
  expect(stdout).toMatch(
    /^note: the server at 127\.0\.0\.1:\d+ serves a certificate for CN=printer, which is not one that a kubelet/m,
  )
  expect(stdout).not.toContain('OLD_CERTIFICATE_SERVED')
})
