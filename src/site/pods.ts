import { type PodObject, resources } from '../cluster/kinds.ts'
import { listAll } from '../cluster/readable.ts'
import { flagsOf } from '../pki/component-flags.ts'
import type { FileFacts, NodeAccess } from '../pki/node-access.ts'
import { capabilities, unknown } from '../rotation/capabilities.ts'
import { publishedFor } from '../rotation/convergence.ts'
import { isSelected } from '../rotation/inventory.ts'
import type { PodSnapshot, PublishedTrust, Trust } from '../rotation/snapshot.ts'
import { apiServerSigner } from './object-content.ts'
import { PodPrograms, keyOf as programKey, type Rereading, type RunningClient } from './pod-programs.ts'
import type { Site } from './site.ts'

const rootConfigMap = 'kube-root-ca.crt'
const call = { timeoutMs: 20_000 }

/** For pods whose node cannot be read: a volume created this long after the change of the ConfigMap contains the change. */
const blindDelayMs = 120_000

/** A new pod gets the content in its kubelet's cache, which lags behind the API server by a moment. */
const newbornDelayMs = 5_000

/** A pod with the cluster's CA in a file of a volume. */
interface Mounting extends CaFile {
  readonly pod: PodObject
  readonly node: string
  /** The names of containers that mount it. */
  readonly containers: ReadonlySet<string>
  readonly startedAtMs: number
}

interface CaFile {
  /** The path of the file on its node, below the kubelet's --root-dir. */
  readonly path: string
  readonly trustBundle?: NonNullable<PodSnapshot['trustBundle']>
}

interface Volume {
  readonly trust: Trust
  readonly changedAtMs: number
  /** True while the file has its original content: then every process in the pod started after it. */
  readonly isOriginal: boolean
}

interface KnownFile {
  readonly modifiedMs: number
  /** When it first had this trust; earlier than the last write if the same content was written again. */
  readonly changedMs: number
  readonly isOriginal: boolean
  readonly trust: Trust
}

/** Reads the contents of pods' volumes. A volume is read again only if it may have changed. */
export class PodWatch {
  private readonly site: Site
  private readonly known = new Map<string, KnownFile>()
  private readonly roots = new Map<string, string>()
  private readonly programs = new PodPrograms()

  constructor(site: Site) {
    this.site = site
  }

  /** Returns the pods that have the cluster's CA in a volume, with the content of the volume if their node can be read. */
  async pods(
    nodeNamed: (name: string) => NodeAccess | undefined,
    published: readonly PublishedTrust[],
    eachNode: <Item>(items: readonly Item[], observe: (item: Item) => Promise<void>) => Promise<unknown>,
  ): Promise<readonly PodSnapshot[]> {
    const observedAtMs = this.site.clock().getTime()
    const found = await listAll(this.site.objects, resources.pods, {
      fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed',
    })
    const tokenSecrets = new Set(published.flatMap(({ kind, name }) => (kind === 'Secret' ? [name] : [])))
    const mounting = found.flatMap((pod) => mountingsOf(pod, tokenSecrets, observedAtMs))
    const byNode = Map.groupBy(mounting, ({ node }) => node)
    const volumes = new Map<string, Volume>()
    await eachNode([...byNode], async ([name, its]) => {
      const node = nodeNamed(name)
      if (node !== undefined) await this.readVolumes(node, its, volumes).catch(() => {})
    })
    this.forget(mounting)
    const pods = mounting.map((one) => ({ one, pod: this.snapshot(one, volumes.get(keyOf(one)), published) }))
    const behind = Map.groupBy(
      pods.filter(({ one, pod }) => isBehind(pod) && !this.isNamed(one.pod, pod.workload)),
      ({ one }) => one.node,
    )
    const programs = new Map<string, Rereading>()
    await eachNode([...behind], async ([name, its]) => {
      const node = nodeNamed(name)
      if (node === undefined) return
      const clients = its.map(({ one }) => clientOf(one))
      for (const [key, rereading] of await this.programs.read(node, clients)) programs.set(key, rereading)
    })
    return pods.map(({ one, pod }) => ({ ...pod, ...this.rereading(one, pod, programs) }))
  }

