import { KcertError } from '../errors/kcert-error.ts'
import { type Flags, flagsOf } from '../pki/component-flags.ts'
import { kubeadmFolders } from '../pki/kubeadm.ts'
import { currentLinkName } from '../pki/kubelet.ts'
import { type KubeletConfiguration, withKubeletFlags } from '../pki/kubelet-configuration.ts'
import type { ComponentName, ProcessFacts } from '../pki/node-access.ts'
import type { Anchor, EndpointKind, GivenCertificate } from '../probe/target.ts'
import { inventoryNode } from '../rotation/inventory.ts'
import { parseIp } from '../x509/ip.ts'
import { anchorOf, givenIn } from './anchors.ts'
import {
  anchorsFor,
  etcdTargets,
  type GivenTrust,
  type ShownPair,
  shown,
  unverifiedKubelets,
} from './cluster-targets.ts'
import { withOwnSettings } from './definitions.ts'
import type { ProbeTarget } from './dialling.ts'
import { configurationOf, listeningOf } from './listening.ts'
import { nodeNamed, type Site } from './site.ts'

// Probe targets from the processes of the nodes: where they listen, the file of their certificate, the CAs that verify them, and
// the client certificate that API servers present to them. This needs no API server.

const programs = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'etcd',
] as const satisfies readonly ComponentName[]

type Program = (typeof programs)[number]

interface Running {
  readonly node: string
  readonly program: Program
  readonly argv: ProcessFacts['argv']
  readonly flags: Flags
  /** The readable part of a kubelet's configuration. */
  readonly configuration: Partial<KubeletConfiguration>
}

export interface NodeTargets {
  readonly targets: readonly ProbeTarget[]
  /** Nodes that could not be reached, and the resulting gaps. */
  readonly faults: readonly { readonly node: string; readonly error: KcertError }[]
}

/**
 * Returns the TLS listeners on the nodes of the inventory: all components of control planes, the kubelet of workers; if members of etcd
 * are wanted, also those on machines of external etcd. It reads the
 * private keys of an API server's client certificates, to present them to kubelets and etcd as API servers do. They stay in
 * memory.
 */
export async function nodeTargets(
  site: Site,
  wanted: ReadonlySet<EndpointKind>,
  given: GivenTrust,
): Promise<NodeTargets> {
  const faults: { node: string; error: KcertError }[] = []
  const { nodes, etcd = [] } = site.inventory
  const machines = wanted.has('etcd') || wanted.has('etcd-peer') ? etcd : []
  const found = await Promise.all(
    [...nodes, ...machines].map(async ({ name }) => {
      try {
        return await runningOn(site, name)
      } catch (error) {
        if (!(error instanceof KcertError)) throw error
        faults.push({ node: name, error })
        return []
      }
    }),
  )
  const running = found.flat()
  const trust = await trustOf(site, running, given)
  const targets = await Promise.all(running.map((one) => targetsOf(site, one, trust)))
  return { targets: targets.flat().filter(({ kind }) => wanted.has(kind)), faults }
}

async function runningOn(site: Site, name: string): Promise<Running[]> {
  const node = nodeNamed(site, name)
  const processes = await node.processes(programs)
  // In the order of the table above, whichever started first: every run shows the same rows in the same order.
  const inOrder = programs.flatMap((program) =>
    processes.filter((one) => one.program === program).map((running) => ({ program, running })),
  )
  const { layout, units } = inventoryNode(site.inventory, name) ?? {}
  const isUnit = layout === 'plain' || units?.etcd !== undefined
  const found = await Promise.all(
    inOrder.map(async ({ program, running }): Promise<Running[]> => {
      const own = program === 'etcd' && isUnit ? await withOwnSettings(node, running) : running
      if (own === undefined) return []
      const { argv } = own
      const configuration = await configurationOf(node, running)
      return [{ node: name, program, argv, flags: flagsOf(argv), configuration }]
    }),
  )
  return found.flat()
}

interface Trust {
  readonly cluster: Anchor | undefined
  readonly kubelets: Anchor | undefined
  readonly etcd: (node: string, kind: 'etcd' | 'etcd-peer') => Anchor | undefined
  readonly toKubelets: ShownPair | undefined
  readonly toEtcd: ShownPair | undefined
  /** Given by the operator. */
  readonly toApiServers: ShownPair | undefined
}

