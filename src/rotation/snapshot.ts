import type { FlagChanges, Flags } from '../pki/component-flags.ts'
import type { CertificateTable, Digest } from './certificate-record.ts'

// What an observer saw of a cluster, section by section. A phase names the sections that it sees, and only these are fetched.
// Plain values: certificates stand in one table and are named by digest; of private keys there is only the digest of their
// public half. Every time is in milliseconds of Unix time, on the clock of the machine that runs kcert.

/** CA certificates in the order of the file or field that holds them. OpenSSL's answer can depend on the order. */
export type Trust = readonly Digest[]

/** A certificate as its owner presents it: leaf first. */
export type PresentedChain = readonly Digest[]

export type ComponentName =
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'cloud-controller-manager'
  | 'kube-proxy'

/** "cp1/kube-apiserver", "w1/kubelet" */
export type ProcessId = string

export interface NodeSnapshot {
  readonly name: string
  readonly isControlPlane: boolean
  /** Absent when the node port answers; otherwise why it does not. */
  readonly unreachable?: string
  readonly isReady: boolean
  /** Its clock minus that of the machine that runs kcert; absent when it could not be asked. */
  readonly clockSkewMs?: number
  /** "v1.36.3" */
  readonly kubeletVersion: string
  /** "kubeadm", "plain", or what is refused: "k3s", "rke2", "managed". */
  readonly layout: string
}

/** What runs now, which may be older than what its definition says. */
export interface ProcessSnapshot {
  readonly startedAtMs: number
  /** As on its command line, without the leading dashes. */
  readonly flags: Flags
  /** By its own health endpoint, asked through the node: a mirror pod's readiness says nothing. */
  readonly isHealthy: boolean
}

export interface ComponentSnapshot {
  readonly id: ProcessId
  readonly node: string
  readonly name: ComponentName
  readonly runsAs: 'static-pod' | 'unit'
  /** Path of the manifest or unit on its node. */
  readonly definition: string
  /** Digest of the definition's bytes. */
  readonly definitionDigest: Digest
  /** As the definition on disk says them. */
  readonly flags: Flags
  readonly annotations: Flags
  /** "v1.36.3", as an API server answers, else of the image's tag or the program; absent where it cannot be read. */
  readonly version?: string
  /** Absent when nothing runs. */
  readonly process?: ProcessSnapshot
}

export interface KubeletSnapshot {
  readonly id: ProcessId
  readonly node: string
  /** Of its configuration: authentication.x509.clientCAFile. */
  readonly clientCaFile: string
  readonly kubeconfig: string
  /** Path of kubelet-client-current.pem; absent when the client certificate is in the kubeconfig. */
  readonly clientCurrent?: string
  /** Path of kubelet-server-current.pem; absent without serverTLSBootstrap. */
  readonly servingCurrent?: string
  /** tlsCertFile, if the kubelet requests no serving certificate; with neither, its certificate is self-signed. */
  readonly servingFile?: string
  /** tlsPrivateKeyFile of the same. */
  readonly servingKeyFile?: string
  readonly process?: ProcessSnapshot
}

export type FileHolds =
  | { readonly kind: 'certificates'; readonly certificates: readonly Digest[] }
  | { readonly kind: 'key'; readonly spki: Digest }
  /** The kubelet's store form: certificates and the key of the first. */
  | { readonly kind: 'pair'; readonly certificates: readonly Digest[]; readonly spki: Digest }
  /** Of the current context. `besides`: CAs and client certificates that other contexts of the file name. */
  | {
      readonly kind: 'kubeconfig'
      readonly caData: Trust
      readonly client?: Digest
      readonly besides?: readonly Digest[]
      /** Why client-go refuses the whole file. */
      readonly refusal?: string
    }
  | { readonly kind: 'other' }

export interface FileSnapshot {
  readonly node: string
  readonly path: string
  /** Of the bytes. */
  readonly digest: Digest
  readonly mode: number
  /** Target of the link; all other fields describe the target file. */
  readonly linksTo?: string
  /** When these bytes came to stand under this path. */
  readonly changedAtMs: number
  readonly holds: FileHolds
}

export interface KubeconfigSnapshot {
  /** "cp1:/etc/kubernetes/admin.conf", or the name of an exported one in the inventory. */
  readonly id: string
  /** Absent for one that lies outside the nodes. */
  readonly at?: { readonly node: string; readonly path: string }
  /** The component that reads it at its start; absent where people or CNI plugins use it. */
  readonly usedBy?: ProcessId
  /** Of one outside the nodes, as it was exported last. */
  readonly exported?: { readonly caData: Trust; readonly client?: Digest }
}

