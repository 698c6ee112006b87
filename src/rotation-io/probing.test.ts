import { once } from 'node:events'
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { afterEach, expect, test, vi } from 'vitest'
import { certificatePem, keyPem, signedBy, testCa, testKey } from '../../test/pki/kubeadm-tree.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { FileContent } from '../pki/node-access.ts'
import type { ProbeSubject } from '../rotation/action.ts'
import { readCertificates } from '../x509/certificate.ts'
import { keyIdentifierOf } from '../x509/issuing.ts'
import { readPem } from '../x509/pem.ts'
import { CertificateRequest } from '../x509/request.ts'
import { Probing, verdictOf } from './probing.ts'

const begun = new Date(Date.now() - 86_400_000)
const ends = new Date(Date.now() + 86_400_000)
const oldCa = testCa('kubernetes', testKey('probing old'), begun)
const newCa = testCa('kubernetes-ca-2', testKey('probing new'), begun)
const namesake = testCa('kubernetes', testKey('probing namesake'), begun)

function leafOf(ca: typeof oldCa, notAfter = ends, commonName = 'kube-apiserver', more: object = {}) {
  const key = testKey('probing leaf')
  const der = signedBy(ca, {
    commonName,
    key,
    notBefore: new Date(begun.getTime() + 1_000),
    notAfter,
    extendedKeyUsage: ['serverAuth'],
    subjectAltNames: { dns: ['kubernetes'], ip: ['127.0.0.1'] },
    ...more,
  })
  const certificate = certificatePem(der)
  return { cert: certificate, certificate, key: keyPem(key) }
}

