import { stringify } from 'yaml'
import { type ClusterSpec, type Machine, type NodeIdentity, network } from './spec.ts'

type Flags = Record<string, string>

const ssl = '/etc/kubernetes/ssl'

/** Returns the unit files of a node without kubeadm, by unit name. */
export function plainUnits(
  node: NodeIdentity,
  all: readonly NodeIdentity[],
  spec: ClusterSpec,
): Record<string, string> {
  const controlPlanes = all.filter(({ role }) => role === 'control-plane')
  const everywhere = {
    kubelet: unit('Kubernetes Kubelet', 'kubelet', {
      config: '/etc/kubernetes/kubelet-conf.yml',
      kubeconfig: '/etc/kubernetes/kubelet.kubeconfig',
      'hostname-override': node.name,
      'node-ip': node.address,
    }),
    'kube-proxy': unit('Kubernetes Kube Proxy', 'kube-proxy', { config: '/etc/kubernetes/kube-proxy.yaml' }),
  }
  if (node.role === 'worker') return everywhere
  return {
    ...everywhere,
    etcd: etcdUnit(node, controlPlanes),
    'kube-apiserver': unit(
      'Kubernetes API Server',
      'kube-apiserver',
      apiServerFlags(node, controlPlanes, spec),
    ),
    'kube-controller-manager': unit(
      'Kubernetes Controller Manager',
      'kube-controller-manager',
      controllerManagerFlags(spec),
    ),
    'kube-scheduler': unit('Kubernetes Scheduler', 'kube-scheduler', schedulerFlags(spec)),
  }
}

/** Returns the unit file of a member of etcd. */
export function etcdUnit(node: Machine, members: readonly Machine[]): string {
  return unit('Etcd Service', 'etcd', etcdFlags(node, members))
}

/** Returns the unit file of a member of etcd with its settings in `configuration.path`. */
export function etcdUnitWithFile(node: Machine, members: readonly Machine[]) {
  const path = '/etc/etcd/etcd.yaml'
  const settings: Record<string, unknown> = {}
  for (const [flag, value] of Object.entries(etcdFlags(node, members))) {
    const [, isOfPeers, security] = /^(peer-)?(.*-file|client-cert-auth)$/.exec(flag) ?? []
    if (security === undefined) settings[flag] = value
    else {
      const section = isOfPeers ? 'peer-transport-security' : 'client-transport-security'
      settings[section] = { ...Object(settings[section]), [security]: value === 'true' || value }
    }
  }
  const text = unit('Etcd Service', 'etcd', { 'config-file': path })
  return { unit: text, configuration: { path, text: stringify(settings) } }
}

function unit(description: string, program: string, flags: Flags): string {
  const command = [
    `/usr/local/bin/${program}`,
    ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
  ]
  return `[Unit]
Description=${description}
After=network.target

[Service]
ExecStart=${command.join(' \\\n      ')}
Restart=always
RestartSec=1
KillMode=process

[Install]
WantedBy=multi-user.target
`
}

function etcdFlags(node: Machine, members: readonly Machine[]): Flags {
  const [cert, key, ca] = [
    '/etc/etcd/ssl/etcd.pem',
    '/etc/etcd/ssl/etcd-key.pem',
    '/etc/etcd/ssl/etcd-ca.pem',
  ]
  return {
    name: node.name,
    'data-dir': '/var/lib/etcd',
    'listen-client-urls': `https://${node.address}:2379,https://127.0.0.1:2379`,
    'advertise-client-urls': `https://${node.address}:2379`,
    'listen-metrics-urls': 'http://127.0.0.1:2381',
    'listen-peer-urls': `https://${node.address}:2380`,
    'initial-advertise-peer-urls': `https://${node.address}:2380`,
    'initial-cluster': members.map(({ name, address }) => `${name}=https://${address}:2380`).join(','),
    'initial-cluster-token': 'lab',
    'cert-file': cert,
    'key-file': key,
    'client-cert-auth': 'true',
    'trusted-ca-file': ca,
    'peer-cert-file': cert,
    'peer-key-file': key,
    'peer-client-cert-auth': 'true',
    'peer-trusted-ca-file': ca,
  }
}

function apiServerFlags(node: NodeIdentity, members: readonly NodeIdentity[], spec: ClusterSpec): Flags {
  return {
    'advertise-address': node.address,
    'secure-port': '6443',
    'allow-privileged': 'true',
    'authorization-mode': 'Node,RBAC',
    'enable-admission-plugins': 'NodeRestriction',
    'service-cluster-ip-range': network.serviceSubnet,
    'etcd-servers': members.map(({ address }) => `https://${address}:2379`).join(','),
    'etcd-cafile': '/etc/etcd/ssl/etcd-ca.pem',
    'etcd-certfile': '/etc/etcd/ssl/etcd.pem',
    'etcd-keyfile': '/etc/etcd/ssl/etcd-key.pem',
    'client-ca-file': `${ssl}/ca.pem`,
    'tls-cert-file': `${ssl}/apiserver.pem`,
    'tls-private-key-file': `${ssl}/apiserver-key.pem`,
    'kubelet-client-certificate': `${ssl}/apiserver.pem`,
    'kubelet-client-key': `${ssl}/apiserver-key.pem`,
    'kubelet-certificate-authority': `${ssl}/ca.pem`,
    'kubelet-preferred-address-types': 'InternalIP,Hostname',
    'service-account-key-file': `${ssl}/sa.pub`,
    'service-account-signing-key-file': `${ssl}/sa.key`,
    'service-account-issuer': 'https://kubernetes.default.svc.cluster.local',
    'requestheader-client-ca-file': `${ssl}/front-proxy-ca.pem`,
    'requestheader-allowed-names': 'front-proxy-client',
    'requestheader-username-headers': 'X-Remote-User',
    'requestheader-group-headers': 'X-Remote-Group',
    'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
    'proxy-client-cert-file': `${ssl}/front-proxy-client.pem`,
    'proxy-client-key-file': `${ssl}/front-proxy-client-key.pem`,
    'enable-aggregator-routing': 'true',
    ...(spec.allFlags ? { 'shutdown-delay-duration': '10s' } : {}),
  }
}

function controllerManagerFlags(spec: ClusterSpec): Flags {
  return {
    kubeconfig: '/etc/kubernetes/controller-manager.kubeconfig',
    'leader-elect': 'true',
    'root-ca-file': `${ssl}/ca.pem`,
    'cluster-signing-cert-file': `${ssl}/ca.pem`,
    'cluster-signing-key-file': `${ssl}/ca-key.pem`,
    'service-account-private-key-file': `${ssl}/sa.key`,
    'requestheader-client-ca-file': `${ssl}/front-proxy-ca.pem`,
    'use-service-account-credentials': 'true',
    controllers: '*,bootstrapsigner,tokencleaner',
    'allocate-node-cidrs': 'true',
    'cluster-cidr': network.podSubnet,
    'service-cluster-ip-range': network.serviceSubnet,
    ...(spec.allFlags ? { 'client-ca-file': `${ssl}/ca.pem` } : {}),
  }
}

function schedulerFlags(spec: ClusterSpec): Flags {
  return {
    kubeconfig: '/etc/kubernetes/scheduler.kubeconfig',
    'leader-elect': 'true',
    ...(spec.allFlags ? { 'client-ca-file': `${ssl}/ca.pem` } : {}),
  }
}
