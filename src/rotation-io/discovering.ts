import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import pMap from 'p-map'
import { type NodeObject, resources } from '../cluster/kinds.ts'
import { listAll } from '../cluster/readable.ts'
import { onKcertError } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { flagsOf } from '../pki/component-flags.ts'
import { kubeadmFolders } from '../pki/kubeadm.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import { remoteAddresses } from '../pki/node-address.ts'
import {
  accessText,
  etcdHosts,
  type FoundMachine,
  type FoundNode,
  inventoryOf,
} from '../rotation/discovery.ts'
import type { DiscoveredNode, Discovery, NodeCheck } from '../rotation/discovery-report.ts'
import type { Access, Inventory } from '../rotation/inventory.ts'
import { accessOf, inventoryFileName } from '../rotation/inventory.ts'
import { copiesFolder } from '../rotation/material.ts'
import { distribute } from '../rotation/phases/01-distribute.ts'
import { preflight } from '../rotation/refusals.ts'
import { defaultSettings, targetOf, targetSections } from '../rotation/target-reading.ts'
import { folderOf } from '../site/certificate-files.ts'
import { inOrder, isControlPlane, layoutOf } from '../site/node-objects.ts'
import { aheadMsOf, nodeNamed, openSite, type Site, type SiteOptions } from '../site/site.ts'
import { machineId } from '../system/process-identity.ts'
import { SiteObserver } from './observer.ts'

const nodesAtOnce = 24

/** Files that kubeadm creates, on a control plane and on a worker. */
const kubeadmMarks = [
  `${kubeadmFolders.kubernetes}/manifests/kube-apiserver.yaml`,
  '/var/lib/kubelet/kubeadm-flags.env',
]

const etcdManifest = `${kubeadmFolders.kubernetes}/manifests/etcd.yaml`

const unreachedCodes = new Set(['KCERT_NODE_UNREACHABLE', 'KCERT_NODE_NAME_REFUSED', 'KCERT_USAGE'])

/** Flags that an operator must know about before a rotation. */
const notableFlags = new Set([
  ...['client-ca-file', 'requestheader-client-ca-file', 'kubelet-certificate-authority', 'root-ca-file'],
  ...['tls-cert-file', 'kubelet-client-certificate', 'proxy-client-cert-file', 'shutdown-delay-duration'],
  ...['cluster-signing-cert-file', 'cluster-signing-key-file', 'kubeconfig'],
])

export interface DiscoverOptions extends Omit<SiteOptions, 'inventory'> {
  readonly access: Access
  /**
   * Name of the node that is this machine. By default, the node with the host name and machine ID of this machine, if there is
   * one.
   */
  readonly local?: string
  /** For a rotation by runbook: nodes are only read, and no test file is written. */
  readonly readOnly?: boolean
}

/**
 * Returns a description of a cluster: its nodes, whether each can be read and written, its components, and obstacles to a
 * rotation. Changes nothing in the cluster. Writes a file on each node and removes it again, unless `readOnly`.
 */
export async function discover(options: DiscoverOptions): Promise<Discovery> {
  const { objects, clock, jobs, mostMs } = options
  const nodes = inOrder(await listAll(objects, resources.nodes))
  const here = options.local ?? nodes.find(isThisMachine)?.metadata.name
  if (options.local !== undefined && !nodes.some(({ metadata }) => metadata.name === options.local)) {
    throw new KcertError('KCERT_USAGE', `unknown node ${JSON.stringify(options.local)}`, {
      why: `the cluster has these nodes: ${nodes.map(({ metadata }) => metadata.name).join(', ')}`,
    })
  }
  const first = inventoryOf(
    nodes.map((node) => foundNode(node, 'plain', here, isControlPlane(node) ? 'control-plane' : 'worker')),
    options.access,
  )
  const site = openSite({ inventory: first, objects, clock, jobs, mostMs })
  try {
    const examined = await pMap(nodes, (node) => examine(site, node, options, here), {
      concurrency: nodesAtOnce,
    })
    const isWorker = ({ node }: { readonly node: FoundNode }): number => Number(node.role === 'worker')
    const found = examined.toSorted((a, b) => isWorker(a) - isWorker(b))
    return await assess(
      found.map(({ node }) => node),
      found.map(({ report }) => report),
      options,
    )
  } finally {
    await site.close()
  }
}