/** Returns an intermediate CA under the new CA, and its certificate. */
function intermediate() {
  const under = { ...newCa, key: testKey('probing under'), commonName: 'under' }
  const middle = signedBy(newCa, {
    commonName: 'under',
    key: under.key,
    notBefore: begun,
    notAfter: ends,
    basicConstraints: { ca: true },
    keyUsage: ['keyCertSign'],
  } as never)
  return { under, middle }
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listening(server: Server): Promise<number> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

interface Asked {
  readonly text: string
  /** Common name of the client certificate. */
  readonly client: string | undefined
}

/** An HTTPS server that sends this response to every request, and records the requests. */
function answering(
  options: TlsOptions,
  answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  asked: Asked[] = [],
): Promise<number> {
  const all = { requestCert: true, rejectUnauthorized: false, ...options }
  return listening(
    createServer(all, (socket: TLSSocket) => {
      socket.on('error', () => {})
      socket.once('data', (text) => {
        const { subject } = socket.getPeerCertificate() as { subject?: { CN?: string } }
        asked.push({ text: String(text), client: subject?.CN })
        socket.end(answer)
      })
    }).on('tlsClientError', () => {}),
  )
}

vi.mock('./watching-handshakes.ts', () => ({
  WatchingHandshakes: class {
    readonly given: object
    constructor(given: object) {
      this.given = given
    }
    async rate(subject: object, deadline: number) {
      return { watched: 'rate', subject, deadline, given: Object.keys(this.given) }
    }
    async errors(subject: object, deadline: number) {
      return { watched: 'errors', subject, deadline, given: Object.keys(this.given) }
    }
  },
}))

// The clock of the site is simulated, so nothing has to wait.
vi.mock('node:timers/promises', () => ({ setTimeout: async () => {} }))

interface Scene {
  readonly port?: number
  readonly files?: Readonly<Record<string, string>>
  readonly pods?: readonly object[]
  /** Responses of the API server to requests for logs. The last one repeats. */
  readonly logs?: readonly { readonly status: number; readonly body: string }[]
  readonly isNodeGone?: boolean
  readonly isOldCaGone?: boolean
  /** The certificate of the old CA. */
  readonly old?: Uint8Array
  readonly isStopped?: boolean
  readonly flags?: Readonly<Record<string, string>>
  readonly program?: string
  /** Arguments of its command line. */
  readonly words?: readonly string[]
  readonly apis?: readonly string[]
  readonly nodes?: readonly { readonly name: string; readonly addresses: readonly string[] }[]
  /** The request's status after its approval. */
  readonly signed?: object
  readonly named?: object
  readonly copies?: string
  readonly at?: number
  /** How long the API server takes to return a request. */
  readonly getMs?: number
}

function probing({
  port = 0,
  files = {},
  pods = [],
  logs = [{ status: 200, body: '' }],
  isNodeGone,
  isOldCaGone,
  old: oldCertificate = oldCa.certificate,
  isStopped,
  flags = {},
  program = 'kube-apiserver',
  words = ['--secure-port=7000'],
  apis = ['cp1'],
  nodes = [],
  signed,
  named = { name: 'kcert-signer-1', uid: 'u', resourceVersion: '1' },
  copies,
  at = 0,
  getMs = 10_000,
}: Scene) {
  const asked: string[] = []
  const did: [string, ...unknown[]][] = []
  let time = Date.now()
  const node = {
    name: 'cp1',
    processes: async ([wanted]: readonly string[]) =>
      isStopped || wanted !== program ? [] : [{ program, pid: 1, argv: [program, ...words] }],
    readFiles: async (paths: readonly string[]) =>
      paths.map((path): FileContent => {
        const text = files[path]
        if (text === undefined) return { path, found: 'absent' }
        return { path, found: 'file', content: Buffer.from(text), sha256: '' } as never
      }),
  }
  const [old, next] = [{ ...oldCa, certificate: oldCertificate }, newCa].map(({ certificate, key }) => ({
    certificate: readCertificates(Buffer.from(certificatePem(certificate)))[0]!,
    key,
  }))
  let request: { metadata: object; spec: object; status?: object } | undefined
  const site = {
    clock: () => new Date(time),
    dial: (...where: unknown[]) => {
      did.push(['dial', ...where])
      return connect(port, '127.0.0.1')
    },
    inventory: { nodes },
    objects: {
      async *list(...given: unknown[]) {
        did.push(['list', ...given])
        yield* pods
      },
      create: async (_: object, object: { metadata: object; spec: object }) => {
        did.push(['create', object])
        request = { ...object, metadata: { ...object.metadata, ...named } }
        return request
      },
      replace: async (target: object, object: { metadata: object; spec: object }) => {
        did.push(['replace', target, object])
        request = object
        return object
      },
      get: async () => {
        time += getMs
        did.push(['get'])
        return signed && { ...request, status: signed }
      },
      delete: async (target: object) => {
        did.push(['delete', target])
        throw new Error('forbidden')
      },
    },
  }
  const planes = {
    node: () => node,
    runningEtcd: async () => (await node.processes(['etcd']))[0],
    apiServers: async () => (isNodeGone ? [] : [{ node: 'cp1', flags }]),
    everyApiServer: async () => {
      if (isNodeGone) throw new KcertError('KCERT_UNREACHABLE', 'node cp2', { why: 'connection timed out' })
      return apis.map((name) => ({ node: name, flags }))
    },
  }
  const cas = {
    pair: async (ca: string, generation: 'old' | 'new') => {
      did.push(['pair', ca, generation])
      if (generation === 'old' && isOldCaGone)
        throw new KcertError('KCERT_ROTATION_REFUSED', 'the key of the old CA is on no node')
      return generation === 'old' ? old : next
    },
    bridge: async (ca: string) => {
      did.push(['bridge', ca])
      return next!.certificate
    },
  }
  const identity = {
    call: async (_: string, call: { path: string }) => {
      asked.push(call.path)
      did.push(['call', call])
      time += 500
      return logs[asked.length - 1] ?? logs.at(-1)
    },
    client: async (...given: unknown[]) => {
      did.push(['client', ...given])
      return leafOf(newCa, ends, 'kcert-rotation-probe')
    },
  }
  const one = new Probing({
    site: site as never,
    planes: planes as never,
    keys: undefined as never,
    table: undefined as never,
    cas: cas as never,
    identity: identity as never,
    copies: { rehearse: async (name: string) => (name === 'cp1' ? copies : 'another node') } as never,
  })
  const probe = (subject: ProbeSubject, deadlineMs = at) =>
    one.probe({ kind: 'probe', phase: 7, subject, deadlineMs })
  return { probe, asked, did, tried: (what: string) => did.filter(([kind]) => kind === what) }
}

const oldTrust = { kind: 'old-trust', at: 'cp1/kube-apiserver', expects: 'refused' } as const

test('a client that trusts only the old CA rejects a server of the new CA', async () => {
  const { probe } = probing({ port: await answering(leafOf(newCa)) })
  expect(await probe(oldTrust)).toEqual({
    ok: true,
    detail: expect.stringMatching(/^cp1\/kube-apiserver, trusting only the old CA: UNABLE_TO_/),
  })
})

test('a client that trusts only the old CA rejects a server of another CA with the same name', async () => {
  const { probe } = probing({ port: await answering(leafOf(namesake)) })
  expect(await probe(oldTrust)).toMatchObject({ ok: true })
})

test('fails while a client that trusts only the old CA accepts the server', async () => {
  const { probe } = probing({ port: await answering(leafOf(oldCa)) })
  expect(await probe(oldTrust)).toEqual({
    ok: false,
    detail: 'a client that trusts only the old CA still connects to cp1/kube-apiserver (200)',
  })
})

test('does not count a failure for another reason as distrust', async () => {
  const expired = leafOf(oldCa, new Date(begun.getTime() + 3_600_000))
  const closed = await listening(createTcpServer())
  servers.splice(0)[0]!.close()
  const hangingUp = await listening(createTcpServer((socket) => void socket.end()))
  const noTls = await listening(
    createTcpServer((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
  )
  for (const [port, words] of [
    [closed, 'ECONNREFUSED'],
    [hangingUp, /ECONNRESET|disconnected/],
    [noTls, /WRONG_VERSION|EPROTO/],
    [await answering(expired), 'CERT_HAS_EXPIRED'],
  ] as const) {
    const answer = await probing({ port }).probe(oldTrust)
    expect(answer).toEqual({ ok: false, detail: expect.stringMatching(words) })
  }
})

const etcd = {
  program: 'etcd',
  words: ['--listen-client-urls=http://127.0.0.1:1,https://127.0.0.1:2379'],
} as const
const etcdClient = { kind: 'client', at: 'cp1/etcd', ca: 'etcd' } as const

test.each([
  ['new', 'accepted', true],
  ['new', 'refused', false],
  ['old', 'refused', false],
] as const)(
  'a client of the %s etcd CA that is accepted, where %s is expected: ok is %s',
  async (generation, expects, ok) => {
    const asked: Asked[] = []
    const port = await answering(leafOf(newCa), undefined, asked)
    const { probe, tried } = probing({ port, ...etcd })
    const detail = `cp1/etcd, for a client of the ${generation} etcd CA: accepted (HTTP 200)`
    expect(await probe({ ...etcdClient, generation, expects })).toEqual({ ok, detail })
    expect(asked[0]!.text).toMatch(/^GET \/version HTTP/)
    // A client of the new CA presents the bridge certificate.
    expect(tried('bridge')).toEqual(
      Array.from(asked, () => ['bridge', 'etcd']).slice(generation === 'new' ? 0 : asked.length),
    )
    expect(tried('dial')[0]).toEqual(['dial', 'cp1', '127.0.0.1', 2379])
  },
)

test('does not count a closed connection as a refusal by etcd', async () => {
  const port = await listening(createTcpServer((socket) => void socket.end()))
  const subject = { ...etcdClient, generation: 'old', expects: 'refused' } as const
  expect(await probing({ port, ...etcd }).probe(subject)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('unknown'),
  })
})

test('a client that trusts only the old etcd CA uses the CA of etcd', async () => {
  const { probe, tried } = probing({ port: await answering(leafOf(newCa)), ...etcd })
  expect(await probe({ kind: 'old-trust', at: 'cp1/etcd', expects: 'refused' })).toMatchObject({ ok: true })
  expect(tried('pair')).toEqual([['pair', 'etcd', 'old']])
})

test('proves nothing about the old CA when it is missing', async () => {
  const { probe } = probing({ port: await answering(leafOf(newCa)), isOldCaGone: true })
  expect(await probe(oldTrust)).toEqual({ ok: false, detail: 'the key of the old CA is on no node' })
})

const id = 'cp1:/etc/kubernetes/x.conf'
const kubeconfig = (
  user: object,
  cluster: object = { 'certificate-authority-data': base64(newCa) },
  more: object = {},
) => ({
  '/etc/kubernetes/x.conf': JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: 'https://kubernetes:6443', ...cluster } }],
    users: [{ name: 'x', user }],
    ...more,
  }),
})

