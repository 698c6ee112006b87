import { expect, test } from 'vitest'
import { fakeCluster } from '../../test/cluster/fake-cluster.ts'
import { codeOf } from '../../test/contract/errors.ts'
import type { FaultKind } from '../../test/fakes/api-server-faults.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { ApiObject } from './malformed.ts'
import type { Resource } from './resource.ts'

// Which requests are retried after a failure. A write that may have happened is never retried, unless a repetition can only
// conflict.

const maps: Resource = { group: '', version: 'v1', resource: 'configmaps', namespace: 'default' }
const one: Resource = { ...maps, name: 'one' }
const object: ApiObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { a: '1' } }

const temporary: FaultKind[] = [
  'too-many-requests',
  'internal',
  'unavailable',
  'reset-before',
  'reset-after',
  'cut',
]

test.each(temporary)('retries a read twice after %s', async (kind) => {
  const { server, cluster } = await fakeCluster()
  server.put(maps, object)
  await cluster.objects.get(one)
  server.faults.add({ kind, verb: 'get', times: 2 })
  expect(await cluster.objects.get(one)).toMatchObject({ data: { a: '1' } })
  expect(server.calls.filter(({ verb }) => verb === 'get').length).toBe(4)
})

test.each(temporary)('retries an access review after %s', async (kind) => {
  const { server, cluster } = await fakeCluster()
  server.faults.add({ kind, resource: 'subjectaccessreviews' })
  const resource = { verb: 'get', group: '', version: 'v1', resource: 'nodes', subresource: '' }
  const question = { user: 'ann', groups: ['system:masters'], extra: {}, resource }
  expect(await cluster.access.isAllowed(question)).toBe(true)
})

test('retries twice when a server does not respond', async () => {
  const { server, cluster } = await fakeCluster({}, { requestTimeoutMs: 1_000 })
  server.faults.add({ kind: 'hang', verb: 'get', times: 9 })
  const error = await cluster.objects.get(one).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    code: 'KCERT_UNREACHABLE',
    why: 'no answer within 1 s (--request-timeout)',
  })
  expect(server.calls.length).toBe(3)
})

test('retries after the time in Retry-After', async () => {
  const { server, cluster, pauses } = await fakeCluster()
  server.put(maps, object)
  server.faults.add({ kind: 'too-many-requests', retryAfterSeconds: 7 })
  await cluster.objects.get(one)
  expect(pauses).toEqual([7000])
})

test('does not wait for a Retry-After of an hour', async () => {
  const { server, cluster, pauses } = await fakeCluster()
  server.faults.add({ kind: 'too-many-requests', retryAfterSeconds: 3600, times: 9 })
  expect(await codeOf(cluster.objects.get(one))).toBe('KCERT_UNREACHABLE')
  expect(pauses).toEqual([])
})

test('gives up after eight attempts, with growing pauses', async () => {
  const { server, cluster, pauses } = await fakeCluster()
  server.faults.add({ kind: 'unavailable', times: 100 })
  const error = await cluster.objects.get(one).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'KCERT_UNREACHABLE', why: 'a fault of the test: unavailable' })
  expect(server.calls.length).toBe(8)
  for (const [index, pause] of pauses.entries()) {
    const expected = Math.min(100 * 2 ** index, 5_000)
    expect(pause).toBeGreaterThanOrEqual(expected / 2)
    expect(pause).toBeLessThanOrEqual(expected * 1.5)
  }
})

test('retries a create that the server refused before acting', async () => {
  const { server, cluster } = await fakeCluster()
  server.faults.add({ kind: 'too-many-requests', verb: 'create', times: 3 })
  await cluster.objects.create(maps, object)
  expect(server.calls.length).toBe(4)
})

test.each<FaultKind>(['reset-before', 'reset-after', 'cut', 'internal', 'internal-after', 'unavailable'])(
  'does not retry a create after %s, which may have happened',
  async (kind) => {
    const { server, cluster } = await fakeCluster()
    await cluster.objects.get(one)
    server.faults.add({ kind, verb: 'create' })
    expect(await codeOf(cluster.objects.create(maps, object))).toBe('KCERT_UNREACHABLE')
    expect(server.calls.filter(({ verb }) => verb === 'create').length).toBe(1)
  },
)