/** What kube-controller-manager publishes of its --root-ca-file, or an apiserver as a ClusterTrustBundle. */
export interface PublishedTrust {
  readonly kind: 'ConfigMap' | 'Secret' | 'ClusterTrustBundle'
  /** "default/kube-root-ca.crt" */
  readonly name: string
  /** False in a terminating namespace: no controller writes there any more. */
  readonly isActive: boolean
  /** Absent when the object is not there. */
  readonly trust?: Trust
  /** Why an API server, which `name` tells then, could not be asked for its ClusterTrustBundles: it may have some. */
  readonly unread?: string
  /** When it came to hold this. */
  readonly changedAtMs: number
}

/** A pod with a CA of the cluster in a volume. A pod that mounts several such files occurs once for each. */
export interface PodSnapshot {
  /** "default/web-5d9f" */
  readonly id: string
  readonly uid: string
  readonly node: string
  /** "Deployment default/web"; absent for a pod without a controller. */
  readonly workload?: string
  readonly startedAtMs: number
  /** Its IP address; absent where it has the node's, or none yet. */
  readonly address?: string
  /**
   * Its file comes from the ClusterTrustBundles of the API servers' signer, by `name` from one of them alone. Absent: from the
   * kube-root-ca.crt of its namespace.
   */
  readonly trustBundle?: { readonly name?: string }
  /** The projected file on its node; absent where the node cannot be read. */
  readonly volume?: { readonly trust: Trust; readonly changedAtMs: number }
  /** True for a client that is known to read ca.crt again (client-go 1.36: at most every 5 minutes). */
  readonly rereads: boolean
  /** Why it is assumed to read its file once; absent where nothing had to be known of it. */
  readonly readsOnce?: string
}

/** A running pod that Services lead to, as its kubelet reports it. */
export interface BackendSnapshot {
  /** "default/web-5d9f" */
  readonly pod: string
  readonly node: string
  readonly isReady: boolean
  /** When it became Ready or not Ready, on its node's clock; infinite where it does not say. */
  readonly changedAtMs: number
  /** "default/web" */
  readonly services: readonly string[]
}

export interface WorkloadSnapshot {
  /** "Deployment default/web" */
  readonly id: string
  readonly version: string
  /** Value of the annotation ca-rotation of its pod template. */
  readonly annotation?: string
  /** Aggregated APIs and webhooks that its pods serve. */
  readonly serves: readonly string[]
  /** False when a selector of the operator takes it out. */
  readonly mayRoll: boolean
}

/** A field with CAs by which API servers verify a webhook, an aggregated API server or a conversion. */
export interface CaBundleSnapshot {
  /** "APIService v1beta1.metrics.k8s.io", "ValidatingWebhookConfiguration guard webhooks[0]" */
  readonly id: string
  readonly object: ObjectReference
  readonly field: string
  readonly version: string
  readonly trust: Trust
  /** CAs in the `kubectl apply` annotation of the object: applying it again would restore them. Absent without the annotation. */
  readonly applied?: Trust
  /** "service/kube-system/metrics-server": a credential holder. */
  readonly server: string
  /** False while the API server says that it is not available. */
  readonly isAvailable: boolean
}

export interface ObjectReference {
  /** "ConfigMap", "ValidatingWebhookConfiguration" */
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

/** True when the field is one of the object: kind and name tell which. */
export function isBundleOf(
  bundle: Pick<CaBundleSnapshot, 'object' | 'field'>,
  { kind, name }: ObjectReference,
  field: string,
): boolean {
  return bundle.object.kind === kind && bundle.object.name === name && bundle.field === field
}

/** "ConfigMap kube-public/cluster-info" */
export function objectName({ kind, namespace, name }: ObjectReference): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}

/** A ConfigMap or Secret of somebody else that holds a CA of the cluster, or what one signed. Of its keys nothing is known. */
export interface StoredSnapshot {
  /** "ConfigMap shop/ca", "Secret argocd/cluster-prod" */
  readonly id: string
  /** The CAs that it holds, whatever certificate they have. */
  readonly authorities: readonly StoredKey[]
  /** The CAs that signed leaves in it. */
  readonly signers: readonly StoredKey[]
  /** Who made it, as far as it says: "Certificate web-tls", "argocd-controller". */
  readonly owner?: string
}

/** The key of a CA (SHA-256 of the SubjectPublicKeyInfo), and where it is first met: "data[ca.crt]". */
export interface StoredKey {
  readonly spki: Digest
  readonly at: string
}

