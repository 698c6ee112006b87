import { announcedBy, announcedIn, announcements } from '../cluster/announced-servers.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { statusIn } from '../cluster/failures.ts'
import { type NodeObject, type PodObject, resources } from '../cluster/kinds.ts'
import { getReadable, listAll, listEach } from '../cluster/readable.ts'
import { onKcertError } from '../errors/caught.ts'
import { isLoopback, withoutBrackets } from '../errors/host-port.ts'
import { KcertError, wordsOf } from '../errors/kcert-error.ts'
import { type Flags, flagsOf } from '../pki/component-flags.ts'
import { nodeUserPrefix } from '../pki/kubelet.ts'
import { nodeHost } from '../pki/node-address.ts'
import type { Anchor, GivenCertificate, ShownClient } from '../probe/target.ts'
import type { Certificate } from '../x509/certificate.ts'
import { anchorOf, givenIn } from './anchors.ts'
import type { ClientPair, ProbeTarget } from './dialling.ts'

// Probe targets from the objects of a cluster: Nodes, the EndpointSlice of the API servers, and the mirror pods of static
// pods, which contain the flags of a kubeadm cluster.

/** The CAs that verify servers, and the client certificate to present, if the operator gave them. */
export interface GivenTrust {
  readonly clusterCa?: Anchor
  readonly kubeletCa?: Anchor
  readonly etcdCa?: Anchor
  readonly client?: ShownPair
}

export interface ShownPair extends ShownClient {
  readonly pair: ClientPair
}

/** The parts of a cluster that a probe needs; each part is read at most once. */
export class ClusterSight {
  readonly cluster: Cluster
  private readonly given: GivenTrust
  private readonly kept = new Map<string, Promise<unknown>>()
  /** What could not be read; each error once. */
  readonly notes = new Set<string>()
  /** Why a list of servers is incomplete. */
  readonly errors: KcertError[] = []
  /** Lists that are forbidden or not served: targets lack a CA or a certificate to compare with. */
  readonly refused: KcertError[] = []

  constructor(cluster: Cluster, given: GivenTrust) {
    this.cluster = cluster
    this.given = given
  }

  /**
   * Returns the CAs that all pods trust or, if reading them is forbidden, those of the kubeconfig; undefined if there are none.
   */
  clusterCa(): Promise<Anchor | undefined> {
    return this.once('ca', async () => {
      if (this.given.clusterCa !== undefined) return this.given.clusterCa
      const resource = { ...resources.configMaps, namespace: 'default', name: 'kube-root-ca.crt' } as const
      const found = await this.noting(() => getReadable(this.cluster.objects, resource), undefined)
      const text = found === 'absent' ? undefined : found?.data?.['ca.crt']
      if (text !== undefined)
        return anchorOf('cluster CA', 'configmap default/kube-root-ca.crt', Buffer.from(text))
      const { certificateAuthority, clusterName } = this.cluster.connection()
      return (
        certificateAuthority &&
        anchorOf('cluster CA', `kubeconfig cluster ${clusterName}`, certificateAuthority)
      )
    })
  }

  /** Returns the client certificate to present; undefined for a user who has none. */
  client(): Promise<ShownPair | undefined> {
    return this.once('client', async () => {
      if (this.given.client !== undefined) return this.given.client
      const pair = await this.cluster.clientPair()
      if (pair === undefined) return undefined
      const { certificate } = givenIn('', Buffer.from(pair.certificate))
      const source = `kubeconfig user ${this.cluster.user.name}`
      return { source, subject: certificate?.subject.text ?? '', pair }
    })
  }

  /**
   * Returns the API servers in the EndpointSlice and the one of the kubeconfig. Returns only the latter if it does not respond.
   */
  async apiServers(): Promise<ProbeTarget[]> {
    const { objects } = this.cluster
    const [ca, client, slices, names] = await Promise.all([
      this.clusterCa(),
      this.client(),
      this.noting(() => listAll(objects, announcements, announcedBy), []),
      this.nodeNames(),
    ])
    const own = this.ownServer()
    const announced = slices
      .flatMap(announcedIn)
      .map((one) => ({ ...one, expectedNames: [one.host, 'kubernetes.default.svc'] }))
    const isAnnounced = announced.some(({ host, port }) => host === own.host && port === own.port)
    return [...announced, ...(isAnnounced ? [] : [own])].map(({ host, port, expectedNames }) => {
      const known = names.get(host)
      return {
        name: known === undefined ? 'kube-apiserver' : `kube-apiserver ${known}`,
        kind: 'api-server',
        host,
        port,
        expectedNames,
        serverName: host,
        anchors: ca === undefined ? [] : [ca],
        isVerified: true,
        notes: [],
        ...shown(client),
      }
    })
  }

