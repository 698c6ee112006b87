import { given } from '../../src/errors/given.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type {
  PatchObject,
  Probe,
  ProbeSubject,
  RestartComponent,
  RollWorkload,
  WriteFile,
} from '../../src/rotation/action.ts'
import type { CertificateRecord, Digest } from '../../src/rotation/certificate-record.ts'
import { HandshakeWatch } from '../../src/rotation/handshake-errors.ts'
import { copiesFolder, pastIndex } from '../../src/rotation/material.ts'
import type { FoundKeys, KeyFile, KeyPlaces, OldKeyFiles } from '../../src/rotation/old-keys.ts'
import type { Executor, JournalFile, Observer, ProbeAnswer } from '../../src/rotation/ports.ts'
import { keyIdFor } from '../../src/rotation/service-account-key/key-id.ts'
import type {
  ComponentName,
  ComponentSnapshot,
  CopySnapshot,
  EtcdMemberSnapshot,
  FileSnapshot,
  Observed,
  ParsedContent,
  ProcessSnapshot,
  PublishedTrust,
  SectionName,
  Sections,
  Snapshot,
} from '../../src/rotation/snapshot.ts'
import { sectionNames } from '../../src/rotation/snapshot.ts'
import type { CaName } from '../../src/rotation/target.ts'
import { nextName, type Settings } from '../../src/rotation/target-reading.ts'
import {
  type FileContent,
  hashOf,
  objectKey,
  pki,
  type SimulatedCluster,
  type SimulatedProcess,
  servingFlagOf,
} from './simulated-cluster.ts'
import type { SimulatedClients } from './simulated-cluster-clients.ts'

// Observer and executor over the simulated cluster.

export class SimulatedObserver implements Observer {
  /** The number of observations by section. */
  readonly asked = new Map<SectionName, number>()
  private readonly cluster: SimulatedCluster

  constructor(cluster: SimulatedCluster) {
    this.cluster = cluster
  }

  async observe<Section extends SectionName>(sections: readonly Section[]): Promise<Observed<Section>> {
    await this.cluster.time.sleep(20)
    const snapshot: Record<string, unknown> = {
      atMs: this.cluster.time.nowMs,
      certificates: this.cluster.certificates,
    }
    for (const section of sections) {
      this.asked.set(section, (this.asked.get(section) ?? 0) + 1)
      snapshot[section] = this[section]()
    }
    return snapshot as unknown as Observed<Section>
  }

  /** Returns a complete snapshot for assertions. */
  get snapshot(): Snapshot {
    const sections = Object.fromEntries(
      sectionNames.map((section) => [section, this[section]()]),
    ) as unknown as Sections
    return { ...sections, atMs: this.cluster.time.nowMs, certificates: this.cluster.certificates }
  }

  nodes(): Sections['nodes'] {
    return [...this.cluster.nodes.values()].map(
      ({ name, isControlPlane, isEtcdMachine, clockSkewMs, isUnreachable }) => ({
        name,
        isControlPlane,
        ...(isEtcdMachine && { isEtcdMachine }),
        ...(isUnreachable ? { unreachable: 'connection timed out' } : { clockSkewMs }),
        isReady: isEtcdMachine ? !isUnreachable : this.isReady(name),
        kubeletVersion: isEtcdMachine ? '' : (this.cluster.kubeletVersions.get(name) ?? 'v1.36.3'),
        layout: this.cluster.isPlain || isEtcdMachine ? 'plain' : 'kubeadm',
      }),
    )
  }

  private isReady(node: string): boolean {
    const kubelet = this.cluster.processes.get(`${node}/kubelet`)
    return kubelet?.isHealthy === true && this.cluster.isConnected(kubelet)
  }

  components(): Sections['components'] {
    return [...this.cluster.nodes.keys()].flatMap((node) =>
      this.cluster.componentIds(node).map((id): ComponentSnapshot => {
        const name = id.split('/')[1] as ComponentName
        const definition = this.cluster.definitionPath(name)
        const file = this.cluster.read(node, definition)!
        const content = this.cluster.contentOf(file.text)
        const said = content !== undefined && 'definition' in content ? content.definition : undefined
        const process = this.cluster.processes.get(id)
        return {
          id,
          node,
          name,
          runsAs: this.cluster.isUnit(name) ? 'unit' : 'static-pod',
          definition,
          definitionDigest: hashOf(file.text),
          flags: said?.flags ?? {},
          annotations: said?.annotations ?? {},
          ...(name === 'kube-proxy' ? {} : { version: said?.version ?? 'v1.36.3' }),
          ...(process === undefined ? {} : { process: snapshotOf(process) }),
        }
      }),
    )
  }

  /** Set by the scene, which knows who trusts whom. */
  peersOf: (member: SimulatedProcess) => readonly SimulatedProcess[] = () => []

