import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { approvalFactsOf } from '../../src/app/csr/approval-facts.ts'
import type { NodeFacts } from '../../src/csr/approval/facts.ts'
import { systemClock } from '../../src/system/clock.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { startApiServer } from '../fakes/api-server.ts'
import { fakeFacts } from '../fakes/approval-facts.ts'
import type { FactsStage } from './approval-facts.ts'
import { openWith } from './stage.ts'

const worker: NodeFacts = {
  name: 'w1',
  addresses: [
    { type: 'InternalIP', address: '127.0.0.1' },
    { type: 'Hostname', address: 'w1' },
  ],
  isControlPlane: false,
}
const controlPlane: NodeFacts = {
  name: 'cp1',
  addresses: [
    { type: 'InternalIP', address: '10.1.0.11' },
    { type: 'Hostname', address: 'cp1' },
  ],
  isControlPlane: true,
}
const expected = {
  worker,
  controlPlane,
  trustedUser: 'system:bootstrap:abcdef',
  trustedGroups: ['system:bootstrappers'],
  apiServers: ['10.1.0.11', 'api.example.com', '203.0.113.5'],
  serviceCidrs: ['10.96.0.0/12'],
}

/** Returns the facts in memory. */
export async function factsInMemory(): Promise<FactsStage> {
  const server = await startApiServer()
  const [certificate] = readCertificates(Buffer.from(issueServing(server).certificate))
  await server.close()
  return {
    ...expected,
    facts: fakeFacts({
      allowed: [`${expected.trustedUser} nodeclient`],
      nodes: [worker, controlPlane],
      served: { w1: { certificate: certificate!, isTrusted: true } },
      addresses: expected,
    }),
    async close() {},
  }
}

/** Returns the adapter on the fake API server, with one kubelet on loopback. */
export async function factsOnFake(): Promise<FactsStage> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-facts-'))
  const server = await startApiServer({
    rules: [
      {
        group: 'system:bootstrappers',
        verbs: ['create'],
        groups: ['certificates.k8s.io'],
        resources: ['certificatesigningrequests/nodeclient'],
      },
    ],
  })
  const { key, certificate } = issueServing(server)
  const kubelet = createServer({ key, cert: certificate })
  await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve))
  const { port } = kubelet.address() as AddressInfo
  const put = (group: string, resource: string, namespace: string | undefined, object: object): void => {
    server.put({ group, version: 'v1', resource, ...(namespace && { namespace }) }, object as never)
  }
  for (const node of [worker, controlPlane]) {
    const labels = node.isControlPlane ? { 'node-role.kubernetes.io/control-plane': '' } : {}
    const daemonEndpoints = { kubeletEndpoint: { Port: port } }
    put('', 'nodes', undefined, {
      metadata: { name: node.name, labels },
      status: { addresses: node.addresses, daemonEndpoints },
    })
  }
  put('networking.k8s.io', 'servicecidrs', undefined, {
    metadata: { name: 'kubernetes' },
    spec: { cidrs: expected.serviceCidrs },
  })
  put('discovery.k8s.io', 'endpointslices', 'default', {
    metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    endpoints: [{ addresses: ['10.1.0.11'] }],
  })
  put('', 'configmaps', 'kube-system', {
    metadata: { name: 'kubeadm-config' },
    data: {
      ClusterConfiguration:
        'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ncontrolPlaneEndpoint: api.example.com:6443\napiServer:\n  certSANs:\n  - 203.0.113.5\n',
    },
  })
  put('', 'configmaps', 'kube-system', {
    metadata: { name: 'kube-root-ca.crt' },
    data: { 'ca.crt': server.caPem },
  })
  const cluster = await openWith(server.writeKubeconfig(join(folder, 'admin.kubeconfig')))
  return {
    ...expected,
    facts: approvalFactsOf(cluster, systemClock),
    async close() {
      cluster.close()
      kubelet.closeAllConnections()
      await Promise.all([server.close(), new Promise((resolve) => kubelet.close(resolve))])
      rmSync(folder, { recursive: true })
    },
  }
}

type FakeApiServer = Awaited<ReturnType<typeof startApiServer>>

function issueServing(server: FakeApiServer): { certificate: string; key: string } {
  const names = { dns: ['w1'], ip: ['127.0.0.1'] }
  return server.issue('system:node:w1', ['system:nodes'], { usage: 'serverAuth', names })
}