test('reports that an interrupted write may have happened', async () => {
  const { server, cluster } = await fakeCluster()
  server.faults.add({ kind: 'reset-after', verb: 'create' })
  await expect(cluster.objects.create(maps, object)).rejects.toMatchObject({
    message: expect.stringContaining('may or may not have done this'),
    why: 'the connection was closed; check whether it was done, and run the command again if not',
  })
  expect(server.peek(maps, 'one')).toBeDefined()
})

test('retries a write with a resourceVersion, which at worst conflicts with itself', async () => {
  const { server, cluster } = await fakeCluster()
  const created = await cluster.objects.create(maps, object)
  server.faults.add({ kind: 'reset-before', verb: 'update' })
  const blue = await cluster.objects.replace(one, { ...created, data: { a: '2' } })
  server.faults.add({ kind: 'reset-after', verb: 'update' })
  await expect(cluster.objects.replace(one, { ...blue, data: { a: '3' } })).rejects.toMatchObject({
    code: 'KCERT_API_CONFLICT',
    why: expect.stringContaining('the connection was lost during an earlier attempt'),
  })
  expect(server.peek(maps, 'one')).toMatchObject({ data: { a: '3' } })
})

test('confirms each attempt of a write, and sends none after a refusal', async () => {
  const { server, cluster } = await fakeCluster()
  const created = await cluster.objects.create(maps, object)
  const blue = { ...created, data: { a: '2' } }
  for (const kind of ['reset-before', 'too-many-requests', 'unavailable'] as const) {
    server.faults.add({ kind, verb: 'update', retryAfterSeconds: 60 })
    let attempts = 0
    const confirm = (): void => {
      if (++attempts > 1) throw new KcertError('KCERT_LOCKED', 'the Lease was lost')
    }
    expect(await codeOf(cluster.objects.replace(one, blue, confirm))).toBe('KCERT_LOCKED')
    expect(attempts).toBe(2)
  }
  expect(server.calls.filter(({ verb }) => verb === 'update').length).toBe(3)
  expect(server.peek(maps, 'one')).toMatchObject({ data: { a: '1' } })
})

test('does not retry a write without a resourceVersion', async () => {
  const { server, cluster } = await fakeCluster()
  server.put(maps, object)
  server.faults.add({ kind: 'reset-before', verb: 'update' })
  expect(await codeOf(cluster.objects.replace(one, object))).toBe('KCERT_UNREACHABLE')
  server.faults.add({ kind: 'reset-before', verb: 'patch' })
  expect(await codeOf(cluster.objects.patch(one, { data: { a: '2' } }, 'merge'))).toBe('KCERT_UNREACHABLE')
  expect(server.calls.length).toBe(2)
})

test('retries any request that cannot have reached the server', async () => {
  const { server, cluster } = await fakeCluster()
  await server.close()
  const error = await cluster.objects.create(maps, object).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    code: 'KCERT_UNREACHABLE',
    why: 'connection refused: nothing listens there',
  })
  expect((error as Error).message).toMatch(/is unreachable: cannot create configmaps "one"/)
})

test('restarts a list that expires between its pages', async () => {
  const { server, cluster } = await fakeCluster()
  for (let count = 0; count < 600; count++) server.put(maps, { metadata: { name: `map-${count}` } })
  server.faults.add({ kind: 'expired', verb: 'list', at: 2 })
  const names = []
  for await (const { metadata } of cluster.objects.list(maps)) names.push((metadata as { name: string }).name)
  expect(new Set(names).size).toBe(600)
  expect(names.length).toBe(1100)
})

test('uses at most 64 connections for five hundred concurrent calls, and keeps them open', async () => {
  const { server, cluster } = await fakeCluster()
  server.put(maps, object)
  for (let round = 0; round < 2; round++)
    await Promise.all(Array.from({ length: 500 }, () => cluster.objects.get(one)))
  expect(server.calls.length).toBe(1000)
  expect(server.mostConnections).toBeLessThanOrEqual(64)
  expect(server.connections).toBeLessThanOrEqual(64)
})
