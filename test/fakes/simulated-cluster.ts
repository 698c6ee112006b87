import { createHash } from 'node:crypto'
import type { CertificateRecord, Digest } from '../../src/rotation/certificate-record.ts'
import { reissuedRecord } from '../../src/rotation/certificate-record.ts'
import type { Reading, TokenDriver } from '../../src/rotation/service-account-key/observed.ts'
import type { ComponentName, ObjectReference, ParsedContent } from '../../src/rotation/snapshot.ts'
import { SimulatedTime } from './simulated-cluster-time.ts'

// A cluster in memory that behaves as measured on the lab. simulated-cluster.md is its contract.

export interface ClusterShape {
  readonly controlPlanes?: number
  readonly workers?: number
  readonly namespaces?: number
  /** Additional Deployments, each in some namespace, and the number of pods of each. */
  readonly deployments?: { readonly count: number; readonly podsEach: number }
  readonly seed?: number
  /** Sets --kubelet-certificate-authority, and --client-ca-file of schedulers. */
  readonly allFlags?: boolean
  /** Two CAs with one name and without key identifiers. */
  readonly sameName?: boolean
  /**
   * Systemd units and .pem files: no static pods, no kubeadm ConfigMap. Without allFlags, kubelets serve self-signed
   * certificates.
   */
  readonly isPlain?: boolean
  /**
   * Units with manually created certificates. API servers use one file for serving and as the kubelet client. Kubelets have a
   * serving certificate of the cluster's CA in tlsCertFile and their client certificate in the kubeconfig. They are not renewed
   * automatically.
   */
  readonly isByHand?: boolean
  /** The controller-manager publishes a ClusterTrustBundle, and pods of Deployment default/verifier mount it by signerName. */
  readonly hasTrustBundles?: boolean
  /** Each control-plane node has a member of etcd. */
  readonly hasEtcd?: boolean
  /** The members are units on this number of machines of their own instead. Each API server has its own copy of their CA. */
  readonly etcdMachines?: number
  /** Control-plane nodes have a service account key, and pods have tokens. */
  readonly hasTokens?: boolean
}

/** The content of a file, serialized as JSON so that equal content has equal bytes. */
export type FileContent =
  | { readonly certificates: readonly Digest[] }
  | { readonly pair: readonly Digest[]; readonly key: string }
  | { readonly publicKeys: readonly Digest[] }
  | { readonly key: string; readonly pair?: undefined }
  | {
      readonly kubeconfig: {
        readonly caData: readonly Digest[]
        readonly client?: Digest
        readonly besides?: readonly Digest[]
      }
    }
  | {
      readonly definition: {
        readonly component: ComponentName | 'etcd'
        readonly flags: Readonly<Record<string, string>>
        readonly annotations?: Readonly<Record<string, string>>
        /** Version of its image (default v1.36.3). */
        readonly version?: string
      }
    }

export interface SimulatedFile {
  readonly text: string
  readonly mode: number
  readonly changedAtMs: number
  readonly linksTo?: string
}

export interface SimulatedProcess {
  readonly id: string
  readonly node: string
  readonly name: ComponentName | 'kubelet' | 'etcd'
  readonly startedAtMs: number
  readonly flags: Readonly<Record<string, string>>
  isHealthy: boolean
  /** The bytes that it has loaded, by path. */
  readonly loaded: Map<string, string>
}

export interface SimulatedPod {
  readonly id: string
  readonly namespace: string
  readonly uid: string
  readonly node: string
  readonly workload?: string
  readonly startedAtMs: number
  address?: string
  volume: { trust: readonly Digest[]; changedAtMs: number }
  /** The CAs that its process has loaded. */
  trust: readonly Digest[]
  /** For a handler: the front proxy CAs that it has loaded. */
  requestheader: readonly Digest[]
  readonly rereads: boolean
  /** Its file comes from ClusterTrustBundles. */
  readonly trustBundle?: { readonly name?: string }
  /** The keys that signed the token in its volume, and the one before it. */
  token?: SimulatedToken
  /** It read the first token of its volume and never reads it again. */
  readsTokenOnce?: boolean
}

export interface SimulatedToken {
  readonly key: Digest
  readonly mountedAtMs: number
  readonly before: Digest
  /** The token that the pod read at its start. */
  readonly first: Digest
}

export interface SimulatedWorkload {
  readonly id: string
  readonly namespace: string
  readonly serves: readonly string[]
  readonly rereads: boolean
  readonly trustBundle?: { readonly name?: string }
  annotation?: string
  version: number
  /** A PodDisruptionBudget that allows no eviction. */
  isStuck: boolean
  /** False for a workload that a selector of the inventory excludes. */
  mayRoll: boolean
}

export interface SimulatedObject {
  data: Readonly<Record<string, unknown>>
  version: number
  changedAtMs: number
}

export interface SimulatedNode {
  readonly name: string
  readonly isControlPlane: boolean
  readonly isEtcdMachine?: boolean
  clockSkewMs: number
  isUnreachable: boolean
  isDiskFull: boolean
  /** Its kubelet fails to start after the next restart. */
  isKubeletBroken: boolean
}

export const pki = '/etc/kubernetes/pki'
export const kubeletPki = '/var/lib/kubelet/pki'
const trustBundlePrefix = 'ClusterTrustBundle kubernetes.io:kube-apiserver-serving:'
const hotFlags = new Set([
  'tls-private-key-file',
  'client-ca-file',
  'requestheader-client-ca-file',
  'tls-cert-file',
  'kubelet-client-certificate',
  'proxy-client-cert-file',
  'cert-file',
  'peer-cert-file',
  'etcd-certfile',
  'cluster-signing-cert-file',
  'cluster-signing-key-file',
])
const coldFlags = new Set([
  'service-account-key-file',
  'service-account-signing-key-file',
  'service-account-private-key-file',
  'trusted-ca-file',
  'peer-trusted-ca-file',
  'etcd-cafile',
  'root-ca-file',
  'kubeconfig',
  'kubelet-certificate-authority',
  'kubelet-client-current',
  'kubelet-server-current',
  'kubelet-tls-cert-file',
])

const kubeadmComponents = [
  ['kube-apiserver', 'apiServer'],
  ['kube-controller-manager', 'controllerManager'],
  ['kube-scheduler', 'scheduler'],
] as const

const processNames = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'cloud-controller-manager',
  'kube-proxy',
  'kubelet',
  'etcd',
] as const