/** Returns the CAs that verify each component, read from the flags of API servers and controller managers. */
async function trustOf(site: Site, running: readonly Running[], given: GivenTrust): Promise<Trust> {
  /** Returns the first process of that program that has the flag, and the flag. */
  const having = (program: Program, flag: string) =>
    running.flatMap((one) => {
      const path = one.program === program ? one.flags[flag] : undefined
      return path ? [{ ...one, path }] : []
    })[0]
  const anchorIn = async (node: string, path: string, by: string): Promise<Anchor> => {
    const source = `${node}:${path}`
    const bytes = await contentOf(site, node, path)
    return bytes === undefined
      ? { by, source, fault: 'the file cannot be read' }
      : anchorOf(by, source, bytes)
  }
  const anchor = async (program: Program, flag: string, by: string): Promise<Anchor | undefined> => {
    const found = having(program, flag)
    return found && anchorIn(found.node, found.path, by)
  }
  const pair = async (certificateFlag: string, keyFlag: string): Promise<ShownPair | undefined> => {
    const found = having('kube-apiserver', certificateFlag)
    if (found === undefined) return undefined
    const { node, path, flags } = found
    const [certificate, key] = await Promise.all([
      contentOf(site, node, path),
      contentOf(site, node, flags[keyFlag] ?? path),
    ])
    if (certificate === undefined || key === undefined) return undefined
    const source = `${node}:${path}`
    const subject = givenIn(source, certificate).certificate?.subject.text ?? ''
    const textIn = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')
    return { source, subject, pair: { certificate: textIn(certificate), key: textIn(key) } }
  }
  const peerAnchors = running.flatMap(({ program, node, flags }) => {
    const path = program === 'etcd' ? flags['peer-trusted-ca-file'] : undefined
    return path === undefined
      ? []
      : [anchorIn(node, path, 'etcd peer CA').then((one) => [node, one] as const)]
  })
  const clusterCa = async (): Promise<Anchor | undefined> =>
    (await anchor('kube-controller-manager', 'root-ca-file', 'cluster CA')) ??
    (await anchor('kube-apiserver', 'client-ca-file', 'cluster CA'))
  const { client } = given
  const kubeletCa = 'kubelet-certificate-authority'
  const [cluster, kubelets, etcd, peers, toKubelets, toEtcd] = await Promise.all([
    given.clusterCa ?? clusterCa(),
    given.kubeletCa ?? anchor('kube-apiserver', kubeletCa, `--${kubeletCa}`),
    given.etcdCa ?? anchor('kube-apiserver', 'etcd-cafile', 'etcd CA'),
    Promise.all(peerAnchors),
    client ?? pair('kubelet-client-certificate', 'kubelet-client-key'),
    client ?? pair('etcd-certfile', 'etcd-keyfile'),
  ])
  const byNode = new Map(peers)
  return {
    cluster,
    kubelets,
    etcd: (node, kind) => (kind === 'etcd' ? etcd : (given.etcdCa ?? byNode.get(node))),
    toKubelets,
    toEtcd,
    toApiServers: client,
  }
}

async function targetsOf(site: Site, running: Running, trust: Trust): Promise<ProbeTarget[]> {
  switch (running.program) {
    case 'kube-apiserver':
      return [await apiServer(site, running, trust)]
    case 'kubelet':
      return [await kubelet(site, running, trust)]
    case 'etcd':
      return etcd(site, running, trust)
    default:
      return [await controller(site, running, trust)]
  }
}

async function apiServer(site: Site, running: Running, trust: Trust): Promise<ProbeTarget> {
  const { node, flags } = running
  const own = flags['advertise-address'] ?? addressOf(site, node)
  const service = firstOf(flags['service-cluster-ip-range'])
  return {
    ...from(site, node, listeningOf(running.argv)),
    name: `kube-apiserver ${node}`,
    kind: 'api-server',
    expectedNames: [own, 'kubernetes.default.svc', service].filter((name) => name !== undefined),
    anchors: trust.cluster === undefined ? [] : [trust.cluster],
    isVerified: true,
    notes: [],
    ...(await given(site, node, flags['tls-cert-file'])),
    ...shown(trust.toApiServers),
  }
}

