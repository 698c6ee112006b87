import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { fakeCluster } from '../../test/cluster/fake-cluster.ts'
import type { ApiCall } from './api-client.ts'
import { StatusError } from './failures.ts'
import type { ApiObject } from './malformed.ts'
import { objectsOf } from './objects.ts'
import type { Resource } from './resource.ts'

// Responses that no API server sends. Each fails soon with the limit that it exceeds, and is not quoted, since it may be a
// Secret.

const maps: Resource = { group: '', version: 'v1', resource: 'configmaps', namespace: 'default' }
const one: Resource = { ...maps, name: 'one' }
const items = [{ metadata: { name: 'one' } }]

async function failureOf(run: () => Promise<unknown>): Promise<unknown> {
  const failure = await run().then(
    () => 'no failure',
    (error: unknown) => error,
  )
  expect(inspect(failure, { depth: 9 })).not.toContain('canary')
  return failure
}

async function all(list: AsyncIterable<unknown>): Promise<unknown[]> {
  const found = []
  for await (const item of list) found.push(item)
  return found
}

/** Lists from a server with these responses. Returns the number of calls and the total of the pauses. */
async function listing(answer: (count: number, call: ApiCall) => ApiObject) {
  const pauses: number[] = []
  let calls = 0
  const client = { call: async (call: ApiCall) => answer(++calls, call) }
  const pause = async (milliseconds: number) => void pauses.push(milliseconds)
  const failure = await failureOf(() => all(objectsOf(client, pause).list(maps)))
  return { failure, calls, pauses }
}

const broken = (why: string | RegExp) => ({
  code: 'KCERT_UNREACHABLE',
  message: 'invalid response from the API server',
  why: typeof why === 'string' ? why : expect.stringMatching(why),
})
const listFault = (fault: string) =>
  broken(`cannot list configmaps in namespace default: the server sent ${fault}`)

test('refuses a list that repeats the same continue token', async () => {
  const { failure, calls } = await listing(() => ({ items, metadata: { continue: 'same' } }))
  expect(failure).toMatchObject(listFault('the same continue token twice'))
  expect(calls).toBe(2)
})

test.each(['continue', 'resourceVersion'])('refuses a list whose %s is not text', async (field) => {
  for (const value of [5, true, {}, ['canary']]) {
    const { failure, calls } = await listing(() => ({ items, metadata: { [field]: value } }))
    expect(failure).toMatchObject(listFault(`a metadata.${field} that is not text`))
    expect(calls).toBe(1)
  }
  expect((await listing(() => ({ items, metadata: { [field]: null } }))).failure).toBe('no failure')
})

test('refuses a list whose continue tokens form a cycle', async () => {
  const { failure, calls } = await listing((count) => ({ items, metadata: { continue: `${count % 3}` } }))
  expect(failure).toMatchObject(listFault('the same continue token twice'))
  expect(calls).toBe(4)
})

test.each([
  ['pages, even without objects', 0, 'more than 10000 pages', 10_000],
  ['objects', 5_000, 'more than 500000 objects', 101],
])('refuses a list of endless %s', async (_, size, fault, most) => {
  const page = Array.from({ length: size }, () => items[0])
  const { failure, calls } = await listing((count) => ({ items: page, metadata: { continue: `${count}` } }))
  expect(failure).toMatchObject(listFault(fault))
  expect(calls).toBe(most)
})

test('restarts a list that expires on each page three times, with pauses', async () => {
  const gone = new StatusError('KCERT_API_CONFLICT', 'too old', {}, { status: 410, reason: 'Expired' })
  const { failure, calls, pauses } = await listing((count, { query }) => {
    if (query?.continue !== undefined) throw gone
    return { items, metadata: { continue: `${count}` } }
  })
  expect(failure).toBe(gone)
  expect(calls).toBe(8)
  expect(pauses).toEqual([1_000, 2_000, 4_000])
})