  private async readVolumes(
    node: NodeAccess,
    mounting: readonly Mounting[],
    into: Map<string, Volume>,
  ): Promise<void> {
    const aheadMs = await this.site.clockAheadMs(node.name)
    const root = await this.rootOf(node)
    // API servers refuse such a path. If one allowed it, no other file on the node is read instead.
    const inside = mounting.filter(({ path }) => !path.split('/').includes('..'))
    const paths = inside.map(({ path }) => `${root}${path}`)
    const facts = await node.statFiles(paths, call)
    const changed = paths.filter(
      (path, index) => !this.isKnown(node.name, path.slice(root.length), facts[index]),
    )
    const contents = changed.length === 0 ? [] : await node.readFiles(changed, call)
    for (const file of contents) {
      if (file.found !== 'file') continue
      const trust = this.site.reading.trustOf(file.content)
      const modifiedMs = file.modifiedAt.getTime()
      // The kubelet first writes the content and then the link to it. Later it changes only the content.
      const isOriginal = file.linkedAt !== undefined && file.linkedAt.getTime() >= modifiedMs
      const key = `${node.name}:${file.path.slice(root.length)}`
      const before = this.known.get(key)
      // A restarted kubelet writes every volume again.
      this.known.set(
        key,
        before !== undefined && isSameSet(before.trust, trust)
          ? { ...before, modifiedMs, trust }
          : { modifiedMs, changedMs: modifiedMs, isOriginal, trust },
      )
    }
    for (const one of mounting) {
      const known = this.known.get(keyOf(one))
      if (known === undefined) continue
      const { trust, isOriginal, changedMs } = known
      into.set(keyOf(one), { trust, isOriginal, changedAtMs: changedMs - aheadMs })
    }
  }

  /** Returns the folder of the kubelet's pod files, read once. */
  private async rootOf(node: NodeAccess): Promise<string> {
    const known = this.roots.get(node.name)
    if (known !== undefined) return known
    const [kubelet] = await node.processes(['kubelet'], call)
    const root = flagsOf(kubelet?.argv ?? [])['root-dir']?.replace(/\/+$/, '') ?? '/var/lib/kubelet'
    if (kubelet !== undefined) this.roots.set(node.name, root)
    return root
  }

  private isKnown(node: string, path: string, facts: FileFacts | undefined): boolean {
    const known = this.known.get(`${node}:${path}`)
    return known !== undefined && facts?.found === 'file' && facts.modifiedAt.getTime() === known.modifiedMs
  }

  private forget(mounting: readonly Mounting[]): void {
    const alive = new Set(mounting.map(keyOf))
    for (const key of this.known.keys()) if (!alive.has(key)) this.known.delete(key)
  }

  private snapshot(
    { pod, node, startedAtMs, trustBundle }: Mounting,
    volume: Volume | undefined,
    published: readonly PublishedTrust[],
  ): Omit<PodSnapshot, 'rereads'> {
    const { namespace = '', name, uid = '' } = pod.metadata
    const source = { id: `${namespace}/${name}`, ...(trustBundle && { trustBundle }) }
    const workload = workloadOf(pod)
    const address = pod.spec?.hostNetwork === true ? undefined : pod.status?.podIP
    const times = publishedFor({ published }, source).map(({ changedAtMs: atMs }) => atMs)
    const publishedAtMs = Math.max(0, ...times)
    const bornAtMs = Date.parse(pod.metadata.creationTimestamp ?? '')
    const isNewborn = bornAtMs >= publishedAtMs + newbornDelayMs
    const isSettled = isNewborn || startedAtMs >= publishedAtMs + blindDelayMs
    return {
      ...source,
      uid,
      node,
      ...(workload === undefined ? {} : { workload }),
      startedAtMs,
      ...(address === undefined ? {} : { address }),
      ...(volume && {
        volume: { trust: volume.trust, changedAtMs: changedAtMs(volume, startedAtMs, isSettled) },
      }),
    }
  }