export interface StoredSection {
  /** How many objects were read; only those are kept that hold something. */
  readonly examined: number
  readonly objects: readonly StoredSnapshot[]
  /** Kinds that kcert may not list: of these nothing is known. */
  readonly unread: readonly ('ConfigMap' | 'Secret')[]
}

export interface ClusterInfoSnapshot {
  readonly version: string
  readonly trust: Trust
  /** One for each token that may sign; false when its jws-kubeconfig-* is missing or of other content. */
  readonly signatures: readonly { readonly tokenId: string; readonly holds: boolean }[]
}

export interface ExtensionAuthenticationSnapshot {
  readonly version: string
  readonly changedAtMs: number
  readonly client: Trust
  readonly requestheader: Trust
  /** True when requestheader-allowed-names is empty: any certificate of the CA would be a front proxy. */
  readonly allowsAnyName: boolean
}

export interface KubeadmSnapshot {
  /** Of the ConfigMap kubeadm-config. */
  readonly version: string
  /** "v1.36.3", as ClusterConfiguration says it; `kubeadm upgrade` changes it first. */
  readonly kubernetesVersion?: string
  /** extraArgs by component, e.g. controllerManager. */
  readonly extraArgs: Readonly<Record<string, Flags>>
  /** Version of the Secret kubeadm-certs; absent when there is none. */
  readonly certsSecret?: string
}

export interface LeaseSnapshot {
  readonly name: string
  /** Node of the holder; absent without a holder. */
  readonly holder?: string
  readonly renewedAtMs: number
}

export interface HandshakeSnapshot {
  /** "cp1/kube-apiserver", "w1/kubelet", "service/kube-system/metrics-server" */
  readonly presenter: string
  readonly chain: PresentedChain
  readonly atMs: number
}

/** How many handshakes failed in a time. */
export interface HandshakeRate {
  readonly errors: number
  readonly overMs: number
}

/** What a probe said last; a snapshot holds one for each key. */
export interface EvidenceSnapshot {
  readonly key: string
  readonly ok: boolean
  readonly atMs: number
  readonly detail: string
  /** Of a probe that measured one. */
  readonly rate?: HandshakeRate
}

/** One file or object as it was before a phase touched it first. The bytes lie on the node under their digest. */
export interface CopySnapshot {
  readonly phase: number
  /** Of an object: the first control-plane node. */
  readonly node: string
  readonly of: { readonly path: string } | { readonly object: ObjectReference }
  /** Absent when there was nothing. */
  readonly digest?: Digest
  readonly mode?: number
  readonly linksTo?: string
  /** Of a component's definition: the flags that kcert may change, as they were; null when unset. */
  readonly flags?: FlagChanges
  /** Of a component's definition: the version that it started then. */
  readonly version?: string
  /** What the bytes say, where the observer looked into the copy: of an object with CAs, these. An undo is checked by it. */
  readonly holds?: FileHolds
}

/** What a run wrote down before it acted. */
export interface IntentSnapshot {
  readonly phase: number
  readonly atMs: number
  /** True once phase 12 may have taken the old CA away from a verifier. */
  readonly drops: boolean
}

/** The sections. Which of them a phase needs is part of its value. */
export interface Sections {
  readonly nodes: readonly NodeSnapshot[]
  readonly components: readonly ComponentSnapshot[]
  readonly kubelets: readonly KubeletSnapshot[]
  /** By `fileKey`: trust files, leaves, keys' public halves, kubeconfigs, and everything in kcert's own folder. */
  readonly files: ReadonlyMap<string, FileSnapshot>
  readonly kubeconfigs: readonly KubeconfigSnapshot[]
  readonly published: readonly PublishedTrust[]
  readonly pods: readonly PodSnapshot[]
  readonly backends: readonly BackendSnapshot[]
  readonly workloads: readonly WorkloadSnapshot[]
  readonly caBundles: readonly CaBundleSnapshot[]
  /** Without what `published`, `clusterInfo` and `extensionAuthentication` tell of. */
  readonly stored: StoredSection
  /** Undefined when the cluster has none. */
  readonly clusterInfo: ClusterInfoSnapshot | undefined
  readonly extensionAuthentication: ExtensionAuthenticationSnapshot | undefined
  readonly kubeadm: KubeadmSnapshot | undefined
  readonly leases: readonly LeaseSnapshot[]
  readonly handshakes: readonly HandshakeSnapshot[]
  readonly evidence: ReadonlyMap<string, EvidenceSnapshot>
  readonly copies: readonly CopySnapshot[]
  readonly intents: readonly IntentSnapshot[]
}

