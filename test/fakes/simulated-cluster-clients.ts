import type { CertificateRecord, Digest } from '../../src/rotation/certificate-record.ts'
import type { HandshakeFailure } from '../../src/rotation/handshake-errors.ts'
import { refusingVerifiers } from '../../src/rotation/model/trust.ts'
import {
  type SimulatedCluster,
  type SimulatedPod,
  type SimulatedProcess,
  servingFlagOf,
} from './simulated-cluster.ts'

// Clients that connect continuously: after every event, each of them opens a new connection, and failures are counted.

export interface Failure {
  readonly atMs: number
  readonly client: string
  readonly server: string
  readonly why: string
}

/** A client whose handshake with every API server fails at regular times. `reason` is the text in the log of Go's TLS server. */
export interface FailingClient {
  readonly address: string
  readonly everyMs: number
  readonly reason: string
  readonly sinceMs?: number
  readonly untilMs?: number
}

export class SimulatedClients {
  /**
   * TCP checks of load balancers, clients that hang up, and clients that do not trust the server. Their handshakes fail
   * continuously.
   */
  readonly failing: FailingClient[] = []
  /** False when the logs of API servers cannot be read. */
  hasLogs = true
  readonly failures: Failure[] = []
  /** The number of attempts by kind of client. */
  readonly tried = new Map<string, number>()
  /** Phase 12 breaks this client on purpose: it trusts only the old CA and relies on the bridge certificate. */
  expectsBridge = true
  /** Pods that read their CA file once and are not restarted break the rules, so their failures do not count. */
  readonly waived = new Set<string>()
  /** Chains that unknown clients of etcd present to every member. */
  readonly strangers: (readonly Digest[])[] = []
  private readonly cluster: SimulatedCluster
  private readonly begunMs: number
  private readonly verdicts = new Map<string, boolean>()
  private readonly tlsErrors = new Map<string, number[]>()
  private readonly reported = new Set<string>()

  constructor(cluster: SimulatedCluster) {
    this.cluster = cluster
    this.begunMs = cluster.time.nowMs
    cluster.isConnected = (process) => this.wrongWithProcess(process) === undefined
  }

  /** Lets every client connect after each instant. */
  attach(): void {
    this.cluster.time.afterEach = () => this.tryAll()
  }

  /** Returns the handshake counter of an API server, and the failures in its log since then. */
  handshakesAt(server: string, sinceMs: number): { count: number; failures: HandshakeFailure[] } {
    const now = this.cluster.time.nowMs
    const own = this.tlsErrors.get(server) ?? []
    let count = own.length
    const failures: HandshakeFailure[] = own
      .filter((atMs) => atMs >= sinceMs)
      .map((atMs) => ({ atMs, address: '192.0.2.250', reason: 'remote error: tls: bad certificate' }))
    for (const { address, everyMs, reason, sinceMs: from = this.begunMs, untilMs = now } of this.failing) {
      const last = Math.min(now, untilMs)
      for (let at = Math.ceil(from / everyMs) * everyMs; at <= last; at += everyMs) {
        count++
        if (at >= sinceMs) failures.push({ atMs: at, address, reason })
      }
    }
    return { count, failures: this.hasLogs ? failures : [] }
  }

  private trusts(trust: readonly Digest[], chain: readonly Digest[]): boolean {
    const day = Math.floor(this.cluster.time.nowMs / 86_400_000)
    const key = `${day} ${trust.join()} ${chain.join()}`
    let verdict = this.verdicts.get(key)
    if (verdict === undefined) {
      const { certificates, time } = this.cluster
      verdict = refusingVerifiers({ chain, trust, certificates, atMs: time.nowMs }).length === 0
      this.verdicts.set(key, verdict)
    }
    return verdict
  }

  servers(): SimulatedProcess[] {
    return [...this.cluster.processes.values()].filter(
      (one) => one.name === 'kube-apiserver' && one.isHealthy,
    )
  }

  /** Returns why a connection to an API server fails; undefined when it does not. */
  private wrongAt(
    api: SimulatedProcess,
    trust: readonly Digest[],
    client: Digest | undefined,
  ): string | undefined {
    if (!this.trusts(trust, this.cluster.loadedBy(api, 'tls-cert-file')))
      return 'server certificate not trusted'
    if (client === undefined) return undefined
    return this.trusts(this.cluster.loadedBy(api, 'client-ca-file'), [client]) ? undefined : 'client gets 401'
  }

