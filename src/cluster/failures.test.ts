import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { fakeCluster, writeKubeconfig } from '../../test/cluster/fake-cluster.ts'
import { startApiServer } from '../../test/fakes/api-server.ts'
import type { KcertError } from '../errors/kcert-error.ts'
import type { Cluster } from './cluster.ts'
import type { Resource } from './resource.ts'

const nodes: Resource = { group: '', version: 'v1', resource: 'nodes', name: 'n1' }
const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** Returns the error of reading a Node. */
async function failureOf(cluster: Cluster): Promise<KcertError> {
  const failure = await cluster.objects.get(nodes).then(
    (found) => new Error(`nothing failed: ${JSON.stringify(found)}`),
    (error: unknown) => error,
  )
  return failure as KcertError
}

test('reports a server certificate from another CA, with its issuer and the command to inspect it', async () => {
  const { server, folder, open } = await fakeCluster()
  const other = await startApiServer()
  await other.close()
  const cluster = await open(
    server.writeKubeconfig(join(folder, 'k'), undefined, {
      'certificate-authority-data': base64(other.caPem),
    }),
  )
  const failure = await failureOf(cluster)
  expect(failure).toMatchObject({
    code: 'KCERT_API_UNTRUSTED',
    message: `the API server at ${server.url} is not trusted`,
    next: `kcert inspect 127.0.0.1:${server.port}`,
  })
  expect(failure.why).toMatch(
    /^its certificate CN=kube-apiserver, issued by CN=kubernetes, does not chain to the CA/,
  )
  expect(server.calls).toEqual([])
})

test('reports an expired serving certificate with its notAfter', async () => {
  const { cluster } = await fakeCluster({ servingNotAfter: new Date('2026-01-02T00:00:00Z') })
  expect(await failureOf(cluster)).toMatchObject({
    code: 'KCERT_API_CERT_EXPIRED',
    why: 'its certificate CN=kube-apiserver expired at 2026-01-02T00:00:00Z',
  })
})

test('reports a certificate for another name, with its SANs', async () => {
  const { cluster } = await fakeCluster({ servingNames: { dns: ['elsewhere.example.com'], ip: [] } })
  expect(await failureOf(cluster)).toMatchObject({
    code: 'KCERT_API_UNTRUSTED',
    why: 'its certificate CN=kube-apiserver is not valid for 127.0.0.1, only for DNS:elsewhere.example.com',
  })
})

test('verifies the name of tls-server-name', async () => {
  const { server, folder, open } = await fakeCluster({
    servingNames: { dns: ['api.example.com'], ip: ['192.0.2.7'] },
  })
  for (const name of ['api.example.com', '192.0.2.7']) {
    const file = server.writeKubeconfig(join(folder, 'k'), undefined, { 'tls-server-name': name })
    expect(await (await open(file)).objects.get(nodes)).toBeUndefined()
  }
})

test('accepts any certificate with insecure-skip-tls-verify', async () => {
  const { server, folder, open } = await fakeCluster({ servingNotAfter: new Date('2026-01-02T00:00:00Z') })
  const insecure = { 'insecure-skip-tls-verify': true, 'certificate-authority-data': undefined }
  const cluster = await open(server.writeKubeconfig(join(folder, 'k'), undefined, insecure))
  expect(await cluster.objects.get(nodes)).toBeUndefined()
})

test('ignores NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
  const { cluster } = await fakeCluster({ servingNames: { dns: ['elsewhere'], ip: [] } })
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  onTestFinished(() => {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
  })
  expect(await failureOf(cluster)).toMatchObject({ code: 'KCERT_API_UNTRUSTED' })
})

test('trusts a bundle of the old and new CA in either order', async () => {
  const { server, folder, open } = await fakeCluster()
  const other = await startApiServer()
  await other.close()
  for (const bundle of [other.caPem + server.caPem, server.caPem + other.caPem]) {
    const cluster = { 'certificate-authority-data': base64(bundle) }
    expect(
      await (await open(server.writeKubeconfig(join(folder, 'k'), undefined, cluster))).objects.get(nodes),
    ).toBe(undefined)
  }
})

test('reports an expired client certificate as the reason, with its notAfter', async () => {
  const { server, folder, open } = await fakeCluster()
  const user = { username: 'ann', notAfter: new Date('2026-02-03T04:05:06Z') }
  const file = server.writeKubeconfig(join(folder, 'k'), user)
  expect(await failureOf(await open(file))).toMatchObject({
    code: 'KCERT_API_CLIENT_EXPIRED',
    why: 'the client certificate CN=ann expired at 2026-02-03T04:05:06Z',
    next: `kcert inspect ${file}`,
  })
})

test('reports a token that the server rejects', async () => {
  const { server, folder, open } = await fakeCluster()
  const cluster = await open(server.writeKubeconfig(join(folder, 'k'), { token: 'unknown' }))
  expect(await failureOf(cluster)).toMatchObject({
    code: 'KCERT_API_UNAUTHORIZED',
    why: 'Unauthorized: user "someone" of the kubeconfig authenticated with token',
  })
})