  /** Decided by the program if it was read; otherwise only for kube-proxy, by its image. */
  private rereading(
    one: Mounting,
    pod: Omit<PodSnapshot, 'rereads'>,
    programs: ReadonlyMap<string, Rereading>,
  ): Pick<PodSnapshot, 'rereads' | 'readsOnce'> {
    if (this.isNamed(one.pod, pod.workload)) return { rereads: true }
    const byImage = (proxyMinor(one.pod) ?? 0) >= capabilities.clientRereadsCaFile.since
    if (!isBehind(pod)) return { rereads: byImage }
    const found = programs.get(programKey(clientOf(one))) ?? 'unread'
    if (found === 'unread')
      return byImage ? { rereads: true } : { rereads: false, readsOnce: unknown.program }
    return found.why === undefined ? { rereads: true } : { rereads: false, readsOnce: found.why }
  }

  /** True for a workload that the operator named as reloading. */
  private isNamed(pod: PodObject, workload: string | undefined): boolean {
    const [kind = '', id = ''] = (workload ?? '').split(' ')
    const [namespace = '', name = ''] = id.split('/')
    const { labels = {} } = pod.metadata
    const selectors = this.site.inventory.workloads?.reloadingCa ?? []
    return selectors.some((one) =>
      isSelected(one, {
        kind,
        namespace: namespace || (pod.metadata.namespace ?? ''),
        name: name || pod.metadata.name,
        labels,
      }),
    )
  }
}

/**
 * Returns when the volume got this content, as far as it matters to a process that started at that time. The API server reports
 * start times in whole seconds. The kubelet also writes the volume when it renews the token next to the CA, which does not change
 * the CA.
 */
function changedAtMs(volume: Volume, startedAtMs: number, isSettled: boolean): number {
  const isNoNews = volume.isOriginal || isSettled
  return isNoNews ? Math.min(volume.changedAtMs, startedAtMs) : volume.changedAtMs
}

function keyOf({ node, path }: Mounting): string {
  return `${node}:${path}`
}

/**
 * Returns true for a pod whose processes started before both CAs were in its volume: they use them only if they reload the file.
 */
function isBehind({ volume, startedAtMs }: Omit<PodSnapshot, 'rereads'>): boolean {
  return volume !== undefined && volume.trust.length > 1 && startedAtMs < volume.changedAtMs
}

/** Returns the minor version of kube-proxy from its image; undefined for a tag in another format. */
function proxyMinor({ spec }: PodObject): number | undefined {
  const images = (spec?.containers ?? []).map(({ image = '' }) => image)
  const [, minor] = (images.length === 1 && /\/kube-proxy:v1\.(\d+)\./.exec(images.join())) || []
  return minor === undefined ? undefined : Number(minor)
}

function clientOf({ pod, containers, startedAtMs }: Mounting): RunningClient {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {}
  const running = [...containerStatuses, ...initContainerStatuses].filter(
    ({ name, state }) => containers.has(name) && state?.running !== undefined,
  )
  const ids = running.flatMap(({ containerID }) => containerID?.split('://')[1] ?? [])
  const minor = proxyMinor(pod)
  return {
    uid: pod.metadata.uid ?? '',
    startedAtMs,
    containers: ids.length === running.length ? ids : undefined,
    ...(minor === undefined ? {} : { minor }),
  }
}