export class SimulatedCluster {
  readonly time: SimulatedTime
  readonly certificates = new Map<Digest, CertificateRecord>()
  readonly nodes = new Map<string, SimulatedNode>()
  readonly files = new Map<string, SimulatedFile>()
  readonly processes = new Map<string, SimulatedProcess>()
  readonly pods = new Map<string, SimulatedPod>()
  readonly workloads = new Map<string, SimulatedWorkload>()
  readonly objects = new Map<string, SimulatedObject>()
  /** Held by a process, not by a node: a restarted process is another holder. */
  readonly leases = new Map<string, { holder?: string; holderStartedAtMs?: number; renewedAtMs: number }>()
  readonly namespaces: string[] = []
  /** Kinds of third-party objects that kcert may not list. */
  readonly unlisted = new Set<'ConfigMap' | 'Secret'>()
  /** Chains that handlers of webhooks and aggregated APIs serve. */
  readonly handlers = new Map<string, readonly Digest[]>()
  /** Until this time a kubelet returns 404 although its node is Ready. */
  readonly logsFrom = new Map<string, number>()
  /** The client certificate on the connection that an API server keeps to a kubelet. */
  readonly pooled = new Map<string, { client: string; untilMs: number }>()
  readonly restarts: string[] = []
  /** CAs of the current rotation. After it, those that it created. */
  oldCa: CertificateRecord
  oldFrontProxyCa: CertificateRecord
  /** Present with `hasEtcd`. */
  oldEtcdCa: CertificateRecord | undefined
  /** Present with `hasTokens`: SHA-256 of the public key of the service account key. */
  oldKey: Digest | undefined
  /** Uses of stale and legacy tokens by API server. */
  readonly staleUses = new Map<string, number>()
  /** Secrets whose tokens clients use. */
  readonly usedSecrets = new Set<string>()
  /** CSI drivers for which kubelets request tokens. */
  tokenDrivers: Reading<readonly TokenDriver[]> = { value: [] }
  /** Other Nodes than these cannot show their tokens. */
  readonly hiddenTokens = new Set<string>()
  /** Node of etcd's leader. */
  etcdLeader = 'cp1'
  /** Members that were promoted neither to voters nor away. */
  readonly learners = new Set<string>()
  /** Addresses that are connected to every member, besides those of control-plane nodes. */
  readonly etcdClients: string[] = []
  /** The maximum number of members that did not run at the same time. */
  mostMembersDown = 0
  /** The index of the copies of the rotation that runs. */
  copiesIndex = '/var/lib/kcert/copies/index.jsonl'
  readonly isPlain: boolean
  readonly isByHand: boolean
  private readonly etcdMachines: readonly string[]
  /** Kubelet version by node (default v1.36.3). */
  readonly kubeletVersions = new Map<string, string>()
  /** Feature gate settings of kubelets by node. */
  readonly kubeletGates = new Map<string, string>()
  /** The time when a pod was reported not Ready, by id. */
  readonly unready = new Map<string, number>()
  /** How long pods stay not Ready after a kubelet restart. */
  unreadyMs = 20_000
  /** The maximum number of nodes that had pods not Ready at the same time. */
  mostUnreadyNodes = 0
  private readonly nodeNames: string[] = []
  /** kubeadm's default flags, by process. */
  private readonly ownFlags = new Map<string, Record<string, string>>()
  /** The key types that kcert requested, by key. */
  readonly keyTypes = new Map<string, string>()
  private serial = 0
  private readonly parsed = new Map<string, FileContent>()

  constructor(shape: ClusterShape = {}) {
    const { controlPlanes = 3, workers = 1, namespaces = 4, seed = 1, sameName = false } = shape
    this.isByHand = shape.isByHand === true
    this.isPlain = shape.isPlain === true || this.isByHand
    this.time = new SimulatedTime(new Date('2026-11-21T06:00:00Z'), seed)
    this.oldCa = this.makeCa('kubernetes', !sameName)
    this.oldFrontProxyCa = this.makeCa('front-proxy-ca', true)
    if (shape.hasTokens) this.oldKey = hashOf('service account key')
    this.etcdMachines = Array.from({ length: shape.etcdMachines ?? 0 }, (_, index) => `e${index + 1}`)
    if (shape.hasEtcd || this.etcdMachines.length > 0) this.oldEtcdCa = this.makeCa('etcd-ca', true)
    for (let i = 1; i <= controlPlanes; i++) this.addNode(`cp${i}`, true, shape)
    for (let i = 1; i <= workers; i++) this.addNode(`w${i}`, false, shape)
    for (const name of this.etcdMachines) this.addEtcdMachine(name, this.oldEtcdCa!)
    for (const name of ['kube-controller-manager', 'kube-scheduler']) {
      const { startedAtMs } = this.processes.get(`cp1/${name}`)!
      this.leases.set(name, { holder: 'cp1', holderStartedAtMs: startedAtMs, renewedAtMs: this.time.nowMs })
    }
    const old = [this.oldCa.digest]
    for (const name of ['default', 'kube-system', 'kube-public', ...names(namespaces - 3)])
      this.addNamespace(name)
    this.put('ConfigMap kube-public/cluster-info', { trust: old, signed: { abcdef: old } })
    this.put('ConfigMap kube-system/extension-apiserver-authentication', {
      client: old,
      requestheader: [this.oldFrontProxyCa.digest],
    })
    if (!this.isPlain) {
      this.put('ConfigMap kube-system/kubeadm-config', { kubernetesVersion: 'v1.36.3', extraArgs: {} })
      this.put('Secret kube-system/kubeadm-certs', { encrypted: true })
    }
    this.put('APIService v1.agg', { trust: old, server: 'service/default/agg' })
    this.put('ValidatingWebhookConfiguration guard', { trust: old, server: 'service/default/agg' })
    this.handlers.set('service/default/agg', [this.issue('agg.default.svc', this.oldCa).digest])
    this.addWorkload('Deployment default/ping', { rereads: false })
    this.addWorkload('DaemonSet kube-system/kube-proxy-like', { rereads: false })
    this.addWorkload('Deployment default/modern', { rereads: true })
    this.addWorkload('Deployment default/agg', { rereads: false, serves: ['APIService v1.agg'] })
    if (shape.hasTrustBundles) {
      this.publishTrustBundle(old)
      this.addWorkload('Deployment default/verifier', { rereads: false, trustBundle: {} })
    }
    for (const id of this.workloads.keys()) this.startPod(id)
    for (const id of this.workloads.keys()) this.startPod(id)
    const { count = 0, podsEach = 0 } = shape.deployments ?? {}
    for (let i = 0; i < count; i++) {
      const id = `Deployment ${this.namespaces[i % this.namespaces.length]}/app${i}`
      this.addWorkload(id, { rereads: i % 4 === 0 })
      for (let pod = 0; pod < podsEach; pod++) this.startPod(id)
    }
    // The cluster has existed for a day.
    this.time.nowMs += 86_400_000
  }

