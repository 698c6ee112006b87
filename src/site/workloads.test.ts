import { expect, test } from 'vitest'
import type { ObjectsApi } from '../cluster/objects.ts'
import type { Site } from './site.ts'
import { appliedBundles, workloads } from './workloads.ts'

const annotation = 'kubectl.kubernetes.io/last-applied-configuration'

test('returns every caBundle in the last-applied annotation of an object, and none if that is not JSON', () => {
  const applied = JSON.stringify({
    webhooks: [
      { name: 'b', clientConfig: { caBundle: 'Ymly' } },
      { name: 'a', clientConfig: { caBundle: 7, url: 'https://x' } },
    ],
    spec: { conversion: { webhook: { clientConfig: { caBundle: 'Y3Jk' } } } },
  })
  const of = (text: string) => appliedBundles({ name: 'guard', annotations: { [annotation]: text } })
  expect(of(applied)).toEqual(['Ymly', 'Y3Jk'])
  expect(of('{"caBundle":')).toEqual([])
  expect(appliedBundles({ name: 'guard' })).toEqual([])
})

test("excludes workloads by the inventory's kind, namespace, name and label selectors, and those with OnDelete", async () => {
  const item = (namespace: string, name: string, labels = {}, spec = {}) => ({
    metadata: { namespace, name, labels },
    spec,
  })
  const listed: Record<string, object[]> = {
    deployments: [item('shop', 'web'), item('db', 'admin'), item('shop', 'slow', { tier: 'back' })],
    statefulsets: [item('shop', 'web')],
    daemonsets: [item('shop', 'log', {}, { updateStrategy: { type: 'OnDelete' } }), item('shop', 'net')],
  }
  const objects = {
    async *list({ resource }) {
      yield* listed[resource] ?? []
    },
  } as Pick<ObjectsApi, 'list'> as ObjectsApi
  const exclude = [{ namespace: 'db' }, { labels: { tier: 'back' } }, { kind: 'StatefulSet', name: 'web' }]
  const site = { objects, inventory: { workloads: { exclude } } } as unknown as Site
  const found = await workloads(site, [])
  expect(Object.fromEntries(found.map(({ id, mayRoll }) => [id, mayRoll]))).toEqual({
    'Deployment shop/web': true,
    'Deployment db/admin': false,
    'Deployment shop/slow': false,
    'StatefulSet shop/web': false,
    'DaemonSet shop/log': false,
    'DaemonSet shop/net': true,
  })
})
