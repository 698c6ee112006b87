import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { approvalFactsOf } from '../../src/app/csr/approval-facts.ts'
import type { NodeFacts } from '../../src/csr/approval/facts.ts'
import { systemClock } from '../../src/system/clock.ts'
import { approvalFactsContract } from '../contract/approval-facts.ts'
import { objectsApiContract } from '../contract/objects-api.ts'
import { requestsApiContract } from '../contract/requests-api.ts'
import { openWith, type Stage } from '../contract/stage.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'
import { lackingNeeds } from './needs.ts'
import { grantByRbac } from './rbac.ts'
import { onAllNodes } from './spec.ts'
import { minorOfDay } from './today.ts'

// The contract of the fake API server (test/contract/fake-api-server.test.ts), checked against the real one.

describeOnCluster('contracts of the API server', () => {
  let lab: Cluster & { close(): Promise<void> }
  beforeAll(async () => {
    lab = await openCluster({ controlPlanes: 1, workers: 1, kubernetes: onAllNodes(minorOfDay()) })
  })
  afterAll(async () => {
    await lab?.close()
  })

  const stage = async (): Promise<Stage> => {
    const folder = mkdtempSync(join(tmpdir(), 'kcert-contract-'))
    const { stdout } = await lab.kubectl(['config', 'view', '--raw', '--flatten', '-o', 'json'])
    const administrator = await openWith(lab.kubeconfig)
    return {
      kubeconfig: JSON.parse(stdout) as Record<string, unknown>,
      folder,
      administrator,
      grant: (grant) => grantByRbac(administrator, grant),
      async close() {
        administrator.close()
        rmSync(folder, { recursive: true })
      },
    }
  }

  test('serves every kind, verb, ClusterRole and metric that kcert needs', async () => {
    expect(await lackingNeeds(lab)).toEqual([])
  })

  requestsApiContract(stage)
  objectsApiContract(stage)
  approvalFactsContract('of a real cluster', async () => {
    const { administrator, close } = await stage()
    return {
      facts: approvalFactsOf(administrator, systemClock),
      worker: await nodeByKubectl(lab, 'w1'),
      controlPlane: await nodeByKubectl(lab, 'cp1'),
      trustedUser: 'system:bootstrap:abcdef',
      trustedGroups: ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token'],
      apiServers: ['10.200.0.11', '10.200.0.10', 'kubernetes.default.svc.cluster.local'],
      serviceCidrs: await serviceCidrsByKubectl(lab),
      close,
    }
  })
})

async function nodeByKubectl(lab: Cluster, name: string): Promise<NodeFacts> {
  const { stdout } = await lab.kubectl(['get', 'node', name, '-o', 'json'])
  const { status, metadata } = JSON.parse(stdout) as {
    status: { addresses: NodeFacts['addresses'] }
    metadata: { labels: Record<string, string> }
  }
  const isControlPlane = 'node-role.kubernetes.io/control-plane' in metadata.labels
  return { name, addresses: status.addresses, isControlPlane }
}

async function serviceCidrsByKubectl(lab: Cluster): Promise<string[]> {
  const { stdout } = await lab.kubectl(['get', 'servicecidrs', '-o', 'jsonpath={.items[*].spec.cidrs[*]}'])
  return stdout.trim().split(' ')
}