  // --- certificates

  makeCa(name: string, withIdentifiers: boolean): CertificateRecord {
    const key = `key of ${name} ${this.serial++}`
    const spki = hashOf(key)
    const digest = hashOf(`${name} ${spki}`)
    const ids = withIdentifiers ? { subjectKeyId: spki.slice(0, 8), authorityKeyId: spki.slice(0, 8) } : {}
    return this.know({
      digest,
      subject: `CN=${name}`,
      issuer: `CN=${name}`,
      spki,
      publicKey: Buffer.from(key).toString('base64'),
      signedBy: spki,
      isCa: true,
      notBeforeMs: this.time.nowMs - 300_000,
      notAfterMs: this.time.nowMs + 3_650 * 86_400_000,
      ...ids,
    })
  }

  issue(subject: string, ca: CertificateRecord, key?: string): CertificateRecord {
    const digest = hashOf(`leaf ${subject} ${this.serial++}`)
    const spki = key ?? hashOf(`key ${digest}`)
    const blank = { ...ca, subject: `CN=${subject}`, spki, isCa: false }
    const { subjectKeyId: _, publicKey: __, ...leaf } = reissuedRecord(blank, ca, digest)
    return this.know(leaf)
  }

  /** The bridge certificate: the new CA's name and key, signed by the old CA. */
  certify(newCa: CertificateRecord, oldCa: CertificateRecord): CertificateRecord {
    return this.know(reissuedRecord(newCa, oldCa, hashOf(`bridge ${newCa.digest}`)))
  }

  know(record: CertificateRecord): CertificateRecord {
    this.certificates.set(record.digest, record)
    return record
  }

  /** Prepares the next rotation. */
  startOver(): void {
    const [ca, frontProxyCa] = ['ca', 'front-proxy-ca'].map((stem) => {
      const [digest] = this.certificatesIn(this.read('cp1', this.certificatePath(stem))?.text)
      return this.certificates.get(digest!)!
    })
    this.oldCa = ca!
    this.oldFrontProxyCa = frontProxyCa!
  }

  // --- files

  read(node: string, path: string): SimulatedFile | undefined {
    const file = this.files.get(`${node}:${path}`)
    return file?.linksTo === undefined ? file : this.files.get(`${node}:${file.linksTo}`)
  }

  contentOf(text: string | undefined): FileContent | undefined {
    if (text === undefined) return undefined
    let content = this.parsed.get(text)
    if (content === undefined) {
      content = JSON.parse(text) as FileContent
      this.parsed.set(text, content)
    }
    return content
  }

  parsedContentOf(text: string): ParsedContent {
    if (!text.startsWith('{')) return { kind: 'other' }
    const content = this.contentOf(text)!
    if ('certificates' in content) return { kind: 'certificates', certificates: content.certificates }
    if ('publicKeys' in content) return { kind: 'public-keys', keys: content.publicKeys }
    if ('key' in content) {
      const { pair, key: spki } = content
      return pair === undefined ? { kind: 'key', spki } : { kind: 'pair', certificates: pair, spki }
    }
    if ('kubeconfig' in content) return { kind: 'kubeconfig', ...content.kubeconfig }
    return { kind: 'other' }
  }

  write(node: string, path: string, content: FileContent | string, mode = 0o644): void {
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    this.files.set(`${node}:${path}`, { text, mode, changedAtMs: this.time.nowMs })
    this.reactTo(node, path)
  }

  link(node: string, path: string, to: string): void {
    this.files.set(`${node}:${path}`, {
      text: `-> ${to}`,
      mode: 0o777,
      changedAtMs: this.time.nowMs,
      linksTo: to,
    })
    this.reactTo(node, path)
  }

  remove(node: string, path: string): void {
    this.files.delete(`${node}:${path}`)
  }

  /** How the node's processes react to a changed file. */
  private reactTo(node: string, path: string): void {
    for (const name of processNames) {
      const process = this.processes.get(`${node}/${name}`)
      if (process === undefined) continue
      for (const [flag, its] of Object.entries(process.flags)) {
        if (its !== path || !hotFlags.has(flag)) continue
        this.time.after(this.time.between(20, 200), () => this.reload(process, path))
      }
      if (process.flags.definition === path) this.definitionChanged(process)
    }
  }

  private reload(process: SimulatedProcess, path: string): void {
    if (this.processes.get(process.id) !== process) return
    const file = this.read(process.node, path)
    if (file === undefined) return
    const { 'tls-cert-file': leaf, 'tls-private-key-file': key } = process.flags
    if (path !== leaf && path !== key) process.loaded.set(path, file.text)
    // Certificate and key are loaded together, once they match.
    else if (this.isPair(process.node, leaf, key)) {
      for (const its of [leaf!, key!]) process.loaded.set(its, this.read(process.node, its)!.text)
    }
    if (process.name === 'kube-apiserver')
      this.time.after(this.time.between(50, 500), () => this.publishClientCas())
  }

  private isPair(node: string, leaf = '', key = ''): boolean {
    const [certificate] = this.certificatesIn(this.read(node, leaf)?.text)
    const content = this.contentOf(this.read(node, key)?.text)
    const spki = content !== undefined && 'key' in content ? content.key : undefined
    return this.certificates.get(certificate ?? '')?.spki === spki
  }

  certificatesIn(text: string | undefined): readonly Digest[] {
    const content = this.contentOf(text)
    if (content === undefined) return []
    if ('certificates' in content) return content.certificates
    if ('key' in content) return content.pair ?? []
    if ('publicKeys' in content) return []
    return 'kubeconfig' in content ? content.kubeconfig.caData : []
  }

  loadedBy(process: SimulatedProcess | undefined, flag: string): readonly Digest[] {
    const path = process?.flags[flag]
    return path === undefined ? [] : this.certificatesIn(process!.loaded.get(path))
  }