  reaches(trust: readonly Digest[], server: string): boolean {
    const api = this.cluster.processes.get(server)
    return api?.isHealthy === true && this.wrongAt(api, trust, undefined) === undefined
  }

  /** Returns undefined when the server does not respond. */
  acceptsClientOf(
    server: string,
    ca: CertificateRecord,
    which: 'cluster' | 'front-proxy',
  ): boolean | undefined {
    const process = this.cluster.processes.get(server)
    if (process === undefined || !process.isHealthy) return undefined
    const flag = which === 'cluster' ? 'client-ca-file' : 'requestheader-client-ca-file'
    const findsOut = process.flags['authentication-kubeconfig'] !== undefined
    if (process.flags[flag] === undefined && !findsOut) return undefined
    const extension = this.cluster.objects.get('ConfigMap kube-system/extension-apiserver-authentication')
    const trust =
      process.flags[flag] === undefined
        ? ((extension?.data[which === 'cluster' ? 'client' : 'requestheader'] ?? []) as readonly Digest[])
        : this.cluster.loadedBy(process, flag)
    return trust.some((digest) => this.cluster.certificates.get(digest)?.spki === ca.spki)
  }

  /** A component or kubelet with its kubeconfig, at its API server. */
  wrongWithProcess(process: SimulatedProcess): string | undefined {
    const trust = this.cluster.loadedBy(process, 'kubeconfig')
    const client =
      process.name === 'kubelet'
        ? this.cluster.clientOf(
            process,
            process.flags['kubelet-client-current'] ? 'kubelet-client-current' : 'kubeconfig',
          )
        : this.cluster.clientOf(process, 'kubeconfig')
    const local = this.cluster.processes.get(`${process.node}/kube-apiserver`)
    const apis = local === undefined ? this.servers() : local.isHealthy ? [local] : []
    for (const api of apis) {
      const wrong = this.wrongAt(api, trust, client)
      if (wrong !== undefined) return `${wrong} at ${api.id}`
    }
    return undefined
  }

  wrongWithKubeconfig(node: string, path: string): string | undefined {
    const content = this.cluster.contentOf(this.cluster.read(node, path)?.text)
    if (content === undefined || !('kubeconfig' in content)) return 'no kubeconfig'
    for (const api of this.servers()) {
      const wrong = this.wrongAt(api, content.kubeconfig.caData, content.kubeconfig.client)
      if (wrong !== undefined) return `${wrong} at ${api.id}`
    }
    return undefined
  }

  /** Reads logs of a node through every API server; "404" while its kubelet starts. */
  wrongWithLogs(node: string): string | undefined {
    const kubelet = this.cluster.processes.get(`${node}/kubelet`)
    if (kubelet === undefined || !kubelet.isHealthy) return 'kubelet does not answer'
    for (const api of this.servers()) {
      const wrong = this.wrongFromApiTo(api, kubelet)
      if (wrong !== undefined) return wrong
    }
    return (this.cluster.logsFrom.get(node) ?? 0) > this.cluster.time.nowMs ? '404' : undefined
  }

  private wrongFromApiTo(api: SimulatedProcess, kubelet: SimulatedProcess): string | undefined {
    const { time, pooled } = this.cluster
    const key = `${api.id}>${kubelet.id}`
    const client = this.cluster.loadedBy(api, 'kubelet-client-certificate')[0] ?? ''
    const kept = pooled.get(key)
    const used = kept !== undefined && kept.untilMs > time.nowMs ? kept.client : client
    if (used === client && kept?.client !== client) pooled.set(key, { client, untilMs: time.nowMs + 300_000 })
    if (!this.trusts(this.cluster.loadedBy(kubelet, 'client-ca-file'), [used])) {
      return `${api.id} gets 401 from ${kubelet.id}`
    }
    if (api.flags['kubelet-certificate-authority'] === undefined) return undefined
    const serving = this.cluster.loadedBy(kubelet, servingFlagOf(kubelet))
    if (this.trusts(this.cluster.loadedBy(api, 'kubelet-certificate-authority'), serving)) return undefined
    return `${api.id} does not trust ${kubelet.id}`
  }