test.each([
  ['no items', {}, 'an object that is not a list'],
  ['items that are not a list', { items: { canary: 1 } }, 'an object that is not a list'],
  ['null among the items', { items: [null] }, 'an item that is not an object'],
  ['text among the items', { items: ['canary'] }, 'an item that is not an object'],
  ['an item without metadata', { items: [{ data: 'canary' }] }, 'an object without metadata.name'],
  ['an item whose metadata is null', { items: [{ metadata: null }] }, 'an object without metadata.name'],
  [
    'an item whose name is a list',
    { items: [{ metadata: { name: ['canary'] } }] },
    'an object without metadata.name',
  ],
])('refuses a list with %s', async (_, list, fault) => {
  expect((await listing(() => list)).failure).toMatchObject(listFault(fault))
})

test('accepts null for an empty list, as Go encodes it', async () => {
  expect((await listing(() => ({ items: null, metadata: null }))).failure).toBe('no failure')
})

test.each(['null', '[]', '"canary"', '7', 'canary', '', '{"metadata":[]}', '{"metadata":{"name":7}}'])(
  'refuses %s instead of an object',
  async (body) => {
    const { server, cluster } = await fakeCluster()
    server.put(maps, items[0]!)
    server.faults.add({ kind: 'hostile', verb: 'get', answer: (response) => response.end(body) })
    expect(await failureOf(() => cluster.objects.get(one))).toMatchObject(
      broken(
        /^cannot read configmaps "one" in namespace default: the server sent (a response that is not a JSON object|an object without metadata\.name)$/,
      ),
    )
  },
)

/** Returns the error of a watch whose first connection gets this response. */
async function watchFailure(answer: (response: ServerResponse) => void): Promise<unknown> {
  const { server, cluster } = await fakeCluster()
  server.faults.add({ kind: 'hostile', verb: 'watch', times: 1_000, answer })
  return failureOf(() => all(cluster.objects.watch(maps, {}, AbortSignal.timeout(60_000))))
}

const watchFault = (fault: string) =>
  broken(`cannot watch configmaps in namespace default: the server sent ${fault}`)

test.each([
  'canary',
  '{"type":"ADDED","object":{"data":"canary"',
  'null',
  '[]',
  '"canary"',
  '{}',
  '{"type":"CANARY","object":{}}',
  '{"type":"BOOKMARK","object":null}',
])('refuses the watch line %s', async (line) => {
  expect(await watchFailure((response) => response.write(`${line}\n`))).toMatchObject(
    watchFault('a line that is not a watch event'),
  )
})

test.each([
  ['null', 'an item that is not an object'],
  ['{"data":"canary"}', 'an object without metadata.name'],
])('refuses a watch event whose object is %s', async (object, fault) => {
  const line = `{"type":"ADDED","object":${object}}\n`
  expect(await watchFailure((response) => response.write(line))).toMatchObject(watchFault(fault))
})

test('refuses a watch line of unlimited length', async () => {
  const piece = Buffer.alloc(1024 * 1024, 'x')
  const flood = (response: ServerResponse): void => {
    if (!response.destroyed) response.write(piece, () => flood(response))
  }
  expect(await watchFailure(flood)).toMatchObject(watchFault('a line that is longer than 16 MiB'))
})

const bookmark = '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n'
const forgotten = '{"type":"ERROR","object":{"code":410}}\n'

test.each<[string, (response: ServerResponse) => void]>([
  ['ends at once', (response) => response.end()],
  ['is forgotten at once', (response) => response.end(forgotten)],
  ['ends after a bookmark', (response) => response.end(bookmark)],
  ['is forgotten after a bookmark', (response) => response.end(bookmark + forgotten)],
  ['is refused with status 410', (response) => response.writeHead(410).end('{"code":410}')],
])('polls with lists where each watch %s', async (_, answer) => {
  const { server, cluster, pauses } = await fakeCluster()
  server.put(maps, items[0]!)
  server.faults.add({
    kind: 'hostile',
    verb: 'watch',
    times: 1_000_000,
    answer,
  })
  const end = new AbortController()
  const watching = all(cluster.objects.watch(maps, {}, end.signal))
  await expect.poll(() => pauses.length, { timeout: 60_000 }).toBeGreaterThan(40)
  end.abort()
  expect(await watching).toMatchObject([{ type: 'ADDED' }])
  // Five watches, then a minute of lists, each after a pause.
  expect(pauses.slice(0, 36)).toEqual([...Array(5).fill(500), ...Array(30).fill(2_000), 500])
})

