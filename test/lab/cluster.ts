import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { type Binaries, buildBinaries } from './binaries.ts'
import { cgroupsFound, removeCommonCgroup } from './cgroups.ts'
import { startExternalEtcd } from './external-etcd.ts'
import { buildImageStore } from './images.ts'
import { type JoinSecrets, kubeadmInit, kubeadmJoin, kubeadmReset, retried } from './kubeadm.ts'
import { kubectl, patientKubectl } from './kubectl.ts'
import { LabError } from './lab-error.ts'
import { changeBackends, isBalancing, startLoadBalancer, stopLoadBalancer } from './load-balancer.ts'
import { prepareMachine } from './machine.ts'
import { joinPodNetworks, makeBridge, namespacesFound, removeBridge } from './network.ts'
import { createNode, hostPath, isUp, startNode, stopNode } from './node.ts'
import { writeSshClient } from './node-files.ts'
import { waitForNodes, waitForPods } from './readiness.ts'
import {
  allReleases,
  type ClusterRequest,
  type ClusterSpec,
  completeSpec,
  etcdMachinesOf,
  isNode,
  type Machine,
  type Minor,
  machineIdentity,
  minorsOf,
  type NodeIdentity,
  nodeIdentity,
  nodesOf,
  specName,
} from './spec.ts'
import { type ClusterRecord, paths, readRecord, withLock, writeRecord } from './state.ts'
import type { Steps } from './steps.ts'

/** The binaries and images of nodes. */
export interface Material {
  /** The minor version of each node. */
  readonly minors: ClusterRecord['minors']
  /** The binaries of those minor versions. */
  readonly binaries: Readonly<Partial<Record<Minor, Binaries>>>
  readonly keys: ClusterRecord['binaries']
  readonly imageStore: string
}

/** Prepares the machine, and builds the material of nodes of these minor versions or finds it in the cache. */
export async function prepare(minors: ClusterRecord['minors'], steps: Steps): Promise<Material> {
  await prepareMachine(steps)
  const used = allReleases.filter((minor) => Object.values(minors).includes(minor))
  const built: Binaries[] = []
  for (const minor of used.toReversed()) built.push(await buildBinaries(minor, steps))
  return {
    minors,
    binaries: Object.fromEntries(built.map((one) => [one.minor, one])),
    keys: Object.fromEntries(built.map(({ minor, key }) => [minor, key])),
    imageStore: await buildImageStore(built, steps),
  }
}

/** Runs work while no other process changes this lab. */
export function alone<T>(work: () => Promise<T>): Promise<T> {
  return withLock(paths.lock, 'the lab', 15 * 60_000, work)
}

/** Starts a cluster from any state: a matching cluster stays, a different or broken one is removed first. */
export async function up(request: ClusterRequest, steps: Steps): Promise<ClusterSpec> {
  const spec = completeSpec(request)
  const material = await prepare(minorsOf(spec), steps)
  return alone(async () => {
    const record = readRecord()
    if (
      record?.phase === 'ready' &&
      specName(record.spec) === specName(spec) &&
      isDeepStrictEqual(record.minors, material.minors) &&
      record.nodes.every(isUp) &&
      isBalancing()
    ) {
      steps.note(`${specName(spec)} is up already`)
      return spec
    }
    await removeAll(steps)
    const nodes = nodesOf(spec)
    const machines = [...nodes, ...etcdMachinesOf(spec)]
    const starting: ClusterRecord = {
      spec,
      nodes: machines.map(({ name }) => name),
      minors: material.minors,
      binaries: material.keys,
      phase: 'starting',
    }
    writeRecord(starting)
    await steps.step(`boot ${machines.length} nodes and the load balancer`, () => bootNew(machines, material))
    if (spec.flavour === 'plain') {
      const { installPlain } = await import('./plain.ts')
      await installPlain(nodes, spec, steps)
    } else {
      await installKubeadm(machines, spec, material, steps)
    }
    await steps.step('nodes Ready', () => waitForNodes(nodes.map(({ name }) => name)))
    if (spec.addons) {
      const { installAddons } = await import('./addons.ts')
      await installAddons(spec, steps)
    }
    await steps.step('pods Ready', () => waitForPods())
    writeRecord({ ...starting, phase: 'ready' })
    return spec
  })
}

