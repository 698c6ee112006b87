import type { FlagChanges, Flags } from '../pki/component-flags.ts'
import type { ComponentName as ProgramName } from '../pki/node-access.ts'
import { oncePer } from '../x509/once-per.ts'
import type { CertificateTable, Digest } from './certificate-record.ts'
import type { Reading, ServiceAccountKeys } from './service-account-key/observed.ts'

// The observed state of a cluster, section by section. A phase lists the sections that it needs, and only these are fetched. All
// values are plain: certificates are in one table and referenced by digest; for a private key there is only the digest of its
// public key. Times are milliseconds of Unix time, on the clock of the machine that runs kcert.

/** CA certificates in the order of their file or field. OpenSSL's result can depend on the order. */
export type Trust = readonly Digest[]

export type ComponentName = Exclude<ProgramName, 'kubelet' | 'etcd'>

/** For example "cp1/kube-apiserver" or "w1/kubelet". */
export type ProcessId = string

/** Returns the node of a process. */
export function nodeOfProcess(id: ProcessId): string {
  return id.slice(0, id.indexOf('/'))
}

export interface NodeSnapshot {
  readonly name: string
  readonly isControlPlane: boolean
  /** True for a machine with a member of external etcd. It has no Node object, and only the rotation of etcd's CA observes it. */
  readonly isEtcdMachine?: boolean
  /** Why the node does not respond; absent when it does. */
  readonly unreachable?: string
  /** Of an etcd machine: it responds. */
  readonly isReady: boolean
  /** Its clock minus the clock of the machine that runs kcert; absent when unknown. */
  readonly clockSkewMs?: number
  /** For example "v1.36.3"; empty for an etcd machine. */
  readonly kubeletVersion: string
  /** "kubeadm", "plain", or one that kcert refuses: "k3s", "rke2", "managed". */
  readonly layout: string
}

/** The running process, which may be older than its definition. */
export interface ProcessSnapshot {
  readonly startedAtMs: number
  /** Flags on its command line, without the leading dashes. */
  readonly flags: Flags
  /** State of its own health endpoint, read on the node. The readiness of a mirror pod is not reliable. */
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
  /** Flags in the definition on disk. */
  readonly flags: Flags
  readonly annotations: Flags
  /** Values in the definition of flags that are given several times; observed with service account keys only. */
  readonly repeated?: Readonly<Record<string, readonly string[]>>
  /**
   * Version of an API server from its endpoint, otherwise from the image tag or the program, for example "v1.36.3"; absent when
   * unknown.
   */
  readonly version?: string
  /** Absent when no process runs. */
  readonly process?: ProcessSnapshot
}

/** A member of etcd on a control-plane node or an etcd machine. */
export interface EtcdMemberSnapshot {
  /** "cp1/etcd" */
  readonly id: ProcessId
  readonly node: string
  readonly runsAs: ComponentSnapshot['runsAs']
  /** Flags in the definition on disk. */
  readonly flags: Flags
  /** Absent when no process runs. `isHealthy`: it answered a linearizable read, and no alarm is set. */
  readonly process?: ProcessSnapshot
  /** Its view of the cluster, from its metrics. */
  readonly state?: EtcdState
  /** Why `state` is absent. */
  readonly unread?: string
  /** The chains that it serves to clients and to other members, leaf first; empty when it does not answer. */
  readonly served: { readonly client: readonly Digest[]; readonly peer: readonly Digest[] }
  /** Endpoints at which API servers reached a member that it knows, beside the members' own addresses: endpointKey of etcd/endpoints.ts. */
  readonly reachedAt?: readonly string[]
}

export interface EtcdState {
  /** Member ID in hexadecimal. */
  readonly memberId: string
  readonly isLeader: boolean
  readonly isLearner: boolean
  /** The raft index that it has applied. */
  readonly applied: number
  /** IDs of all members that it knows, itself included. */
  readonly known: readonly string[]
  /** IDs of the members with which it has a connection. */
  readonly active: readonly string[]
}