export type SectionName = keyof Sections

/** The sections asked for, when they were seen, and every certificate that they name. */
export type Observed<Section extends SectionName> = Pick<Sections, Section> & {
  readonly atMs: number
  readonly certificates: CertificateTable
}

export type Snapshot = Observed<SectionName>

export const sectionNames = [
  'nodes',
  'components',
  'kubelets',
  'files',
  'kubeconfigs',
  'published',
  'pods',
  'backends',
  'workloads',
  'caBundles',
  'stored',
  'clusterInfo',
  'extensionAuthentication',
  'kubeadm',
  'leases',
  'handshakes',
  'evidence',
  'copies',
  'intents',
] as const satisfies readonly SectionName[]

/** Key of a file in the section `files`. */
export function fileKey(node: string, path: string): string {
  return `${node}:${path}`
}

/** Returns the file, or undefined if it does not exist or was not read. */
export function fileAt(
  observed: Observed<'files'>,
  node: string,
  path: string | undefined,
): FileSnapshot | undefined {
  return path === undefined ? undefined : filesByNode(observed.files).get(node)?.get(path)
}

const byNodeAndPath = new WeakMap<
  ReadonlyMap<string, FileSnapshot>,
  ReadonlyMap<string, ReadonlyMap<string, FileSnapshot>>
>()

/** Made once for each snapshot: to put the two names together for every look would cost more than the look. */
function filesByNode(files: Sections['files']): ReadonlyMap<string, ReadonlyMap<string, FileSnapshot>> {
  let index = byNodeAndPath.get(files)
  if (index === undefined) {
    const byPath = (its: FileSnapshot[]) => new Map(its.map((file) => [file.path, file]))
    const nodes = Map.groupBy(files.values(), ({ node }) => node)
    index = new Map(nodes.entries().map(([node, its]) => [node, byPath(its)]))
    byNodeAndPath.set(files, index)
  }
  return index
}

/** Returns the path of what a kubelet shows to API servers as a client. */
export function clientPathOf({ clientCurrent, kubeconfig }: KubeletSnapshot): string {
  return clientCurrent ?? kubeconfig
}

/** Returns the path of a kubelet's serving certificate; undefined if it is self-signed at startup. */
export function servingPathOf({ servingCurrent, servingFile }: KubeletSnapshot): string | undefined {
  return servingCurrent ?? servingFile
}

/** Returns the certificates of a file, in its order; none when it holds none. */
export function certificatesIn(file: FileSnapshot | undefined): readonly Digest[] {
  const holds = file?.holds
  if (holds?.kind === 'certificates' || holds?.kind === 'pair') return holds.certificates
  return holds?.kind === 'kubeconfig' ? holds.caData : []
}

/** True when the process was started after the file became what it is: what is read at the start has been read. */
export function hasStartedSince(
  running: ProcessSnapshot | undefined,
  file: FileSnapshot | undefined,
): boolean {
  return running !== undefined && (file === undefined || running.startedAtMs > file.changedAtMs)
}

const indexes = new WeakMap<readonly object[], ReadonlyMap<string, readonly object[]>>()

/** Returns a section by node. Made once for each, so that looking at 5,000 nodes in turn is not 25,000,000 comparisons. */
export function byNode<Item extends object>(
  section: readonly Item[],
  nodeOf: (item: Item) => string,
): ReadonlyMap<string, readonly Item[]> {
  let index = indexes.get(section)
  if (index === undefined) {
    index = Map.groupBy(section, nodeOf)
    indexes.set(section, index)
  }
  return index as ReadonlyMap<string, readonly Item[]>
}

/** Returns those of a section that are on a node, in its order. */
export function onNode<Item extends { readonly node: string }>(
  section: readonly Item[],
  node: string,
): readonly Item[] {
  return byNode(section, (item) => item.node).get(node) ?? []
}

export function componentsNamed(
  observed: Observed<'components'>,
  name: ComponentName,
): readonly ComponentSnapshot[] {
  return observed.components.filter((component) => component.name === name)
}

export function apiServers(observed: Observed<'components'>): readonly ComponentSnapshot[] {
  return componentsNamed(observed, 'kube-apiserver')
}

/** Returns the API server of a control-plane node. */
export function apiServerOn(
  { components }: Observed<'components'>,
  node: string,
): ComponentSnapshot | undefined {
  return onNode(components, node).find(({ name }) => name === 'kube-apiserver')
}