  /** Returns the client certificate of a kubeconfig or store file that a process has loaded. */
  clientOf(process: SimulatedProcess, flag: string): Digest | undefined {
    const path = process.flags[flag]
    const content = path === undefined ? undefined : this.contentOf(process.loaded.get(path))
    if (content === undefined) return undefined
    if ('kubeconfig' in content) return content.kubeconfig.client
    return 'key' in content ? content.pair?.[0] : undefined
  }

  // --- processes

  start(id: string, healthyAfterMs: number): void {
    const [node, name] = id.split('/') as [string, SimulatedProcess['name']]
    const flags = this.flagsOf(node, name)
    const loaded = new Map<string, string>()
    for (const [flag, path] of Object.entries(flags)) {
      const file = hotFlags.has(flag) || coldFlags.has(flag) ? this.read(node, path) : undefined
      if (file !== undefined) loaded.set(path, file.text)
    }
    const process: SimulatedProcess = {
      id,
      node,
      name,
      startedAtMs: this.time.nowMs,
      flags,
      isHealthy: healthyAfterMs === 0,
      loaded,
    }
    this.processes.set(id, process)
    this.restarts.push(id)
    if (healthyAfterMs > 0) {
      this.time.after(healthyAfterMs, () => {
        if (this.processes.get(id) !== process) return
        process.isHealthy = true
        this.becameHealthy(process)
      })
    }
  }

  flagsOf(node: string, name: SimulatedProcess['name']): Readonly<Record<string, string>> {
    if (name === 'kubelet') {
      return {
        'client-ca-file': this.certificatePath('ca'),
        kubeconfig: '/etc/kubernetes/kubelet.conf',
        ...(this.isByHand ? { 'kubelet-tls-cert-file': this.certificatePath('kubelet') } : {}),
        ...(this.isByHand ? {} : { 'kubelet-client-current': `${kubeletPki}/kubelet-client-current.pem` }),
        ...(this.files.has(`${node}:${kubeletPki}/kubelet-server-current.pem`)
          ? { 'kubelet-server-current': `${kubeletPki}/kubelet-server-current.pem` }
          : {}),
      }
    }
    const path = this.definitionPath(name)
    const content = this.contentOf(this.read(node, path)?.text)
    const flags = content !== undefined && 'definition' in content ? content.definition.flags : {}
    return { ...flags, definition: path }
  }

  /** A kubelet restarts a static pod when its manifest changes. */
  private definitionChanged(process: SimulatedProcess): void {
    if (this.isUnit(process.name)) return
    const slow = process.name === 'kube-apiserver'
    this.time.after(this.time.between(100, 400), () => {
      if (this.processes.get(process.id) !== process) return
      this.stop(process.id)
      this.time.after(slow ? 30_000 : this.time.between(9_000, 11_000), () => {
        if (!this.processes.has(process.id))
          this.start(process.id, slow ? 8_000 : this.time.between(2_000, 4_000))
      })
    })
  }

  stop(id: string): void {
    const process = this.processes.get(id)
    this.processes.delete(id)
    if (process?.name === 'etcd') this.lostMember(process.node)
    const lease = process && this.leases.get(process.name)
    if (process?.name === 'kube-apiserver') this.time.after(12_000, () => this.endOrphans())
    if (process === undefined || lease?.holder !== process.node) return
    // The scheduler releases its Lease, the controller-manager does not.
    const electionDelay =
      process.name === 'kube-scheduler' ? this.time.between(2_000, 4_000) : this.time.between(15_600, 18_600)
    this.time.after(electionDelay, () => this.elect(process.name, process.node))
  }

  /** A signal ends a process. Its kubelet starts the container again, with an unchanged manifest. */
  signal(id: string): void {
    const isEtcd = id.endsWith('/etcd')
    this.time.after(isEtcd ? this.time.between(7_000, 8_000) : 5_000, () => {
      this.stop(id)
      this.time.after(this.time.between(1_000, 2_000), () => {
        if (!this.processes.has(id)) this.start(id, isEtcd ? this.time.between(1_500, 4_000) : 5_000)
      })
    })
  }

  /** A member that stops transfers leadership to another one first. */
  private lostMember(node: string): void {
    const up = this.members().filter(({ isHealthy }) => isHealthy)
    const stacked = [...this.nodes.values()].filter(({ isControlPlane }) => isControlPlane).length
    const all = this.etcdMachines.length || stacked
    this.mostMembersDown = Math.max(this.mostMembersDown, all - up.length)
    if (this.etcdLeader === node) this.etcdLeader = up[0]?.node ?? ''
  }

  members(): readonly SimulatedProcess[] {
    return [...this.processes.values()].filter(({ name }) => name === 'etcd')
  }

  /** Without any API server they lose their Leases, exit, and are restarted: units by systemd, static pods by the kubelet. */
  private endOrphans(): void {
    const all = [...this.processes.values()]
    if (all.some(({ name, isHealthy }) => name === 'kube-apiserver' && isHealthy)) return
    for (const { id, name } of all) {
      if (name !== 'kube-controller-manager' && name !== 'kube-scheduler') continue
      this.stop(id)
      this.time.after(this.isUnit(name) ? 1_000 : 10_000, () => {
        if (!this.processes.has(id)) this.start(id, 30_000)
      })
    }
  }

  /** Takes the Lease from a holder that is gone. */
  elect(name: string, from: string | undefined): void {
    const lease = this.leases.get(name)
    if (lease === undefined || (lease.holder !== from && lease.holder !== undefined)) return
    if (this.leaderOf(name) !== undefined) return
    const next = [...this.processes.values()].find(
      (one) => one.name === name && one.isHealthy && this.isConnected(one),
    )
    if (next === undefined) {
      delete lease.holder
      return
    }
    lease.holder = next.node
    lease.holderStartedAtMs = next.startedAtMs
    lease.renewedAtMs = this.time.nowMs
    if (name === 'kube-controller-manager') this.time.after(1_700, () => this.publishRootCa(next))
  }

  private becameHealthy(process: SimulatedProcess): void {
    if (process.name === 'kube-apiserver') this.publishClientCas()
    if (process.name === 'etcd' && this.etcdLeader === '') this.etcdLeader = process.node
    const lease = this.leases.get(process.name)
    if (lease !== undefined && lease.holder === undefined) this.elect(process.name, undefined)
  }

