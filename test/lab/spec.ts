/**
 * A Kubernetes release that is complete on the module proxy, with the etcd, pause and CoreDNS versions that its kubeadm installs.
 */
export interface Release {
  readonly kubernetes: string
  readonly etcd: string
  readonly pause: string
  readonly coredns: string
}

export const releases = {
  /** The last release before 1.33.12 on the module proxy. Its kubeadm issues apiserver-kubelet-client with an organization. */
  '1.33.6': { kubernetes: 'v1.33.6', etcd: '3.5.24-0', pause: '3.10', coredns: 'v1.12.0' },
  '1.33': { kubernetes: 'v1.33.13', etcd: '3.5.24-0', pause: '3.10', coredns: 'v1.12.0' },
  '1.34': { kubernetes: 'v1.34.4', etcd: '3.6.5-0', pause: '3.10.1', coredns: 'v1.12.1' },
  '1.35': { kubernetes: 'v1.35.4', etcd: '3.6.6-0', pause: '3.10.1', coredns: 'v1.13.1' },
  '1.36': { kubernetes: 'v1.36.3', etcd: '3.6.8-0', pause: '3.10.2', coredns: 'v1.14.2' },
  '1.37': { kubernetes: 'v1.37.2', etcd: '3.7.0-0', pause: '3.10.2', coredns: 'v1.14.6' },
} as const satisfies Record<string, Release>

/** A minor version stands for its newest release in the lab. A patch release is named in full. */
export type Minor = keyof typeof releases
/** All releases, the oldest first. */
export const allReleases = Object.keys(releases) as Minor[]
/** The newest release of each minor version. */
export const minors = allReleases.filter((name) => /^1\.\d+$/.test(name))
/** The minor version of clusters by default: the newest, or that of `KCERT_LAB_MINOR`. */
export const defaultMinor: Minor = readMinor(process.env.KCERT_LAB_MINOR ?? minors.at(-1)!)

/** The configuration of a lab cluster. Every field has a default. */
export interface ClusterSpec {
  readonly controlPlanes: number
  readonly workers: number
  /** Machines with a member of external etcd each, as a systemd unit, and no kubelet; 0: etcd is on the control planes. kubeadm flavour only. */
  readonly etcdMachines: number
  /** kubeadm: static pods and kubeadm's files. plain: units and manually created files, no kubeadm. */
  readonly flavour: 'kubeadm' | 'plain'
  /** ClusterConfiguration.encryptionAlgorithm. */
  readonly keys: 'RSA-2048' | 'ECDSA-P256'
  /** Sets flags that kubeadm does not set: kubelet CA, client CA of the scheduler, shutdown delay. */
  readonly allFlags: boolean
  /** CoreDNS, kube-proxy and the workloads of addons/. Without it: only kube-proxy and CoreDNS. */
  readonly addons: boolean
  /** The minor version of each role. A kubelet may be three minor versions behind its API servers, never ahead. */
  readonly kubernetes: Readonly<Record<Role, Minor>>
}

export type ClusterRequest = Partial<ClusterSpec>

export const defaultSpec: ClusterSpec = {
  controlPlanes: 1,
  workers: 0,
  etcdMachines: 0,
  flavour: 'kubeadm',
  keys: 'RSA-2048',
  allFlags: false,
  addons: false,
  kubernetes: onAllNodes(defaultMinor),
}

/** Returns whether a kubelet of the cluster reports its pods as not Ready after its own restart: those before 1.35 do. */
export function kubeletsForgetPods({ kubernetes }: Pick<ClusterSpec, 'kubernetes'>): boolean {
  return Object.values(kubernetes).some((minor) => allReleases.indexOf(minor) < allReleases.indexOf('1.35'))
}

/** Returns one minor version for both roles. */
export function onAllNodes(minor: Minor): ClusterSpec['kubernetes'] {
  return { 'control-plane': minor, worker: minor }
}

/** Returns the complete specification of a request. */
export function completeSpec(request: ClusterRequest): ClusterSpec {
  return { ...defaultSpec, ...request }
}