function base64({ certificate }: typeof oldCa): string {
  return Buffer.from(certificatePem(certificate)).toString('base64')
}

const reviewed = (username: string | undefined) => {
  const body = JSON.stringify({ status: { userInfo: { username } } })
  return `HTTP/1.1 201 Created\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

test('proves a kubeconfig when every API server returns its user name', async () => {
  const port = await answering(leafOf(newCa), reviewed('ann'))
  expect(
    await probing({ port, files: kubeconfig({ token: 't' }) }).probe({ kind: 'kubeconfig', id }),
  ).toEqual({
    ok: true,
    detail: `every API server authenticates ${id} as ann`,
  })
})

test.each([
  ['no user', reviewed(undefined), 'the API server returned no user name'],
  ['the anonymous user', reviewed('system:anonymous'), 'the API server returned no user name'],
  [
    'text that is not JSON',
    'HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok',
    'the API server returned no user name',
  ],
  ['a status of 200', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}', 'HTTP status 200'],
])('an answer of %s proves no kubeconfig', async (_, answer, words) => {
  const port = await answering(leafOf(newCa), answer)
  const { probe } = probing({ port, files: kubeconfig({ token: 't' }) })
  expect(await probe({ kind: 'kubeconfig', id })).toEqual({
    ok: false,
    detail: expect.stringContaining(words),
  })
})

test.each([
  [
    'whose CA file is missing',
    kubeconfig({ token: 't' }, { 'certificate-authority': 'ca.crt' }),
    'ca.crt, a file that /etc/kubernetes/x.conf refers to, cannot be read',
  ],
  [
    'whose client certificate is missing',
    kubeconfig({ 'client-certificate': '/no.crt', 'client-key': '/no.key' }),
    '/no.crt, a file that /etc/kubernetes/x.conf refers to, cannot be read',
  ],
  ['whose key is missing', kubeconfig({ 'client-certificate-data': base64(newCa) }), 'without a key'],
  ['that is missing', {}, 'cannot be read'],
])('a kubeconfig %s is not proven', async (_, files, words) => {
  const port = await answering(leafOf(newCa), reviewed('ann'))
  const answer = await probing({ port, files }).probe({ kind: 'kubeconfig', id })
  expect(answer).toEqual({ ok: false, detail: expect.stringContaining(words) })
})

test('does not prove kubeconfigs or logs at every API server while a control plane does not respond', async () => {
  const port = await answering(leafOf(newCa), reviewed('ann'))
  const { probe } = probing({ port, files: kubeconfig({ token: 't' }), isNodeGone: true })
  for (const subject of [
    { kind: 'kubeconfig', id },
    { kind: 'logs', node: 'w1' },
  ] as const) {
    expect(await probe(subject)).toEqual({ ok: false, detail: 'node cp2: connection timed out' })
  }
})

test('reads the health of the kubelet through the API server on a node without pods', async () => {
  const logs = { kind: 'logs', node: 'w1' } as const
  const well = probing({ port: 0 })
  expect(await well.probe(logs)).toMatchObject({ ok: true })
  expect(well.asked).toEqual(['/api/v1/nodes/w1/proxy/healthz'])
  const refused = probing({
    port: 0,
    logs: [{ status: 500, body: 'x509: certificate signed by unknown authority' }],
  })
  expect(await refused.probe(logs)).toEqual({
    ok: false,
    detail: 'health of the kubelet on w1 through cp1: 500 x509: certificate signed by unknown authority',
  })
})

test('names the missing binding when the client certificate of an API server has no permissions on kubelets', async () => {
  const body = 'Forbidden (user=kube-apiserver-kubelet-client, verb=get, resource=nodes, subresource=[log])'
  const { probe } = probing({ port: 0, logs: [{ status: 403, body }] })
  const { ok, detail } = await probe({ kind: 'logs', node: 'w1' })
  expect(ok).toBe(false)
  expect(detail).toBe(
    `health of the kubelet on w1 through cp1: 403 ${body}; to allow it: kubectl create clusterrolebinding kubeadm:apiserver-kubelet-client --clusterrole system:kubelet-api-admin --user kube-apiserver-kubelet-client`,
  )
  const other = probing({ port: 0, logs: [{ status: 403, body: body.replace('kube-apiserver', 'my') }] })
  expect((await other.probe({ kind: 'logs', node: 'w1' })).detail).not.toContain('kubectl')
  const broken = probing({ port: 0, logs: [{ status: 500, body }] })
  expect((await broken.probe({ kind: 'logs', node: 'w1' })).detail).not.toContain('kubectl')
})

test('counts a client as accepted only when the 403 response contains its name', () => {
  expect(verdictOf({ status: 401, body: 'Unauthorized' })).toBe('refused')
  const forbidden = (user: string) => ({
    status: 403,
    body: `forbidden: User "${user}" cannot get path "/metrics"`,
  })
  expect(verdictOf(forbidden('kcert-rotation-probe'))).toBe('accepted')
  expect(verdictOf(forbidden('system:anonymous'))).toBeUndefined()
  expect(verdictOf({ status: 500, body: 'kcert-rotation-probe' })).toBeUndefined()
})

test('repeats a failed probe until its deadline', async () => {
  const refused = { status: 500, body: 'not yet' }
  const logs = { kind: 'logs', node: 'w1' } as const
  const later = probing({ logs: [refused, refused, { status: 200, body: '' }] })
  expect(await later.probe(logs, 10_000)).toMatchObject({ ok: true })
  expect(later.asked).toHaveLength(3)
  const never = probing({ logs: [refused] })
  expect(await never.probe(logs, 1_000)).toMatchObject({ ok: false })
  // At 500 ms and at 1,000 ms, which is the deadline.
  expect(never.asked).toHaveLength(2)
  const once = probing({ logs: [{ status: 200, body: '' }] })
  expect(await once.probe(logs, 10_000)).toMatchObject({ ok: true })
  expect(once.asked).toHaveLength(1)
})

test.each(['rate', 'errors'] as const)('watches handshake-%s until the deadline', async (watched) => {
  const subject = { kind: `handshake-${watched}`, at: 'cp1/kube-apiserver', forMs: 1 } as never
  const answer = (await probing({}).probe(subject, 60_000)) as unknown as { deadline: number }
  expect(answer).toMatchObject({ watched, subject, given: ['site', 'planes', 'identity'] })
  expect(answer.deadline - Date.now()).toBeGreaterThan(30_000)
})

test('proves copies by a rehearsal', async () => {
  const copies = { kind: 'copies', node: 'cp1' } as const
  expect(await probing({}).probe(copies)).toEqual({ ok: true, detail: 'restored and compared' })
  expect(await probing({ copies: 'ca.crt differs' }).probe(copies)).toEqual({
    ok: false,
    detail: 'ca.crt differs',
  })
})

const forbidden = (user: string) => {
  const body = `${' '.repeat(10)}forbidden: User "${user}" ${'x'.repeat(300)}`
  return `HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}