/** A kubelet chooses its own name, so the name of this machine proves nothing: the machine ID must match too. */
function isThisMachine({ metadata, status }: NodeObject): boolean {
  const here = machineId()
  return here !== undefined && metadata.name === hostname() && status?.nodeInfo?.machineID === here
}

function foundNode(
  object: NodeObject,
  layout: string,
  here: string | undefined,
  role: FoundNode['role'],
): FoundNode {
  const { name } = object.metadata
  const addresses = remoteAddresses(object.status?.addresses)
  return {
    name,
    role,
    addresses: addresses.length > 0 ? addresses : [name],
    layout,
    ...(name === here && { access: { by: 'local' } as const }),
  }
}

async function examine(
  site: Site,
  object: NodeObject,
  { readOnly = false }: DiscoverOptions,
  here: string | undefined,
): Promise<{ readonly node: FoundNode; readonly report: DiscoveredNode }> {
  const { name } = object.metadata
  const access = nodeNamed(site, name)
  const [marks, check, role] = await Promise.all([
    marksOf(access),
    prove(access, readOnly),
    roleOf(object, access),
  ])
  const layout = layoutOf(object, marks?.length === 0 ? 'plain' : 'kubeadm')
  const node = foundNode(object, layout, here, role)
  return {
    node,
    report: {
      name,
      role: node.role,
      addresses: [...node.addresses],
      layout: layoutOf(object, marks === undefined ? 'unknown' : layout),
      kubeletVersion: object.status?.nodeInfo?.kubeletVersion ?? '',
      access: accessTo(name, site.inventory),
      check,
    },
  }
}

function accessTo(name: string, inventory: Inventory): string {
  try {
    return accessText(accessOf(inventory, name))
  } catch (error) {
    // The check has the reason.
    if (error instanceof KcertError) return 'refused'
    throw error
  }
}

/** Returns the role. Only kubeadm nodes certainly have labels; for a node without one, a running API server decides. */
export async function roleOf(object: NodeObject, node: NodeAccess): Promise<FoundNode['role']> {
  if (isControlPlane(object)) return 'control-plane'
  const running = await node.processes(['kube-apiserver']).catch(onKcertError(() => []))
  return running.length > 0 ? 'control-plane' : 'worker'
}

/**
 * Returns undefined for an unreadable node: kcert.yaml then contains kubeadm, by far the most common layout, and the report
 * contains unknown.
 */
async function marksOf(node: NodeAccess): Promise<readonly string[] | undefined> {
  const files = await node.statFiles(kubeadmMarks).catch(onKcertError(() => undefined))
  return files?.flatMap(({ found, path }) => (found === 'file' ? [path] : []))
}

/**
 * Reads and writes in the places that a rotation needs, and returns what fails. Writes nothing when `readOnly`. `folder`: that of the
 * certificates (default that of Kubernetes).
 */
export async function prove(
  node: NodeAccess,
  readOnly: boolean,
  folder: string = kubeadmFolders.kubernetes,
): Promise<NodeCheck> {
  try {
    const { isRoot, maySudo } = await node.identity()
    const clock = await node.clock()
    const known = { reachable: true, isRoot, clockSkewMs: aheadMsOf(clock) }
    if (!isRoot) {
      const advice = maySudo
        ? 'set become: sudo, which this login may use'
        : 'log in as root, or allow this login to use sudo without a password'
      return { ...known, canRead: false, canWrite: false, error: `the login is not root; ${advice}` }
    }
    const { availableBytes } = await node.freeSpace('/var/lib')
    const pki = await node.listFolder(folder)
    if (pki.found !== 'folder') {
      const fault = `${folder} cannot be read: ${pki.found}`
      return { ...known, freeBytes: availableBytes, canRead: false, canWrite: false, error: fault }
    }
    if (readOnly) return { ...known, canRead: true, freeBytes: availableBytes }
    await proveWriting(node, copiesFolder)
    await proveWriting(node, folder)
    return { ...known, canRead: true, canWrite: true, freeBytes: availableBytes }
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    const isReached = !unreachedCodes.has(error.code)
    const fault = [error.message, error.why].filter((part) => part !== undefined).join(': ')
    return { reachable: isReached, ...(isReached && { canWrite: false }), error: fault }
  }
}