/** Stops and removes the cluster and all its traces on the machine, including a partial state. */
export async function down(steps: Steps): Promise<void> {
  await alone(() => removeAll(steps))
}

/** Stops every node but keeps its files. No process of the lab remains. */
export async function stopAll(): Promise<void> {
  const known = new Set([...(readRecord()?.nodes ?? []), ...(await namespacesFound()), ...cgroupsFound()])
  known.delete('lb')
  await Promise.all([...known].map((name) => stopNode(name)))
  await stopLoadBalancer()
  removeCommonCgroup()
}

async function removeAll(steps: Steps): Promise<void> {
  const found =
    readRecord() !== undefined ||
    existsSync(paths.nodes) ||
    (await namespacesFound()).length > 0 ||
    cgroupsFound().length > 0
  if (found) await steps.step('take the cluster down', stopAll)
  await removeBridge()
  for (const path of [paths.nodes, paths.record, paths.kubeconfig, paths.loadBalancer, paths.ssh]) {
    rmSync(path, { recursive: true, force: true })
  }
}

async function bootNew(nodes: readonly Machine[], material: Material): Promise<void> {
  await makeBridge()
  await writeSshClient(nodes)
  for (const node of nodes) await createNode(node, nodes, material.minors[node.name]!)
  await boot(nodes, material)
}

/** Boots nodes that have their files, and starts the load balancer in front of them. */
export async function boot(nodes: readonly Machine[], material: Material): Promise<void> {
  await makeBridge()
  await Promise.all(nodes.map((node) => start(node, material)))
  await joinPodNetworks(nodes)
  await startLoadBalancer(nodes)
  await writeSshClient(nodes)
}

function start(node: Machine, { minors, binaries, imageStore }: Material): Promise<void> {
  return startNode(node, binaries[minors[node.name]!]!, imageStore)
}

async function installKubeadm(
  nodes: readonly Machine[],
  spec: ClusterSpec,
  material: Material,
  steps: Steps,
): Promise<void> {
  const [first, ...others] = nodes.filter(isNode) as [NodeIdentity, ...NodeIdentity[]]
  const members = nodes.filter((machine) => !isNode(machine))
  const external =
    members.length === 0
      ? undefined
      : await steps.step(`start etcd on ${members.length} machines`, () => startExternalEtcd(members, spec))
  await steps.step(`kubeadm init on ${first.name}`, () =>
    retried(3, () => kubeadmInit(first, spec, external), remade(first, nodes, material, steps)),
  )
  copyFileSync(hostPath(first.name, '/etc/kubernetes/admin.conf'), paths.kubeconfig)
  const join = (node: NodeIdentity): Promise<void> =>
    steps.step(`kubeadm join on ${node.name}`, () =>
      retried(3, () => kubeadmJoin(node, first.name), remadeForJoin(node, nodes, material, steps)),
    )
  // Control planes join one by one, since etcd admits one learner at a time. Workers join at the same time.
  const workers = others.filter(({ role }) => role === 'worker').map(join)
  try {
    for (const node of others.filter(({ role }) => role === 'control-plane')) await join(node)
  } finally {
    await Promise.allSettled(workers)
  }
  await Promise.all(workers)
}

/** Returns the step before the next attempt: the node is created again. */
function remade(node: NodeIdentity, all: readonly Machine[], material: Material, steps: Steps) {
  return async (error: unknown): Promise<void> => {
    steps.note(
      `${node.name} is made anew and tried again: ${error instanceof LabError ? error.message : String(error)}`,
    )
    await remakeNode(node, all, material)
  }
}

/** The same for a node that may have joined the cluster partially. */
function remadeForJoin(node: NodeIdentity, all: readonly Machine[], material: Material, steps: Steps) {
  const remake = remade(node, all, material, steps)
  return async (error: unknown): Promise<void> => {
    await kubeadmReset(node)
    await kubectl(['delete', 'node', node.name, '--ignore-not-found'], { mayFail: true })
    await remake(error)
  }
}