  leaderOf(name: string): SimulatedProcess | undefined {
    const holder = this.leases.get(name)?.holder
    const process = holder === undefined ? undefined : this.processes.get(`${holder}/${name}`)
    const isHolder = process?.startedAtMs === this.leases.get(name)?.holderStartedAtMs
    return process?.isHealthy && isHolder ? process : undefined
  }

  /** Replaced by the clients' module, which has the connections of a process. */
  isConnected: (process: SimulatedProcess) => boolean = () => true

  restartKubelet(node: string): void {
    const id = `${node}/kubelet`
    this.processes.delete(id)
    if (this.nodes.get(node)!.isKubeletBroken) return
    this.time.after(this.time.between(200, 500), () => {
      if (this.processes.has(id)) return
      this.start(id, this.time.between(800, 1_600))
      this.logsFrom.set(node, this.time.nowMs + this.time.between(1_000, 11_500))
      for (const key of [...this.pooled.keys()]) if (key.endsWith(`>${id}`)) this.pooled.delete(key)
      // A kubelet rewrites every volume at its start.
      for (const pod of this.pods.values()) if (pod.node === node) this.refreshVolume(pod)
      // All tokens of a node were new within 2.4 s. A kubelet keeps them in memory only.
      if (this.oldKey !== undefined)
        this.time.after(this.time.between(800, 2_400), () => this.mountTokens(node))
      if (/^v1\.(?:[0-2]\d|3[0-4])\./.test(this.kubeletVersions.get(node) ?? '')) this.makeUnready(node)
    })
  }

  // --- service account tokens

  /** Returns the keys with which an API server verifies tokens. */
  verifiedBy(api: SimulatedProcess): readonly Digest[] {
    const content = this.contentOf(api.loaded.get(api.flags['service-account-key-file'] ?? ''))
    return content !== undefined && 'publicKeys' in content ? content.publicKeys : []
  }

  /** Returns the key with which an API server or a controller-manager signs tokens. */
  signedBy(process: SimulatedProcess | undefined): Digest | undefined {
    const flags = process?.flags ?? {}
    const path = flags['service-account-signing-key-file'] ?? flags['service-account-private-key-file'] ?? ''
    const content = this.contentOf(process?.loaded.get(path))
    return content !== undefined && 'key' in content ? content.key : undefined
  }

  /** Any API server issues the token. */
  private issueToken(): Digest | undefined {
    const apis = [...this.processes.values()].filter((one) => one.name === 'kube-apiserver' && one.isHealthy)
    return this.signedBy(apis[Math.floor(this.time.between(0, apis.length - 0.001))])
  }

  private mountTokens(node: string): void {
    for (const pod of this.pods.values()) {
      if (pod.node !== node || pod.token === undefined) continue
      const key = this.issueToken()
      // Without an API server, the kubelet tries again.
      if (key === undefined) return void this.time.after(1_000, () => this.mountTokens(node))
      pod.token = { ...pod.token, key, mountedAtMs: this.time.nowMs, before: pod.token.key }
    }
  }

  /** Returns the key of the token that a pod uses. client-go reads the file again after at most a minute. */
  usedToken({ token, readsTokenOnce }: SimulatedPod): Digest | undefined {
    if (token === undefined || readsTokenOnce) return token?.first
    return this.time.nowMs - token.mountedAtMs < 60_000 ? token.before : token.key
  }

  private makeUnready(node: string): void {
    const its = [...this.pods.values()].filter((pod) => pod.node === node)
    for (const { id } of its) this.unready.set(id, this.time.nowMs)
    const nodes = [...this.pods.values()].filter(({ id }) => this.unready.has(id)).map((pod) => pod.node)
    this.mostUnreadyNodes = Math.max(this.mostUnreadyNodes, new Set(nodes).size)
    this.time.after(this.unreadyMs, () => {
      for (const { id } of its) this.unready.delete(id)
    })
  }

  // --- controllers

  /** Stores a third-party object that contains CAs and leaves. */
  store(
    name: string,
    {
      cas = [],
      leaves = [],
      owner,
    }: {
      readonly cas?: readonly CertificateRecord[]
      readonly leaves?: readonly CertificateRecord[]
      readonly owner?: string
    },
  ): void {
    const digests = (of: readonly CertificateRecord[]) => of.map(({ digest }) => digest)
    this.put(name, { cas: digests(cas), leaves: digests(leaves), ...(owner === undefined ? {} : { owner }) })
  }

  put(name: string, data: Readonly<Record<string, unknown>>): void {
    const now = this.objects.get(name)
    if (now !== undefined && JSON.stringify(now.data) === JSON.stringify(data)) return
    this.objects.set(name, {
      data,
      version: (now?.version ?? this.serial++) + 1,
      changedAtMs: this.time.nowMs,
    })
    if (name === 'ConfigMap kube-public/cluster-info')
      this.time.after(this.time.between(50, 140), () => this.signClusterInfo())
    if (name.endsWith('/kube-root-ca.crt'))
      this.bringToVolumes(name.slice('ConfigMap '.length).split('/')[0]!)
    else if (name.startsWith(trustBundlePrefix)) this.bringToVolumes(undefined)
  }

  private signClusterInfo(): void {
    const info = this.objects.get('ConfigMap kube-public/cluster-info')
    if (info === undefined) return
    if (this.leaderOf('kube-controller-manager') === undefined) {
      this.time.after(1_000, () => this.signClusterInfo())
      return
    }
    const { trust } = info.data
    this.put('ConfigMap kube-public/cluster-info', { trust, signed: { abcdef: trust } })
  }

  private publishRootCa(by: SimulatedProcess): void {
    if (this.leaderOf('kube-controller-manager') !== by) return
    const trust = this.loadedBy(by, 'root-ca-file')
    for (const [i, namespace] of this.namespaces.entries()) {
      this.time.after(i * 50, () => {
        if (this.leaderOf('kube-controller-manager') === by)
          this.put(`ConfigMap ${namespace}/kube-root-ca.crt`, { trust })
      })
    }
    this.put('Secret kube-system/legacy-token', { trust })
    if (this.trustBundles().length > 0) this.publishTrustBundle(trust)
  }

  /** Changed content is a new object, which is created before the old one is deleted. */
  private publishTrustBundle(trust: readonly Digest[]): void {
    const name = `${trustBundlePrefix}${hashOf(trust.join()).slice(0, 24)}`
    this.put(name, { trust })
    for (const other of this.trustBundles()) if (other !== name) this.objects.delete(other)
  }

