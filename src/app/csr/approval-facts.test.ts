import { expect, test } from 'vitest'
import { fakeCluster } from '../../../test/cluster/fake-cluster.ts'
import { approvalFactsOf } from './approval-facts.ts'

const nodes = { group: '', version: 'v1', resource: 'nodes' } as const

async function withNode() {
  const fake = await fakeCluster()
  const now = { ms: 0 }
  const put = (address: string): unknown =>
    fake.server.put(nodes, {
      metadata: { name: 'w1' },
      status: { addresses: [{ type: 'InternalIP', address }] },
    })
  put('10.1.0.7')
  return { ...fake, put, now, facts: approvalFactsOf(fake.cluster, () => new Date(now.ms)) }
}

test('reads a Node again for each request, and the list of Nodes after a minute', async () => {
  const { server, put, now, facts } = await withNode()
  expect(await facts.findNodesAt('10.1.0.7')).toEqual(['w1'])
  expect(await facts.findNode('w1')).toMatchObject({ addresses: [{ address: '10.1.0.7' }] })
  put('10.1.0.8')
  expect(await facts.findNode('w1')).toMatchObject({ addresses: [{ address: '10.1.0.8' }] })
  now.ms = 59_999
  expect(await facts.findNodesAt('10.1.0.8')).toEqual([])
  now.ms = 60_000
  expect(await facts.findNodesAt('10.1.0.8')).toEqual(['w1'])
  server.remove(nodes, 'w1')
  expect(await facts.findNode('w1')).toBe('absent')
})

test('reads the CA of the kubelets again after a failed lookup', async () => {
  const { server, facts } = await withNode()
  const node = await facts.findNode('w1')
  if (typeof node !== 'object') throw new Error('no Node')
  server.faults.add({ kind: 'unavailable', verb: 'get', resource: 'configmaps', times: 8 })
  await expect(facts.readServedCertificate(node)).rejects.toMatchObject({ code: 'KCERT_UNREACHABLE' })
  // Without the ConfigMap, the certificate is unknown.
  expect(await facts.readServedCertificate(node)).toBeUndefined()
})

test.each(['get', 'list'])('has no facts about Nodes without the permission to %s them', async (verb) => {
  const rules = [{ verbs: ['get', 'list'].filter((one) => one !== verb), groups: [''], resources: ['nodes'] }]
  const { server, cluster } = await fakeCluster({ rules }, { user: { username: 'ann' } })
  server.put(nodes, { metadata: { name: 'w1' } })
  const facts = approvalFactsOf(cluster, () => new Date(0))
  expect((await facts.findNode('w1')) === undefined).toBe(verb === 'get')
  expect((await facts.findNodesAt('10.1.0.7')) === undefined).toBe(verb === 'list')
})