async function remakeNode(node: NodeIdentity, all: readonly Machine[], material: Material): Promise<void> {
  await stopNode(node.name)
  await createNode(node, all, material.minors[node.name]!)
  await start(node, material)
  await joinPodNetworks(all)
  await writeSshClient(all)
}

export interface JoinOptions extends JoinSecrets {
  /** Another approver approves the node's request for its serving certificate. */
  readonly isApprovedElsewhere?: boolean
}

/** Adds a node to the running cluster. */
export async function joinNode(
  name: string,
  steps: Steps,
  { isApprovedElsewhere = false, ...secrets }: JoinOptions = {},
): Promise<void> {
  const node = nodeIdentity(name)
  const { spec, minors } = existing()
  const material = await prepare({ ...minors, [name]: spec.kubernetes[node.role] }, steps)
  await alone(async () => {
    const record = existing()
    if (record.nodes.includes(name)) throw new LabError(`${name} is a node of the cluster already`)
    if (record.spec.flavour === 'plain')
      throw new LabError('only a kubeadm cluster can be joined', { why: 'the plain flavour has no kubeadm' })
    const all = [...record.nodes.map(machineIdentity), node]
    const first = record.nodes.find((other) => machineIdentity(other).role === 'control-plane')!
    const joined = {
      ...record,
      nodes: all.map((one) => one.name),
      minors: material.minors,
      binaries: material.keys,
    }
    writeRecord({ ...joined, phase: 'starting' })
    await steps.step(`boot ${name}`, () => remakeNode(node, all, material))
    await steps.step(`kubeadm join on ${name}`, () =>
      retried(3, () => kubeadmJoin(node, first, secrets), remadeForJoin(node, all, material, steps)),
    )
    if (node.role === 'control-plane') await changeBackends(all)
    const approve = isApprovedElsewhere ? async () => undefined : undefined
    await steps.step(`${name} Ready`, () => waitForNodes([name], 240_000, approve))
    writeRecord({ ...joined, phase: 'ready' })
  })
}

/** Removes a node from the running cluster: drained, reset, its Node object and files deleted. */
export async function removeNode(name: string, steps: Steps): Promise<void> {
  await alone(async () => {
    const record = existing()
    if (!record.nodes.includes(name))
      throw new LabError(`${name} is no node of the cluster`, { next: 'npm run lab -- status' })
    const node = nodeIdentity(name)
    const rest = record.nodes.filter((other) => other !== name)
    if (!rest.some((other) => machineIdentity(other).role === 'control-plane')) {
      throw new LabError(`${name} is the last control plane`, { next: 'npm run lab -- down' })
    }
    await steps.step(`drain ${name}`, async () => {
      await kubectl(
        ['drain', name, '--ignore-daemonsets', '--delete-emptydir-data', '--force', '--timeout=60s'],
        { mayFail: true },
      )
    })
    if (node.role === 'control-plane') await changeBackends(rest.map(machineIdentity))
    await steps.step(`reset ${name}`, () => kubeadmReset(node))
    await patientKubectl(['delete', 'node', name, '--ignore-not-found'])
    // The pods of its DaemonSets would stay in lists until the garbage collector deletes them, up to a minute later.
    const left = ['--field-selector', `spec.nodeName=${name}`, '--force', '--grace-period=0']
    await kubectl(['delete', 'pods', '--all-namespaces', ...left], { mayFail: true })
    await stopNode(name)
    rmSync(paths.node(name), { recursive: true, force: true })
    writeRecord({ ...record, nodes: rest })
    await writeSshClient(rest.map(machineIdentity))
  })
}

/** Returns the record of the running cluster. Throws when there is none or a partial one. */
export function existing(): ClusterRecord {
  const record = readRecord()
  if (record === undefined) throw new LabError('there is no cluster', { next: 'npm run lab -- up' })
  if (record.phase !== 'ready') {
    throw new LabError('the cluster is half made', {
      why: 'what was making it ended before it was done',
      next: 'npm run lab -- up',
    })
  }
  return record
}