  private trustBundles(): string[] {
    return [...this.objects.keys()].filter((name) => name.startsWith(trustBundlePrefix))
  }

  /** API servers add their CAs to the existing ones and never remove any. */
  publishClientCas(): void {
    const name = 'ConfigMap kube-system/extension-apiserver-authentication'
    const now = this.objects.get(name)?.data ?? { client: [], requestheader: [] }
    const apis = [...this.processes.values()].filter((one) => one.name === 'kube-apiserver' && one.isHealthy)
    const union = (field: string, flag: string): readonly Digest[] => [
      ...new Set([...(now[field] as Digest[]), ...apis.flatMap((api) => this.loadedBy(api, flag))]),
    ]
    this.put(name, {
      client: union('client', 'client-ca-file'),
      requestheader: union('requestheader', 'requestheader-client-ca-file'),
    })
  }

  deleteObject(name: string): void {
    this.objects.delete(name)
    if (name.endsWith('extension-apiserver-authentication')) {
      this.time.after(this.time.between(60, 450), () => this.publishClientCas())
    }
  }

  addNamespace(name: string): void {
    this.namespaces.push(name)
    const leader = this.leaderOf('kube-controller-manager')
    const trust = leader === undefined ? [this.oldCa.digest] : this.loadedBy(leader, 'root-ca-file')
    this.put(`ConfigMap ${name}/kube-root-ca.crt`, { trust })
    if (name === 'kube-system') this.put('Secret kube-system/legacy-token', { trust })
  }

  rootCaIn(namespace: string): readonly Digest[] {
    return (this.objects.get(`ConfigMap ${namespace}/kube-root-ca.crt`)?.data.trust ??
      []) as readonly Digest[]
  }

  /**
   * Returns the content that a kubelet writes into the file; undefined where a bundle mounted by name is gone. Then the file
   * stays.
   */
  private caFor({
    namespace,
    trustBundle,
  }: Pick<SimulatedPod, 'namespace' | 'trustBundle'>): readonly Digest[] | undefined {
    if (trustBundle === undefined) return this.rootCaIn(namespace)
    const { name } = trustBundle
    const its = name === undefined ? this.trustBundles() : [`ClusterTrustBundle ${name}`]
    const found = its.flatMap((one) => (this.objects.get(one)?.data.trust ?? []) as readonly Digest[])
    return found.length === 0 ? undefined : [...new Set(found)]
  }

  /** For a namespace's ConfigMap; with undefined, for ClusterTrustBundles. */
  private bringToVolumes(namespace: string | undefined): void {
    for (const pod of this.pods.values()) {
      if ((pod.trustBundle === undefined ? pod.namespace : undefined) === namespace)
        this.time.after(this.time.between(24_000, 79_000), () => this.refreshVolume(pod))
    }
  }

  private refreshVolume(pod: SimulatedPod): void {
    const trust = this.caFor(pod)
    if (trust === undefined || pod.volume.trust.join() === trust.join()) return
    pod.volume = { trust, changedAtMs: this.time.nowMs }
  }

  // --- workloads

  addWorkload(
    id: string,
    given: {
      readonly rereads: boolean
      readonly serves?: readonly string[]
      readonly trustBundle?: { readonly name?: string }
    },
  ): void {
    const namespace = id.split(' ')[1]!.split('/')[0]!
    this.workloads.set(id, {
      id,
      namespace,
      serves: given.serves ?? [],
      rereads: given.rereads,
      ...(given.trustBundle && { trustBundle: given.trustBundle }),
      version: 1,
      isStuck: false,
      mayRoll: true,
    })
  }

  /** Returns false where its volume cannot be set up. Then it stays at ContainerCreating and does not run. */
  startPod(workload: string | undefined, bare = 'bare'): boolean {
    const its = workload === undefined ? undefined : this.workloads.get(workload)!
    const namespace = its?.namespace ?? 'default'
    const uid = `uid-${this.serial++}`
    const trustBundle = its?.trustBundle
    const trust = this.caFor({ namespace, ...(trustBundle && { trustBundle }) })
    if (trust === undefined) return false
    const nodes = this.nodeNames
    const pod: SimulatedPod = {
      id: `${namespace}/${workload?.split('/')[1] ?? bare}-${uid}`,
      namespace,
      uid,
      node: nodes[this.serial % nodes.length]!,
      ...(workload === undefined ? {} : { workload }),
      startedAtMs: this.time.nowMs,
      volume: { trust, changedAtMs: this.time.nowMs },
      trust,
      requestheader: this.requestheaderPublished(),
      rereads: its?.rereads ?? false,
      ...(trustBundle && { trustBundle }),
    }
    const key = this.oldKey && this.issueToken()
    if (key !== undefined) pod.token = { key, mountedAtMs: this.time.nowMs, before: key, first: key }
    this.pods.set(uid, pod)
    if (pod.rereads) this.reread(pod)
    return true
  }

  private requestheaderPublished(): readonly Digest[] {
    const extension = this.objects.get('ConfigMap kube-system/extension-apiserver-authentication')
    return (extension?.data.requestheader ?? [this.oldFrontProxyCa.digest]) as readonly Digest[]
  }

  private reread(pod: SimulatedPod): void {
    this.time.after(300_000, () => {
      if (!this.pods.has(pod.uid)) return
      pod.trust = pod.volume.trust
      this.reread(pod)
    })
  }

  /** Replaces the pods one by one: the new pod runs before the old one is deleted. */
  roll(id: string, annotation: string): void {
    const workload = this.workloads.get(id)!
    if (workload.annotation === annotation) return
    workload.annotation = annotation
    workload.version++
    const old = [...this.pods.values()].filter((pod) => pod.workload === id)
    for (const [i, pod] of old.entries()) this.time.after(2_000 * (i + 1), () => this.replacePod(id, pod))
  }

  private replacePod(id: string, pod: SimulatedPod): void {
    if (this.workloads.get(id)!.isStuck) {
      this.time.after(5_000, () => this.replacePod(id, pod))
      return
    }
    if (this.startPod(id)) this.pods.delete(pod.uid)
  }

  /** The owner of a webhook or aggregated API issues a new serving certificate on request. */
  reissueHandlers(ca: CertificateRecord): void {
    for (const name of this.handlers.keys()) this.handlers.set(name, [this.issue(name, ca).digest])
  }