const unauthorized = 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n'

test.each([
  [
    'accepted',
    forbidden('kcert-rotation-probe'),
    true,
    'cp1/kube-apiserver answers 403 to a client of the new cluster CA',
  ],
  ['accepted', unauthorized, false, 'cp1/kube-apiserver answers 401 to a client of the new cluster CA'],
  ['refused', unauthorized, true, 'cp1/kube-apiserver answers 401 to a client of the new cluster CA'],
  [
    'refused',
    forbidden('kcert-rotation-probe'),
    false,
    'cp1/kube-apiserver answers 403 to a client of the new cluster CA',
  ],
  [
    'accepted',
    forbidden('system:anonymous'),
    false,
    `cp1/kube-apiserver answers 403 to a client of the new cluster CA: forbidden: User "system:anonymous" ${'x'.repeat(155)}`,
  ],
] as const)('a client that must be %s: %#', async (expects, answer, ok, detail) => {
  const observed: Asked[] = []
  const { probe, tried } = probing({ port: await answering(leafOf(oldCa), answer, observed) })
  const subject = {
    kind: 'client',
    at: 'cp1/kube-apiserver',
    ca: 'cluster',
    generation: 'new',
    expects,
  } as const
  expect(await probe(subject)).toEqual({ ok, detail })
  expect(observed).toEqual([
    {
      text: expect.stringMatching(/^GET \/api\/v1\/namespaces\/kube-system\/secrets HTTP/),
      client: 'kcert-rotation-probe',
    },
  ])
  expect(observed[0]!.text).not.toContain('X-Remote-User')
  expect(tried('client')).toEqual([['client', 'cluster', 'new', { commonName: 'kcert-rotation-probe' }]])
  expect(tried('dial')).toEqual([['dial', 'cp1', '127.0.0.1', 7000]])
})