/** The file name starts with a dot, so that no program that watches the folder reads the file. */
async function proveWriting(node: NodeAccess, folder: string): Promise<void> {
  await node.makeFolder(folder, { mode: 0o700 })
  const path = `${folder}/.kcert-${randomBytes(6).toString('hex')}.probe`
  const { sha256 } = await node.writeFile(path, 'kcert was here\n', {
    replaces: 'absent',
    mode: 0o600,
  })
  await node.removeFile(path, { holds: { sha256 } })
}

/** Examines the hosts of external etcd. */
export async function examineEtcd(hosts: readonly string[], options: DiscoverOptions) {
  const { objects, clock, jobs, mostMs, access, readOnly = false } = options
  const row = (name: string, layout: FoundMachine['layout']): FoundMachine => {
    return { name, addresses: [name], layout }
  }
  const rows = hosts.map((host) => row(host, 'plain'))
  const inventory = inventoryOf([], access, rows)
  const site = openSite({ inventory, objects, clock, jobs, mostMs })
  try {
    return await pMap(
      hosts,
      async (name) => {
        const { layout, check } = await examineMachine(nodeNamed(site, name), readOnly)
        const about = { name, role: 'etcd' as const, addresses: [name], kubeletVersion: '' }
        const report: DiscoveredNode = { ...about, layout, access: accessTo(name, inventory), check }
        const machine = layout === 'kubeadm' || layout === 'plain' ? [row(name, layout)] : []
        return { machine, report }
      },
      { concurrency: nodesAtOnce },
    )
  } finally {
    await site.close()
  }
}

/** Returns the layout of a machine of external etcd: none if no etcd runs on it, as on a load balancer; unknown if it cannot be read. */
export async function examineMachine(
  node: NodeAccess,
  readOnly: boolean,
): Promise<Pick<DiscoveredNode, 'layout' | 'check'>> {
  const seen = await Promise.all([node.processes(['etcd']), node.statFiles([etcdManifest])]).catch(
    onKcertError(({ message }) => message),
  )
  const [[first] = [], [manifest] = []] = typeof seen === 'string' ? [] : seen
  const file = first && flagsOf(first.argv)['trusted-ca-file']
  // A member with variables or a configuration file has no such flag.
  const check = await prove(node, readOnly, file?.startsWith('/') ? folderOf(file) : '/etc')
  if (typeof seen === 'string') {
    const error = `${check.error ?? seen}: a member of etcd may run on it. Correct its access and discover again, or list it under etcd in ${inventoryFileName}`
    return { layout: 'unknown', check: { ...check, ...(check.reachable && { canWrite: false }), error } }
  }
  if (first !== undefined) return { layout: manifest?.found === 'file' ? 'kubeadm' : 'plain', check }
  const error = `API servers connect to it, but no etcd runs on it. List the machines behind it under etcd in ${inventoryFileName}`
  return { layout: 'none', check: { ...check, error } }
}

async function assess(
  found: readonly FoundNode[],
  nodes: readonly DiscoveredNode[],
  options: DiscoverOptions,
): Promise<Discovery> {
  const { objects, clock, jobs, mostMs, access } = options
  const inventory = inventoryOf(found, access)
  const site = openSite({ inventory, objects, clock, jobs, mostMs })
  try {
    const observed = await new SiteObserver(site).observe([
      ...targetSections,
      'extensionAuthentication',
      'kubeadm',
    ])
    const target = targetOf(observed, defaultSettings)
    const blockers = preflight(observed, target, distribute)
    const etcd = await examineEtcd(etcdHosts(observed, found), options)
    const machines = etcd.flatMap(({ machine }) => machine)
    return {
      apiVersion: 'kcert/v1',
      kind: 'Discovery',
      inventory: inventoryOf(found, access, machines),
      nodes: [...nodes, ...etcd.map(({ report }) => report)],
      components: observed.components.map(({ id, runsAs, definition, flags }) => ({
        id,
        runsAs,
        definition,
        flags: Object.fromEntries(Object.entries(flags).filter(([flag]) => notableFlags.has(flag))),
      })),
      blockers: [...blockers],
    }
  } finally {
    await site.close()
  }
}
