import { announcedBy, announcedIn, announcements } from '../cluster/announced-servers.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { type NodeObject, type PodObject, resources } from '../cluster/kinds.ts'
import { getReadable, listAll, listReadable } from '../cluster/readable.ts'
import { onKcertError } from '../errors/caught.ts'
import { isLoopback, withoutBrackets } from '../errors/host-port.ts'
import { type KcertError, wordsOf } from '../errors/kcert-error.ts'
import { type Flags, flagsOf } from '../pki/component-flags.ts'
import { nodeUserPrefix } from '../pki/kubelet.ts'
import { nodeHost } from '../pki/node-address.ts'
import type { Anchor, GivenCertificate, ShownClient } from '../probe/target.ts'
import type { Certificate } from '../x509/certificate.ts'
import { anchorOf, givenIn } from './anchors.ts'
import type { ClientPair, ProbeTarget } from './dialling.ts'

// Targets as the objects of a cluster tell of them: Nodes, the EndpointSlice of the API servers, and the mirror pods of static
// pods, in which the flags of a kubeadm cluster stand.

/** The CAs that verify servers, and the client certificate sent to them, where the operator gave them. */
export interface GivenTrust {
  readonly clusterCa?: Anchor
  readonly kubeletCa?: Anchor
  readonly etcdCa?: Anchor
  readonly client?: ShownPair
}

export interface ShownPair extends ShownClient {
  readonly pair: ClientPair
}

/** A cluster as far as a probe needs it; each part is read at most once. */
export class ClusterSight {
  readonly cluster: Cluster
  private readonly given: GivenTrust
  private readonly kept = new Map<string, Promise<unknown>>()
  /** What could not be found out; of one error once. */
  readonly notes = new Set<string>()

  constructor(cluster: Cluster, given: GivenTrust) {
    this.cluster = cluster
    this.given = given
  }

  /** Returns the CAs that all pods trust, or, where that may not be read, those of the kubeconfig; undefined when there are none. */
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

  /** Returns the client certificate to show; undefined for a user who has none. */
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

  /** Returns every API server that announces itself, and the one of the kubeconfig, which alone is left when it does not answer. */
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

  /** Returns the kubelet of every Node, with the certificate that was issued for it last. */
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

  /** Returns the ports of etcd's members that are reached from other machines; none where etcd is no static pod. */
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
      const servers = (await this.systemPods()).filter(
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
      // The file is on the node; where it is the one that clients are verified by, it is the cluster CA's.
      if (path === verifier.flags['client-ca-file'] && ca?.roots !== undefined)
        return { by, source: `${source}, as in ${ca.source}`, roots: ca.roots }
      return { by, source, fault: 'the file is on the node: -i kcert.yaml reads it there' }
    })
  }

  private async issuedForKubelets(): Promise<ReadonlyMap<string, GivenCertificate>> {
    const found = await listReadable(this.cluster.objects, resources.requests, {
      fieldSelector: 'spec.signerName=kubernetes.io/kubelet-serving',
    })
    // The one that was asked for last: what a kubelet asked for before its restart is issued too, perhaps later, and never taken up.
    const newest = new Map<
      string,
      GivenCertificate & { readonly certificate: Certificate; readonly askedAtMs: number }
    >()
    for (const object of found ?? []) {
      const { name, creationTimestamp = '' } = object.metadata
      const { username = '' } = object.spec as { username?: string }
      const { certificate: issued } = (object.status ?? {}) as { certificate?: string }
      if (issued === undefined || !username.startsWith(nodeUserPrefix)) continue
      const { certificate, source } = givenIn(`csr/${name}`, Buffer.from(issued, 'base64'))
      const node = username.slice(nodeUserPrefix.length)
      if (certificate === undefined) continue
      const known = newest.get(node)
      const askedAtMs = Date.parse(creationTimestamp)
      // A kubelet that learns its addresses while it asks asks twice within a second.
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

  private nodes(): Promise<NodeObject[]> {
    return this.once('nodes', () => listAll(this.cluster.objects, resources.nodes))
  }

  /** By address; empty where Nodes may not be listed, for names are a comfort. */
  private async nodeNames(): Promise<ReadonlyMap<string, string>> {
    const nodes = await this.nodes().catch(onKcertError(() => []))
    return new Map(
      nodes.flatMap(({ metadata, status }) =>
        (status?.addresses ?? []).map(({ address }) => [address, metadata.name] as const),
      ),
    )
  }

  /** Static pods of the control plane; none where they may not be listed, or there are none. */
  private systemPods(): Promise<readonly PodObject[]> {
    return this.once('pods', async () => {
      const inSystem = { ...resources.pods, namespace: 'kube-system' } as const
      const selection = { labelSelector: 'component in (kube-apiserver,etcd)' }
      return (await listReadable(this.cluster.objects, inSystem, selection)) ?? []
    })
  }

  /** Returns what is read, or the other, with a note, where the API server does not answer or does not allow it. */
  private async noting<Result, Other>(
    read: () => Promise<Result>,
    otherwise: Other,
  ): Promise<Result | Other> {
    const note = (error: KcertError): Other => {
      this.notes.add(wordsOf(error))
      return otherwise
    }
    return read().catch(onKcertError(note))
  }

  private once<Result>(key: string, read: () => Promise<Result>): Promise<Result> {
    const known = this.kept.get(key) as Promise<Result> | undefined
    const reading = known ?? read()
    this.kept.set(key, reading)
    return reading
  }
}

export const unverifiedKubelets =
  'as far as can be seen no API server verifies kubelets: --kubelet-certificate-authority is not set'

const unknownEtcdCa: Anchor = {
  by: 'etcd CA',
  source: '--etcd-cafile',
  fault: 'the file is on the nodes: -i kcert.yaml reads it there, or --etcd-ca FILE',
}

/** Returns the anchors of a server that two parties may verify. */
export function anchorsFor(ca: Anchor | undefined, kubeletCa: Anchor | undefined): Anchor[] {
  return [...(ca === undefined ? [] : [ca]), ...(kubeletCa === undefined ? [] : [kubeletCa])]
}

/** What a target has where there is a client certificate to show. */
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

/** Returns the ports that a member of etcd serves TLS at, by its flags: for clients and for the other members. */
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