  private tryAll(): void {
    const apis = this.servers()
    for (const node of this.cluster.nodes.values()) {
      if (!node.isControlPlane) continue
      const path = '/etc/kubernetes/admin.conf'
      this.count(
        'holder of a bundle kubeconfig',
        `${node.name}:${path}`,
        '*',
        this.wrongWithKubeconfig(node.name, path),
      )
    }
    for (const process of this.cluster.processes.values()) {
      if (process.name === 'kube-apiserver' || process.name === 'etcd' || !process.isHealthy) continue
      this.count(process.name, process.id, '*', this.wrongWithProcess(process))
    }
    for (const pod of this.cluster.pods.values()) {
      for (const api of apis) this.count('pod', pod.id, api.id, this.wrongWithPod(pod, api))
    }
    for (const api of apis) {
      if (this.expectsBridge) {
        const wrong = this.wrongAt(api, [this.cluster.oldCa.digest], undefined)
        this.count('client that trusts the old CA alone', 'outside', api.id, wrong)
      }
      this.tryHandlers(api)
      this.tryJoiner(api)
    }
    this.tryEtcd()
    if (this.cluster.oldKey !== undefined) for (const api of apis) this.tryTokens(api)
    for (const node of this.cluster.nodes.keys()) {
      const wrong = this.wrongWithLogs(node)
      const isRestarting = wrong === 'kubelet does not answer' || wrong === '404'
      this.count('logs', 'API servers', `${node}/kubelet`, isRestarting ? undefined : wrong)
    }
  }

  /** Pods with their tokens. A token that was read more than 3,607 s ago counts as stale. */
  private tryTokens(api: SimulatedProcess): void {
    const { cluster } = this
    const verified = cluster.verifiedBy(api)
    let stale = 0
    for (const pod of cluster.pods.values()) {
      const key = cluster.usedToken(pod)
      if (key === undefined || this.waived.has(pod.id)) continue
      this.count('token', pod.id, `token at ${api.id}`, verified.includes(key) ? undefined : 'token gets 401')
      const readAtMs = pod.readsTokenOnce ? pod.startedAtMs : cluster.time.nowMs
      if (cluster.time.nowMs - readAtMs > 3_607_000) stale++
    }
    for (const name of cluster.usedSecrets) {
      const key = cluster.objects.get(name)?.data.tokenKey as Digest | undefined
      if (key === undefined) continue
      stale++
      this.count('token', name, `token at ${api.id}`, verified.includes(key) ? undefined : 'token gets 401')
    }
    cluster.staleUses.set(api.id, (cluster.staleUses.get(api.id) ?? 0) + stale)
  }

  /** Each member to each other one, in both directions, and each API server to the member beside it, or to each on its own machine. */
  private tryEtcd(): void {
    const members = this.cluster.members().filter(({ isHealthy }) => isHealthy)
    for (const member of members) {
      for (const other of members) {
        if (member === other) continue
        this.count('etcd member', member.id, other.id, this.wrongBetween(member, other))
      }
      const isStacked = this.cluster.nodes.get(member.node)?.isControlPlane === true
      for (const api of this.servers().filter(({ node }) => !isStacked || node === member.node))
        this.count('API server to etcd', api.id, member.id, this.wrongAtEtcd(api, member))
      const own = this.cluster.loadedBy(member, 'cert-file')
      const isOwn = this.trusts(this.cluster.loadedBy(member, 'trusted-ca-file'), own)
      for (const chain of this.strangers) {
        const isAccepted = this.trusts(this.cluster.loadedBy(member, 'trusted-ca-file'), chain)
        this.count('unknown client of etcd', 'backup', member.id, isAccepted ? undefined : 'client refused')
      }
      this.count('gateway of etcd', member.id, member.id, isOwn ? undefined : 'client refused')
    }
  }

  private wrongBetween(client: SimulatedProcess, server: SimulatedProcess): string | undefined {
    const [from, to] = [client, server].map((one) => ({
      chain: this.cluster.loadedBy(one, 'peer-cert-file'),
      trust: this.cluster.loadedBy(one, 'peer-trusted-ca-file'),
    }))
    if (!this.trusts(from!.trust, to!.chain)) return 'peer not trusted'
    return this.trusts(to!.trust, from!.chain) ? undefined : 'peer refused'
  }

