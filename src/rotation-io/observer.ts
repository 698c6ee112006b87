import pMap from 'p-map'
import { type NodeObject, resources } from '../cluster/kinds.ts'
import { listAll } from '../cluster/readable.ts'
import { onKcertError } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import type { CertificateRecord } from '../rotation/certificate-record.ts'
import { endpointKey, otherEndpoints } from '../rotation/etcd/endpoints.ts'
import { inventoryNode } from '../rotation/inventory.ts'
import { manualRotation, type PhaseTable } from '../rotation/phase-table.ts'
import type { Observer } from '../rotation/ports.ts'
import type {
  ComponentSnapshot,
  HandshakeSnapshot,
  NodeSnapshot,
  Observed,
  SectionName,
  Sections,
} from '../rotation/snapshot.ts'
import { apiServers, fileKey } from '../rotation/snapshot.ts'
import { ControlPlanes } from '../site/control-planes.ts'
import { processHandshake, serviceHandshakes } from '../site/handshakes.ts'
import { inOrder, internalAddress, isControlPlane, layoutOf } from '../site/node-objects.ts'
import { PodWatch } from '../site/pods.ts'
import { reading, servedKeyIds, tokensOn } from '../site/service-account-keys.ts'
import { aheadMsOf, type Site } from '../site/site.ts'
import { caBundles, workloads } from '../site/workloads.ts'
import { backends } from './backends.ts'
import { readIndex } from './copies.ts'
import { etcdMember, memberIdAt } from './etcd-members.ts'
import { type NodeObservation, NodeWatch } from './node-watch.ts'
import {
  clusterInfo,
  extensionAuthentication,
  kubeadmConfiguration,
  leases,
  publishedTrust,
} from './published.ts'
import { casIn, StoredWatch } from './stored.ts'
import { storedTokens, tokenDrivers } from './stored-tokens.ts'

const nodesAtOnce = 24

/** Observes a real cluster: objects through its API server, everything else through its nodes. */
export class SiteObserver implements Observer {
  readonly site: Site
  readonly pods: PodWatch
  readonly stored: StoredWatch
  readonly planes: ControlPlanes
  readonly table: PhaseTable
  /**
   * IDs of the members at endpoints of API servers that are not addresses of members; undefined at one that did not answer. Waits observe
   * twice a second, so each ID is read once, and an endpoint without an answer again after a time.
   */
  readonly endpoints = new Map<string, { readonly id: string | undefined; readonly atMs: number }>()
  private readonly watches = new Map<string, NodeWatch>()

  /** `table`: the playbook of the rotation that is observed. */
  constructor(site: Site, table = manualRotation) {
    this.site = site
    this.table = table
    this.planes = new ControlPlanes(site)
    this.pods = new PodWatch(site)
    this.stored = new StoredWatch(site)
  }

  async observe<Section extends SectionName>(
    sections: readonly Section[],
    remembered: readonly CertificateRecord[] = [],
  ): Promise<Observed<Section>> {
    const observesNodes = sections.some((section) => section === 'components' || section === 'kubelets')
    const observation = new Observation(this, observesNodes, remembered)
    const atMs = this.site.clock().getTime()
    const observed = await Promise.all(
      sections.map(async (section: SectionName) => [section, await readers[section](observation)] as const),
    )
    const common = { atMs, certificates: this.site.certificates.table }
    return { ...Object.fromEntries(observed), ...common } as unknown as Observed<Section>
  }

  watchOf(node: NodeAccess): NodeWatch {
    const watch = this.watches.get(node.name) ?? new NodeWatch(node, this.site, this.table.reads)
    this.watches.set(node.name, watch)
    return watch
  }
}

/** How each section is read. */
const readers: { readonly [Section in SectionName]: (from: Observation) => Promise<Sections[Section]> } = {
  nodes: nodeSnapshots,
  components: async (from) => (await from.observations()).flatMap(({ components }) => components),
  etcdMembers,
  kubelets: async (from) => (await from.observations()).flatMap(({ kubelet }) => kubelet ?? []),
  async files(from) {
    const files = (await from.observations()).flatMap((observation) => observation.files)
    return new Map(files.map((file) => [fileKey(file.node, file.path), file]))
  },
  async kubeconfigs(from) {
    const listed = from.site.inventory.kubeconfigs ?? []
    const outside = listed.flatMap((one) => ('name' in one ? [{ id: one.name }] : []))
    return [...(await from.observations()).flatMap(({ kubeconfigs }) => kubeconfigs), ...outside]
  },
  published: (from) => from.published(),
  async pods(from) {
    const [published, nodes] = await Promise.all([from.published(), from.nodes()])
    const addresses = new Map(nodes.map((node) => [node.metadata.name, internalAddress(node)]))
    const open = (name: string) => from.site.node(name, addresses.get(name))
    return from.observer.pods.pods(open, published, onEach)
  },
  backends: ({ site }) => backends(site),
  workloads: async (from) => workloads(from.site, await from.caBundles()),
  caBundles: (from) => from.caBundles(),
  stored: async (from) =>
    from.observer.stored.stored(casIn(await from.observations(), from.site), from.remembered),
  clusterInfo: ({ site }) => clusterInfo(site),
  extensionAuthentication: ({ site }) => extensionAuthentication(site),
  kubeadm: ({ site }) => kubeadmConfiguration(site),
  leases: async (from) => leases(from.site, await from.nodes()),
  handshakes,
  servedKeys,
  tokens,
  // Comes from the journal, like intents: the runner adds them.
  evidence: async () => new Map(),
  intents: async () => [],
  copies,
}