  etcdMembers(): Sections['etcdMembers'] {
    const { cluster } = this
    const nodes = [...cluster.nodes.values()].filter(({ name }) =>
      cluster.files.has(`${name}:${cluster.definitionPath('etcd')}`),
    )
    const idOf = (node: string): string => hashOf(node).slice(0, 16)
    const known = nodes.map(({ name }) => idOf(name))
    return nodes.flatMap(({ name: node, isUnreachable }): EtcdMemberSnapshot[] => {
      if (isUnreachable) return []
      const id = `${node}/etcd`
      const { definition: _, ...flags } = cluster.flagsOf(node, 'etcd')
      const runsAs = cluster.isUnit('etcd') ? 'unit' : 'static-pod'
      const process = cluster.processes.get(id)
      if (process === undefined) return [{ id, node, runsAs, flags, served: { client: [], peer: [] } }]
      const active = this.peersOf(process).map((one) => idOf(one.node))
      const isLearner = cluster.learners.has(node)
      const isLeader = cluster.etcdLeader === node
      const state = { memberId: idOf(node), isLeader, isLearner, applied: 1_000, known, active }
      const served = {
        client: process.isHealthy ? cluster.loadedBy(process, 'cert-file') : [],
        peer: process.isHealthy ? cluster.loadedBy(process, 'peer-cert-file') : [],
      }
      return [{ id, node, runsAs, flags, process: snapshotOf(process), state, served }]
    })
  }

  kubelets(): Sections['kubelets'] {
    return [...this.cluster.nodes.keys()].map((node) => {
      const flags = this.cluster.flagsOf(node, 'kubelet')
      const process = this.cluster.processes.get(`${node}/kubelet`)
      return {
        id: `${node}/kubelet`,
        node,
        clientCaFile: flags['client-ca-file']!,
        kubeconfig: flags.kubeconfig!,
        gates: this.cluster.kubeletGates.get(node) ?? '',
        ...(flags['kubelet-client-current'] === undefined
          ? {}
          : { clientCurrent: flags['kubelet-client-current'] }),
        ...(flags['kubelet-tls-cert-file'] === undefined
          ? {}
          : { servingFile: flags['kubelet-tls-cert-file'] }),
        ...(flags['kubelet-server-current'] === undefined
          ? {}
          : { servingCurrent: flags['kubelet-server-current'] }),
        ...(process === undefined ? {} : { process: snapshotOf(process) }),
      }
    })
  }

  files(): Sections['files'] {
    const files = new Map<string, FileSnapshot>()
    for (const [key, file] of this.cluster.files) {
      const [node, path] = [key.slice(0, key.indexOf(':')), key.slice(key.indexOf(':') + 1)]
      if (this.cluster.nodes.get(node)?.isUnreachable || path.startsWith(copiesFolder)) continue
      const target = this.cluster.read(node, path)
      files.set(key, {
        node,
        path,
        digest: hashOf(file.text),
        mode: file.mode,
        changedAtMs: file.changedAtMs,
        ...(file.linksTo === undefined ? {} : { linksTo: file.linksTo }),
        contains: target === undefined ? { kind: 'other' } : this.cluster.parsedContentOf(target.text),
      })
    }
    return files
  }

  kubeconfigs(): Sections['kubeconfigs'] {
    return [...this.cluster.files.keys()]
      .filter((key) => key.endsWith('.conf') && !key.endsWith('/kubelet.conf'))
      .map((key) => {
        const [node, path] = key.split(':') as [string, string]
        return { id: key, at: { node, path } }
      })
  }

  published(): Sections['published'] {
    return [...this.cluster.objects.entries()]
      .filter(([name]) => /\/kube-root-ca\.crt$|\/legacy-token$|^ClusterTrustBundle /.test(name))
      .map(([name, { data, changedAtMs }]) => ({
        kind: name.split(' ')[0] as PublishedTrust['kind'],
        name: name.split(' ')[1]!,
        isActive: true,
        trust: data.trust as readonly Digest[],
        changedAtMs,
      }))
  }

  pods(): Sections['pods'] {
    return [...this.cluster.pods.values()].map(
      ({ id, uid, node, workload, startedAtMs, address, volume, rereads, trustBundle }) => ({
        id,
        uid,
        node,
        ...(workload === undefined ? {} : { workload }),
        startedAtMs,
        ...(address === undefined ? {} : { address }),
        ...(this.cluster.nodes.get(node)?.isUnreachable ? {} : { volume }),
        rereads,
        ...(trustBundle && { trustBundle }),
      }),
    )
  }

  backends(): Sections['backends'] {
    return [...this.cluster.pods.values()].flatMap(({ id, node, workload, startedAtMs }) => {
      if (workload === undefined) return []
      const changedAtMs = this.cluster.unready.get(id)
      const services = [workload.split(' ')[1]!]
      return [
        {
          pod: id,
          node,
          isReady: changedAtMs === undefined,
          changedAtMs: changedAtMs ?? startedAtMs,
          services,
        },
      ]
    })
  }

  workloads(): Sections['workloads'] {
    return [...this.cluster.workloads.values()].map(({ id, version, annotation, serves, mayRoll }) => ({
      id,
      version: String(version),
      ...(annotation === undefined ? {} : { annotation }),
      serves,
      mayRoll,
    }))
  }

  caBundles(): Sections['caBundles'] {
    return [...this.cluster.objects.entries()].flatMap(([id, { data, version }]) => {
      if (typeof data.server !== 'string') return []
      const [kind, name] = id.split(' ') as [string, string]
      return [
        {
          id,
          object: { kind, name },
          field: 'caBundle',
          version: String(version),
          trust: data.trust as readonly Digest[],
          ...(data.applied === undefined ? {} : { applied: data.applied as readonly Digest[] }),
          server: data.server,
          isAvailable: true,
        },
      ]
    })
  }

