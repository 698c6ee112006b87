import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fakeCluster } from '../../test/cluster/fake-cluster.ts'
import type { Cluster } from './cluster.ts'
import type { ObjectChange } from './objects.ts'
import type { Resource } from './resource.ts'

// A watch reports every change that is still visible, whatever happens to its connection.

const maps: Resource = { group: '', version: 'v1', resource: 'configmaps', namespace: 'default' }
const map = (name: string, value: string) => ({ kind: 'ConfigMap', metadata: { name }, data: { value } })

function watching(cluster: Cluster) {
  const end = new AbortController()
  const reported: string[] = []
  const done = (async () => {
    for await (const change of cluster.objects.watch(maps, {}, end.signal)) reported.push(textOf(change))
  })()
  return {
    reported,
    reach: (last: string) => expect.poll(() => reported.at(-1), { timeout: 60_000 }).toBe(last),
    stop: async () => {
      end.abort()
      await done
    },
  }
}

function textOf({ type, object }: ObjectChange): string {
  const { metadata, data } = object as Partial<ReturnType<typeof map>> &
    Pick<ReturnType<typeof map>, 'metadata'>
  return `${type} ${metadata.name}=${data?.value}`
}

test('reconnects after the connection is cut, and misses and repeats nothing', async () => {
  const { server, cluster } = await fakeCluster()
  server.put(maps, map('a', '1'))
  const { reported, reach, stop } = watching(cluster)
  await reach('ADDED a=1')
  for (let value = 2; value < 6; value++) {
    server.dropConnections()
    server.put(maps, map('a', String(value)))
    await reach(`MODIFIED a=${value}`)
  }
  await stop()
  expect(reported).toEqual(['ADDED a=1', 'MODIFIED a=2', 'MODIFIED a=3', 'MODIFIED a=4', 'MODIFIED a=5'])
})

test('reports the differences when the resourceVersion expires', async () => {
  const { server, cluster } = await fakeCluster()
  for (const name of ['gone', 'made-anew', 'same', 'written']) server.put(maps, map(name, '1'))
  const { reported, reach, stop } = watching(cluster)
  await reach('ADDED written=1')
  // All of this happens while the watch is disconnected. The server responds afterwards.
  server.dropConnections()
  server.remove(maps, 'gone')
  server.remove(maps, 'made-anew')
  server.put(maps, map('made-anew', '2'))
  server.put(maps, map('written', '2'))
  server.compact()
  await reach('DELETED gone=undefined')
  await stop()
  expect(reported.slice(4).sort()).toEqual([
    'ADDED made-anew=2',
    'DELETED gone=undefined',
    'DELETED made-anew=undefined',
    'MODIFIED written=2',
  ])
})

test('notices within 60 s that a watch is silently dead, and misses nothing', {
  timeout: 90_000,
}, async () => {
  const { server, cluster } = await fakeCluster()
  // The connection stays open, and no event arrives.
  const answer = (response: ServerResponse): void => response.writeHead(200).flushHeaders()
  server.faults.add({ kind: 'hostile', verb: 'watch', resource: 'configmaps', answer })
  server.put(maps, map('a', '1'))
  const { reported, reach, stop } = watching(cluster)
  await reach('ADDED a=1')
  await expect.poll(() => server.calls.filter(({ verb }) => verb === 'watch').length).toBe(1)
  server.put(maps, map('b', '1'))
  await reach('ADDED b=1')
  await stop()
  expect(reported).toEqual(['ADDED a=1', 'ADDED b=1'])
})

test('accepts bookmarks and does not report them', async () => {
  const { server, cluster } = await fakeCluster({ bookmarkMs: 10 })
  server.put(maps, map('a', '1'))
  const { reported, reach, stop } = watching(cluster)
  await reach('ADDED a=1')
  await new Promise((resolve) => setTimeout(resolve, 100))
  server.put(maps, map('b', '1'))
  await reach('ADDED b=1')
  await stop()
  expect(reported).toEqual(['ADDED a=1', 'ADDED b=1'])
})

test('reports changes to users who may list but not watch', async () => {
  const rules = [{ verbs: ['list'], groups: [''], resources: ['configmaps'] }]
  const { server, cluster } = await fakeCluster({ rules }, { user: { username: 'ann' } })
  server.put(maps, map('a', '1'))
  const { reported, reach, stop } = watching(cluster)
  await reach('ADDED a=1')
  server.put(maps, map('a', '2'))
  await reach('MODIFIED a=2')
  server.remove(maps, 'a')
  await reach('DELETED a=undefined')
  await stop()
  expect(reported).toEqual(['ADDED a=1', 'MODIFIED a=2', 'DELETED a=undefined'])
})