  /** Returns the kubelet of every Node, with its most recently issued certificate. */
  async kubelets(): Promise<ProbeTarget[]> {
    const [nodes, ca, kubeletCa, client, issued] = await Promise.all([
      this.nodes(),
      this.clusterCa(),
      this.kubeletCa(),
      this.client(),
      this.issuedForKubelets(),
    ])
    const anchors = anchorsFor(ca, kubeletCa)
    return nodes.map((node) => {
      const { name } = node.metadata
      const host = nodeHost(node.status?.addresses) ?? name
      const given = issued.get(name)
      return {
        name: `kubelet ${name}`,
        kind: 'kubelet',
        node: name,
        host,
        port: node.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 10250,
        expectedNames: [host],
        serverName: host,
        anchors,
        isVerified: kubeletCa !== undefined,
        notes: kubeletCa === undefined ? [unverifiedKubelets] : [],
        ...(given !== undefined && { given }),
        ...shown(client),
      }
    })
  }

  /** Returns the ports of etcd members that other machines can reach; none if etcd is not a static pod. */
  async etcd(): Promise<ProbeTarget[]> {
    const members = (await this.systemPods()).filter(({ metadata }) => metadata.labels?.component === 'etcd')
    return members.flatMap((pod) => {
      const node = pod.spec?.nodeName ?? pod.metadata.name
      return etcdTargets(flagsOfPod(pod), {
        node,
        anchorFor: () => this.given.etcdCa ?? unknownEtcdCa,
        clientFor: () => this.given.client,
        isReachable: (host) => !isLoopback(host),
      })
    })
  }

  private kubeletCa(): Promise<Anchor | undefined> {
    return this.once('kubelet-ca', async () => {
      if (this.given.kubeletCa !== undefined) return this.given.kubeletCa
      // Without the right to list pods, the kubelets are probed without this CA.
      const servers = (await this.systemPods().catch((error) => this.without(error))).filter(
        ({ metadata }) => metadata.labels?.component === 'kube-apiserver',
      )
      const [verifier] = servers.flatMap((pod) => {
        const flags = flagsOfPod(pod)
        const path = flags['kubelet-certificate-authority']
        return path === undefined ? [] : [{ flags, path, node: pod.spec?.nodeName ?? '' }]
      })
      if (verifier === undefined) return undefined
      const { path } = verifier
      const by = '--kubelet-certificate-authority'
      const source = `${verifier.node}:${path}`
      const ca = await this.clusterCa()
      // The file is on the node. If it is the file that verifies clients, it contains the cluster CA.
      if (path === verifier.flags['client-ca-file'] && ca?.roots !== undefined)
        return { by, source: `${source}, as in ${ca.source}`, roots: ca.roots }
      return { by, source, fault: 'the file is on the node: -i kcert.yaml reads it there' }
    })
  }

  private async issuedForKubelets(): Promise<ReadonlyMap<string, GivenCertificate>> {
    // By the latest request: a request from before the kubelet's restart may be issued later, but the kubelet never uses it.
    const newest = new Map<
      string,
      GivenCertificate & { readonly certificate: Certificate; readonly askedAtMs: number }
    >()
    const selection = { fieldSelector: 'spec.signerName=kubernetes.io/kubelet-serving' }
    for await (const object of this.readableOf(
      listEach(this.cluster.objects, resources.requests, selection),
    )) {
      const { name, creationTimestamp = '' } = object.metadata
      const { username = '' } = object.spec as { username?: string }
      const { certificate: issued } = (object.status ?? {}) as { certificate?: string }
      if (issued === undefined || !username.startsWith(nodeUserPrefix)) continue
      const { certificate, source } = givenIn(`csr/${name}`, Buffer.from(issued, 'base64'))
      const node = username.slice(nodeUserPrefix.length)
      if (certificate === undefined) continue
      const known = newest.get(node)
      const askedAtMs = Date.parse(creationTimestamp)
      // A kubelet whose addresses change during a request sends a second one within a second.
      if (known === undefined || askedAtMs > known.askedAtMs)
        newest.set(node, { source, certificate, askedAtMs })
      else if (askedAtMs === known.askedAtMs)
        newest.set(node, { ...known, besides: [...(known.besides ?? []), certificate] })
    }
    return newest
  }

  private ownServer() {
    const { server, tlsServerName } = this.cluster.connection()
    const url = URL.parse(server) ?? new URL(this.cluster.server)
    const host = withoutBrackets(url.hostname)
    return { host, port: Number(url.port || 443), expectedNames: [tlsServerName ?? host] }
  }

  /** Keeps only what a probe needs: 5,000 Nodes have 85 MB. */
  private nodes(): Promise<NodeObject[]> {
    return this.once('nodes', async () => {
      const found = new Map<string, NodeObject>()
      for await (const { metadata, status } of listEach(this.cluster.objects, resources.nodes)) {
        const { addresses = [], daemonEndpoints = {} } = status ?? {}
        found.set(metadata.name, {
          metadata: { name: metadata.name },
          status: { addresses, daemonEndpoints },
        })
      }
      return [...found.values()]
    })
  }