test('limits the size of an endless response and of an endless refusal', async () => {
  const { server, cluster } = await fakeCluster({}, { requestTimeoutMs: 60_000 })
  const piece = Buffer.alloc(4 * 1024 * 1024, 'x')
  const flood = (status: number) => (response: ServerResponse) => {
    response.statusCode = status
    const more = (): void => {
      if (!response.destroyed) response.write(piece, more)
    }
    more()
  }
  server.put(maps, items[0]!)
  server.faults.add({ kind: 'hostile', verb: 'get', answer: flood(200) })
  expect(await failureOf(() => cluster.objects.get(one))).toMatchObject({
    code: 'KCERT_UNREACHABLE',
    why: 'the answer is larger than 256 MiB',
  })
  server.faults.clear()
  server.faults.add({ kind: 'hostile', verb: 'watch', answer: flood(403) })
  const began = performance.now()
  const watch = cluster.objects.watch(maps, {}, AbortSignal.timeout(60_000))[Symbol.asyncIterator]()
  expect(await watch.next()).toMatchObject({ value: { type: 'ADDED' } })
  server.put(maps, { metadata: { name: 'two' } })
  // The watch continues with lists, as for clients that may not watch.
  expect(await watch.next()).toMatchObject({ value: { object: { metadata: { name: 'two' } } } })
  expect(performance.now() - began).toBeLessThan(35_000)
  await watch.return?.()
})

test('lists objects that fill the limit of a page in smaller pages', async () => {
  const { server, cluster } = await fakeCluster({}, { requestTimeoutMs: 60_000 })
  const value = 'x'.repeat(2 * 1024 * 1024)
  const names = Array.from({ length: 20 }, (_, index) => `large-${index + 10}`)
  for (const name of names) server.put(maps, { metadata: { name }, data: { value } })
  const found = await all(cluster.objects.list(maps))
  expect(found.map((object) => (object as { metadata: { name: string } }).metadata.name)).toEqual(names)
  // Pages of 500, 125 and 31 would be larger than 16 MiB, and so would the rest after the first 7.
  expect(server.calls.length).toBeLessThan(10)
})

test('a process with little memory requests smaller pages, and no larger object', async () => {
  const { server, open, folder } = await fakeCluster()
  const mostPageBytes = 64 * 1024
  const cluster = await open(join(folder, 'kubeconfig'), { mostPageBytes })
  const names = Array.from({ length: 100 }, (_, index) => `map-${index + 100}`)
  for (const name of names) server.put(maps, { metadata: { name }, data: { value: 'x'.repeat(8_000) } })
  const found = await all(cluster.objects.list(maps))
  expect(found.map((object) => (object as { metadata: { name: string } }).metadata.name)).toEqual(names)
  // Pages of 7, after those of 500, 125 and 31. Each fourth page has twice as many, which is too large: then 3.
  expect(server.calls.length).toBeLessThan(35)
  server.put(maps, { metadata: { name: 'a-large' }, data: { value: 'x'.repeat(300_000) } })
  expect(await all(cluster.objects.list(maps))).toHaveLength(101)
  server.put(maps, { metadata: { name: 'a-huge' }, data: { value: 'x'.repeat(600_000) } })
  expect(await failureOf(() => all(cluster.objects.list(maps)))).toMatchObject({ code: 'KCERT_UNREACHABLE' })
})

test('follows no redirect, so that no credential reaches another server', async () => {
  const other = await fakeCluster()
  const { server, cluster } = await fakeCluster()
  server.put(maps, items[0]!)
  server.faults.add({
    kind: 'hostile',
    verb: 'get',
    times: 99,
    answer: (response) => response.writeHead(307, { Location: `${other.server.url}/api/v1/nodes` }).end(),
  })
  expect(await failureOf(() => cluster.objects.get(one))).toMatchObject({
    code: 'KCERT_UNREACHABLE',
    message: expect.stringContaining('(HTTP status 307)'),
  })
  expect(other.server.connections).toBe(0)
})