  stored(): Sections['stored'] {
    const unread = [...this.cluster.unlisted]
    const keyOf = (digest: Digest, of: 'spki' | 'signedBy', at: string) => {
      const spki = this.cluster.certificates.get(digest)?.[of]
      return spki === undefined ? [] : [{ spki, at }]
    }
    const objects = [...this.cluster.objects].flatMap(([id, { data }]) => {
      if (data.cas === undefined || unread.some((kind) => id.startsWith(`${kind} `))) return []
      const { cas, leaves, owner } = data as { cas: Digest[]; leaves: Digest[]; owner?: string }
      return [
        {
          id,
          authorities: cas.flatMap((digest) => keyOf(digest, 'spki', 'data[ca.crt]')),
          signers: leaves.flatMap((digest) => keyOf(digest, 'signedBy', 'data[tls.crt]')),
          ...(owner === undefined ? {} : { owner }),
        },
      ]
    })
    return { examined: objects.length, objects, unread }
  }

  clusterInfo(): Sections['clusterInfo'] {
    const info = this.cluster.objects.get('ConfigMap kube-public/cluster-info')
    if (info === undefined) return undefined
    const trust = info.data.trust as readonly Digest[]
    const signed = info.data.signed as Record<string, readonly Digest[]>
    return {
      version: String(info.version),
      trust,
      signatures: Object.entries(signed).map(([tokenId, over]) => ({
        tokenId,
        isValid: over.join() === trust.join(),
      })),
    }
  }

  extensionAuthentication(): Sections['extensionAuthentication'] {
    const object = this.cluster.objects.get('ConfigMap kube-system/extension-apiserver-authentication')
    if (object === undefined) return undefined
    const { client, requestheader } = object.data as Record<string, readonly Digest[]>
    return {
      version: String(object.version),
      changedAtMs: object.changedAtMs,
      client: client!,
      requestheader: requestheader!,
      allowsAnyName: false,
    }
  }

  kubeadm(): Sections['kubeadm'] {
    const object = this.cluster.objects.get('ConfigMap kube-system/kubeadm-config')
    if (object === undefined) return undefined
    const secret = this.cluster.objects.get('Secret kube-system/kubeadm-certs')
    return {
      version: String(object.version),
      kubernetesVersion: object.data.kubernetesVersion as string,
      ...given({ encryptionAlgorithm: object.data.encryptionAlgorithm as string | undefined }),
      extraArgs: object.data.extraArgs as Record<string, Record<string, string>>,
      ...(secret === undefined ? {} : { certsSecret: String(secret.version) }),
    }
  }

  leases(): Sections['leases'] {
    return [...this.cluster.leases.entries()].map(([name, { holder, renewedAtMs }]) => {
      const isHeld = holder !== undefined && this.cluster.leaderOf(name) !== undefined
      return { name, ...(isHeld ? { holder } : {}), renewedAtMs }
    })
  }

  handshakes(): Sections['handshakes'] {
    const shown = [...this.cluster.processes.values()].flatMap((process) => {
      const flag = process.name === 'kubelet' ? servingFlagOf(process) : 'tls-cert-file'
      const chain = this.cluster.loadedBy(process, flag)
      return chain.length === 0 || !process.isHealthy ? [] : [{ server: process.id, chain }]
    })
    const handlers = [...this.cluster.handlers].map(([server, chain]) => ({ server, chain }))
    return [...shown, ...handlers].map((one) => ({ ...one, atMs: this.cluster.time.nowMs }))
  }

  servedKeys(): Sections['servedKeys'] {
    const apis = this.components().filter(({ name }) => name === 'kube-apiserver')
    return apis.map(({ id }) => {
      const process = this.cluster.processes.get(id)
      return {
        process: id,
        keyIds: process?.isHealthy
          ? { value: this.cluster.verifiedBy(process).map(keyIdFor) }
          : { unread: 'connection refused' },
      }
    })
  }

  tokens(): Sections['tokens'] {
    const { cluster } = this
    const claimsOf = (key: Digest, namespace: string, serviceAccount: string, boundTo: string) => ({
      keyId: keyIdFor(key),
      issuer: 'https://kubernetes.default.svc.cluster.local',
      audiences: ['https://kubernetes.default.svc.cluster.local'],
      ...{ namespace, serviceAccount, boundTo },
    })
    const nodes = [...cluster.nodes.values()].map(({ name: node, isUnreachable }) => {
      if (isUnreachable || cluster.hiddenTokens.has(node))
        return { node, tokens: { unread: 'permission denied' } }
      const mounted = [...cluster.pods.values()].flatMap(({ node: its, id, namespace, token }) =>
        its !== node || token === undefined
          ? []
          : [claimsOf(token.key, namespace, 'default', `pod ${id.split('/')[1]}`)],
      )
      return { node, tokens: { value: { mounted, files: [], credentialProviders: [] } } }
    })
    const secrets = [...cluster.objects].flatMap(([name, { data }]) => {
      if (typeof data.tokenKey !== 'string') return []
      const [namespace = '', secret = ''] = name.split(' ')[1]!.split('/')
      const claims = claimsOf(data.tokenKey, namespace, String(data.serviceAccount), `secret ${secret}`)
      const location = `${namespace}/${secret} data[token]`
      return [
        { kind: 'Secret' as const, location, claims, ...(data.owner ? { owner: String(data.owner) } : {}) },
      ]
    })
    return {
      nodes,
      objects: [
        {
          kind: 'Secret',
          tokens: cluster.unlisted.has('Secret') ? { unread: 'forbidden' } : { value: secrets },
        },
        { kind: 'ConfigMap', tokens: { value: [] } },
      ],
      drivers: cluster.tokenDrivers,
    }
  }