/** Returns the files with a CA of the cluster that a pod mounts; none for a pod that is not scheduled. */
function mountingsOf(pod: PodObject, tokenSecrets: ReadonlySet<string>, observedAtMs: number): Mounting[] {
  const { nodeName: node, volumes = [], containers = [], initContainers = [] } = pod.spec ?? {}
  const { uid, namespace } = pod.metadata
  if (node === undefined || uid === undefined) return []
  return volumes.flatMap((volume) => {
    const mounts = new Set(
      [...containers, ...initContainers]
        .filter(({ volumeMounts = [] }) => volumeMounts.some((mount) => mount.name === volume.name))
        .map((container) => container.name),
    )
    if (mounts.size === 0) return []
    const isToken = tokenSecrets.has(`${namespace}/${volume.secret?.secretName}`)
    const startedAtMs = startOf(pod, mounts, observedAtMs)
    return caFilesIn(volume, isToken).map(({ path, ...rest }) => ({
      ...rest,
      path: `/pods/${uid}/volumes/${path}`,
      pod,
      node,
      containers: mounts,
      startedAtMs,
    }))
  })
}

type PodVolume = NonNullable<NonNullable<PodObject['spec']>['volumes']>[number]

/** Returns the paths that the kubelet uses, below the folder of the pod's volumes. */
function caFilesIn({ name, projected }: PodVolume, isToken: boolean): CaFile[] {
  const ofSources = (projected?.sources ?? []).flatMap(({ configMap, clusterTrustBundle }): CaFile[] => {
    const file = (path: string): CaFile => ({ path: `kubernetes.io~projected/${name}/${path}` })
    if (configMap?.name === rootConfigMap)
      return [file(configMap.items?.find(({ key }) => key === 'ca.crt')?.path ?? 'ca.crt')]
    if (!isOfApiServers(clusterTrustBundle)) return []
    const { name: bundle, path } = clusterTrustBundle
    return [{ ...file(path), trustBundle: bundle === undefined ? {} : { name: bundle } }]
  })
  return isToken ? [{ path: `kubernetes.io~secret/${name}/ca.crt` }, ...ofSources] : ofSources
}

type BundleSource = NonNullable<
  NonNullable<NonNullable<PodVolume['projected']>['sources']>[number]['clusterTrustBundle']
>

/**
 * By name: a bundle of a signer has the signer's name as prefix. By signer: no selector matches none, an empty one matches all.
 */
function isOfApiServers(source: BundleSource | undefined): source is BundleSource {
  if (source?.name !== undefined) return source.name.startsWith(`${apiServerSigner.replaceAll('/', ':')}:`)
  return source?.signerName === apiServerSigner && source.labelSelector !== undefined
}

/** A kubelet may write the CAs of ClusterTrustBundles in another order after each start. */
function isSameSet(one: Trust, other: Trust): boolean {
  return one.toSorted().join() === other.toSorted().join()
}

/**
 * Returns when the oldest process with the volume started. A process that waits for its image, or for a missing Secret, has read
 * nothing yet: it starts now at the earliest, with the content of its volume by then.
 */
function startOf({ status }: PodObject, containers: ReadonlySet<string>, observedAtMs: number): number {
  const all = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].filter(
    ({ name }) => containers.has(name),
  )
  const running = all.flatMap(({ state }) => state?.running?.startedAt ?? [])
  const ended = all.flatMap(
    ({ state, lastState }) => state?.terminated?.startedAt ?? lastState?.terminated?.startedAt ?? [],
  )
  const starts = running.length > 0 ? running : ended
  return Math.min(observedAtMs, ...starts.map((time) => Date.parse(time) || 0))
}

/** Returns "Deployment default/web"; for a ReplicaSet without a Deployment, a Job or another kind, the owner itself. */
function workloadOf({ metadata }: PodObject): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  if (owner === undefined) return undefined
  const hash = metadata.labels?.['pod-template-hash']
  const isOfDeployment = owner.kind === 'ReplicaSet' && hash !== undefined && owner.name.endsWith(`-${hash}`)
  return isOfDeployment
    ? `Deployment ${metadata.namespace}/${owner.name.slice(0, -hash.length - 1)}`
    : `${owner.kind} ${metadata.namespace}/${owner.name}`
}