  // --- nodes

  addNode(
    name: string,
    isControlPlane: boolean,
    shape: ClusterShape = {},
    trust = [this.oldCa.digest],
    signer = this.oldCa,
  ): void {
    this.nodeNames.push(name)
    this.nodes.set(name, {
      name,
      isControlPlane,
      clockSkewMs: 20,
      isUnreachable: false,
      isDiskFull: false,
      isKubeletBroken: false,
    })
    this.write(name, this.certificatePath('ca'), { certificates: trust })
    const stored = this.isByHand ? [] : this.isPlain && !shape.allFlags ? ['client'] : ['client', 'server']
    for (const usage of stored) {
      const { digest, spki } = this.issue(`system:node:${name}`, signer)
      const dated = `${kubeletPki}/kubelet-${usage}-2026-01-01-00-00-00.pem`
      this.write(name, dated, { pair: [digest], key: spki }, 0o600)
      this.link(name, `${kubeletPki}/kubelet-${usage}-current.pem`, dated)
    }
    const own = this.isByHand
      ? this.kubeconfig(`system:node:${name}`, trust, signer)
      : { kubeconfig: { caData: trust } }
    this.write(name, '/etc/kubernetes/kubelet.conf', own, 0o600)
    if (this.isByHand) this.writeLeaf(name, 'kubelet', `system:node:${name}`, signer)
    this.writeDefinition(name, 'kube-proxy', { kubeconfig: '/etc/kubernetes/kube-proxy.conf' })
    this.write(
      name,
      '/etc/kubernetes/kube-proxy.conf',
      this.kubeconfig('system:kube-proxy', trust, signer),
      0o600,
    )
    if (isControlPlane) this.addControlPlane(name, shape)
    this.time.nowMs += 1
    const etcd = this.files.has(`${name}:${this.definitionPath('etcd')}`) ? [`${name}/etcd`] : []
    for (const id of [...etcd, ...this.componentIds(name), `${name}/kubelet`]) this.start(id, 0)
  }

  private addControlPlane(node: string, shape: ClusterShape): void {
    const old = [this.oldCa.digest]
    this.write(node, this.keyPath('ca'), { key: this.oldCa.spki }, 0o600)
    this.write(node, this.certificatePath('front-proxy-ca'), { certificates: [this.oldFrontProxyCa.digest] })
    this.write(node, this.keyPath('front-proxy-ca'), { key: this.oldFrontProxyCa.spki }, 0o600)
    this.writeLeaf(node, 'apiserver', 'kube-apiserver', this.oldCa)
    if (!this.isByHand)
      this.writeLeaf(node, 'apiserver-kubelet-client', 'kube-apiserver-kubelet-client', this.oldCa)
    this.writeLeaf(node, 'front-proxy-client', 'front-proxy-client', this.oldFrontProxyCa)
    for (const file of ['admin', 'controller-manager', 'scheduler']) {
      this.write(node, `/etc/kubernetes/${file}.conf`, this.kubeconfig(file, old, this.oldCa), 0o600)
    }
    const etcd = this.oldEtcdCa === undefined ? {} : this.addMember(node, this.oldEtcdCa)
    const tokens = this.oldKey === undefined ? undefined : this.addServiceAccountKey(node, this.oldKey)
    const client = { 'client-ca-file': this.certificatePath('ca') }
    const requestheader = { 'requestheader-client-ca-file': this.certificatePath('front-proxy-ca') }
    this.writeDefinition(node, 'kube-apiserver', {
      ...etcd,
      ...tokens?.apiServer,
      ...client,
      ...requestheader,
      'tls-cert-file': this.certificatePath('apiserver'),
      'tls-private-key-file': this.keyPath('apiserver'),
      'kubelet-client-certificate': this.certificatePath(
        this.isByHand ? 'apiserver' : 'apiserver-kubelet-client',
      ),
      'proxy-client-cert-file': this.certificatePath('front-proxy-client'),
      ...(shape.allFlags || this.isByHand
        ? { 'kubelet-certificate-authority': this.certificatePath('ca') }
        : {}),
    })
    this.writeDefinition(node, 'kube-controller-manager', {
      ...client,
      ...requestheader,
      ...tokens?.manager,
      kubeconfig: '/etc/kubernetes/controller-manager.conf',
      'root-ca-file': this.certificatePath('ca'),
      'cluster-signing-cert-file': this.certificatePath('ca'),
      'cluster-signing-key-file': this.keyPath('ca'),
    })
    if (shape.allFlags) this.write(node, this.certificatePath('scheduler-clients'), { certificates: old })
    this.writeDefinition(node, 'kube-scheduler', {
      kubeconfig: '/etc/kubernetes/scheduler.conf',
      // A scheduler without this flag treats all clients as anonymous.
      ...(this.isByHand ? {} : { 'authentication-kubeconfig': '/etc/kubernetes/scheduler.conf' }),
      ...(shape.allFlags ? { 'client-ca-file': this.certificatePath('scheduler-clients') } : {}),
    })
  }

  /** A machine with a member alone: no kubelet, and no Node object. */
  private addEtcdMachine(name: string, ca: CertificateRecord): void {
    const state = { clockSkewMs: 20, isUnreachable: false, isDiskFull: false, isKubeletBroken: false }
    this.nodes.set(name, { name, isControlPlane: false, isEtcdMachine: true, ...state })
    const { digest, spki } = this.issue(name, ca)
    this.write(name, `${etcdFolder}/etcd.pem`, { certificates: [digest] })
    this.write(name, `${etcdFolder}/etcd-key.pem`, { key: spki }, 0o600)
    this.write(name, `${etcdFolder}/etcd-ca.pem`, { certificates: [ca.digest] })
    this.writeDefinition(name, 'etcd', {
      'listen-client-urls': etcdUrl(name),
      'cert-file': `${etcdFolder}/etcd.pem`,
      'peer-cert-file': `${etcdFolder}/etcd.pem`,
      'trusted-ca-file': `${etcdFolder}/etcd-ca.pem`,
      'peer-trusted-ca-file': `${etcdFolder}/etcd-ca.pem`,
    })
    this.start(`${name}/etcd`, 0)
  }

