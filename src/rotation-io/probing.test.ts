import { once } from 'node:events'
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net'
import { createServer, type TlsOptions } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { certificatePem, keyPem, signedBy, testCa, testKey } from '../../test/pki/kubeadm-tree.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import type { FileContent } from '../pki/node-access.ts'
import type { ProbeSubject } from '../rotation/action.ts'
import { readCertificates } from '../x509/certificate.ts'
import { Probing, tokenIn, verdictOf } from './probing.ts'

const begun = new Date(Date.now() - 86_400_000)
const ends = new Date(Date.now() + 86_400_000)
const oldCa = testCa('kubernetes', testKey('probing old'), begun)
const newCa = testCa('kubernetes-ca-2', testKey('probing new'), begun)
const namesake = testCa('kubernetes', testKey('probing namesake'), begun)

function leafOf(ca: typeof oldCa, notAfter = ends) {
  const key = testKey('probing leaf')
  const der = signedBy(ca, {
    commonName: 'kube-apiserver',
    key,
    notBefore: new Date(begun.getTime() + 1_000),
    notAfter,
    extendedKeyUsage: ['serverAuth'],
    subjectAltNames: { dns: ['kubernetes'], ip: ['127.0.0.1'] },
  })
  return { cert: certificatePem(der), key: keyPem(key) }
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

/** An HTTPS server that answers every request so. */
function answering(
  options: TlsOptions,
  answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
): Promise<number> {
  return listening(
    createServer(options, (socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(answer))
    }).on('tlsClientError', () => {}),
  )
}

interface Scene {
  readonly port: number
  readonly files?: Readonly<Record<string, string>>
  readonly pods?: readonly object[]
  /** Of the API server, to logs. */
  readonly logs?: { readonly status: number; readonly body: string }
  readonly isNodeGone?: boolean
  readonly isOldCaGone?: boolean
}

function probing({ port, files = {}, pods = [], logs, isNodeGone, isOldCaGone }: Scene) {
  const asked: string[] = []
  const node = {
    name: 'cp1',
    processes: async () => [{ program: 'kube-apiserver', pid: 1, argv: ['kube-apiserver'] }],
    readFiles: async (paths: readonly string[]) =>
      paths.map((path): FileContent => {
        const text = files[path]
        if (text === undefined) return { path, found: 'absent' }
        return { path, found: 'file', content: Buffer.from(text), sha256: '' } as never
      }),
  }
  const [old, next] = [oldCa, newCa].map(({ certificate, key }) => ({
    certificate: readCertificates(Buffer.from(certificatePem(certificate)))[0]!,
    key,
  }))
  const site = {
    clock: () => new Date(),
    dial: () => connect(port, '127.0.0.1'),
    inventory: { nodes: [] },
    objects: {
      async *list() {
        yield* pods
      },
    },
  }
  const planes = {
    node: () => node,
    apiServers: async () => (isNodeGone ? [] : [{ node: 'cp1', flags: {} }]),
    everyApiServer: async () => {
      if (isNodeGone) throw new KcertError('KCERT_UNREACHABLE', 'node cp2', { why: 'connection timed out' })
      return [{ node: 'cp1', flags: {} }]
    },
  }
  const authorities = {
    authority: async (_: string, generation: 'old' | 'new') => {
      if (generation === 'old' && isOldCaGone)
        throw new KcertError('KCERT_ROTATION_REFUSED', 'the key of the old CA is on no node')
      return generation === 'old' ? old : next
    },
  }
  const identity = {
    call: async (_: string, { path }: { path: string }) => {
      asked.push(path)
      return logs ?? { status: 200, body: '' }
    },
  }
  const one = new Probing(
    site as never,
    planes as never,
    authorities as never,
    identity as never,
    {} as never,
  )
  const probe = (subject: ProbeSubject) => one.probe({ kind: 'probe', phase: 7, subject, deadlineMs: 0 })
  return { probe, asked }
}

const oldTrust = { kind: 'old-trust', at: 'cp1/kube-apiserver', expects: 'refused' } as const

test('a server of the new CA is refused by a client that trusts the old one alone', async () => {
  const { probe } = probing({ port: await answering(leafOf(newCa)) })
  expect(await probe(oldTrust)).toEqual({
    ok: true,
    detail: expect.stringMatching(/^cp1\/kube-apiserver, seen with the old CA alone: UNABLE_TO_/),
  })
})

test('a server of another CA of the same name is refused too', async () => {
  const { probe } = probing({ port: await answering(leafOf(namesake)) })
  expect(await probe(oldTrust)).toMatchObject({ ok: true })
})

test('a server of the old CA is trusted still, and that is no proof', async () => {
  const { probe } = probing({ port: await answering(leafOf(oldCa)) })
  expect(await probe(oldTrust)).toEqual({
    ok: false,
    detail: 'a client that trusts the old CA alone still connects to cp1/kube-apiserver (200)',
  })
})

