import { expect, test } from 'vitest'
import { forecastOf } from '../../src/kubelet/forecast.ts'
import type { ForecastReport } from '../../src/kubelet/forecast-report.ts'
import { readForecast } from '../../src/renewal-io/kubelet-forecast.ts'
import { controlPlaneTree, type TreeOptions, workerTree } from '../pki/kubeadm-tree.ts'
import { MemoryNode, now } from './memory-node.ts'

// `kcert kubelet forecast --inventory` on nodes in memory, without an API server.

const madeAt = new Date('2026-11-01T00:00:00Z')
const config = '/var/lib/kubelet/config.yaml'
const manager = '/etc/kubernetes/manifests/kube-controller-manager.yaml'
const current = '/var/lib/kubelet/pki/kubelet-client-current.pem'
const kubeletConf = '/etc/kubernetes/kubelet.conf'

function worker(options: Partial<TreeOptions> = {}): MemoryNode {
  const node = new MemoryNode('w1', workerTree({ madeAt, nodeName: 'w1', ...options }))
  put(node, config, 'kind: KubeletConfiguration\nrotateCertificates: true\nserverTLSBootstrap: true\n')
  return node
}

function put({ files }: MemoryNode, path: string, text: string): void {
  files.set(path, { content: Buffer.from(text), mode: 0o600 })
}

function runs(node: MemoryNode, ...argv: string[]): void {
  const program = argv[0] as 'kubelet' | 'kube-controller-manager'
  node.processes = [...node.processes, { program, pid: 7, startTicks: 1, startedAt: madeAt, argv }]
}

async function forecast(...nodes: readonly MemoryNode[]): Promise<ForecastReport> {
  const facts = await Promise.all(nodes.map(({ access }) => readForecast(access)))
  return forecastOf(
    facts.map(({ kubelet }) => kubelet),
    facts.flatMap(({ controllerManagers }) => controllerManagers),
    now,
  )
}

const ids = ({ findings }: ForecastReport): string[] => findings.map(({ id }) => id)

test('reads certificates and settings from a worker, and the signing duration from the manifest of a control plane', async () => {
  const cp1 = new MemoryNode('cp1', controlPlaneTree({ madeAt, nodeName: 'cp1' }))
  put(cp1, config, 'kind: KubeletConfiguration\nrotateCertificates: true\n')
  put(
    cp1,
    manager,
    'apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - command: [kube-controller-manager, --cluster-signing-duration=720h]\n',
  )
  const report = await forecast(worker(), cp1)
  const [first, second] = report.nodes
  expect(report.controllerManagers).toEqual([
    { node: 'cp1', location: manager, clusterSigningDuration: '720h0m0s' },
  ])
  expect(second).toMatchObject({ name: 'w1', rotateCertificates: true, serverTlsBootstrap: true })
  expect(second!.certificates[0]).toMatchObject({
    ...{ usage: 'client', source: 'file', location: current, subject: 'CN=system:node:w1,O=system:nodes' },
    ...{ state: 'not-due', renewal: { isEstimate: false } },
  })
  expect(first).toMatchObject({ name: 'cp1', serverTlsBootstrap: false })
})

test('reports expired certificates as problems, with a next step on the node', async () => {
  const report = await forecast(worker({ kubeletHours: 24 }))
  expect(report.nodes[0]!.certificates[0]!.state).toBe('expired')
  expect(report.findings.find(({ id }) => id === 'expired')).toMatchObject({
    ...{ node: 'w1', isProblem: true },
    next: 'kcert kubelet doctor --node w1 --inventory kcert.yaml',
  })
})

test('prefers the flags of the running kubelet to its configuration', async () => {
  const node = worker()
  runs(node, 'kubelet', '--rotate-certificates=false', `--config=${config}`)
  const report = await forecast(node)
  expect(report.nodes[0]).toMatchObject({ rotateCertificates: false, serverTlsBootstrap: true })
  expect(ids(report)).toContain('rotation-off')
})

test('uses the certificate in the kubeconfig until the store contains one', async () => {
  const node = worker()
  const pem = node.files.get(node.files.get(current)!.linkTarget!)!.content
  for (const path of node.files.keys()) if (path.includes('kubelet-client')) node.files.delete(path)
  put(
    node,
    kubeletConf,
    `apiVersion: v1\nkind: Config\nusers:\n- name: w1\n  user: {client-certificate-data: ${pem.toString('base64')}}\n`,
  )
  const report = await forecast(node)
  expect(report.nodes[0]!.certificates[0]).toMatchObject({ usage: 'client', location: kubeletConf })
})

test('names a kubeconfig that client-go rejects, and ignores its certificate', async () => {
  const node = worker()
  const pem = node.files.get(node.files.get(current)!.linkTarget!)!.content
  for (const path of node.files.keys()) if (path.includes('kubelet-client')) node.files.delete(path)
  put(
    node,
    kubeletConf,
    `apiVersion: v1\nkind: Config\ncurrent-context: y\nusers:\n- name: w1\n  user: {client-certificate-data: ${pem.toString('base64')}}\n`,
  )
  const report = await forecast(node)
  expect(report.nodes[0]!.certificates.filter(({ usage }) => usage === 'client')).toEqual([])
  expect(report.findings.map(({ detail }) => detail).join()).toContain(
    `${kubeletConf}: client-go refuses it: current-context: `,
  )
})

test('reports missing files, dangling links and malformed files, and forecasts the rest', async () => {
  const node = worker()
  node.files.delete(node.files.get(current)!.linkTarget!)
  put(node, config, 'kind: Something\n')
  put(
    node,
    manager,
    'apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - command: [kube-controller-manager, --cluster-signing-duration=a year]\n',
  )
  const report = await forecast(node)
  const details = report.findings.filter(({ id }) => id === 'not-read').map(({ detail }) => detail)
  expect(details).toEqual([
    expect.stringContaining(
      `its configuration ${config} cannot be read: its kind is not KubeletConfiguration`,
    ),
    expect.stringMatching(/^its client certificate .*kubelet-client-current\.pem (?:points|does)/),
    expect.stringContaining(`${manager}: --cluster-signing-duration`),
  ])
  expect(report.nodes[0]!.certificates.map(({ usage }) => usage)).toEqual(['serving'])
})

test('reads the duration from the running process when no manifest contains it', async () => {
  const node = worker()
  runs(node, 'kube-controller-manager', '--cluster-signing-duration', '24h')
  expect((await forecast(node)).controllerManagers).toEqual([
    { node: 'w1', location: 'process 7', clusterSigningDuration: '24h0m0s' },
  ])
})