  /** Returns the flags of the API server beside the member, or with the members on machines of their own. */
  private addMember(node: string, ca: CertificateRecord): Record<string, string> {
    this.write(node, this.certificatePath('etcd/ca'), { certificates: [ca.digest] })
    if (this.etcdMachines.length > 0) {
      // The operator has copied the key of the CA to the first control-plane node.
      if (node === 'cp1') this.write(node, this.keyPath('etcd/ca'), { key: ca.spki }, 0o600)
      this.writeLeaf(node, 'apiserver-etcd-client', 'apiserver-etcd-client', ca)
      return {
        'etcd-servers': this.etcdMachines.map(etcdUrl).join(),
        'etcd-cafile': this.certificatePath('etcd/ca'),
        'etcd-certfile': this.certificatePath('apiserver-etcd-client'),
      }
    }
    this.write(node, this.keyPath('etcd/ca'), { key: ca.spki }, 0o600)
    for (const file of ['etcd/server', 'etcd/peer', 'etcd/healthcheck-client', 'apiserver-etcd-client'])
      this.writeLeaf(node, file, file, ca)
    this.writeDefinition(node, 'etcd', {
      'listen-client-urls': 'https://127.0.0.1:2379',
      'cert-file': this.certificatePath('etcd/server'),
      'peer-cert-file': this.certificatePath('etcd/peer'),
      'trusted-ca-file': this.certificatePath('etcd/ca'),
      'peer-trusted-ca-file': this.certificatePath('etcd/ca'),
    })
    return {
      'etcd-servers': 'https://127.0.0.1:2379',
      'etcd-cafile': this.certificatePath('etcd/ca'),
      'etcd-certfile': this.certificatePath('apiserver-etcd-client'),
    }
  }

  private addServiceAccountKey(node: string, key: Digest) {
    this.write(node, `${pki}/sa.key`, { key }, 0o600)
    this.write(node, `${pki}/sa.pub`, { publicKeys: [key] })
    return {
      apiServer: {
        'service-account-key-file': `${pki}/sa.pub`,
        'service-account-signing-key-file': `${pki}/sa.key`,
        'service-account-issuer': 'https://kubernetes.default.svc.cluster.local',
      },
      manager: { 'service-account-private-key-file': `${pki}/sa.key` },
    }
  }

  private writeLeaf(node: string, file: string, subject: string, ca: CertificateRecord): void {
    const { digest, spki } = this.issue(subject, ca)
    this.write(node, this.keyPath(file), { key: spki }, 0o600)
    this.write(node, this.certificatePath(file), { certificates: [digest] })
  }

  private kubeconfig(subject: string, caData: readonly Digest[], ca: CertificateRecord): FileContent {
    return { kubeconfig: { caData, client: this.issue(subject, ca).digest } }
  }

  private writeDefinition(
    node: string,
    component: ComponentName | 'etcd',
    flags: Record<string, string>,
  ): void {
    this.write(node, this.definitionPath(component), { definition: { component, flags } }, 0o600)
    this.ownFlags.set(`${node}/${component}`, flags)
  }

  /**
   * The effect of `kubeadm upgrade` on a control-plane node. It issues leaves with the first CA of ca.crt, puts only that CA into
   * the kubeconfigs of components, and writes manifests of the new version from kubeadm-config. It ignores annotations.
   */
  upgradeNode(node: string, version: string): void {
    const name = 'ConfigMap kube-system/kubeadm-config'
    const data: Readonly<Record<string, unknown>> = {
      ...this.objects.get(name)!.data,
      kubernetesVersion: version,
    }
    this.put(name, data)
    this.renewLeaves(node)
    const { extraArgs = {} } = data as { extraArgs?: Record<string, Record<string, string>> }
    for (const [component, key] of kubeadmComponents) {
      const flags = { ...this.ownFlags.get(`${node}/${component}`), ...extraArgs[key] }
      this.write(node, this.definitionPath(component), { definition: { component, flags, version } }, 0o600)
    }
  }

  /** The effect of `kubeadm certs renew all`, which the same upgrade runs. */
  renewLeaves(node: string): void {
    const [ca, frontProxyCa] = ['ca', 'front-proxy-ca'].map((stem) => {
      const [digest] = this.certificatesIn(this.read(node, this.certificatePath(stem))?.text)
      return this.certificates.get(digest!)!
    })
    this.writeLeaf(node, 'apiserver', 'kube-apiserver', ca!)
    this.writeLeaf(node, 'apiserver-kubelet-client', 'kube-apiserver-kubelet-client', ca!)
    this.writeLeaf(node, 'front-proxy-client', 'front-proxy-client', frontProxyCa!)
    for (const file of ['controller-manager', 'scheduler'])
      this.write(node, `/etc/kubernetes/${file}.conf`, this.kubeconfig(file, [ca!.digest], ca!), 0o600)
  }

  componentIds(node: string): readonly string[] {
    const names: ComponentName[] = [
      'kube-apiserver',
      'kube-controller-manager',
      'kube-scheduler',
      'kube-proxy',
    ]
    return names
      .filter((name) => this.files.has(`${node}:${this.definitionPath(name)}`))
      .map((name) => `${node}/${name}`)
  }

  definitionPath(name: SimulatedProcess['name']): string {
    return this.isUnit(name)
      ? `/etc/systemd/system/${name}.service`
      : `/etc/kubernetes/manifests/${name}.yaml`
  }

  isUnit(name: SimulatedProcess['name']): boolean {
    return this.isPlain || name === 'kube-proxy' || (name === 'etcd' && this.etcdMachines.length > 0)
  }

  certificatePath(stem: string): string {
    return `${pki}/${stem}.${this.isPlain ? 'pem' : 'crt'}`
  }

  private keyPath(stem: string): string {
    return `${pki}/${stem}${this.isPlain ? '-key.pem' : '.key'}`
  }
}

const etcdFolder = '/etc/etcd/ssl'

function etcdUrl(machine: string): string {
  return `https://10.1.0.${machine.slice(1)}:2379`
}

/** Returns the kubelet flag that sets its serving certificate. */
export function servingFlagOf({ flags }: SimulatedProcess): string {
  return flags['kubelet-tls-cert-file'] === undefined ? 'kubelet-server-current' : 'kubelet-tls-cert-file'
}

export function objectKey({ kind, namespace, name }: ObjectReference): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}

export function hashOf(text: string): Digest {
  return createHash('sha256').update(text).digest('hex')
}

function names(count: number): string[] {
  return Array.from({ length: Math.max(0, count) }, (_, i) => `ns${i + 1}`)
}
