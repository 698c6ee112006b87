import { expect, test } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import { readRequests } from './many-requests.ts'
import type { RequestObject } from './requests-api.ts'

const spec = { request: '', signerName: 'example.com/serving' }
const namesTo = (count: number): string[] => Array.from({ length: count }, (_, index) => `r${index}`)

/** Returns a cluster with the requests r0, r1 …, and the recorded calls. */
function clusterOf(count: number, listError?: KcertError) {
  const calls = { get: [] as string[], listed: 0 }
  const names = new Set(namesTo(count))
  const objectOf = (name: string): RequestObject => ({ metadata: { name }, spec })
  const api = {
    async get(name: string) {
      calls.get.push(name)
      return names.has(name) ? objectOf(name) : undefined
    },
    async *list() {
      if (listError) throw listError
      for (const name of names) {
        calls.listed++
        yield objectOf(name)
      }
    },
  }
  return { api, calls }
}

const read = (api: Parameters<typeof readRequests>[0], names: readonly string[]) =>
  readRequests(api, names, { concurrency: 8 })

test('reads a few objects one by one, regardless of the size of the cluster', async () => {
  const { api, calls } = clusterOf(1_000)
  const found = await read(api, ['r3', 'absent'])
  expect(found.map((object) => object?.metadata.name)).toEqual(['r3', undefined])
  expect(calls).toEqual({ get: ['r3', 'absent'], listed: 0 })
})

test('reads many objects from a list, in the order of their names, and gets the missing ones', async () => {
  const { api, calls } = clusterOf(200)
  const names = ['absent', ...namesTo(150).reverse()]
  const found = await read(api, names)
  expect(found.map((object) => object?.metadata.name)).toEqual([undefined, ...names.slice(1)])
  expect(calls.get).toEqual(['absent'])
})

test('stops reading a list that is much longer than the names', async () => {
  const { api, calls } = clusterOf(100_000)
  const names = namesTo(100_000).slice(-100)
  expect((await read(api, names)).every((object) => object !== undefined)).toBe(true)
  expect(calls.listed).toBe(1_400)
  expect(calls.get.length).toBe(100)
})

test('reads one by one without the permission to list, and throws any other failure of the list', async () => {
  const { api, calls } = clusterOf(200, new KcertError('KCERT_API_FORBIDDEN', 'no list'))
  expect((await read(api, namesTo(100))).filter(Boolean)).toHaveLength(100)
  expect(calls.get).toHaveLength(100)
  const down = clusterOf(200, new KcertError('KCERT_UNREACHABLE', 'gone'))
  await expect(read(down.api, namesTo(100))).rejects.toMatchObject({ code: 'KCERT_UNREACHABLE' })
})