test('reports what is forbidden in the server’s words', async () => {
  const { server, folder, open } = await fakeCluster()
  const cluster = await open(server.writeKubeconfig(join(folder, 'k'), { username: 'ann' }))
  expect(await failureOf(cluster)).toMatchObject({
    code: 'KCERT_API_FORBIDDEN',
    message: 'not allowed to read nodes "n1"',
    why: expect.stringContaining('User "ann" cannot get resource "nodes"'),
    next: expect.stringMatching(/^kubectl create clusterrole get-nodes .* --user=ann$/),
  })
})

test('reports that a server which returns a web page is not an API server', async () => {
  const page = createHttpServer((_, response) => response.end('<html>please log in</html>'))
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void page.close())
  const { folder, open } = await fakeCluster()
  const server = `http://127.0.0.1:${(page.address() as AddressInfo).port}`
  const cluster = await open(writeKubeconfig(join(folder, 'k'), { server }, {}))
  expect(await failureOf(cluster)).toMatchObject({
    code: 'KCERT_UNREACHABLE',
    why: 'cannot read nodes "n1": the server sent a response that is not a JSON object',
  })
})

test('reports at once that a server does not use TLS', async () => {
  const plain = createTcpServer((socket) =>
    socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
  )
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void plain.close())
  const { folder, open, pauses } = await fakeCluster()
  const server = `https://127.0.0.1:${(plain.address() as AddressInfo).port}`
  const failure = await failureOf(await open(writeKubeconfig(join(folder, 'k'), { server }, {})))
  expect(failure).toMatchObject({ code: 'KCERT_UNREACHABLE', why: 'the server does not use TLS' })
  expect(pauses).toEqual([])
})

test('does not retry a name that DNS cannot resolve', async () => {
  const { folder, open, pauses } = await fakeCluster()
  const file = writeKubeconfig(join(folder, 'k'), { server: 'https://no-such-host.invalid:6443' }, {})
  expect((await failureOf(await open(file))).code).toBe('KCERT_UNREACHABLE')
  expect(pauses.length).toBeLessThan(4)
})

test('contains no token, password or key in any error, at any depth', async () => {
  const canary = `canary${randomBytes(12).toString('hex')}`
  const { server, folder, open } = await fakeCluster()
  const good = { server: server.url, 'certificate-authority-data': base64(server.caPem) }
  const keyOf = (file: string): string => {
    const [{ user }] = (
      JSON.parse(readFileSync(file, 'utf8')) as { users: [{ user: Record<string, string> }] }
    ).users
    return user['client-key-data']!
  }
  const key = keyOf(server.writeKubeconfig(join(folder, 'admin')))
  const certificate = server.issue('ann', [], { usage: 'clientAuth' }).certificate
  writeFileSync(join(folder, 'token'), `${canary}\n\u0000second line`)
  const cases: Record<string, [cluster: object, user: object]> = {
    'unknown token': [good, { token: canary }],
    'token with a line break': [good, { token: `${canary}\nb` }],
    'token file with a line break': [good, { tokenFile: 'token' }],
    password: [good, { username: 'ann', password: canary }],
    'other CA': [{ ...good, 'certificate-authority-data': undefined }, { token: canary }],
    'nobody there': [{ ...good, server: 'https://127.0.0.1:1' }, { token: canary }],
    'key of another certificate': [
      good,
      { 'client-certificate-data': base64(certificate), 'client-key-data': key },
    ],
    'key that is none': [
      good,
      { 'client-certificate-data': base64(certificate), 'client-key-data': base64(`-----BEGIN ${canary}`) },
    ],
    'password in the URL': [{ server: `https://ann:${canary}@127.0.0.1:1` }, {}],
  }
  for (const [name, [cluster, user]] of Object.entries(cases)) {
    const file = writeKubeconfig(join(folder, 'case'), cluster, user)
    const failure = await open(file).then(failureOf, (error: unknown) => error as KcertError)
    expect(failure.code, name).toMatch(/^KCERT_(API|KUBECONFIG|UNREACHABLE)/)
    const text = inspect(failure, { depth: 9, showHidden: true })
    for (const secret of [canary, base64(canary).slice(0, 20), key.slice(0, 40)])
      expect(text, name).not.toContain(secret)
  }
})

test('reports an object that exists already, and what to decide', async () => {
  const { server, cluster } = await fakeCluster()
  server.put({ group: '', version: 'v1', resource: 'nodes' }, { metadata: { name: 'n1' } })
  const { name: _, ...collection } = nodes
  await expect(cluster.objects.create(collection, { metadata: { name: 'n1' } })).rejects.toMatchObject({
    code: 'KCERT_API_CONFLICT',
    fix: 'choose another name, or delete it first',
    next: undefined,
  })
})