  /** Returns node names by address; empty if listing Nodes is forbidden, because names are optional. */
  private async nodeNames(): Promise<ReadonlyMap<string, string>> {
    const nodes = await this.nodes().catch(onKcertError(() => []))
    return new Map(
      nodes.flatMap(({ metadata, status }) =>
        (status?.addresses ?? []).map(({ address }) => [address, metadata.name] as const),
      ),
    )
  }

  /** Returns the static pods of the control plane. Throws as `listAll` does. */
  private systemPods(): Promise<readonly PodObject[]> {
    return this.once('pods', () => {
      const inSystem = { ...resources.pods, namespace: 'kube-system' } as const
      const selection = { labelSelector: 'component in (kube-apiserver,etcd)' }
      return listAll(this.cluster.objects, inSystem, selection)
    })
  }

  /** Returns the result of a read, or a fallback with a note if the API server does not respond or forbids it. */
  private async noting<Result, Other>(
    read: () => Promise<Result>,
    otherwise: Other,
  ): Promise<Result | Other> {
    const note = (error: KcertError): Other => {
      this.notes.add(wordsOf(error))
      this.errors.push(error)
      return otherwise
    }
    return read().catch(onKcertError(note))
  }

  private async *readableOf<Listed>(list: AsyncIterable<Listed>): AsyncGenerator<Listed> {
    try {
      yield* list
    } catch (error) {
      this.without(error)
    }
  }

  /** Returns no objects if the list is forbidden or not served. Throws other errors. */
  private without(error: unknown): readonly [] {
    if (!(error instanceof KcertError) || ![403, 404].includes(statusIn(error) ?? 0)) throw error
    this.refused.push(error)
    return []
  }

  private once<Result>(key: string, read: () => Promise<Result>): Promise<Result> {
    const known = this.kept.get(key) as Promise<Result> | undefined
    const reading = known ?? read()
    this.kept.set(key, reading)
    return reading
  }
}

export const unverifiedKubelets =
  'no API server that kcert can see verifies kubelets: --kubelet-certificate-authority is not set'

const unknownEtcdCa: Anchor = {
  by: 'etcd CA',
  source: '--etcd-cafile',
  fault: 'the file is on the nodes: -i kcert.yaml reads it there, or --etcd-ca FILE',
}

/** Returns the anchors of a server that two kinds of clients may verify. */
export function anchorsFor(ca: Anchor | undefined, kubeletCa: Anchor | undefined): Anchor[] {
  return [...(ca === undefined ? [] : [ca]), ...(kubeletCa === undefined ? [] : [kubeletCa])]
}

/** Returns the fields of a target with a client certificate to present. */
export function shown(client: ShownPair | undefined): Pick<ProbeTarget, 'client' | 'pair'> {
  if (client === undefined) return {}
  const { source, subject, pair } = client
  return { client: { source, subject }, pair }
}

interface EtcdMember {
  readonly node: string
  readonly anchorFor: (kind: 'etcd' | 'etcd-peer') => Anchor | undefined
  readonly clientFor: (kind: 'etcd' | 'etcd-peer') => ShownPair | undefined
  readonly isReachable: (host: string) => boolean
}

/** Returns the TLS ports of an etcd member from its flags: for clients and for the other members. */
export function etcdTargets(
  flags: Flags,
  { node, anchorFor, clientFor, isReachable }: EtcdMember,
): ProbeTarget[] {
  const rows = [
    { kind: 'etcd', name: 'etcd', listens: 'listen-client-urls', clients: 'advertise-client-urls' },
    {
      kind: 'etcd-peer',
      name: 'etcd peer',
      listens: 'listen-peer-urls',
      clients: 'initial-advertise-peer-urls',
    },
  ] as const
  return rows.flatMap(({ kind, name, listens, clients }): ProbeTarget[] => {
    const places = urlsOf(flags[listens]).filter(({ host }) => isReachable(host))
    const place = places.find(({ host }) => !isLoopback(host)) ?? places[0]
    if (place === undefined) return []
    const anchor = anchorFor(kind)
    return [
      {
        name: `${name} ${node}`,
        kind,
        ...place,
        expectedNames: [...new Set(urlsOf(flags[clients]).map(({ host }) => host))],
        serverName: place.host,
        anchors: anchor === undefined ? [] : [anchor],
        isVerified: true,
        notes: [],
        ...shown(clientFor(kind)),
      },
    ]
  })
}

function urlsOf(flag: string | undefined): { host: string; port: number }[] {
  return (flag ?? '').split(',').flatMap((text) => {
    const url = URL.parse(text.trim())
    if (url === null || url.protocol !== 'https:') return []
    return [{ host: withoutBrackets(url.hostname), port: Number(url.port || 443) }]
  })
}

function flagsOfPod({ spec }: PodObject): Flags {
  const [container] = spec?.containers ?? []
  return flagsOf([...(container?.command ?? []), ...(container?.args ?? [])])
}