  evidence(): Sections['evidence'] {
    return new Map()
  }

  intents(): Sections['intents'] {
    return []
  }

  copies(): Sections['copies'] {
    return [...this.cluster.nodes.keys()].flatMap((node) =>
      this.cluster.nodes.get(node)!.isUnreachable ? [] : copiesOn(this.cluster, node),
    )
  }
}

function snapshotOf({ startedAtMs, flags, isHealthy }: SimulatedProcess): ProcessSnapshot {
  return { startedAtMs, flags, isHealthy }
}

function copiesOn(cluster: SimulatedCluster, node: string): CopySnapshot[] {
  const text = cluster.files.get(`${node}:${cluster.copiesIndex}`)?.text ?? ''
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const copy = JSON.parse(line) as CopySnapshot
      const contains = copy.linksTo === undefined ? contentByCopy(cluster, node, copy) : undefined
      return contains === undefined ? copy : { ...copy, contains }
    })
}

function contentByCopy(
  cluster: SimulatedCluster,
  node: string,
  { of, digest }: CopySnapshot,
): ParsedContent | undefined {
  const text = cluster.files.get(`${node}:${copiesFolder}/by-digest/${digest}`)?.text
  if (text === undefined) return undefined
  if ('path' in of) return cluster.parsedContentOf(text)
  const { trust } = JSON.parse(text) as { trust?: readonly Digest[] }
  return trust && { kind: 'certificates', certificates: trust }
}

/** Keys and certificates that only the executor has. A second run finds the new CA where the first one left it. */
export class SimulatedExecutor implements Executor {
  readonly performed: string[] = []
  private readonly cluster: SimulatedCluster
  private readonly clients: SimulatedClients
  private readonly made = new Map<string, CertificateRecord>()
  /** Versions that this run wrote: two fields of one object are two actions of one plan. */
  private readonly successors = new Map<string, string>()

  /** CAs that the operator supplies. */
  private readonly given: Settings['given']
  /** The time of this run's last write to a node. */
  private readonly wroteAtMs = new Map<string, number>()

  constructor(cluster: SimulatedCluster, clients: SimulatedClients, given?: Settings['given']) {
    this.cluster = cluster
    this.clients = clients
    this.given = given
  }

  async write(action: WriteFile): Promise<void> {
    const { node, path, replaces, content, mode } = action
    await this.reach(node)
    const now = this.cluster.files.get(`${node}:${path}`)
    const digest = now === undefined ? 'absent' : hashOf(now.text)
    if (digest !== replaces && !content.kind.startsWith('copies')) {
      throw new KcertError('KCERT_ROTATION_DRIFT', `${node}:${path} changed since kcert planned`, {
        why: 'another program or person changed it; check the file first',
        next: `kcert rotate-ca --phase ${action.phase}`,
      })
    }
    if (this.cluster.nodes.get(node)!.isDiskFull) {
      throw new KcertError('KCERT_FILE_NOT_WRITTEN', `${node}:${path}`, {
        why: 'no space left on device',
        next: 'make room and run the same command again',
      })
    }
    if (content.kind === 'copies-over') {
      const index = this.cluster.files.get(`${node}:${this.cluster.copiesIndex}`)
      if (index === undefined) return
      this.cluster.write(node, pastIndex(hashOf(index.text)), index.text, 0o600)
      return this.cluster.remove(node, this.cluster.copiesIndex)
    }
    if (content.kind === 'copies') {
      for (const file of content.of) this.keepFile(node, file.path, action.phase, file)
      return
    }
    if (content.kind !== 'nothing' || !path.includes('/kcert/')) this.keepFile(node, path, action.phase)
    this.wroteAtMs.set(node, this.cluster.time.nowMs)
    switch (content.kind) {
      case 'nothing':
        return this.cluster.remove(node, path)
      case 'link':
        return this.cluster.link(node, path, content.to)
      default:
        return this.cluster.write(node, path, await this.resolve(action, now?.text), mode)
    }
  }