export interface KubeletSnapshot {
  readonly id: ProcessId
  readonly node: string
  /** authentication.x509.clientCAFile in its configuration. */
  readonly clientCaFile: string
  readonly kubeconfig: string
  /** Path of kubelet-client-current.pem; absent when the client certificate is in the kubeconfig. */
  readonly clientCurrent?: string
  /** Path of kubelet-server-current.pem; absent without serverTLSBootstrap. */
  readonly servingCurrent?: string
  /** tlsCertFile, if the kubelet requests no serving certificate; with neither, its certificate is self-signed. */
  readonly servingFile?: string
  /** tlsPrivateKeyFile for the same certificate. */
  readonly servingKeyFile?: string
  /** --tls-cipher-suites and --tls-min-version, or the settings of its configuration instead. */
  readonly tls?: Flags
  /** The file with these settings. */
  readonly configuration?: string
  /** Feature gates that its next start uses, as in --feature-gates; absent when unknown. */
  readonly gates?: string
  readonly process?: ProcessSnapshot
}

export type ParsedContent =
  | { readonly kind: 'certificates'; readonly certificates: readonly Digest[] }
  | { readonly kind: 'key'; readonly spki: Digest }
  /** Public keys only, in the order of the file: SHA-256 of each SubjectPublicKeyInfo. */
  | { readonly kind: 'public-keys'; readonly keys: readonly Digest[] }
  /** The format of the kubelet's store: certificates, and the key of the first one. */
  | { readonly kind: 'pair'; readonly certificates: readonly Digest[]; readonly spki: Digest }
  /** Content of the current context. `besides`: CAs and client certificates of other contexts in the file. */
  | {
      readonly kind: 'kubeconfig'
      readonly caData: Trust
      readonly client?: Digest
      readonly besides?: readonly Digest[]
      /** Why client-go rejects the whole file. */
      readonly refusal?: string
    }
  | { readonly kind: 'other' }

export interface FileSnapshot {
  readonly node: string
  readonly path: string
  /** Digest of the bytes. */
  readonly digest: Digest
  readonly mode: number
  /** Target of the link; all other fields describe the target file. */
  readonly linksTo?: string
  /** When the path got these bytes. */
  readonly changedAtMs: number
  readonly contains: ParsedContent
}

export interface KubeconfigSnapshot {
  /** "cp1:/etc/kubernetes/admin.conf", or the name of an exported kubeconfig in the inventory. */
  readonly id: string
  /** Absent for a kubeconfig outside the nodes. */
  readonly at?: { readonly node: string; readonly path: string }
  /** The component that reads it at startup; absent for kubeconfigs of people or CNI plugins. */
  readonly usedBy?: ProcessId
  /** The last exported content, for a kubeconfig outside the nodes. */
  readonly exported?: { readonly caData: Trust; readonly client?: Digest }
}

/** The CAs that kube-controller-manager publishes from its --root-ca-file, or an API server's ClusterTrustBundle. */
export interface PublishedTrust {
  readonly kind: 'ConfigMap' | 'Secret' | 'ClusterTrustBundle'
  /** For example "default/kube-root-ca.crt". */
  readonly name: string
  /** False in a terminating namespace, where no controller writes any more. */
  readonly isActive: boolean
  /** Absent when the object does not exist. */
  readonly trust?: Trust
  /** Why the ClusterTrustBundles of the API server in `name` could not be read. There may be some. */
  readonly unread?: string
  /** When it got this content. */
  readonly changedAtMs: number
}

