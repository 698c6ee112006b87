import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { issue, type KeyPair, readPair } from './certificates.ts'
import { until } from './command.ts'
import { isTrue, kubectl, list, type Pod, patientKubectl } from './kubectl.ts'
import { hostPath } from './node.ts'
import type { ClusterSpec } from './spec.ts'
import { folders } from './state.ts'
import type { Steps } from './steps.ts'

/** Path of the cluster CA on the first control plane, by flavour. */
const caFiles = {
  kubeadm: ['/etc/kubernetes/pki/ca.crt', '/etc/kubernetes/pki/ca.key'],
  plain: ['/etc/kubernetes/ssl/ca.pem', '/etc/kubernetes/ssl/ca-key.pem'],
} as const

/** Returns the certificate and key of the cluster CA, from the first control plane. */
export function clusterCa(spec: ClusterSpec): KeyPair {
  const [certificate, key] = caFiles[spec.flavour]
  return readPair(hostPath('cp1', certificate), hostPath('cp1', key))
}

/** Installs metrics-server, the webhook and the workloads, and waits until the first two respond. */
export async function installAddons(spec: ClusterSpec, steps: Steps): Promise<void> {
  const ca = clusterCa(spec)
  await steps.step('install add-ons', async () => {
    await apply([
      {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'lab', labels: { 'lab.local/webhook': 'on' } },
      },
    ])
    // Pods are rejected until the controller-manager has created their service account.
    const account = ['-n', 'lab', 'get', 'serviceaccount', 'default']
    await until(
      'the namespace has its service account',
      180_000,
      async () => (await kubectl(account, { mayFail: true })).code === 0,
    )
    await apply([
      await servingSecret('metrics-server', 'kube-system', ca, spec),
      await servingSecret('webhook', 'lab', ca, spec),
    ])
    // The webhook fails closed, so the objects that it would validate are created before it.
    for (const name of ['workloads', 'metrics-server', 'webhook']) await applyFile(`${name}.yaml`, ca)
  })
  await steps.step('aggregated API and webhook answer', waitForAddons)
}

/** The Deployments that serve, by name and namespace. */
export const servingAddons = [
  ['metrics-server', 'kube-system'],
  ['webhook', 'lab'],
] as const

/**
 * Runs a second replica of metrics-server and the webhook on another node. kcert announces an interruption of a Service whose only
 * pod is on a node with a kubelet before 1.35, and this is how an operator avoids it.
 */
export async function spreadAddons(): Promise<void> {
  for (const [name, namespace] of servingAddons) {
    const labelSelector = { matchLabels: { app: name } }
    const spread = {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector,
      matchLabelKeys: ['pod-template-hash'],
    }
    const podSpec = { tolerations: [{ operator: 'Exists' }], topologySpreadConstraints: [spread] }
    const patch = JSON.stringify({ spec: { replicas: 2, template: { spec: podSpec } } })
    await patientKubectl(['-n', namespace, 'patch', 'deployment', name, '--type', 'merge', '-p', patch])
  }
  for (const [name, namespace] of servingAddons)
    await patientKubectl(['-n', namespace, 'rollout', 'status', `deployment/${name}`, '--timeout=300s'])
  await waitForAddons()
}

/** Waits until the APIService is available and a dry run passes through the webhook. */
export async function waitForAddons(): Promise<void> {
  await until('the APIService of metrics-server is available', 300_000, async () => {
    const { stdout } = await kubectl(['get', 'apiservice', 'v1beta1.metrics.k8s.io', '-o', 'json'])
    return isTrue(JSON.parse(stdout).status?.conditions, 'Available')
  })
  const dryRun = ['-n', 'lab', 'create', 'configmap', 'passes', '--dry-run=server', '--request-timeout=8s']
  await until(
    'the webhook answers',
    300_000,
    async () => (await kubectl(dryRun, { mayFail: true })).code === 0,
  )
}

/** Returns the pods that serve counts: name, node and URL. */
export async function countingPods(): Promise<{ name: string; node: string; url: string }[]> {
  const pods = await list<Pod>(['pods', '-n', 'lab', '-l', 'lab.local/counts'])
  return pods
    .filter(({ status }) => status.phase === 'Running' && status.podIP !== undefined)
    .map(({ metadata, spec, status }) => ({
      name: metadata.name,
      node: spec.nodeName!,
      url: `http://${status.podIP}:8080/counts`,
    }))
}

/** Creates a Secret with a Service's serving certificate from the cluster CA. */
export async function servingSecret(
  service: string,
  namespace: string,
  ca: KeyPair,
  spec: ClusterSpec,
): Promise<object> {
  const host = `${service}.${namespace}.svc`
  const request = {
    commonName: host,
    names: [`DNS:${host}`, `DNS:${host}.cluster.local`],
    usages: ['serverAuth'],
  } as const
  const pair = await issue(ca, request, spec.keys)
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: { name: `${service}-tls`, namespace },
    stringData: { 'tls.crt': pair.certificate, 'tls.key': pair.key },
  }
}

async function applyFile(name: string, ca: KeyPair): Promise<void> {
  const text = readFileSync(join(folders.source, 'addons', name), 'utf8')
  const caBundle = Buffer.from(ca.certificate).toString('base64')
  await applyText(text.replaceAll('CA_BUNDLE', caBundle))
}

/** Applies objects through standard input, so that keys appear in no argument list. */
export async function apply(objects: readonly object[]): Promise<void> {
  await applyText(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
}

// On a busy machine, a new control plane changes its etcd leader, and a call during the change fails.
async function applyText(input: string): Promise<void> {
  await until('the cluster takes the objects', 120_000, async () => {
    // kubectl's own validation needs the schema of every aggregated API, and fails for one that just started.
    await kubectl(['apply', '--validate=false', '-f', '-'], { input })
    return true
  })
}