  private async resolve(
    { node, content, phase }: WriteFile,
    now: string | undefined,
  ): Promise<FileContent | string> {
    const before = this.cluster.contentOf(now)
    switch (content.kind) {
      case 'certificates':
        return { certificates: content.certificates.map((digest) => this.resolveCertificate(digest)) }
      case 'ca-key': {
        const { ca, generation, keyType } = content
        return { key: generation === 'old' ? this.oldCa(ca).spki : this.newCa(ca, keyType).spki }
      }
      case 'service-account-key':
        return { key: this.newKey() }
      case 'public-keys':
        return {
          publicKeys: content.keys.map((key) => (key.startsWith('planned:') ? this.newKey() : key)),
        }
      case 'reissued': {
        const leaf = this.cluster.certificates.get(content.leaf)!
        const made = this.cluster.issue(
          leaf.subject.slice(3),
          this.newCa(content.ca),
          content.newKey ? undefined : leaf.spki,
        )
        this.note(made, content.keyType)
        if (content.newKey !== undefined) {
          this.keepFile(node, content.newKey, phase)
          this.cluster.write(node, content.newKey, { key: made.spki }, 0o600)
        }
        return { certificates: [made.digest, ...content.chain] }
      }
      case 'kubeconfig': {
        const old = before !== undefined && 'kubeconfig' in before ? before.kubeconfig.client : undefined
        const leaf =
          content.reissue === undefined ? undefined : this.cluster.certificates.get(content.reissue)
        const client =
          leaf &&
          this.cluster.issue(
            leaf.subject.slice(3),
            this.newCa('cluster'),
            content.newKey ? undefined : leaf.spki,
          )
        if (client) this.note(client, content.keyType)
        const kept = client?.digest ?? old
        return { kubeconfig: { caData: content.caData, ...(kept === undefined ? {} : { client: kept }) } }
      }
      case 'definition': {
        if (before === undefined || !('definition' in before)) throw new Error('no definition')
        const { annotations: its, ...kept } = before.definition
        const annotations = edited(its ?? {}, content.annotations ?? {})
        return {
          definition: {
            ...kept,
            flags: edited(kept.flags, content.flags),
            ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
          },
        }
      }
      case 'requested': {
        await this.cluster.time.sleep(this.cluster.time.between(20, 260))
        const signed = this.sign(`system:node:${node}`)
        if (typeof signed === 'string') {
          throw new KcertError('KCERT_ROTATION_CHECK_FAILED', `no certificate for ${node}`, {
            why: signed,
            next: 'again',
          })
        }
        return { pair: [signed.digest], key: signed.spki }
      }
      case 'copy': {
        const copyOf = (digest: string) =>
          this.cluster.files.get(`${node}:${copiesFolder}/by-digest/${digest}`)!.text
        const { key } = content
        if (key !== undefined) {
          this.keepFile(node, key.path, phase)
          const mode = this.cluster.files.get(`${node}:${key.path}`)?.mode ?? 0o600
          this.cluster.write(node, key.path, copyOf(key.digest), mode)
        }
        return copyOf(content.digest)
      }
      default:
        throw new Error(`no bytes for ${content.kind}`)
    }
  }

  private resolveCertificate(digest: Digest): Digest {
    if (digest === 'planned:cluster/new') return this.newCa('cluster').digest
    if (digest === 'planned:front-proxy/new') return this.newCa('front-proxy').digest
    if (digest === 'planned:etcd/new') return this.newCa('etcd').digest
    if (digest === 'planned:etcd/bridge') return this.etcdBridge()
    if (digest !== 'planned:cluster/bridge') return digest
    return this.cluster.certify(this.newCa('cluster'), this.oldCa('cluster')).digest
  }

  private etcdBridge(): Digest {
    return this.cluster.certify(this.newCa('etcd'), this.oldCa('etcd')).digest
  }

  private oldCa(ca: CaName): CertificateRecord {
    if (ca === 'etcd') return this.cluster.oldEtcdCa!
    return ca === 'cluster' ? this.cluster.oldCa : this.cluster.oldFrontProxyCa
  }

  /** Created once. After a crash, it is read from the nodes, including a key without its certificate. */
  newCa(ca: CaName, keyType?: string): CertificateRecord {
    const stem = ca === 'front-proxy' ? 'front-proxy-ca' : 'ca'
    const path = `:${pki}/${ca === 'etcd' ? 'etcd/' : ''}kcert/new/${stem}.key`
    const known = this.made.get(ca)
    if (known !== undefined) return known
    const spkis = new Set<string>()
    for (const [key, file] of this.cluster.files) {
      const content = key.endsWith(path) ? this.cluster.contentOf(file.text) : undefined
      if (content !== undefined && 'key' in content) spkis.add(content.key)
    }
    const found = [...this.cluster.certificates.values()].find(
      ({ spki, signedBy, isCa }) => isCa && spkis.has(spki) && signedBy === spki,
    )
    const old = this.oldCa(ca)
    const name = nextName(old.subject, ca).slice('CN='.length)
    const made = found ?? this.given?.[ca] ?? this.cluster.makeCa(name, old.subjectKeyId !== undefined)
    this.made.set(ca, made)
    this.note(made, keyType)
    return made
  }

  private note({ spki }: CertificateRecord, keyType: string | undefined): void {
    if (keyType !== undefined) this.cluster.keyTypes.set(spki, keyType)
  }

  private madeKey: Digest | undefined

  /** Created once. After a crash, it is read from the nodes. */
  newKey(): Digest {
    const found = [...this.cluster.files].flatMap(([key, { text }]) => {
      const content = key.endsWith(`:${pki}/kcert/new/sa.key`) ? this.cluster.contentOf(text) : undefined
      return content !== undefined && 'key' in content ? [content.key] : []
    })
    this.madeKey ??= found[0] ?? hashOf(`new service account key ${this.cluster.time.nowMs}`)
    return this.madeKey
  }

  /** Sends a request to the leader's signers. Returns a certificate, or the reason why there is none. */
  private sign(subject: string): CertificateRecord | string {
    const leader = this.cluster.leaderOf('kube-controller-manager')
    if (leader === undefined) return 'kube-controller-manager has no leader'
    const certificates = this.cluster.loadedBy(leader, 'cluster-signing-cert-file')
    if (certificates.length !== 1) return `expected 1 certificate, found ${certificates.length}`
    const ca = this.cluster.certificates.get(certificates[0]!)!
    const key = this.cluster.contentOf(leader.loaded.get(leader.flags['cluster-signing-key-file']!))
    if (key === undefined || !('key' in key) || key.key !== ca.spki) {
      return 'tls: private key does not match public key'
    }
    return this.cluster.issue(subject, ca)
  }