test.each([
  [{}, 'front-proxy-client'],
  [{ 'requestheader-allowed-names': 'aggregator,other' }, 'aggregator'],
])('gives a front-proxy client a name that API servers allow: %j', async (flags, commonName) => {
  const observed: Asked[] = []
  const program = 'kube-scheduler'
  const port = await answering(leafOf(oldCa), forbidden('kcert-rotation-probe'), observed)
  const { probe, tried } = probing({ port, flags, program })
  const at = 'cp1/kube-scheduler'
  expect(
    await probe({ kind: 'client', at, ca: 'front-proxy', generation: 'old', expects: 'accepted' }),
  ).toEqual({ ok: true, detail: `${at} answers 403 to a client of the old front-proxy CA` })
  expect(observed[0]!.text).toMatch(
    /^GET \/metrics HTTP\/1.1\r\n[\s\S]*X-Remote-User: kcert-rotation-probe\r\n/,
  )
  expect(tried('client')).toEqual([['client', 'front-proxy', 'old', { commonName }]])
})

test('gives a front-proxy client the default name of kubeadm when no API server is known', async () => {
  const port = await answering(leafOf(oldCa), unauthorized)
  const { probe, tried } = probing({ port, isNodeGone: true })
  await probe({
    kind: 'client',
    at: 'cp1/kube-apiserver',
    ca: 'front-proxy',
    generation: 'old',
    expects: 'refused',
  })
  expect(tried('client')[0]).toContainEqual({ commonName: 'front-proxy-client' })
})

test('proves nothing about a process that does not run', async () => {
  const { probe } = probing({ isStopped: true })
  expect(await probe(oldTrust)).toEqual({ ok: false, detail: 'cp1/kube-apiserver is not running' })
})

test('tests distrust with the old cluster CA, at a path that requires no permission', async () => {
  const observed: Asked[] = []
  const { probe, tried } = probing({ port: await answering(leafOf(oldCa), undefined, observed) })
  await probe(oldTrust)
  expect(observed[0]!.text).toMatch(/^GET \/healthz HTTP/)
  expect(tried('pair')).toEqual([['pair', 'cluster', 'old']])
})

/** Servers whose chains a client of the old CA rejects, each for a different reason. */
test.each([
  [
    'SELF_SIGNED_CERT_IN_CHAIN',
    () => ({ ...leafOf(newCa), cert: `${leafOf(newCa).cert}${certificatePem(newCa.certificate)}` }),
  ],
  [
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    () => ({ cert: certificatePem(newCa.certificate), key: keyPem(newCa.key) }),
  ],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', () => leafOf(newCa)],
  [
    'CERT_SIGNATURE_FAILURE',
    () => leafOf(namesake, ends, 'kube-apiserver', { authorityKeyId: keyIdentifierOf(oldCa.key) }),
  ],
  [
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    () => {
      const { under, middle } = intermediate()
      const leaf = leafOf(under)
      return { ...leaf, cert: `${leaf.cert}${certificatePem(middle)}` }
    },
  ],
] as const)('%s is distrust', async (code, options) => {
  const answer = await probing({ port: await answering(options()) }).probe(oldTrust)
  expect(answer).toEqual({ ok: true, detail: `cp1/kube-apiserver, trusting only the old CA: ${code}` })
})

test('a client whose only CA is an intermediate that signed the server shows no distrust', async () => {
  const { under, middle } = intermediate()
  const { probe } = probing({ port: await answering(leafOf(under)), old: middle })
  expect(await probe(oldTrust)).toMatchObject({ ok: false })
})

const signer = { kind: 'signer', generation: 'new' } as const
const issued = (ca: typeof oldCa) => ({ certificate: Buffer.from(leafOf(ca).cert).toString('base64') })