/** One observation. Data for several sections is fetched once. */
class Observation {
  readonly observer: SiteObserver
  readonly site: Site
  readonly observesNodes: boolean
  readonly remembered: readonly CertificateRecord[]
  private readonly fetched = new Map<string, Promise<unknown>>()

  constructor(observer: SiteObserver, observesNodes: boolean, remembered: readonly CertificateRecord[]) {
    this.observer = observer
    this.site = observer.site
    this.observesNodes = observesNodes
    this.remembered = remembered
  }

  published(): Promise<Sections['published']> {
    return this.once('published', async () => {
      const controlPlanes = (await this.nodes()).filter((node) => this.isControlPlane(node))
      const names = controlPlanes.map(({ metadata }) => metadata.name)
      return publishedTrust(this.site, this.observer.planes, names)
    })
  }

  caBundles(): Promise<Sections['caBundles']> {
    return this.once('caBundles', () => caBundles(this.site))
  }

  nodes(): Promise<readonly NodeObject[]> {
    return this.once('nodes', async () => {
      const nodes = await listAll(this.site.objects, resources.nodes)
      // Every run creates the new CA on the first of them.
      const sorted = inOrder(nodes, (node) => this.isControlPlane(node))
      return this.observer.table.reads === 'etcd' ? [...sorted, ...this.etcdMachines(sorted)] : sorted
    })
  }

  /** Returns the observations of all nodes that respond. */
  async observations(): Promise<readonly NodeObservation[]> {
    return [...(await this.observationsByNode()).values()].flatMap((observation) =>
      observation instanceof KcertError ? [] : [observation],
    )
  }

  observationsByNode(): Promise<ReadonlyMap<string, NodeObservation | KcertError>> {
    return this.once('looks', async () => {
      const found = await onEach(await this.nodes(), async (object) => {
        const node = this.open(object)
        if (node === undefined) return []
        const observation = await this.observer
          .watchOf(node)
          .observe()
          .catch(onKcertError((error) => error))
        return [[object.metadata.name, observation] as const]
      })
      return new Map(found.flat())
    })
  }

  /** They have no Node object. A machine with the name of a node would hide it. */
  private etcdMachines(nodes: readonly NodeObject[]): readonly NodeObject[] {
    return (this.site.inventory.etcd ?? []).map(({ name, addresses }) => {
      if (nodes.some(({ metadata }) => metadata.name === name)) {
        throw new KcertError(
          'KCERT_INVENTORY_INVALID',
          `etcd in kcert.yaml has a node of the cluster: ${name}`,
          {
            why: 'list machines without a Node object there. kcert finds the etcd member of a control-plane node by itself; give the machine of another member its own name',
            next: 'kubectl get nodes',
          },
        )
      }
      const status = { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) }
      return { metadata: { name }, status }
    })
  }

  isEtcdMachine({ metadata: { name } }: NodeObject): boolean {
    return this.site.inventory.etcd?.some((machine) => machine.name === name) === true
  }

  /** Clusters without kubeadm may have no labels. The inventory decides then. */
  isControlPlane(object: NodeObject): boolean {
    const said = inventoryNode(this.site.inventory, object.metadata.name)?.role
    return said === undefined ? isControlPlane(object) : said === 'control-plane'
  }

  open(object: NodeObject): NodeAccess | undefined {
    return this.site.node(object.metadata.name, internalAddress(object))
  }

  private once<Result>(what: string, fetch: () => Promise<Result>): Promise<Result> {
    const fetched = (this.fetched.get(what) as Promise<Result> | undefined) ?? fetch()
    this.fetched.set(what, fetched)
    return fetched
  }
}

function onEach<Item, Result>(
  items: readonly Item[],
  observe: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  return pMap(items, observe, { concurrency: nodesAtOnce })
}

async function nodeSnapshots(from: Observation): Promise<NodeSnapshot[]> {
  return onEach(await from.nodes(), async (object): Promise<NodeSnapshot> => {
    const { name } = object.metadata
    const ready = object.status?.conditions?.find(({ type }) => type === 'Ready')
    const reached = await reach(from.open(object))
    const observation = from.observesNodes ? (await from.observationsByNode()).get(name) : undefined
    const isEtcdMachine = from.isEtcdMachine(object)
    // A node that responds but cannot be read is as unknown as one that does not respond.
    const unread = observation instanceof KcertError ? (observation.why ?? observation.message) : undefined
    const unreachable = unread ?? reached.unreachable
    return {
      name,
      isControlPlane: from.isControlPlane(object),
      ...(isEtcdMachine && { isEtcdMachine }),
      ...reached,
      ...(unreachable !== undefined && { unreachable }),
      isReady: isEtcdMachine ? unreachable === undefined : ready?.status === 'True',
      kubeletVersion: object.status?.nodeInfo?.kubeletVersion ?? '',
      layout: layoutOf(object, inventoryNode(from.site.inventory, name)?.layout),
    }
  })
}

