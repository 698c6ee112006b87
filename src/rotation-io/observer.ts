import pMap from 'p-map'
import { type NodeObject, resources } from '../cluster/kinds.ts'
import { listAll } from '../cluster/readable.ts'
import { onKcertError } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import type { CertificateRecord } from '../rotation/certificate-record.ts'
import { inventoryNode } from '../rotation/inventory.ts'
import type { Observer } from '../rotation/ports.ts'
import type {
  HandshakeSnapshot,
  NodeSnapshot,
  Observed,
  SectionName,
  Sections,
} from '../rotation/snapshot.ts'
import { fileKey } from '../rotation/snapshot.ts'
import { ControlPlanes } from '../site/control-planes.ts'
import { processHandshake, serviceHandshakes } from '../site/handshakes.ts'
import { inOrder, internalAddress, isControlPlane, layoutOf } from '../site/node-objects.ts'
import { PodWatch } from '../site/pods.ts'
import { aheadMsOf, type Site } from '../site/site.ts'
import { caBundles, workloads } from '../site/workloads.ts'
import { backends } from './backends.ts'
import { readIndex } from './copies.ts'
import { type NodeObservation, NodeWatch } from './node-watch.ts'
import {
  clusterInfo,
  extensionAuthentication,
  kubeadmConfiguration,
  leases,
  publishedTrust,
} from './published.ts'
import { casIn, StoredWatch } from './stored.ts'

const nodesAtOnce = 24

/** Observes a real cluster: objects through its API server, everything else through its nodes. */
export class SiteObserver implements Observer {
  readonly site: Site
  readonly podWatch: PodWatch
  readonly storedWatch: StoredWatch
  readonly planes: ControlPlanes
  private readonly watches = new Map<string, NodeWatch>()

  constructor(site: Site) {
    this.site = site
    this.planes = new ControlPlanes(site)
    this.podWatch = new PodWatch(site)
    this.storedWatch = new StoredWatch(site)
  }

  async observe<Section extends SectionName>(
    sections: readonly Section[],
    remembered: readonly CertificateRecord[] = [],
  ): Promise<Observed<Section>> {
    const observesNodes = sections.some((section) => section === 'components' || section === 'kubelets')
    const observation = new Observation(this, observesNodes, remembered)
    const atMs = this.site.clock().getTime()
    const observed = await Promise.all(
      sections.map(async (section: SectionName) => [section, await observation[section]()] as const),
    )
    const common = { atMs, certificates: this.site.certificates.table }
    return { ...Object.fromEntries(observed), ...common } as unknown as Observed<Section>
  }

  watchOf(node: NodeAccess): NodeWatch {
    const watch = this.watches.get(node.name) ?? new NodeWatch(node, this.site)
    this.watches.set(node.name, watch)
    return watch
  }
}

/** One observation. Data for several sections is fetched once. */
class Observation implements Record<SectionName, () => Promise<unknown>> {
  private readonly observer: SiteObserver
  private readonly site: Site
  private readonly observesNodes: boolean
  private readonly remembered: readonly CertificateRecord[]
  private readonly fetched = new Map<string, Promise<unknown>>()

  constructor(observer: SiteObserver, observesNodes: boolean, remembered: readonly CertificateRecord[]) {
    this.observer = observer
    this.site = observer.site
    this.observesNodes = observesNodes
    this.remembered = remembered
  }

  async nodes(): Promise<Sections['nodes']> {
    return this.onEach(await this.nodeObjects(), async (object): Promise<NodeSnapshot> => {
      const { name } = object.metadata
      const ready = object.status?.conditions?.find(({ type }) => type === 'Ready')
      const reached = await this.reach(object)
      const unread = this.observesNodes ? (await this.observationsByNode()).get(name) : undefined
      return {
        name,
        isControlPlane: this.isControlPlane(object),
        ...reached,
        // A node that responds but cannot be read is as unknown as one that does not respond.
        ...(unread instanceof KcertError && { unreachable: unread.why ?? unread.message }),
        isReady: ready?.status === 'True',
        kubeletVersion: object.status?.nodeInfo?.kubeletVersion ?? '',
        layout: layoutOf(object, inventoryNode(this.site.inventory, name)?.layout),
      }
    })
  }

  async components(): Promise<Sections['components']> {
    return (await this.observations()).flatMap(({ components }) => components)
  }

  async kubelets(): Promise<Sections['kubelets']> {
    return (await this.observations()).flatMap(({ kubelet }) => kubelet ?? [])
  }

  async files(): Promise<Sections['files']> {
    const files = (await this.observations()).flatMap((observation) => observation.files)
    return new Map(files.map((file) => [fileKey(file.node, file.path), file]))
  }

  async kubeconfigs(): Promise<Sections['kubeconfigs']> {
    const outside = (this.site.inventory.kubeconfigs ?? []).flatMap((one) =>
      'name' in one ? [{ id: one.name }] : [],
    )
    return [...(await this.observations()).flatMap(({ kubeconfigs }) => kubeconfigs), ...outside]
  }