/** Parses `1.34` for all nodes, or `cp=1.37,worker=1.34`; undefined for another form or an unsupported minor version. */
export function minorsByRole(text: string): ClusterSpec['kubernetes'] | undefined {
  const [, controlPlane = text, worker = text] = /^cp=([^,]+),worker=(.+)$/.exec(text) ?? []
  return isMinor(controlPlane) && isMinor(worker) ? { 'control-plane': controlPlane, worker } : undefined
}

function isMinor(text: string): text is Minor {
  return Object.hasOwn(releases, text)
}

function readMinor(text: string): Minor {
  if (isMinor(text)) return text
  throw new TypeError(`the lab has ${minors.join(', ')}, not ${text}`)
}

/** Returns a short name that identifies a specification, for saves and messages: `kubeadm-3-1-rsa-2048-addons-1.37`. */
export function specName(spec: ClusterSpec): string {
  const parts = [spec.flavour, spec.controlPlanes, spec.workers, spec.keys.toLowerCase()]
  if (spec.etcdMachines > 0) parts.push(`etcd-${spec.etcdMachines}`)
  if (spec.allFlags) parts.push('all-flags')
  if (spec.addons) parts.push('addons')
  const { 'control-plane': controlPlane, worker } = spec.kubernetes
  return [...parts, controlPlane, ...(worker === controlPlane ? [] : [worker])].join('-')
}

export type Role = 'control-plane' | 'worker'

/** The name, address and role of a machine. All are derived from the name, so that they need no configuration. */
export interface Machine {
  readonly name: string
  /** etcd: a machine of external etcd, which is no node of the cluster. */
  readonly role: Role | 'etcd'
  readonly address: string
  readonly podSubnet: string
}

/** A machine with a Node object. */
export interface NodeIdentity extends Machine {
  readonly role: Role
}

export function isNode(machine: Machine): machine is NodeIdentity {
  return machine.role !== 'etcd'
}

export const network = {
  bridge: 'kcertlab0',
  /** The host's address on the bridge. */
  gateway: '10.200.0.1',
  loadBalancer: '10.200.0.10',
  podSubnet: '10.244.0.0/16',
  serviceSubnet: '10.96.0.0/12',
  dns: '10.96.0.10',
} as const

const kinds = {
  cp: { role: 'control-plane', from: 10 },
  w: { role: 'worker', from: 20 },
  e: { role: 'etcd', from: 30 },
} as const

/**
 * Returns the identity of a machine. cp1… are 10.200.0.11…, w1… are 10.200.0.21…, e1… are 10.200.0.31…; pods of a node are in
 * 10.244.<last byte>.0/24.
 */
export function machineIdentity(name: string): Machine {
  const [, kind, number] = /^(cp|w|e)([1-9])$/.exec(name) ?? []
  if (kind === undefined) throw new TypeError(`a node is called cp1 to cp9 or w1 to w9, not ${name}`)
  const { role, from } = kinds[kind as keyof typeof kinds]
  const byte = from + Number(number)
  return { name, role, address: `10.200.0.${byte}`, podSubnet: `10.244.${byte}.0/24` }
}

/** Returns the identity of a node: cp1 to cp9, w1 to w9. */
export function nodeIdentity(name: string): NodeIdentity {
  const machine = machineIdentity(name)
  if (!isNode(machine)) throw new TypeError(`${name} is no node of the cluster`)
  return machine
}

/** Returns the nodes of a specification, control planes first. */
export function nodesOf(spec: ClusterSpec): NodeIdentity[] {
  const named = (prefix: string, count: number): NodeIdentity[] =>
    Array.from({ length: count }, (_, index) => nodeIdentity(`${prefix}${index + 1}`))
  return [...named('cp', spec.controlPlanes), ...named('w', spec.workers)]
}

/** Returns the machines of external etcd. */
export function etcdMachinesOf({ etcdMachines }: ClusterSpec): Machine[] {
  return Array.from({ length: etcdMachines }, (_, index) => machineIdentity(`e${index + 1}`))
}

/** Returns the minor version of each machine of a new cluster, by name. External etcd is that of the control planes. */
export function minorsOf(spec: ClusterSpec): Record<string, Minor> {
  const machines = [...nodesOf(spec), ...etcdMachinesOf(spec)]
  return Object.fromEntries(
    machines.map(({ name, role }) => [name, spec.kubernetes[role === 'etcd' ? 'control-plane' : role]]),
  )
}