/** A pod with a CA of the cluster in a volume. A pod with several such files appears once for each. */
export interface PodSnapshot {
  /** For example "default/web-5d9f". */
  readonly id: string
  readonly uid: string
  readonly node: string
  /** For example "Deployment default/web"; absent for a pod without a controller. */
  readonly workload?: string
  readonly startedAtMs: number
  /** Its IP address; absent if it uses the node's address or has none yet. */
  readonly address?: string
  /**
   * Present if the file comes from the ClusterTrustBundles of the API servers' signer; with `name`, only from that one. Absent if
   * it comes from the kube-root-ca.crt of its namespace.
   */
  readonly trustBundle?: { readonly name?: string }
  /** The projected file on its node; absent when the node cannot be read. */
  readonly volume?: { readonly trust: Trust; readonly changedAtMs: number }
  /** True for a client that certainly reads ca.crt again (client-go 1.36: at most every 5 minutes). */
  readonly rereads: boolean
  /** Why kcert assumes that it reads its file only once; absent when this was not checked. */
  readonly readsOnce?: string
}

/** A running pod that a Service selects, as its kubelet reports it. */
export interface BackendSnapshot {
  /** For example "default/web-5d9f". */
  readonly pod: string
  readonly node: string
  readonly isReady: boolean
  /** When it became Ready or not Ready, on its node's clock; infinite when not reported. */
  readonly changedAtMs: number
  /** For example "default/web". */
  readonly services: readonly string[]
}

export interface WorkloadSnapshot {
  /** For example "Deployment default/web". */
  readonly id: string
  readonly version: string
  /** Value of the annotation ca-rotation in its pod template. */
  readonly annotation?: string
  /** Aggregated APIs and webhooks that its pods serve. */
  readonly serves: readonly string[]
  /** False when a selector of the operator excludes it. */
  readonly mayRoll: boolean
}

/** A field with CAs with which API servers verify a webhook, an aggregated API server or a conversion webhook. */
export interface CaBundleSnapshot {
  /** For example "APIService v1beta1.metrics.k8s.io" or "ValidatingWebhookConfiguration guard webhooks[0]". */
  readonly id: string
  readonly object: ObjectReference
  readonly field: string
  readonly version: string
  readonly trust: Trust
  /** CAs in the `kubectl apply` annotation of the object: applying it again would restore them. Absent without the annotation. */
  readonly applied?: Trust
  /** A credential holder, for example "service/kube-system/metrics-server". */
  readonly server: string
  /** False while the API server reports it as unavailable. */
  readonly isAvailable: boolean
}

export interface ObjectReference {
  /** For example "ConfigMap" or "ValidatingWebhookConfiguration". */
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

/** Returns true when the field belongs to the object with this kind and name. */
export function isBundleOf(
  bundle: Pick<CaBundleSnapshot, 'object' | 'field'>,
  { kind, name }: ObjectReference,
  field: string,
): boolean {
  return bundle.object.kind === kind && bundle.object.name === name && bundle.field === field
}

/** Returns a name such as "ConfigMap kube-public/cluster-info". */
export function objectName({ kind, namespace, name }: ObjectReference): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}

/**
 * A ConfigMap or Secret of another owner that contains a CA of the cluster, or a certificate signed by one. Its keys are never
 * read.
 */
export interface StoredSnapshot {
  /** For example "ConfigMap shop/ca" or "Secret argocd/cluster-prod". */
  readonly id: string
  /** The CAs in it, identified by key, whichever certificate they have. */
  readonly authorities: readonly StoredKey[]
  /** The CAs that signed leaf certificates in it. */
  readonly signers: readonly StoredKey[]
  /** Its creator, if known: "Certificate web-tls", "argocd-controller". */
  readonly owner?: string
}

/** The key of a CA (SHA-256 of the SubjectPublicKeyInfo), and its first location: "data[ca.crt]". */
export interface StoredKey {
  readonly spki: Digest
  readonly at: string
}

export interface StoredSection {
  /** Number of objects that were read. Only those with findings are kept. */
  readonly examined: number
  readonly objects: readonly StoredSnapshot[]
  /** Kinds that kcert may not list; nothing is known about their objects. */
  readonly unread: readonly ('ConfigMap' | 'Secret')[]
}