test('proves a signer with a request that it signs, and deletes the request', async () => {
  const { probe, did } = probing({ signed: issued(newCa) })
  expect(await probe(signer)).toEqual({
    ok: true,
    detail: expect.stringMatching(/^a test request was signed by CN=kubernetes-ca-2, key [0-9a-f:]{20,}$/i),
  })
  const [created, approved, , deleted] = did.filter(([kind]) => kind !== 'pair')
  expect(created).toEqual([
    'create',
    {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'kcert-signer-' },
      spec: {
        request: expect.any(String),
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        expirationSeconds: 600,
      },
    },
  ])
  const { request } = (created![1] as { spec: { request: string } }).spec
  const parsed = CertificateRequest.parse(readPem(Buffer.from(request, 'base64')).blocks[0]!.der)
  expect([parsed.subject.text, parsed.publicKey.curve]).toEqual(['CN=kcert-rotation-probe', 'P-256'])
  expect(approved).toEqual([
    'replace',
    expect.objectContaining({ name: 'kcert-signer-1', subresource: 'approval' }),
    expect.objectContaining({
      spec: expect.objectContaining({ request }),
      status: {
        conditions: [
          { type: 'Approved', status: 'True', reason: 'KcertRotation', message: 'which CA signs' },
        ],
      },
    }),
  ])
  expect(deleted).toEqual([
    'delete',
    {
      group: 'certificates.k8s.io',
      version: 'v1',
      resource: 'certificatesigningrequests',
      name: 'kcert-signer-1',
    },
  ])
  expect(did).toContainEqual(['pair', 'cluster', 'new'])
})

test.each([
  ['by the other CA', issued(oldCa), 'a test request was signed by CN=kubernetes, key '],
  ['by no controller', {}, 'no controller signed a test request within 25 s'],
  [
    'by no controller, without conditions',
    { conditions: [{ type: 'Approved' }] },
    'no controller signed a test request within 25 s',
  ],
  [
    'by a signer that fails',
    { conditions: [{ type: 'Approved' }, { type: 'Failed', message: 'no key' }] },
    'the signer refuses: no key',
  ],
  ['by a signer that fails without a message', { conditions: [{ type: 'Failed' }] }, 'the signer refuses: '],
  ['and deleted', undefined, 'no controller signed a test request within 25 s'],
])('proves no signer with a request signed %s', async (_, signed, words) => {
  const { probe, tried } = probing({ ...(signed && { signed }) })
  const answer = await probe(signer)
  expect(answer).toEqual({ ok: false, detail: expect.stringContaining(words) })
  if (words.startsWith('no controller') || words.endsWith(': ')) expect(answer.detail).toBe(words)
  expect([tried('get').length, tried('delete').length]).toEqual([
    words.startsWith('no controller') ? 3 : 1,
    1,
  ])
})

test('waits 25 s for the signature, and no longer', async () => {
  const { probe, tried } = probing({ signed: {}, getMs: 12_500 })
  expect(await probe(signer)).toMatchObject({ ok: false })
  expect(tried('get')).toHaveLength(2)
})

test('proves a signer whose certificates do not name its key', async () => {
  const { cert } = leafOf(newCa, ends, 'kcert-rotation-probe', { authorityKeyId: undefined })
  const signed = { certificate: Buffer.from(cert).toString('base64') }
  expect(await probing({ signed }).probe(signer)).toEqual({
    ok: true,
    detail: 'a test request was signed by CN=kubernetes-ca-2, key unnamed',
  })
})

test('tests a kubeconfig with its own CA, certificate and token', async () => {
  const observed: Asked[] = []
  const port = await answering(leafOf(newCa), reviewed('ann'), observed)
  const { certificate, key } = leafOf(newCa, ends, 'ann')
  const files = {
    ...kubeconfig(
      { token: 't', 'client-certificate': 'pki/ann.crt', 'client-key': '/keys/ann.key' },
      { 'certificate-authority': '../ca.crt' },
    ),
    '/etc/kubernetes/pki/ann.crt': certificate,
    '/keys/ann.key': key,
    '/etc/ca.crt': certificatePem(newCa.certificate),
  }
  const { probe, tried } = probing({ port, files })
  expect(await probe({ kind: 'kubeconfig', id })).toMatchObject({ ok: true })
  expect(observed).toEqual([{ text: expect.any(String), client: 'ann' }])
  const [{ text }] = observed as [Asked]
  expect(text).toMatch(/^POST \/apis\/authentication.k8s.io\/v1\/selfsubjectreviews HTTP\/1.1\r\n/)
  expect(text).toContain('\r\nAuthorization: Bearer t\r\n')
  expect(text).toContain('\r\nContent-Type: application/json\r\n')
  expect(text).toContain('{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}')
  expect(tried('dial')).toEqual([['dial', 'cp1', '127.0.0.1', 7000]])
})

