import pMap from 'p-map'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Cluster } from '../../src/cluster/cluster.ts'
import type { ApiObject } from '../../src/cluster/malformed.ts'
import type { ObjectChange } from '../../src/cluster/objects.ts'
import type { Resource } from '../../src/cluster/resource.ts'
import { codeOf } from './errors.ts'
import { gather, newName, openAs, type Stage } from './stage.ts'

const configMaps: Resource = { group: '', version: 'v1', resource: 'configmaps', namespace: 'default' }

const ownReviews: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'selfsubjectaccessreviews',
}

type Map = ApiObject & {
  readonly metadata: Readonly<Record<string, string>>
  readonly data?: Readonly<Record<string, string>>
}

function newMap(data: Record<string, string>, labels: Record<string, string> = {}): ApiObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: newName('map'), labels }, data }
}

/** The contract of ObjectsApi and AccessApi, for the fake and for a real API server. */
export function objectsApiContract(open: () => Promise<Stage>): void {
  describe('objects of a cluster', () => {
    let stage: Stage
    let cluster: Cluster
    beforeAll(async () => {
      stage = await open()
      cluster = stage.administrator
      return () => stage.close()
    })
    const create = async (data = { colour: 'red' }): Promise<Map> =>
      (await cluster.objects.create(configMaps, newMap(data))) as Map
    const at = ({ metadata }: Map): Resource => ({ ...configMaps, name: metadata.name! })

    test('creates, reads, replaces, patches and deletes an object', async () => {
      const created = await create()
      const place = at(created)
      expect(await cluster.objects.get(place)).toMatchObject({ data: { colour: 'red' } })
      const replaced = (await cluster.objects.replace(place, { ...created, data: { colour: 'blue' } })) as Map
      expect(replaced.data).toEqual({ colour: 'blue' })
      const merged = (await cluster.objects.patch(place, { data: { size: 'xl' } }, 'merge')) as Map
      expect(merged.data).toEqual({ colour: 'blue', size: 'xl' })
      const removed = (await cluster.objects.patch(place, { data: { size: null } }, 'strategic-merge')) as Map
      expect(removed.data).toEqual({ colour: 'blue' })
      const operations = [
        { op: 'test', path: '/metadata/resourceVersion', value: removed.metadata.resourceVersion },
        { op: 'replace', path: '/data/colour', value: 'green' },
      ]
      const patched = (await cluster.objects.patch(place, operations, 'json')) as Map
      expect(patched.data).toEqual({ colour: 'green' })
      expect(await codeOf(cluster.objects.patch(place, operations, 'json'))).toBe('KCERT_API_INVALID')
      expect(await cluster.objects.delete(place)).toBe(true)
      expect(await cluster.objects.get(place)).toBeUndefined()
      expect(await cluster.objects.delete(place)).toBe(false)
    })

    test('rejects replace and patch with an older resourceVersion as a conflict', async () => {
      const created = await create()
      const newer = await cluster.objects.replace(at(created), { ...created, data: { colour: 'blue' } })
      expect(await codeOf(cluster.objects.replace(at(created), { ...created, data: {} }))).toBe(
        'KCERT_API_CONFLICT',
      )
      const { resourceVersion } = created.metadata
      const patch = { metadata: { resourceVersion }, data: { colour: 'pink' } }
      expect(await codeOf(cluster.objects.patch(at(created), patch, 'merge'))).toBe('KCERT_API_CONFLICT')
      expect(await cluster.objects.get(at(created))).toMatchObject({ data: (newer as Map).data })
    })

    test('deletes only the object with the given UID', async () => {
      const created = await create()
      const other = { uid: '00000000-0000-4000-8000-000000000000' }
      expect(await cluster.objects.delete(at(created), other)).toBe(false)
      expect(await cluster.objects.delete(at(created), { uid: created.metadata.uid! })).toBe(true)
    })

    test('returns a complete list of more than one page', async () => {
      const label = newName('page')
      const count = 510
      const allSettings = Array.from({ length: count }, () => newMap({}, { [label]: 'yes' }))
      await pMap(allSettings, (settings) => cluster.objects.create(configMaps, settings), { concurrency: 16 })
      const found = await gather(cluster.objects.list(configMaps, { labelSelector: `${label}=yes` }))
      expect(new Set(found.map((one) => (one as Map).metadata.name)).size).toBe(count)
      expect(found[0]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' })
      await pMap(found, (one) => cluster.objects.delete(at(one as Map)), { concurrency: 16 })
    })

    test('a watch yields the existing objects, then the changes of others', async () => {
      const label = newName('watched')
      const selection = { labelSelector: `${label}=yes` }
      const first = (await cluster.objects.create(configMaps, newMap({}, { [label]: 'yes' }))) as Map
      const end = new AbortController()
      const changes: ObjectChange[] = []
      const done = (async () => {
        for await (const change of cluster.objects.watch(configMaps, selection, end.signal))
          changes.push(change)
      })()
      await expect.poll(() => changes.length, { timeout: 60_000 }).toBe(1)
      await cluster.objects.create(configMaps, newMap({}, { [label]: 'yes' }))
      await cluster.objects.create(configMaps, newMap({}, { [label]: 'no' }))
      await cluster.objects.patch(at(first), { data: { a: 'b' } }, 'merge')
      await expect.poll(() => changes.length, { timeout: 60_000 }).toBe(3)
      end.abort()
      await done
      expect(changes.map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'MODIFIED'])
    })

    test('reports an unknown kind as not found', async () => {
      const unknown: Resource = { group: 'nothing.example.com', version: 'v1', resource: 'things' }
      expect(await codeOf(gather(cluster.objects.list(unknown)))).toBe('KCERT_API_NOT_FOUND')
      expect(await codeOf(cluster.objects.get({ ...unknown, name: 'one' }))).toBe('KCERT_API_NOT_FOUND')
    })

    test('reports whether a kind is served without the permission to list it', async () => {
      const kinds: Resource = {
        group: 'certificates.k8s.io',
        version: 'v1',
        olderVersions: ['v1beta1'],
        resource: 'podcertificaterequests',
      }
      const known = await codeOf(gather(cluster.objects.list(kinds)))
      expect(known).toBeOneOf(['nothing', 'KCERT_API_NOT_FOUND'])
      const erin = await openAs(stage, { username: 'erin' })
      expect(await codeOf(gather(erin.objects.list(kinds)))).toBe(
        known === 'nothing' ? 'KCERT_API_FORBIDDEN' : known,
      )
      erin.close()
    })

    test('does not reach another object with a name of dots and slashes', async () => {
      for (const name of ['..', '.', '../secrets', 'a/../b', '%2e%2e'])
        expect(await cluster.objects.get({ ...configMaps, name }).catch(({ code }) => code)).toBeOneOf([
          undefined,
          'KCERT_API_NOT_FOUND',
          'KCERT_API_INVALID',
        ])
    })

    test('returns the current user and its permissions', async () => {
      const carol = { username: 'carol', groups: ['shop'], extra: { 'example.com/floor': ['3'] } }
      const asCarol = await openAs(stage, carol)
      expect(await asCarol.access.whoAmI()).toMatchObject({
        username: 'carol',
        groups: ['shop', 'system:authenticated'],
        extra: carol.extra,
      })
      const mayGet = async (): Promise<unknown> => {
        const spec = { resourceAttributes: { verb: 'get', group: '', resource: 'configmaps' } }
        const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec }
        const { status } = await asCarol.objects.create(ownReviews, review)
        return (status as ApiObject).allowed
      }
      expect(await mayGet()).toBe(false)
      expect(await codeOf(gather(asCarol.objects.list(configMaps)))).toBe('KCERT_API_FORBIDDEN')
      await stage.grant({ username: 'carol', verbs: ['get', 'list'], group: '', resources: ['configmaps'] })
      expect(await mayGet()).toBe(true)
      expect((await gather(asCarol.objects.list(configMaps))).length).toBeGreaterThan(0)
      asCarol.close()
    })

    test('returns no result about other users without permission', async () => {
      const dave = await openAs(stage, { username: 'dave' })
      const resource = { verb: 'get', group: '', version: 'v1', resource: 'configmaps', subresource: '' }
      const question = { user: 'carol', groups: [], extra: {}, resource }
      expect(await dave.access.isAllowed(question)).toBeUndefined()
      expect(await cluster.access.isAllowed({ ...question, user: 'nobody-at-all' })).toBe(false)
      expect(await cluster.access.isAllowed({ ...question, groups: ['system:masters'] })).toBe(true)
      dave.close()
    })
  })
}
