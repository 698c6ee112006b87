import { expect, test } from 'vitest'
import { StatusError } from '../../src/cluster/failures.ts'
import type { ApiObject } from '../../src/cluster/malformed.ts'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { ProcessFacts } from '../../src/pki/node-access.ts'
import { SiteObserver } from '../../src/rotation-io/observer.ts'
import { leases } from '../../src/rotation-io/published.ts'
import type { Site } from '../../src/site/site.ts'
import { MemoryNode, now } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

// ClusterTrustBundles with API servers of several releases behind one address.

const signerName = 'kubernetes.io/kube-apiserver-serving'
const metadata = {
  name: 'kubernetes.io:kube-apiserver-serving:0123456789abcdef01234567',
  creationTimestamp: '2026-11-21T10:00:00Z',
  managedFields: [{ time: '2026-11-21T11:00:00Z', fieldsV1: { 'f:spec': {} } }],
}
const bundle = { metadata, spec: { signerName, trustBundle: '' } }
const other = { metadata: { name: 'ours' }, spec: { trustBundle: '' } }

type Answer = readonly ApiObject[] | 'unserved' | 'silent'

function answered(answer: Answer): readonly ApiObject[] {
  if (answer === 'silent') throw new KcertError('KCERT_UNREACHABLE', 'no answer')
  if (answer !== 'unserved') return answer
  throw new StatusError('KCERT_API_NOT_FOUND', 'no such kind', {}, { status: 404, reason: '' })
}

/**
 * Returns the published CAs for these responses to requests for bundles: from the address in the kubeconfig, and from each API
 * server.
 */
async function publishedBy(balancer: Answer, servers: Readonly<Record<string, Answer | 'no API server'>>) {
  const names = Object.keys(servers)
  const nodes = new Map(
    names.map((name) => {
      const node = new MemoryNode(name, { files: new Map() } as never)
      if (servers[name] !== 'no API server')
        node.processes = [{ program: 'kube-apiserver', argv: ['kube-apiserver'] } as never as ProcessFacts]
      return [name, node] as const
    }),
  )
  const asked: string[] = []
  const objects = {
    async *list({ resource }) {
      if (resource === 'nodes') for (const name of names) yield { metadata: { name } }
      if (resource === 'clustertrustbundles') yield* answered(balancer)
    },
  } as Pick<ObjectsApi, 'list'> as ObjectsApi
  const site: Site = {
    ...(await sitesOf(nodes))(),
    objects,
    async *listAt(node) {
      asked.push(node)
      yield* answered(servers[node] as Answer)
    },
  }
  const { published } = await new SiteObserver(site).observe(['published'])
  return { published: published.map(({ name, unread }) => unread ?? name), asked, all: published }
}

test('takes the bundles of any API server as complete, because all share one etcd', async () => {
  expect(await publishedBy([bundle, other], { cp1: 'unserved', cp2: 'silent' })).toMatchObject({
    published: [metadata.name],
    asked: [],
  })
})

test('tries every API server for bundles if the first serves none, and stops at one that has them', async () => {
  const found = await publishedBy('unserved', { cp1: 'unserved', cp2: [bundle, other], cp3: 'silent' })
  expect([found.published, found.asked]).toEqual([[metadata.name], ['cp1', 'cp2', 'cp3']])
})

test('reports an API server that cannot be read, because it may have bundles', async () => {
  const { published, all } = await publishedBy('unserved', { cp1: 'unserved', cp2: 'silent' })
  expect(published).toEqual(['no answer'])
  expect(all).toMatchObject([{ kind: 'ClusterTrustBundle', name: 'cp2/kube-apiserver', isActive: true }])
  expect(all[0]).not.toHaveProperty('trust')
})

test('returns no bundles when no API server serves any', async () => {
  expect((await publishedBy('unserved', { cp1: 'unserved', cp2: 'unserved' })).published).toEqual([])
})

test('does not try a single API server again', async () => {
  const { published, asked } = await publishedBy('unserved', { cp1: 'silent', cp2: 'no API server' })
  expect([published, asked]).toEqual([[], []])
})

test('takes the change time of an edited bundle from the edit, not from its creation', async () => {
  const { all } = await publishedBy([bundle], { cp1: 'unserved' })
  expect(all[0]!.changedAtMs).toBe(Date.parse('2026-11-21T11:00:00Z'))
})

test.each([
  [undefined, 14, 'cp1'],
  [undefined, 16, undefined],
  [0, 14, 'cp1'],
  [-1, 16, undefined],
  [60, 59, 'cp1'],
  [1_000_000_000, 299, 'cp1'],
  [1_000_000_000, 301, undefined],
  ['1e9', 301, undefined],
  ['hello', 16, undefined],
  [undefined, -299, 'cp1'],
  [undefined, -301, undefined],
])(
  'a Lease of %j s, renewed %i s ago, has the holder %s',
  async (leaseDurationSeconds, ageSeconds, holder) => {
    const renewTime = new Date(now.getTime() - ageSeconds * 1000).toISOString()
    const spec = { holderIdentity: 'cp1_0123', leaseDurationSeconds, renewTime }
    const objects = {
      get: async ({ name = '' }) =>
        name === 'kube-scheduler' ? { metadata: { name }, spec: spec as Record<string, unknown> } : undefined,
    } as Pick<ObjectsApi, 'get'> as ObjectsApi
    const site: Site = {
      ...(await sitesOf(new Map([['cp1', new MemoryNode('cp1', { files: new Map() } as never)]])))(),
      objects,
    }
    const [found] = await leases(site, [{ metadata: { name: 'cp1' } }] as never)
    expect(found).toMatchObject({ name: 'kube-scheduler' })
    expect(found?.holder).toBe(holder)
  },
)