async function kubelet(site: Site, running: Running, trust: Trust): Promise<ProbeTarget> {
  const { node, flags, configuration } = running
  const isVerified = trust.kubelets !== undefined
  const address = addressOf(site, node)
  return {
    ...from(site, node, listeningOf(running.argv, configuration)),
    name: `kubelet ${node}`,
    kind: 'kubelet',
    node,
    expectedNames: address === undefined ? [] : [address],
    anchors: anchorsFor(trust.cluster, trust.kubelets),
    isVerified,
    notes: isVerified ? [] : [unverifiedKubelets],
    ...(await given(
      site,
      node,
      withKubeletFlags(configuration, flags).tlsCertFile ?? (await storeFile(site, running)),
    )),
    ...shown(trust.toKubelets),
  }
}

async function etcd(site: Site, { node, flags }: Running, trust: Trust): Promise<ProbeTarget[]> {
  const targets = etcdTargets(flags, {
    node,
    anchorFor: (kind) => trust.etcd(node, kind),
    // Only members present certificates to one another.
    clientFor: (kind) => (kind === 'etcd' ? trust.toEtcd : trust.toApiServers),
    isReachable: () => true,
  })
  return Promise.all(
    targets.map(async (target) => ({
      ...target,
      ...from(site, node, target),
      ...(await given(site, node, flags[target.kind === 'etcd' ? 'cert-file' : 'peer-cert-file'])),
    })),
  )
}

/** Controller manager and scheduler: without a certificate file, each start creates a new certificate that no client verifies. */
async function controller(site: Site, running: Running, trust: Trust): Promise<ProbeTarget> {
  const { node, program, flags, argv } = running
  const file = flags['tls-cert-file']
  return {
    ...from(site, node, listeningOf(argv)),
    name: `${program} ${node}`,
    kind: program === 'kube-scheduler' ? 'scheduler' : 'controller-manager',
    expectedNames: [],
    anchors: trust.cluster === undefined || file === undefined ? [] : [trust.cluster],
    isVerified: false,
    notes:
      file === undefined
        ? ['no certificate file is configured: it created a certificate when it started']
        : [],
    ...(await given(site, node, file)),
  }
}

function from(site: Site, node: string, { host, port }: { readonly host: string; readonly port: number }) {
  return { host, port, serverName: host, from: node, dial: () => site.dial(node, host, port) }
}

/** The kubelet's own store: the certificate that the cluster issued, otherwise its self-signed one. */
async function storeFile(site: Site, { node, flags }: Running): Promise<string | undefined> {
  const folder = flags['cert-dir'] ?? kubeadmFolders.kubeletPki
  const paths = [`${folder}/${currentLinkName('kubelet-serving')}`, `${folder}/kubelet.crt`]
  const found = await nodeNamed(site, node).statFiles(paths)
  return found.find(({ found: what }) => what === 'file')?.path
}

async function given(
  site: Site,
  node: string,
  path: string | undefined,
): Promise<{ readonly given?: GivenCertificate }> {
  if (path === undefined) return {}
  const source = `${node}:${path}`
  const bytes = await contentOf(site, node, path)
  return {
    given: bytes === undefined ? { source, fault: 'the file cannot be read' } : givenIn(source, bytes),
  }
}

async function contentOf(site: Site, node: string, path: string): Promise<Uint8Array | undefined> {
  const [file] = await nodeNamed(site, node).readFiles([path])
  return file?.found === 'file' ? file.content : undefined
}

function addressOf(site: Site, name: string): string | undefined {
  return site.inventory.nodes.find((node) => node.name === name)?.addresses[0]
}

/** Returns the first address of a service CIDR, which is that of the kubernetes Service. */
function firstOf(ranges: string | undefined): string | undefined {
  const [range] = (ranges ?? '').split(',')
  const [network = ''] = (range ?? '').split('/')
  const [a, b, c, d, more] = parseIp(network) ?? []
  return d === undefined || more !== undefined ? undefined : [a, b, c, d + 1].join('.')
}