export interface ClusterInfoSnapshot {
  readonly version: string
  readonly trust: Trust
  /** One for each token that may sign; false when its jws-kubeconfig-* is missing or belongs to other content. */
  readonly signatures: readonly { readonly tokenId: string; readonly isValid: boolean }[]
}

export interface ExtensionAuthenticationSnapshot {
  readonly version: string
  readonly changedAtMs: number
  readonly client: Trust
  readonly requestheader: Trust
  /** True when requestheader-allowed-names is empty: any certificate of the CA could be a front proxy. */
  readonly allowsAnyName: boolean
}

export interface KubeadmSnapshot {
  /** Version of the ConfigMap kubeadm-config. */
  readonly version: string
  /** kubernetesVersion in ClusterConfiguration, for example "v1.36.3". `kubeadm upgrade` changes it first. */
  readonly kubernetesVersion?: string
  /** As written; kubeadm's default is RSA-2048. */
  readonly encryptionAlgorithm?: string
  /** Why kubeadm does not use encryptionAlgorithm, and the type of the keys that it creates instead. */
  readonly noAlgorithm?: { readonly why: string; readonly creates: string }
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
  /** For example "cp1/kube-apiserver", "w1/kubelet" or "service/kube-system/metrics-server". */
  readonly server: string
  /** Leaf first. */
  readonly chain: readonly Digest[]
  readonly atMs: number
}

/** Number of failed handshakes in a period. */
export interface HandshakeRate {
  readonly errors: number
  readonly overMs: number
}

/** The IDs of the keys with which an API server verifies tokens now, from its /openid/v1/jwks. */
export interface ServedKeys {
  readonly process: ProcessId
  readonly keyIds: Reading<readonly string[]>
}

/** The last result of a probe. A snapshot has one for each key. */
export interface EvidenceSnapshot {
  readonly key: string
  readonly ok: boolean
  readonly atMs: number
  readonly detail: string
  /** The rate, for a probe that measured one. */
  readonly rate?: HandshakeRate
}

/** One file or object as it was before the first change in a phase. The bytes are on the node, named by their digest. */
export interface CopySnapshot {
  readonly phase: number
  /** For an object: the first control-plane node. */
  readonly node: string
  readonly of: { readonly path: string } | { readonly object: ObjectReference }
  /** Absent when the file or object did not exist. */
  readonly digest?: Digest
  readonly mode?: number
  readonly linksTo?: string
  /** For a component's definition: the earlier values of the flags that kcert may change; null when unset. */
  readonly flags?: FlagChanges
  /** For a component's definition: the version that it started. */
  readonly version?: string
  /** Content of the copy, if the observer read it; for an object with CAs, these. Used to check an undo. */
  readonly contains?: ParsedContent
}

/** The journal entry that a run wrote before its first action. */
export interface IntentSnapshot {
  readonly phase: number
  readonly atMs: number
  /** True once phase 12 may have removed the old CA from a verifier. */
  readonly drops: boolean
}

