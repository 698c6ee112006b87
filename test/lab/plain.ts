import { copyFileSync } from 'node:fs'
import { issue, type KeyPair, type LeafRequest, makeCa } from './certificates.ts'
import { kubeletCgroup } from './cgroups.ts'
import { run } from './command.ts'
import { kubectl } from './kubectl.ts'
import { hostPath, onNode } from './node.ts'
import { enableUnit, writeAt } from './node-files.ts'
import { plainUnits } from './plain-units.ts'
import { waitForApiServers } from './readiness.ts'
import { type ClusterSpec, type NodeIdentity, network, releases } from './spec.ts'
import { paths } from './state.ts'
import type { Steps } from './steps.ts'

/**
 * Installs a control plane without kubeadm, as installations from binaries do. It has processes in units, PEM certificates in
 * /etc/kubernetes/ssl and /etc/etcd/ssl, kubeconfigs called *.kubeconfig, and kubelets with certificates of the same CA without
 * renewal.
 */
export async function installPlain(
  nodes: readonly NodeIdentity[],
  spec: ClusterSpec,
  steps: Steps,
): Promise<void> {
  const controlPlanes = nodes.filter(({ role }) => role === 'control-plane')
  const cas = await steps.step('make three CAs', () => makeCas(spec))
  await steps.step('write certificates, kubeconfigs and units', async () => {
    for (const node of nodes) await writeNode(node, nodes, cas, spec)
  })
  await steps.step('start etcd', () => startOn(controlPlanes, ['etcd']))
  await steps.step('start the control plane', async () => {
    await startOn(controlPlanes, ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'])
    copyFileSync(hostPath('cp1', '/etc/kubernetes/admin.kubeconfig'), paths.kubeconfig)
    await waitForApiServers(
      controlPlanes.map(({ name }) => name),
      spec.flavour,
    )
  })
  await steps.step('start kubelets and kube-proxies', () => startOn(nodes, ['kubelet', 'kube-proxy']))
  await steps.step('install CoreDNS', () => installDns(controlPlanes[0]!, spec))
}

interface Cas {
  readonly cluster: KeyPair
  readonly etcd: KeyPair
  readonly frontProxy: KeyPair
  readonly serviceAccounts: { readonly key: string; readonly publicKey: string }
}

async function makeCas(spec: ClusterSpec): Promise<Cas> {
  const [cluster, etcd, frontProxy] = await Promise.all(
    ['kubernetes', 'etcd-ca', 'front-proxy-ca'].map((name) => makeCa(name, spec.keys)),
  )
  const key = (await run(['openssl', 'genrsa', '2048'])).stdout
  const publicKey = (await run(['openssl', 'pkey', '-pubout'], { input: key })).stdout
  return { cluster: cluster!, etcd: etcd!, frontProxy: frontProxy!, serviceAccounts: { key, publicKey } }
}

async function writeNode(
  node: NodeIdentity,
  all: readonly NodeIdentity[],
  cas: Cas,
  spec: ClusterSpec,
): Promise<void> {
  const folder = paths.node(node.name)
  const files = node.role === 'control-plane' ? await controlPlaneFiles(node, cas, spec) : {}
  for (const [name, content] of Object.entries({ ...files, ...(await nodeFiles(node, cas, spec)) })) {
    writeAt(folder, name, content, /key|kubeconfig/.test(name) ? 0o600 : 0o644)
  }
  // Units of this flavour replace those of kubeadm's packages.
  await run(['rm', '-rf', `${folder}/etc/systemd/system/kubelet.service.d`])
  for (const [unit, text] of Object.entries(plainUnits(node, all, spec))) {
    writeAt(folder, `etc/systemd/system/${unit}.service`, text)
    enableUnit(folder, unit)
  }
}

async function controlPlaneFiles(
  node: NodeIdentity,
  cas: Cas,
  spec: ClusterSpec,
): Promise<Record<string, string>> {
  const { cluster, etcd, frontProxy, serviceAccounts } = cas
  const addresses = [`IP:${node.address}`, 'IP:127.0.0.1']
  const serviceNames = [
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ]
  const apiServer = await leaf(cluster, spec, {
    commonName: 'kubernetes',
    organizations: ['system:masters'],
    names: [
      ...addresses,
      `IP:${network.loadBalancer}`,
      'IP:10.96.0.1',
      `DNS:${node.name}`,
      ...serviceNames.map((name) => `DNS:${name}`),
    ],
    usages: ['serverAuth', 'clientAuth'],
  })
  const member = await leaf(etcd, spec, {
    commonName: `etcd-${node.name}`,
    names: [...addresses, `DNS:${node.name}`],
    usages: ['serverAuth', 'clientAuth'],
  })
  const proxyClient = await leaf(frontProxy, spec, {
    commonName: 'front-proxy-client',
    usages: ['clientAuth'],
  })
  const local = `https://${node.address}:6443`
  return {
    ...pemFiles('kubernetes', 'ca', cluster),
    ...pemFiles('kubernetes', 'apiserver', apiServer),
    ...pemFiles('kubernetes', 'front-proxy-ca', frontProxy),
    ...pemFiles('kubernetes', 'front-proxy-client', proxyClient),
    'etc/kubernetes/ssl/sa.key': serviceAccounts.key,
    'etc/kubernetes/ssl/sa.pub': serviceAccounts.publicKey,
    ...pemFiles('etcd', 'etcd-ca', etcd),
    ...pemFiles('etcd', 'etcd', member),
    ...(await kubeconfigFile(
      'admin',
      'kubernetes-admin',
      ['system:masters'],
      `https://${network.loadBalancer}:6443`,
      cluster,
      spec,
    )),
    ...(await kubeconfigFile(
      'controller-manager',
      'system:kube-controller-manager',
      [],
      local,
      cluster,
      spec,
    )),
    ...(await kubeconfigFile('scheduler', 'system:kube-scheduler', [], local, cluster, spec)),
  }
}

async function nodeFiles(
  node: NodeIdentity,
  { cluster }: Cas,
  spec: ClusterSpec,
): Promise<Record<string, string>> {
  const server = `https://${network.loadBalancer}:6443`
  const identity = { commonName: `system:node:${node.name}`, organizations: ['system:nodes'] }
  const serving = await leaf(cluster, spec, {
    ...identity,
    names: [`DNS:${node.name}`, `IP:${node.address}`],
    usages: ['serverAuth'],
  })
  return {
    'etc/kubernetes/ssl/ca.pem': cluster.certificate,
    ...pemFiles('kubernetes', 'kubelet', serving),
    ...(await kubeconfigFile('kubelet', identity.commonName, identity.organizations, server, cluster, spec)),
    ...(await kubeconfigFile('kube-proxy', 'system:kube-proxy', [], server, cluster, spec)),
    'etc/kubernetes/kubelet-conf.yml': kubeletConfiguration(node),
    'etc/kubernetes/kube-proxy.yaml': `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection:
  kubeconfig: /etc/kubernetes/kube-proxy.kubeconfig
mode: iptables
clusterCIDR: ${network.podSubnet}
hostnameOverride: ${node.name}
conntrack:
  maxPerCore: 0
  min: 0
`,
  }
}

function kubeletConfiguration(node: NodeIdentity): string {
  return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/ssl/ca.pem
authorization:
  mode: Webhook
tlsCertFile: /etc/kubernetes/ssl/kubelet.pem
tlsPrivateKeyFile: /etc/kubernetes/ssl/kubelet-key.pem
rotateCertificates: false
cgroupDriver: cgroupfs
cgroupRoot: ${kubeletCgroup(node.name)}
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
evictionHard: {}
imageGCHighThresholdPercent: 100
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDomain: cluster.local
clusterDNS:
- ${network.dns}
`
}

/** Starts units on all nodes at once, because etcd's members wait for one another. */
async function startOn(nodes: readonly NodeIdentity[], units: readonly string[]): Promise<void> {
  await Promise.all(nodes.map(({ name }) => onNode(name, ['systemctl', 'start', ...units])))
}

/** Installs CoreDNS with the only kubeadm phase that affects nothing else. */
async function installDns(node: NodeIdentity, spec: ClusterSpec): Promise<void> {
  const config = {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'ClusterConfiguration',
    kubernetesVersion: releases[spec.kubernetes['control-plane']].kubernetes,
    networking: { podSubnet: network.podSubnet, serviceSubnet: network.serviceSubnet },
  }
  writeAt(paths.node(node.name), 'root/coredns.json', JSON.stringify(config))
  const phase = ['kubeadm', 'init', 'phase', 'addon', 'coredns', '--config', '/root/coredns.json']
  await onNode(node.name, [...phase, '--kubeconfig', '/etc/kubernetes/admin.kubeconfig'])
  await kubectl(['-n', 'kube-system', 'get', 'deployment', 'coredns'])
}

function leaf(ca: KeyPair, spec: ClusterSpec, request: LeafRequest): Promise<KeyPair> {
  return issue(ca, request, spec.keys)
}

function pemFiles(owner: 'kubernetes' | 'etcd', name: string, pair: KeyPair): Record<string, string> {
  return {
    [`etc/${owner}/ssl/${name}.pem`]: pair.certificate,
    [`etc/${owner}/ssl/${name}-key.pem`]: pair.key,
  }
}

/** Writes NAME.kubeconfig in the format of `kubectl config set-… --embed-certs`. */
async function kubeconfigFile(
  name: string,
  user: string,
  organizations: readonly string[],
  server: string,
  ca: KeyPair,
  spec: ClusterSpec,
): Promise<Record<string, string>> {
  const pair = await leaf(ca, spec, { commonName: user, organizations, usages: ['clientAuth'] })
  const base64 = (pem: string): string => Buffer.from(pem).toString('base64')
  const text = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${base64(ca.certificate)}
    server: ${server}
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: ${user}
  name: ${user}@kubernetes
current-context: ${user}@kubernetes
kind: Config
users:
- name: ${user}
  user:
    client-certificate-data: ${base64(pair.certificate)}
    client-key-data: ${base64(pair.key)}
`
  return { [`etc/kubernetes/${name}.kubeconfig`]: text }
}