test('sends no token for a kubeconfig with only a certificate, and no certificate for one with only a token', async () => {
  const { certificate, key } = leafOf(newCa, ends, 'ann')
  const pair = {
    'client-certificate-data': Buffer.from(certificate).toString('base64'),
    'client-key-data': Buffer.from(key).toString('base64'),
  }
  for (const [user, client] of [
    [pair, 'ann'],
    [{ token: 't' }, undefined],
  ] as const) {
    const observed: Asked[] = []
    const port = await answering(leafOf(newCa), reviewed('ann'), observed)
    expect(await probing({ port, files: kubeconfig(user) }).probe({ kind: 'kubeconfig', id })).toMatchObject({
      ok: true,
    })
    expect(observed[0]!.client).toBe(client)
    expect(observed[0]!.text.includes('Authorization')).toBe(client === undefined)
  }
})

test.each([
  ['whose CA did not sign the server', leafOf(oldCa), {}, /UNABLE_TO|unable to/],
  ['of another server name', leafOf(newCa), { server: 'https://elsewhere:6443' }, /elsewhere/],
  ['of another tls-server-name', leafOf(newCa), { 'tls-server-name': 'elsewhere' }, /elsewhere/],
])('a kubeconfig %s is not proven', async (_, leaf, cluster, words) => {
  const port = await answering(leaf, reviewed('ann'))
  const files = kubeconfig({ token: 't' }, { 'certificate-authority-data': base64(newCa), ...cluster })
  const answer = await probing({ port, files }).probe({ kind: 'kubeconfig', id })
  expect(answer).toEqual({ ok: false, detail: expect.stringMatching(words) })
})

test.each([
  ['without its own CAs, at a server of any CA', { 'certificate-authority-data': undefined }],
  ['without a server', { server: undefined }],
  [
    'with a tls-server-name that is in the certificate',
    { server: 'https://elsewhere', 'tls-server-name': 'kubernetes' },
  ],
])('a kubeconfig %s is proven', async (_, cluster) => {
  const port = await answering(leafOf(newCa), reviewed('ann'))
  const files = kubeconfig({ token: 't' }, { 'certificate-authority-data': base64(newCa), ...cluster })
  expect(await probing({ port, files }).probe({ kind: 'kubeconfig', id })).toMatchObject({ ok: true })
})

test('tests a kubeconfig that contains the address of a node with the own address of each other node', async () => {
  const files = kubeconfig(
    { token: 't' },
    { 'certificate-authority-data': base64(newCa), server: 'https://192.0.2.1:6443' },
  )
  const tryAt = async (apis: readonly string[], nodes: NonNullable<Scene['nodes']>) => {
    const port = await answering(leafOf(newCa), reviewed('ann'))
    return (await probing({ port, files, apis, nodes }).probe({ kind: 'kubeconfig', id })).detail
  }
  const [first, second] = [
    { name: 'cp1', addresses: ['192.0.2.1'] },
    { name: 'cp2', addresses: ['127.0.0.1', '192.0.2.9'] },
  ]
  expect(await tryAt(['cp2'], [first!, second!])).toBe(`every API server authenticates ${id} as ann`)
  expect(await tryAt(['cp2'], [first!, { name: 'cp2', addresses: [] }])).toBe(
    `every API server authenticates ${id} as ann`,
  )
  expect(await tryAt(['cp2'], [first!])).toBe(`every API server authenticates ${id} as ann`)
  expect(await tryAt(['cp1'], [first!, second!])).toContain('192.0.2.1')
  expect(await tryAt(['cp2'], [second!])).toContain('192.0.2.1')
  // On its own node, the address in the kubeconfig must be in the certificate, not just any address of the node.
  const several = { name: 'cp1', addresses: ['127.0.0.1', '192.0.2.1'] }
  expect(await tryAt(['cp1'], [several])).toContain('192.0.2.1')
})

test('accepts another node whose certificate contains its own address and not the name kubernetes', async () => {
  const files = kubeconfig(
    { token: 't' },
    { 'certificate-authority-data': base64(newCa), server: 'https://192.0.2.1:6443' },
  )
  const leaf = leafOf(newCa, ends, 'kube-apiserver', { subjectAltNames: { ip: ['127.0.0.1'] } })
  const port = await answering(leaf, reviewed('ann'))
  const nodes = [
    { name: 'cp1', addresses: ['192.0.2.1'] },
    { name: 'cp2', addresses: ['127.0.0.1'] },
  ]
  const { probe } = probing({ port, files, apis: ['cp2'], nodes })
  expect(await probe({ kind: 'kubeconfig', id })).toMatchObject({ ok: true })
})

test('reports a kubeconfig with different users at two API servers; without a user name it is not proven', async () => {
  const port = await answering(leafOf(newCa), reviewed('ann'))
  const files = kubeconfig({ token: 't' })
  const both = probing({ port, files, apis: ['cp1', 'cp2'] })
  expect((await both.probe({ kind: 'kubeconfig', id })).detail).toBe(
    `every API server authenticates ${id} as ann`,
  )
  expect(both.tried('dial').map(([, node]) => node)).toEqual(['cp1', 'cp2'])
  expect(await probing({ port, files, apis: [] }).probe({ kind: 'kubeconfig', id })).toMatchObject({
    ok: false,
  })
})