  async patch({ object, version, change, phase }: PatchObject): Promise<void> {
    await this.cluster.time.sleep(30)
    const name = objectKey(object)
    const now = this.cluster.objects.get(name)
    if (change.kind === 'token-secret') return this.createTokenSecret(name, change.serviceAccount)
    const current = String(now?.version)
    if (current !== version && current !== this.successors.get(`${name} ${version}`)) {
      throw new KcertError('KCERT_ROTATION_DRIFT', `${name} changed since kcert planned`, {
        why: 'another program or person changed it; check the file first',
        next: `kcert rotate-ca --phase ${phase}`,
      })
    }
    this.keepObject(name, object, phase)
    this.change(name, now!.data, change)
    this.successors.set(`${name} ${version}`, String(this.cluster.objects.get(name)?.version))
  }

  private change(
    name: string,
    data: Readonly<Record<string, unknown>>,
    change: PatchObject['change'],
  ): unknown {
    switch (change.kind) {
      case 'delete':
        return this.cluster.deleteObject(name)
      case 'ca-bundle':
        return this.cluster.put(name, { ...data, trust: change.trust })
      case 'cluster-info':
        return this.cluster.put(name, { ...data, trust: change.trust })
      case 'extra-args': {
        const all = data.extraArgs as Record<string, Record<string, string>>
        const args = edited(all[change.component] ?? {}, change.flags)
        const { [change.component]: _, ...others } = all
        const extraArgs = Object.keys(args).length === 0 ? others : { ...others, [change.component]: args }
        return this.cluster.put(name, { ...data, extraArgs })
      }
      case 'encryption-algorithm':
        return this.cluster.put(name, { ...data, encryptionAlgorithm: change.keyType })
      case 'copy': {
        const first = [...this.cluster.nodes.keys()][0]!
        const text = this.cluster.files.get(`${first}:${copiesFolder}/by-digest/${change.digest}`)!.text
        return this.cluster.put(name, JSON.parse(text) as Record<string, unknown>)
      }
    }
  }

  private createTokenSecret(name: string, serviceAccount: string): void {
    if (this.cluster.objects.has(name)) return
    this.cluster.put(name, { serviceAccount })
    this.cluster.time.after(500, () => {
      const tokenKey = this.cluster.signedBy(this.cluster.leaderOf('kube-controller-manager'))
      if (this.cluster.objects.has(name)) this.cluster.put(name, { serviceAccount, tokenKey })
    })
  }

  async restart({ process: id, replaces: observed, lease, how }: RestartComponent): Promise<void> {
    const [node, name] = id.split('/') as [string, string]
    await this.reach(node)
    const running = this.cluster.processes.get(id)?.startedAtMs
    // A process that restarted on its own before this run wrote to the node has not read the new files.
    const wroteAtMs = how === 'definition' ? 0 : (this.wroteAtMs.get(node) ?? 0)
    const replaces =
      running !== undefined && observed !== undefined && running < wroteAtMs ? running : observed
    const isOld = (): boolean => this.cluster.processes.get(id)?.startedAtMs === replaces
    if (isOld() && how === 'signal') this.cluster.signal(id)
    else if (isOld() && how === 'service') {
      if (name === 'kubelet') this.cluster.restartKubelet(node)
      else this.restartUnit(id)
    }
    const deadline = this.cluster.time.nowMs + 120_000
    let isReleased = lease === undefined
    while (this.cluster.time.nowMs < deadline) {
      const gone = replaces === undefined || !isOld()
      if (gone && !isReleased) {
        isReleased = true
        // The node shows that the process is gone before its Lease changes holders.
        const its = this.cluster.leases.get(lease!)!
        if (its.holder === node && this.cluster.processes.get(id)?.isHealthy !== true) {
          delete its.holder
          this.cluster.time.after(this.cluster.time.between(800, 2_200), () =>
            this.cluster.elect(lease!, undefined),
          )
        }
      }
      if (gone && this.cluster.processes.get(id)?.isHealthy) return
      await this.cluster.time.sleep(200)
    }
    throw new KcertError('KCERT_ROTATION_CHECK_FAILED', `${id} did not come back within 120 s`, {
      why: 'no healthy process was seen through its node',
      next: `look at its log on ${node}, and run the same command again`,
    })
  }

  private restartUnit(id: string): void {
    const isSlow = id.endsWith('/kube-apiserver')
    this.cluster.stop(id)
    this.cluster.time.after(isSlow ? 30_000 : 300, () => this.cluster.start(id, isSlow ? 8_000 : 500))
  }

  async roll({ workload, annotation }: RollWorkload): Promise<void> {
    await this.cluster.time.sleep(30)
    this.cluster.roll(workload, annotation)
  }

  async probe({ subject, deadlineMs }: Probe): Promise<ProbeAnswer> {
    const { time } = this.cluster
    const deadline = time.nowMs + deadlineMs
    if (subject.kind === 'handshake-rate') return this.handshakeRate(subject)
    if (subject.kind === 'handshake-errors') return this.handshakeErrors(subject, deadline)
    if (subject.kind === 'etcd-clients') return this.etcdClients(subject)
    if (subject.kind === 'token-use') return this.tokenUse(subject)
    for (;;) {
      await time.sleep(50)
      const wrong = this.wrongWith(subject)
      if (wrong === undefined) return { ok: true, detail: 'as expected' }
      if (time.nowMs >= deadline) return { ok: false, detail: wrong }
      await time.sleep(150)
    }
  }