test('a failure for another reason than trust is no proof of distrust', async () => {
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

test('without the old CA nothing is proven of it', async () => {
  const { probe } = probing({ port: await answering(leafOf(newCa)), isOldCaGone: true })
  expect(await probe(oldTrust)).toEqual({ ok: false, detail: 'the key of the old CA is on no node' })
})

const id = 'cp1:/etc/kubernetes/x.conf'
const kubeconfig = (user: object, cluster: object = { 'certificate-authority-data': base64(newCa) }) => ({
  '/etc/kubernetes/x.conf': JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: 'https://kubernetes:6443', ...cluster } }],
    users: [{ name: 'x', user }],
  }),
})

function base64({ certificate }: typeof oldCa): string {
  return Buffer.from(certificatePem(certificate)).toString('base64')
}

const reviewed = (username: string | undefined) => {
  const body = JSON.stringify({ status: { userInfo: { username } } })
  return `HTTP/1.1 201 Created\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

test('a kubeconfig is proven where every API server says whom it is of', async () => {
  const port = await answering(leafOf(newCa), reviewed('ann'))
  expect(
    await probing({ port, files: kubeconfig({ token: 't' }) }).probe({ kind: 'kubeconfig', id }),
  ).toEqual({
    ok: true,
    detail: `${id} is ann at every API server`,
  })
})

test.each([
  ['nobody', reviewed(undefined), 'it does not say who asks'],
  ['the anonymous', reviewed('system:anonymous'), 'it does not say who asks'],
  ['what is no JSON', 'HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok', 'it does not say who asks'],
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
    'whose CA file is not there',
    kubeconfig({ token: 't' }, { 'certificate-authority': 'ca.crt' }),
    'ca.crt, which /etc/kubernetes/x.conf names, cannot be read',
  ],
  [
    'whose client certificate is not there',
    kubeconfig({ 'client-certificate': '/no.crt', 'client-key': '/no.key' }),
    '/no.crt, which /etc/kubernetes/x.conf names, cannot be read',
  ],
  ['whose key is missing', kubeconfig({ 'client-certificate-data': base64(newCa) }), 'without its key'],
  ['that is not there', {}, 'cannot be read'],
])('a kubeconfig %s is not proven', async (_, files, words) => {
  const port = await answering(leafOf(newCa), reviewed('ann'))
  const answer = await probing({ port, files }).probe({ kind: 'kubeconfig', id })
  expect(answer).toEqual({ ok: false, detail: expect.stringContaining(words) })
})

test('where a control plane does not answer, neither kubeconfigs nor logs are proven at every API server', async () => {
  const port = await answering(leafOf(newCa), reviewed('ann'))
  const { probe } = probing({ port, files: kubeconfig({ token: 't' }), isNodeGone: true })
  for (const subject of [
    { kind: 'kubeconfig', id },
    { kind: 'logs', node: 'w1' },
  ] as const) {
    expect(await probe(subject)).toEqual({ ok: false, detail: 'node cp2: connection timed out' })
  }
})

test('on a node without pods the health of its kubelet is asked for through the API server', async () => {
  const logs = { kind: 'logs', node: 'w1' } as const
  const well = probing({ port: 0 })
  expect(await well.probe(logs)).toMatchObject({ ok: true })
  expect(well.asked).toEqual(['/api/v1/nodes/w1/proxy/healthz'])
  const refused = probing({
    port: 0,
    logs: { status: 500, body: 'x509: certificate signed by unknown authority' },
  })
  expect(await refused.probe(logs)).toEqual({
    ok: false,
    detail: 'health of the kubelet on w1 through cp1: 500 x509: certificate signed by unknown authority',
  })
})

test('a client was believed only when it was refused in its own name', () => {
  expect(verdictOf({ status: 401, body: 'Unauthorized' })).toBe('refused')
  const forbidden = (user: string) => ({
    status: 403,
    body: `forbidden: User "${user}" cannot get path "/metrics"`,
  })
  expect(verdictOf(forbidden('kcert-rotation-probe'))).toBe('accepted')
  expect(verdictOf(forbidden('system:anonymous'))).toBeUndefined()
  expect(verdictOf({ status: 500, body: 'kcert-rotation-probe' })).toBeUndefined()
})

test('the token tried is that of the current context, not of whoever stands first', async () => {
  const text = `apiVersion: v1
kind: Config
users:
- name: first
  user: { token: one }
- name: second
  user: { token: two }
- name: third
  user: {}
`
  const [document] = (await readDocuments(text)).documents
  const tokens = await Promise.all(
    ['first', 'second', 'third', undefined].map((name) => tokenIn(document!, name)),
  )
  expect(tokens).toEqual(['one', 'two', undefined, undefined])
})
