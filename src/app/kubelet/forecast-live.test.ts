import { expect, test } from 'vitest'
import type { Cluster } from '../../cluster/cluster.ts'
import { liveFacts } from './forecast-live.ts'

const now = new Date('2026-11-23T12:00:00Z')
const live = { clock: () => now, timeoutMs: 1_000, only: [] }

/** Returns a cluster with one node without an address, so that nothing is dialed, and without requests. */
function clusterWith(metrics: string, configuration: object): Cluster {
  async function* nothing(): AsyncGenerator<never> {}
  return {
    objects: {
      async *list({ resource }: { resource: string }) {
        if (resource === 'nodes') yield { metadata: { name: 'w1' } }
      },
    },
    requests: { list: nothing },
    nodeProxy: {
      get: async (_node: string, path: string) =>
        path === 'metrics' ? metrics : JSON.stringify({ kubeletconfig: configuration }),
    },
  } as unknown as Cluster
}

const factsOf = async (metrics: string, configuration: object) =>
  (await liveFacts(clusterWith(metrics, configuration), live)).kubelets[0]!

const both = { rotateCertificates: true, serverTLSBootstrap: true }
const client = 'kubelet_certificate_manager_client_ttl_seconds'
const server = 'kubelet_certificate_manager_server_ttl_seconds'

test("reads the remaining lifetime of a kubelet's certificates from its metrics", async () => {
  const { certificates, unread } = await factsOf(`${client} 3600\n${server} 7.2e+03\n`, both)
  expect(certificates).toMatchObject([
    { usage: 'client', source: 'metric', notAfterMs: now.getTime() + 3_600_000 },
    { usage: 'serving', source: 'metric', notAfterMs: now.getTime() + 7_200_000 },
  ])
  expect(unread).toEqual([])
})

test('reads +Inf as no certificate', async () => {
  expect(await factsOf(`${client} +Inf\n${server} +Inf\n`, both)).toMatchObject({
    certificates: [],
    unread: [],
  })
})

test('marks a missing metric as unread if a kubelet with this configuration must have it', async () => {
  const others = `${client}_count 3600\n# HELP ${server} Gauge\n`
  expect((await factsOf(others, both)).unread).toEqual([
    `its metrics have no ${client}`,
    `its metrics have no ${server}`,
  ])
  const neither = { rotateCertificates: false, serverTLSBootstrap: false }
  expect((await factsOf(others, neither)).unread).toEqual([])
})