  private wrongAtEtcd(api: SimulatedProcess, member: SimulatedProcess): string | undefined {
    const { cluster } = this
    if (!this.trusts(cluster.loadedBy(api, 'etcd-cafile'), cluster.loadedBy(member, 'cert-file')))
      return 'etcd not trusted'
    const client = cluster.loadedBy(api, 'etcd-certfile')
    return this.trusts(cluster.loadedBy(member, 'trusted-ca-file'), client) ? undefined : 'client refused'
  }

  /** IDs of members with which a member has a connection. */
  peersOf(member: SimulatedProcess): readonly SimulatedProcess[] {
    return this.cluster
      .members()
      .filter(
        (other) =>
          other !== member &&
          other.isHealthy &&
          this.wrongBetween(member, other) === undefined &&
          this.wrongBetween(other, member) === undefined,
      )
  }

  /** Returns undefined when the member does not respond. */
  isAcceptedByEtcd(server: string, chain: readonly Digest[]): boolean | undefined {
    const member = this.cluster.processes.get(server)
    if (member?.isHealthy !== true) return undefined
    return this.trusts(this.cluster.loadedBy(member, 'trusted-ca-file'), chain)
  }

  reachesEtcd(trust: readonly Digest[], server: string): boolean {
    const member = this.cluster.processes.get(server)
    return member?.isHealthy === true && this.trusts(trust, this.cluster.loadedBy(member, 'cert-file'))
  }

  private wrongWithPod(pod: SimulatedPod, api: SimulatedProcess): string | undefined {
    return this.waived.has(pod.id) ? undefined : this.wrongAt(api, pod.trust, undefined)
  }

  /** Aggregated APIs and webhooks: the caBundle verifies the handler, and the handler verifies the front proxy. */
  private tryHandlers(api: SimulatedProcess): void {
    const proxy = this.cluster.loadedBy(api, 'proxy-client-cert-file')
    for (const [name, { data }] of this.cluster.objects) {
      if (typeof data.server !== 'string') continue
      const isTrusted = this.trusts(
        data.trust as readonly Digest[],
        this.cluster.handlers.get(data.server) ?? [],
      )
      this.count('API server to handler', api.id, name, isTrusted ? undefined : 'handler not trusted')
    }
    for (const pod of this.cluster.pods.values()) {
      if (!pod.workload || this.cluster.workloads.get(pod.workload)!.serves.length === 0) continue
      const wrong = this.trusts(pod.requestheader, proxy) ? undefined : 'front proxy not trusted'
      this.count('front proxy', api.id, pod.id, wrong)
    }
  }

  /** A node that joins now trusts cluster-info, and takes its own client CA from there. */
  private tryJoiner(api: SimulatedProcess): void {
    const info = this.cluster.objects.get('ConfigMap kube-public/cluster-info')
    const trust = (info?.data.trust ?? []) as readonly Digest[]
    this.count('joining node', 'joiner', api.id, this.wrongAt(api, trust, undefined))
    const client = this.cluster.loadedBy(api, 'kubelet-client-certificate')
    const isAccepted = this.trusts(trust, client)
    this.count('logs of a joining node', api.id, 'joiner', isAccepted ? undefined : 'client gets 401')
  }

  private count(kind: string, client: string, server: string, why: string | undefined): void {
    this.tried.set(kind, (this.tried.get(kind) ?? 0) + 1)
    const key = `${client}>${server}`
    if (why === undefined) {
      this.reported.delete(key)
      return
    }
    if (why.includes('not trusted')) {
      for (const api of this.servers()) {
        const its = this.tlsErrors.get(api.id) ?? []
        // One entry for each instant is enough.
        if (its.at(-1) !== this.cluster.time.nowMs) its.push(this.cluster.time.nowMs)
        this.tlsErrors.set(api.id, its)
      }
    }
    // Repeated failures of one client are reported once.
    if (this.reported.has(key)) return
    this.reported.add(key)
    this.failures.push({ atMs: this.cluster.time.nowMs, client: `${kind} ${client}`, server, why })
  }
}