  private async etcdClients({ at, forMs, waived }: Extract<ProbeSubject, { kind: 'etcd-clients' }>) {
    await this.cluster.time.sleep(forMs)
    const unknown = this.cluster.etcdClients.filter((address) => !waived.includes(address))
    return { ok: unknown.length === 0, detail: `clients of ${at}: ${unknown.join(', ') || 'none'}` }
  }

  private async tokenUse({ at, forMs }: Extract<ProbeSubject, { kind: 'token-use' }>) {
    const before = this.cluster.staleUses.get(at) ?? 0
    await this.cluster.time.sleep(forMs)
    const more = (this.cluster.staleUses.get(at) ?? 0) - before
    return { ok: more === 0, detail: `${more} stale and legacy tokens at ${at}` }
  }

  private async handshakeRate({ at, forMs }: Extract<ProbeSubject, { kind: 'handshake-rate' }>) {
    const { time } = this.cluster
    const begun = time.nowMs
    const first = this.clients.handshakesAt(at, begun).count
    await time.sleep(forMs)
    const errors = this.clients.handshakesAt(at, begun).count - first
    return { ok: true, detail: `${errors} handshake errors`, rate: { errors, overMs: time.nowMs - begun } }
  }

  private async handshakeErrors(
    subject: Extract<ProbeSubject, { kind: 'handshake-errors' }>,
    deadline: number,
  ): Promise<ProbeAnswer> {
    const { time } = this.cluster
    const begun = time.nowMs
    const watch = new HandshakeWatch(subject)
    for (;;) {
      const answer = watch.add({ atMs: time.nowMs, ...this.clients.handshakesAt(subject.at, begun) })
      if (answer?.ok) return answer
      if (time.nowMs >= deadline) return answer ?? { ok: false, detail: 'not watched for its whole time' }
      await time.sleep(700)
    }
  }

  private wrongWith(
    subject: Exclude<
      ProbeSubject,
      { kind: 'handshake-rate' | 'handshake-errors' | 'etcd-clients' | 'token-use' }
    >,
  ): string | undefined {
    switch (subject.kind) {
      case 'client': {
        const ca = subject.generation === 'old' ? this.oldCa(subject.ca) : this.newCa(subject.ca)
        const bridge = subject.generation === 'new' && subject.ca === 'etcd' ? [this.etcdBridge()] : []
        const isAccepted =
          subject.ca === 'etcd'
            ? this.clients.isAcceptedByEtcd(subject.at, [this.cluster.issue('kcert', ca).digest, ...bridge])
            : this.clients.acceptsClientOf(subject.at, ca, subject.ca)
        if (isAccepted === undefined) return `${subject.at} does not answer`
        const accepted = isAccepted ? 'accepted' : 'refused'
        return accepted === subject.expects ? undefined : `${subject.generation} client ${accepted}`
      }
      case 'old-trust': {
        const isReached = subject.at.endsWith('/etcd')
          ? this.clients.reachesEtcd([this.cluster.oldEtcdCa!.digest], subject.at)
          : this.clients.reaches([this.cluster.oldCa.digest], subject.at)
        return isReached ? 'a client that trusts only the old CA still connects' : undefined
      }
      case 'signer': {
        const wanted = subject.generation === 'old' ? this.oldCa('cluster') : this.newCa('cluster')
        const signed = this.sign('kcert-test')
        if (typeof signed === 'string') return signed
        return signed.signedBy === wanted.spki ? undefined : 'signed by the other CA'
      }
      case 'kubeconfig': {
        const [node, path] = subject.id.split(':') as [string, string]
        return this.clients.wrongWithKubeconfig(node, path)
      }
      case 'issued-token': {
        const issuer = this.cluster.processes.get(subject.at)
        const key = issuer?.isHealthy ? this.cluster.signedBy(issuer) : undefined
        if (key === undefined || keyIdFor(key) !== subject.keyId) return 'issues tokens of another key'
        const others = this.clients.servers().filter((api) => !this.cluster.verifiedBy(api).includes(key))
        return others.length === 0 ? undefined : `${others[0]!.id} rejects it`
      }
      case 'token-secret': {
        const key = this.cluster.signedBy(this.cluster.leaderOf('kube-controller-manager'))
        return key !== undefined && keyIdFor(key) === subject.keyId ? undefined : 'signs with another key'
      }
      case 'mounted-tokens': {
        if (this.cluster.hiddenTokens.has(subject.node)) return 'permission denied'
        const its = [...this.cluster.pods.values()].filter(({ node }) => node === subject.node)
        return its.some(({ token }) => token !== undefined && keyIdFor(token.key) === subject.lacks)
          ? 'a mounted token has the key'
          : undefined
      }
      case 'logs':
        return this.clients.wrongWithLogs(subject.node)
      case 'copies':
        return copiesOn(this.cluster, subject.node).every(
          ({ digest }) =>
            digest === undefined ||
            this.cluster.files.has(`${subject.node}:${copiesFolder}/by-digest/${digest}`),
        )
          ? undefined
          : 'a copy is not there'
    }
  }