test('tests nothing for a kubeconfig without credentials', async () => {
  expect(await probing({ files: kubeconfig({}) }).probe({ kind: 'kubeconfig', id })).toEqual({
    ok: true,
    detail: `${id} has neither a client certificate nor a token: nothing to test`,
  })
  for (const text of ['', 'apiVersion: v1\nkind: Config\n']) {
    const answer = await probing({ files: { '/etc/kubernetes/x.conf': text } }).probe({
      kind: 'kubeconfig',
      id,
    })
    expect(answer).toEqual({
      ok: false,
      detail: expect.stringContaining('cp1:/etc/kubernetes/x.conf is not a kubeconfig'),
    })
  }
})

test('tests nothing for a kubeconfig without users', async () => {
  const files = kubeconfig({}, undefined, { users: [] })
  expect(await probing({ files }).probe({ kind: 'kubeconfig', id })).toEqual({
    ok: true,
    detail: `${id} has neither a client certificate nor a token: nothing to test`,
  })
})

test('tests a kubeconfig without clusters with its token alone', async () => {
  const observed: Asked[] = []
  const port = await answering(leafOf(newCa), reviewed('ann'), observed)
  const files = kubeconfig({ token: 't' }, undefined, { clusters: [] })
  expect(await probing({ port, files }).probe({ kind: 'kubeconfig', id })).toMatchObject({ ok: true })
  expect(observed[0]!.text).toContain('\r\nAuthorization: Bearer t\r\n')
})

test('does not prove a key without its certificate', async () => {
  const files = kubeconfig({ 'client-key-data': Buffer.from(leafOf(newCa).key).toString('base64') })
  expect(await probing({ files }).probe({ kind: 'kubeconfig', id })).toEqual({
    ok: false,
    detail: expect.stringContaining('a key without a certificate'),
  })
})

test.each([
  ['current', 'second', 'Bearer two'],
  ['first when none is current', undefined, 'Bearer one'],
])('tests the token of the %s context', async (_, current, words) => {
  const observed: Asked[] = []
  const port = await answering(leafOf(newCa), reviewed('ann'), observed)
  const files = kubeconfig(
    {},
    {},
    {
      'current-context': current,
      contexts: ['first', 'second'].map((name) => ({ name, context: { cluster: 'x', user: name } })),
      users: [
        { name: 'first', user: { token: 'one' } },
        { name: 'second', user: { token: 'two' } },
      ],
    },
  )
  await probing({ port, files }).probe({ kind: 'kubeconfig', id })
  expect(observed[0]!.text).toContain(words)
})

test.each([
  ['not an object', '1'],
  ['null', 'null'],
  ['without a status', '{}'],
  ['without user information', '{"status":{}}'],
  ['without a text as user name', '{"status":{"userInfo":{"username":7}}}'],
])('an answer that is %s proves no kubeconfig', async (_, body) => {
  const answer = `HTTP/1.1 201 Created\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const port = await answering(leafOf(newCa), answer)
  expect(
    await probing({ port, files: kubeconfig({ token: 't' }) }).probe({ kind: 'kubeconfig', id }),
  ).toEqual({
    ok: false,
    detail: `${id} at cp1: the API server returned no user name`,
  })
})

const pod = (name: string, namespace: string, more: object = {}) => ({
  metadata: { name, namespace },
  status: {
    containerStatuses: [
      { name: 'waiting', state: {} },
      { name: 'new' },
      { name: `${name}-c`, state: { running: {} } },
    ],
  },
  ...more,
})
const gone = pod('gone', 'kube-system', {
  metadata: { name: 'gone', namespace: 'kube-system', deletionTimestamp: 'x' },
})
const web = pod('web', 'default')
const dns = pod('dns', 'kube-system')

test.each([
  [
    'a pod of kube-system before others',
    [gone, { metadata: {} }, pod('x', 'a', { status: {} }), web, dns],
    'kube-system/dns',
  ],
  ['another pod when there is none', [gone, web, pod('api', 'default')], 'default/web'],
])('reads the logs of %s', async (_, pods, name) => {
  const { probe, asked, did } = probing({ pods, apis: ['cp1', 'cp2'] })
  expect(await probe({ kind: 'logs', node: 'w1' })).toEqual({
    ok: true,
    detail: `logs of ${name} on w1 through API servers: 2`,
  })
  const [namespace, pod] = name.split('/')
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/log?container=${pod}-c&tailLines=1`
  expect(asked).toEqual([path, path])
  expect(did).toContainEqual([
    'list',
    { group: '', version: 'v1', resource: 'pods' },
    { fieldSelector: 'spec.nodeName=w1' },
  ])
  expect(did).toContainEqual(['call', { method: 'GET', path }])
})

test('truncates logs to 200 characters, and does not prove them without an API server', async () => {
  const body = `${' '.repeat(5)}${'x'.repeat(300)}`
  const { probe } = probing({ logs: [{ status: 500, body }] })
  expect((await probe({ kind: 'logs', node: 'w1' })).detail).toBe(
    `health of the kubelet on w1 through cp1: 500 ${'x'.repeat(195)}`,
  )
  expect(await probing({ apis: [] }).probe({ kind: 'logs', node: 'w1' })).toMatchObject({ ok: false })
})