/** The sections. Each phase lists those that it needs. */
export interface Sections {
  readonly nodes: readonly NodeSnapshot[]
  readonly components: readonly ComponentSnapshot[]
  readonly kubelets: readonly KubeletSnapshot[]
  readonly etcdMembers: readonly EtcdMemberSnapshot[]
  /** By `fileKey`: trust files, leaf certificates, public keys of key files, kubeconfigs, and all files in kcert's own folder. */
  readonly files: ReadonlyMap<string, FileSnapshot>
  readonly kubeconfigs: readonly KubeconfigSnapshot[]
  readonly published: readonly PublishedTrust[]
  readonly pods: readonly PodSnapshot[]
  readonly backends: readonly BackendSnapshot[]
  readonly workloads: readonly WorkloadSnapshot[]
  readonly caBundles: readonly CaBundleSnapshot[]
  /** Without the objects in `published`, `clusterInfo` and `extensionAuthentication`. */
  readonly stored: StoredSection
  /** Undefined when the cluster has none. */
  readonly clusterInfo: ClusterInfoSnapshot | undefined
  readonly extensionAuthentication: ExtensionAuthenticationSnapshot | undefined
  readonly kubeadm: KubeadmSnapshot | undefined
  readonly leases: readonly LeaseSnapshot[]
  readonly handshakes: readonly HandshakeSnapshot[]
  readonly servedKeys: readonly ServedKeys[]
  /** Service account tokens on nodes, in Secrets and ConfigMaps, and for CSI drivers. */
  readonly tokens: Pick<ServiceAccountKeys, 'nodes' | 'objects' | 'drivers'>
  readonly evidence: ReadonlyMap<string, EvidenceSnapshot>
  readonly copies: readonly CopySnapshot[]
  readonly intents: readonly IntentSnapshot[]
}

export type SectionName = keyof Sections

/** The requested sections, the time of the observation, and every certificate that they refer to. */
export type Observed<Section extends SectionName> = Pick<Sections, Section> & {
  readonly atMs: number
  readonly certificates: CertificateTable
}

export type Snapshot = Observed<SectionName>

/** The sections of the page's playbook. */
export const sectionNames: readonly SectionName[] = [
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
]

/** Returns the key of a file in the section `files`. */
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

/** Created once for each snapshot: joining the two names for every lookup would cost more than the lookup. */
const filesByNode = oncePer((files: Sections['files']) => {
  const nodes = Map.groupBy(files.values(), ({ node }) => node).entries()
  return new Map(nodes.map(([node, its]) => [node, new Map(its.map((file) => [file.path, file]))]))
})

/** Returns the path of the client certificate that a kubelet presents to API servers. */
export function clientPathOf({ clientCurrent, kubeconfig }: KubeletSnapshot): string {
  return clientCurrent ?? kubeconfig
}

/** Returns the path of a kubelet's serving certificate; undefined if it is self-signed at startup. */
export function servingPathOf({ servingCurrent, servingFile }: KubeletSnapshot): string | undefined {
  return servingCurrent ?? servingFile
}

/** Returns the certificates of a file in order; empty when it contains none. */
export function certificatesIn(file: FileSnapshot | undefined): readonly Digest[] {
  const contains = file?.contains
  if (contains?.kind === 'certificates' || contains?.kind === 'pair') return contains.certificates
  return contains?.kind === 'kubeconfig' ? contains.caData : []
}

/** Returns true when the process started after the last change of the file, so it has read the current content. */
export function hasStartedSince(
  running: ProcessSnapshot | undefined,
  file: FileSnapshot | undefined,
): boolean {
  return running !== undefined && (file === undefined || running.startedAtMs > file.changedAtMs)
}

const indexes = new WeakMap<readonly object[], ReadonlyMap<string, readonly object[]>>()

/**
 * Returns a section by node. Created once for each section: reading 5,000 nodes in turn would otherwise take 25,000,000
 * comparisons.
 */
export function byNode<Item extends object>(
  section: readonly Item[],
  nodeOf: (item: Item) => string,
): ReadonlyMap<string, readonly Item[]> {
  const index = indexes.get(section) ?? Map.groupBy(section, nodeOf)
  indexes.set(section, index)
  return index as ReadonlyMap<string, readonly Item[]>
}

/** Returns the items of a section that are on a node, in order. */
export function onNode<Item extends { readonly node: string }>(
  section: readonly Item[],
  node: string,
): readonly Item[] {
  return byNode(section, (item) => item.node).get(node) ?? []
}

export function controlPlanes({ nodes }: Observed<'nodes'>): readonly NodeSnapshot[] {
  return nodes.filter(({ isControlPlane }) => isControlPlane)
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
