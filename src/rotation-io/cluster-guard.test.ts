import { expect, test } from 'vitest'
import type { ApiObject } from '../cluster/api-client.ts'
import { metadataOf, type ObjectsApi } from '../cluster/objects.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { systemRandom } from '../system/random.ts'
import { ClusterGuard } from './cluster-guard.ts'

const now = new Date('2026-11-21T12:00:00Z')
const options = (objects: ObjectsApi, journalPath = '/a/kcert.jsonl') => ({
  objects,
  clock: () => now,
  random: systemRandom,
  journalPath,
})

test('a rotation holds the Lease, and gives it back', async () => {
  const { objects, holder } = memory()
  const guard = await ClusterGuard.acquire(options(objects))
  expect(holder()).not.toBe('')
  expect(() => guard.check()).not.toThrow()
  await guard.release()
  expect(holder()).toBe('')
})

test('a Lease that this machine left behind for the same journal is taken over at once', async () => {
  const { objects, holder } = memory()
  await ClusterGuard.acquire(options(objects))
  const dead = holder()
  await ClusterGuard.acquire(options(objects))
  expect(holder()).not.toBe(dead)
})

test('a Lease that somebody else renews is left alone', async () => {
  const { objects, renewBySomebody } = memory()
  await ClusterGuard.acquire(options(objects, '/b/kcert.jsonl'))
  const renewing = setInterval(renewBySomebody, 50)
  try {
    await expect(ClusterGuard.acquire(options(objects))).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  } finally {
    clearInterval(renewing)
  }
})

test('the mirror has the last line once the Lease is given back, and is read only when it is whole', async () => {
  const { objects, stored } = memory()
  const guard = await ClusterGuard.acquire(options(objects))
  expect(await guard.read()).toBeUndefined()
  const first = `{"previous":"${'0'.repeat(64)}"}\n`
  guard.follow(first)
  guard.follow(`${first}{"a":1}\n`)
  await guard.release()
  expect(await guard.read()).toBe(`${first}{"a":1}\n`)
  stored('kcert-rotation', { 'journal.jsonl': '{"previous":"ab"}\n' })
  expect(await guard.read()).toBeUndefined()
})

/** One Lease and one ConfigMap, with versions that count. */
function memory() {
  const objects = new Map<string, ApiObject>()
  let version = 0
  const put = (key: string, object: ApiObject): ApiObject => {
    const kept = { ...object, metadata: { ...metadataOf(object), resourceVersion: String(++version) } }
    objects.set(key, kept)
    return kept
  }
  const api = {
    get: async ({ resource, name }) => objects.get(`${resource}/${name}`),
    create: async ({ resource }, object) => put(`${resource}/${metadataOf(object).name}`, object),
    replace: async ({ resource, name }, object) => {
      const key = `${resource}/${name}`
      const is = metadataOf(objects.get(key)!).resourceVersion
      if (metadataOf(object).resourceVersion !== is) throw new KcertError('KCERT_API_CONFLICT', 'changed')
      return put(key, object)
    },
  } as Pick<ObjectsApi, 'get' | 'create' | 'replace'> as ObjectsApi
  const lease = 'leases/kcert-rotation'
  return {
    objects: api,
    holder: () => (objects.get(lease)!.spec as { holderIdentity: string }).holderIdentity,
    renewBySomebody: () => put(lease, objects.get(lease)!),
    stored: (name: string, data: Record<string, string>) =>
      put(`configmaps/${name}`, { metadata: { name }, data }),
  }
}