  published(): Promise<Sections['published']> {
    return this.once('published', async () => {
      const controlPlanes = (await this.nodeObjects()).filter((node) => this.isControlPlane(node))
      const names = controlPlanes.map(({ metadata }) => metadata.name)
      return publishedTrust(this.site, this.observer.planes, names)
    })
  }

  async pods(): Promise<Sections['pods']> {
    const [published, nodes] = await Promise.all([this.published(), this.nodeObjects()])
    const addresses = new Map(nodes.map((node) => [node.metadata.name, internalAddress(node)]))
    return this.observer.podWatch.pods(
      (name) => this.site.node(name, addresses.get(name)),
      published,
      (names, observe) => this.onEach(names, observe),
    )
  }

  backends(): Promise<Sections['backends']> {
    return backends(this.site)
  }

  async workloads(): Promise<Sections['workloads']> {
    return workloads(this.site, await this.caBundles())
  }

  caBundles(): Promise<Sections['caBundles']> {
    return this.once('caBundles', () => caBundles(this.site))
  }

  async stored(): Promise<Sections['stored']> {
    const cas = casIn(await this.observations(), this.site)
    return this.observer.storedWatch.stored(cas, this.remembered)
  }

  clusterInfo(): Promise<Sections['clusterInfo']> {
    return clusterInfo(this.site)
  }

  extensionAuthentication(): Promise<Sections['extensionAuthentication']> {
    return extensionAuthentication(this.site)
  }

  kubeadm(): Promise<Sections['kubeadm']> {
    return kubeadmConfiguration(this.site)
  }

  async leases(): Promise<Sections['leases']> {
    return leases(this.site, await this.nodeObjects())
  }

  async handshakes(): Promise<Sections['handshakes']> {
    const [nodes, bundles] = await Promise.all([this.nodeObjects(), this.caBundles()])
    const onNodes = await this.onEach(nodes, async (object): Promise<HandshakeSnapshot[]> => {
      const node = this.open(object)
      const processes = await node?.processes(['kube-apiserver', 'kubelet']).catch(() => [])
      const shown = await Promise.all(
        (processes ?? []).map((process) => processHandshake(this.site, object.metadata.name, process)),
      )
      return shown.flatMap((one) => one ?? [])
    })
    const from = nodes.find((node) => this.isControlPlane(node) && this.open(node) !== undefined)
    const services = from === undefined ? [] : await serviceHandshakes(this.site, bundles, from.metadata.name)
    return [...onNodes.flat(), ...services]
  }

  /** Comes from the journal, like intents: the runner adds them. */
  async evidence(): Promise<Sections['evidence']> {
    return new Map()
  }

  async intents(): Promise<Sections['intents']> {
    return []
  }

  async copies(): Promise<Sections['copies']> {
    const found = await this.onEach(await this.nodeObjects(), async (object) => {
      const node = this.open(object)
      if (node === undefined) return []
      return readIndex(node).then(
        ({ copies }) => copies,
        onKcertError((error) => {
          if (error.code === 'KCERT_BACKUP_DAMAGED') throw error
          // The section `nodes` names a node that does not respond.
          return []
        }),
      )
    })
    return found.flat()
  }

  private nodeObjects(): Promise<readonly NodeObject[]> {
    return this.once('nodes', async () => {
      const nodes = await listAll(this.site.objects, resources.nodes)
      // Every run creates the new CA on the first of them.
      return inOrder(nodes, (node) => this.isControlPlane(node))
    })
  }

  /** Returns the observations of all nodes that respond. */
  private async observations(): Promise<readonly NodeObservation[]> {
    return [...(await this.observationsByNode()).values()].flatMap((observation) =>
      observation instanceof KcertError ? [] : [observation],
    )
  }

  private observationsByNode(): Promise<ReadonlyMap<string, NodeObservation | KcertError>> {
    return this.once('looks', async () => {
      const found = await this.onEach(await this.nodeObjects(), async (object) => {
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

  private async reach(object: NodeObject): Promise<Pick<NodeSnapshot, 'unreachable' | 'clockSkewMs'>> {
    const node = this.open(object)
    if (node === undefined) return { unreachable: 'kcert.yaml has no access for it' }
    return node.clock({ timeoutMs: 10_000 }).then(
      (clock) => ({ clockSkewMs: aheadMsOf(clock) }),
      onKcertError(({ why, message }) => ({ unreachable: why ?? message })),
    )
  }

  /** Clusters without kubeadm may have no labels. The inventory decides then. */
  private isControlPlane(object: NodeObject): boolean {
    const said = inventoryNode(this.site.inventory, object.metadata.name)?.role
    return said === undefined ? isControlPlane(object) : said === 'control-plane'
  }

  private open(object: NodeObject): NodeAccess | undefined {
    return this.site.node(object.metadata.name, internalAddress(object))
  }

  private onEach<Item, Result>(
    items: readonly Item[],
    observe: (item: Item) => Promise<Result>,
  ): Promise<Result[]> {
    return pMap(items, observe, { concurrency: nodesAtOnce })
  }

  private once<Result>(what: string, fetch: () => Promise<Result>): Promise<Result> {
    const fetched = (this.fetched.get(what) as Promise<Result> | undefined) ?? fetch()
    this.fetched.set(what, fetched)
    return fetched
  }
}