async function reach(
  node: NodeAccess | undefined,
): Promise<Pick<NodeSnapshot, 'unreachable' | 'clockSkewMs'>> {
  if (node === undefined) return { unreachable: 'kcert.yaml has no access for it' }
  return node.clock({ timeoutMs: 10_000 }).then(
    (clock) => ({ clockSkewMs: aheadMsOf(clock) }),
    onKcertError(({ why, message }) => ({ unreachable: why ?? message })),
  )
}

async function etcdMembers(from: Observation): Promise<Sections['etcdMembers']> {
  const observations = await from.observationsByNode()
  const found = await onEach(await from.nodes(), async (object) => {
    const node = from.open(object)
    const observation = observations.get(object.metadata.name)
    const defined = observation instanceof KcertError ? undefined : observation?.etcd
    return node === undefined || defined === undefined ? [] : [await etcdMember(from.site, node, defined)]
  })
  return reachedBy(from, found.flat())
}

/** The wait for an answer of an endpoint takes 5 s, and would slow down every observation of a wait. */
const unansweredMs = 30_000

/** Adds the endpoints of API servers that are not addresses of members, but lead to a member that this one knows. */
async function reachedBy(
  from: Observation,
  members: Sections['etcdMembers'],
): Promise<Sections['etcdMembers']> {
  const { site, observer } = from
  const now = site.clock().getTime()
  const isKnown = (key: string): boolean => {
    const { id, atMs } = observer.endpoints.get(key) ?? { id: undefined, atMs: Number.NEGATIVE_INFINITY }
    return id !== undefined || now - atMs < unansweredMs
  }
  await onEach(await apisOf(from), async (api) => {
    await onEach(otherEndpoints(api, members), async ({ url }) => {
      const key = url === null ? undefined : endpointKey(api.node, url)
      if (url === null || key === undefined || isKnown(key)) return
      observer.endpoints.set(key, { id: await memberIdAt(site, api, url), atMs: now })
    })
  })
  const found = [...observer.endpoints]
  return members.map((member) => {
    const reachedAt = found.flatMap(([key, { id }]) => {
      return id !== undefined && member.state?.known.includes(id) ? [key] : []
    })
    return reachedAt.length === 0 ? member : { ...member, reachedAt }
  })
}

const noTable = { atMs: 0, certificates: new Map() }

async function apisOf(from: Observation): Promise<readonly ComponentSnapshot[]> {
  const components = (await from.observations()).flatMap((observation) => observation.components)
  return apiServers({ ...noTable, components })
}

/** One answer for each API server that is defined on a node, also for one that does not run. */
async function servedKeys(from: Observation): Promise<Sections['servedKeys']> {
  return onEach(await apisOf(from), async ({ id: process, node }) => ({
    process,
    keyIds: await reading(() => servedKeyIds(from.site, node)),
  }))
}

async function tokens(from: Observation): Promise<Sections['tokens']> {
  const kubeconfigs = from.site.inventory.kubeconfigs ?? []
  const nodes = await onEach(await from.nodes(), async (object) => {
    const { name } = object.metadata
    const paths = kubeconfigs.flatMap((one) => ('node' in one && one.node === name ? [one.path] : []))
    return {
      node: name,
      tokens: await reading(async () => {
        const node = from.open(object)
        if (node === undefined) throw new Error('kcert.yaml has no access for it')
        return tokensOn(node, paths)
      }),
    }
  })
  return { nodes, objects: await storedTokens(from.site), drivers: await tokenDrivers(from.site) }
}

async function handshakes(from: Observation): Promise<Sections['handshakes']> {
  const { site } = from
  const [nodes, bundles] = await Promise.all([from.nodes(), from.caBundles()])
  const onNodes = await onEach(nodes, async (object): Promise<HandshakeSnapshot[]> => {
    const processes = await from
      .open(object)
      ?.processes(['kube-apiserver', 'kubelet'])
      .catch(() => [])
    const shown = await Promise.all(
      (processes ?? []).map((process) => processHandshake(site, object.metadata.name, process)),
    )
    return shown.flatMap((one) => one ?? [])
  })
  const first = nodes.find((node) => from.isControlPlane(node) && from.open(node) !== undefined)
  const services = first === undefined ? [] : await serviceHandshakes(site, bundles, first.metadata.name)
  return [...onNodes.flat(), ...services]
}

async function copies(from: Observation): Promise<Sections['copies']> {
  const found = await onEach(await from.nodes(), async (object) => {
    const node = from.open(object)
    if (node === undefined) return []
    return readIndex(node, from.observer.table.copiesIndex).then(
      (index) => index.copies,
      onKcertError((error) => {
        if (error.code === 'KCERT_BACKUP_DAMAGED') throw error
        // The section `nodes` names a node that does not respond.
        return []
      }),
    )
  })
  return found.flat()
}