test('tries to watch again after a minute of lists, then at growing intervals, and says so', async () => {
  const lists = [{ verbs: ['list'], groups: [''], resources: ['configmaps'] }]
  const watches = [{ verbs: ['list', 'watch'], groups: [''], resources: ['configmaps'] }]
  const { server, cluster, pauses } = await fakeCluster({ rules: lists }, { user: { username: 'ann' } })
  server.put(maps, map('a', '1'))
  const failures: (string | undefined)[] = []
  const end = new AbortController()
  const reported: string[] = []
  const done = (async () => {
    for await (const change of cluster.objects.watch(maps, {}, end.signal, (one) => failures.push(one?.code)))
      reported.push(textOf(change))
  })()
  const refused = (): number => failures.filter((code) => code === 'KCERT_API_FORBIDDEN').length
  await expect.poll(refused, { timeout: 60_000 }).toBeGreaterThanOrEqual(3)
  server.rules = watches
  server.calls.length = 0
  await expect.poll(() => server.calls.at(-1), { timeout: 60_000 }).toMatchObject({ verb: 'watch' })
  const calls = server.calls.length
  server.put(maps, map('a', '2'))
  await expect.poll(() => reported.at(-1), { timeout: 60_000 }).toBe('MODIFIED a=2')
  // The watch reported it.
  expect(server.calls.length).toBe(calls)
  end.abort()
  await done
  expect(pauses.slice(0, 63)).toEqual([500, ...Array(30).fill(2_000), 500, ...Array(30).fill(4_000), 500])
  expect(failures[0]).toBeUndefined()
  expect(failures.at(-1)).toBeUndefined()
})

test('waits for the end of an outage after the watch has started', async () => {
  const { server, cluster } = await fakeCluster()
  server.put(maps, map('a', '1'))
  const { reported, reach, stop } = watching(cluster)
  await reach('ADDED a=1')
  server.faults.add({ kind: 'unavailable', verb: 'watch', times: 20 })
  server.faults.add({ kind: 'unavailable', verb: 'list', times: 20 })
  server.dropConnections()
  server.put(maps, map('a', '2'))
  await reach('MODIFIED a=2')
  await stop()
  expect(reported).toEqual(['ADDED a=1', 'MODIFIED a=2'])
})

test('ends on abort while the server sends Retry-After of a minute', async () => {
  const { server, open, folder } = await fakeCluster()
  server.put(maps, map('a', '1'))
  server.faults.add({
    kind: 'hostile',
    verb: 'watch',
    times: 1_000,
    answer: (response) => response.writeHead(429, { 'Retry-After': '60' }).end(),
  })
  const end = new AbortController()
  const pauses: number[] = []
  const pause = (milliseconds: number, signal?: AbortSignal) => {
    pauses.push(milliseconds)
    setImmediate(() => end.abort())
    return new Promise<void>((_, reject) => {
      if (signal?.aborted) reject(signal.reason)
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  }
  const cluster = await open(join(folder, 'kubeconfig'), { pause })
  const reported: string[] = []
  for await (const change of cluster.objects.watch(maps, {}, end.signal)) reported.push(textOf(change))
  expect(reported).toEqual(['ADDED a=1'])
  expect(pauses[0]).toBe(60_000)
})

test('ends on abort while the server does not respond to a list', async () => {
  const { server, cluster } = await fakeCluster({}, { requestTimeoutMs: 0 })
  server.put(maps, map('a', '1'))
  const { reported, reach, stop } = watching(cluster)
  await reach('ADDED a=1')
  const silent = Promise.withResolvers<void>()
  server.faults.add({ kind: 'hostile', verb: 'watch', times: 1_000, answer: (response) => response.end() })
  server.faults.add({ kind: 'hostile', verb: 'list', times: 1_000, answer: () => silent.resolve() })
  server.dropConnections()
  await silent.promise
  await stop()
  expect(reported).toEqual(['ADDED a=1'])
})

test('fails at once when the first list fails', async () => {
  const { cluster } = await fakeCluster({}, { user: { username: 'ann' } })
  const watch = cluster.objects.watch(maps, {}, AbortSignal.timeout(60_000))
  await expect(watch[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'KCERT_API_FORBIDDEN' })
})
