import { expect, test } from 'vitest'
import type { ApiObject } from '../cluster/api-client.ts'
import { metadataOf, type ObjectsApi } from '../cluster/objects.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { journalLine } from '../rotation/journal.ts'
import { systemRandom } from '../system/random.ts'
import { ClusterGuard, mirroredJournal } from './cluster-guard.ts'

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

test('after a sleep longer than the Lease it is renewed before anything is done, and left to who has it by then', async () => {
  const { objects, holder, renewBySomebody } = memory()
  const { given, pass } = aging(objects)
  const guard = await ClusterGuard.acquire(given)
  await guard.confirm()
  pass(3_600_000)
  await guard.confirm()
  expect(holder()).toMatch(/_[0-9a-f]{12}$/)
  pass(3_600_000)
  renewBySomebody('somebody else')
  await expect(guard.confirm()).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  expect(holder()).toBe('somebody else')
})

test('where no API server answers that nobody else has the Lease, nothing is done', async () => {
  const { objects } = memory()
  const { given, pass } = aging(objects)
  const guard = await ClusterGuard.acquire(given)
  pass(60_000)
  objects.get = async () => {
    throw new KcertError('KCERT_UNREACHABLE', 'nobody answers')
  }
  await expect(guard.confirm()).rejects.toMatchObject({
    code: 'KCERT_UNREACHABLE',
    message: 'the Lease kube-system/kcert-rotation could not be renewed',
  })
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

test('of a rotation that came to its end the mirror is passed over where another journal is named', async () => {
  const { objects, stored } = memory()
  const first = journalLine({ kind: 'phase', phase: 12, event: 'begun' }, now.getTime(), undefined)
  const last = journalLine({ kind: 'phase', phase: 12, event: 'held' }, now.getTime(), first)
  stored('kcert-rotation', { 'journal.jsonl': `${first}\n` })
  expect(await mirroredJournal(objects, true)).toBe(`${first}\n`)
  stored('kcert-rotation', { 'journal.jsonl': `${first}\n${last}\n` })
  expect(await mirroredJournal(objects, false)).toBe(`${first}\n${last}\n`)
  expect(await mirroredJournal(objects, true)).toBeUndefined()
})

/** Options whose clock goes on only while something sleeps, or when it is told to. */
function aging(objects: ObjectsApi) {
  let time = now.getTime()
  const pass = (ms: number): void => {
    time += ms
  }
  const given = { ...options(objects), clock: () => new Date(time), sleep: async (ms: number) => pass(ms) }
  return { given, pass }
}

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
    renewBySomebody: (holderIdentity?: string) => {
      const object = objects.get(lease)!
      const spec = holderIdentity === undefined ? object.spec : { ...(object.spec as object), holderIdentity }
      return put(lease, { ...object, spec })
    },
    stored: (name: string, data: Record<string, string>) =>
      put(`configmaps/${name}`, { metadata: { name }, data }),
  }
}