  private async reach(node: string): Promise<void> {
    await this.cluster.time.sleep(30)
    if (!this.cluster.nodes.get(node)?.isUnreachable) return
    throw new KcertError('KCERT_UNREACHABLE', `node ${node}`, {
      why: 'connection timed out',
      next: 'bring it back and run the same command again',
    })
  }

  /** Writes the bytes under their digest first, then the line of the index. */
  private keepFile(
    node: string,
    path: string,
    phase: number,
    { flags, version }: Pick<CopySnapshot, 'flags' | 'version'> = {},
  ): void {
    if (path.startsWith(copiesFolder)) return
    const isKept = copiesOn(this.cluster, node).some(
      (copy) => copy.phase === phase && 'path' in copy.of && copy.of.path === path,
    )
    if (isKept) return
    const file = this.cluster.files.get(`${node}:${path}`)
    const digest = file === undefined ? undefined : hashOf(file.text)
    if (file !== undefined) this.cluster.write(node, `${copiesFolder}/by-digest/${digest}`, file.text, 0o600)
    this.index(node, {
      phase,
      node,
      of: { path },
      ...(digest === undefined ? {} : { digest, mode: file!.mode }),
      ...(file?.linksTo === undefined ? {} : { linksTo: file.linksTo }),
      ...(flags === undefined ? {} : { flags }),
      ...(version === undefined ? {} : { version }),
    })
  }

  private keepObject(name: string, object: PatchObject['object'], phase: number): void {
    const node = [...this.cluster.nodes.keys()][0]!
    const isKept = copiesOn(this.cluster, node).some(
      (copy) => copy.phase === phase && 'object' in copy.of && objectKey(copy.of.object) === name,
    )
    if (isKept) return
    const text = JSON.stringify(this.cluster.objects.get(name)!.data)
    const digest = hashOf(text)
    this.cluster.write(node, `${copiesFolder}/by-digest/${digest}`, text, 0o600)
    this.index(node, { phase, node, of: { object }, digest })
  }

  private index(node: string, copy: CopySnapshot): void {
    const text = this.cluster.files.get(`${node}:${this.cluster.copiesIndex}`)?.text ?? ''
    this.cluster.write(node, this.cluster.copiesIndex, `${text}${JSON.stringify(copy)}\n`, 0o600)
  }
}

function edited(
  now: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const result: Record<string, string> = { ...now }
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete result[name]
    else result[name] = value
  }
  return result
}

/** Keys in kcert's folders on the simulated nodes. `kill` is called before each half of a deletion. */
export class SimulatedOldKeys implements OldKeyFiles {
  private readonly cluster: SimulatedCluster
  kill: (act: string) => void = () => {}

  constructor(cluster: SimulatedCluster) {
    this.cluster = cluster
  }

  async find(
    node: string,
    { folders, besideCas }: KeyPlaces,
    spkis: ReadonlySet<string>,
  ): Promise<FoundKeys> {
    await this.reach(node)
    const keys: KeyFile[] = []
    const encrypted: string[] = []
    for (const [key, { text }] of this.cluster.files) {
      const path = key.slice(node.length + 1)
      const isOwn = folders.some((folder) => path.startsWith(`${folder}/`)) && !path.endsWith('.jsonl')
      if (!key.startsWith(`${node}:`) || !(isOwn || besideCas.includes(path))) continue
      const file = { path, digest: hashOf(text), sizeBytes: text.length }
      const contains = this.cluster.parsedContentOf(text)
      const spki = contains.kind === 'key' || contains.kind === 'pair' ? contains.spki : undefined
      if (isOwn && /^\0+$/.test(text)) keys.push(file)
      else if (isOwn && spki !== undefined && spkis.has(spki)) keys.push({ ...file, spki })
      else if (text.includes('ENCRYPTED')) encrypted.push(path)
    }
    return { keys, encrypted }
  }

  async read(node: string, { path }: KeyFile): Promise<Uint8Array> {
    await this.reach(node)
    return Buffer.from(this.cluster.files.get(`${node}:${path}`)!.text)
  }

  async destroy(node: string, { path }: KeyFile): Promise<void> {
    this.kill(`overwrite ${node}:${path}`)
    await this.reach(node)
    const { text, mode } = this.cluster.files.get(`${node}:${path}`)!
    this.cluster.write(node, path, '\0'.repeat(text.length), mode)
    this.kill(`remove ${node}:${path}`)
    this.cluster.remove(node, path)
  }

  certificate(digest: Digest): string | undefined {
    return this.cluster.certificates.has(digest) ? JSON.stringify({ certificates: [digest] }) : undefined
  }

  spkiOf(content: Uint8Array): Digest | undefined {
    const contains = this.cluster.parsedContentOf(Buffer.from(content).toString())
    return contains.kind === 'key' ? contains.spki : undefined
  }

  private async reach(node: string): Promise<void> {
    await this.cluster.time.sleep(30)
    if (!this.cluster.nodes.get(node)?.isUnreachable) return
    throw new KcertError('KCERT_NODE_UNREACHABLE', `node ${node}`, { why: 'connection timed out' })
  }
}

export class SimulatedJournal implements JournalFile {
  text = ''
  isBroken = false

  async read(): Promise<string> {
    return this.text
  }

  async append(line: string): Promise<void> {
    if (this.isBroken)
      throw new KcertError('KCERT_FILE_NOT_WRITTEN', 'journal.jsonl', { why: 'no space left on device' })
    this.text += line
  }
}
