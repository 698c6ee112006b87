import { withChanges } from '../../pki/component-flags.ts'
import {
  type Action,
  type Condition,
  evidenceKey,
  type PatchObject,
  type Step,
  type WriteFile,
} from '../action.ts'
import { type CertificateRecord, type Digest, isSignedByCa, reissuedRecord } from '../certificate-record.ts'
import { durationOf, endOfLanes } from '../effects.ts'
import { leafFlags } from '../leaves.ts'
import { keyIdFor } from '../service-account-key/key-id.ts'
import { keysIn, privatePath, publicPaths } from '../service-account-key/keys.ts'
import {
  type ComponentSnapshot,
  type CopySnapshot,
  certificatesIn,
  fileKey,
  isBundleOf,
  type PodSnapshot,
  type Snapshot,
  servingPathOf,
  type Trust,
} from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { contentBy, type Issuing } from './file-effects.ts'

// The snapshot after all steps succeed. Future certificates are identified by their predicted content. It predicts what
// controllers do after a change, and one action of others: owners of webhooks and aggregated APIs reissue their certificates
// before phase 11, and owners of objects replace the old CA in them.

/** Returns the snapshot after these steps, and the target with the questions answered. */
export function imagine(
  observed: Snapshot,
  target: Target,
  steps: readonly Step[],
): { observed: Snapshot; target: Target } {
  const imagined = new Imagined(observed, target)
  for (const step of steps) imagined.performAll(step)
  return imagined.result
}

/** Returns the snapshot in which the old CA issued only kcert's own leaf certificates, and no object contains only the old CA. */
export function reissuedByOwners(observed: Snapshot, target: Target): Snapshot {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return observed
  const ours = new Set([...observed.components, ...observed.kubelets].map(({ id }) => id))
  const certificates = new Map(observed.certificates)
  const handshakes = observed.handshakes.map((one) => {
    const leaf = certificates.get(one.chain[0] ?? '')
    if (leaf === undefined || ours.has(one.server) || !isSignedByCa(leaf, change.oldCa)) return one
    const made = reissuedRecord(leaf, change.newCa, `planned:${one.server}`)
    certificates.set(made.digest, made)
    return { ...one, chain: [made.digest] }
  })
  return { ...observed, certificates, handshakes, stored: { ...observed.stored, objects: [] } }
}

type Draft = { -readonly [Section in keyof Snapshot]: Snapshot[Section] }

/** Returns the sections whose entries are looked up and replaced individually. */
function tablesOf(observed: Snapshot) {
  return {
    files: new Map(observed.files),
    certificates: new Map(observed.certificates),
    evidence: new Map(observed.evidence),
    components: new Map(observed.components.map((one) => [one.id, one])),
    kubelets: new Map(observed.kubelets.map((one) => [one.id, one])),
    // A playbook observes only what it needs.
    etcdMembers: new Map((observed.etcdMembers ?? []).map((one) => [one.id, one])),
    handshakes: new Map((observed.handshakes ?? []).map((one) => [one.server, one])),
    workloads: new Map((observed.workloads ?? []).map((one) => [one.id, one])),
  }
}

class Imagined implements Issuing {
  nowMs: number
  private readonly observed: Snapshot
  readonly target: Target
  /** The sections that are replaced as a whole. For the sections in the tables, the original content. */
  private readonly now: Draft
  private readonly tables: ReturnType<typeof tablesOf>
  private readonly waivers: Set<string>
  private copies: CopySnapshot[]
  private rolled: PodSnapshot[] | undefined
  private podsAt: ReadonlyMap<string | undefined, readonly number[]> | undefined
  private readonly definitions: ReadonlyMap<string, string>
  private count = 0

  constructor(observed: Snapshot, target: Target) {
    this.observed = observed
    this.target = target
    this.nowMs = observed.atMs
    this.now = { ...observed }
    this.tables = tablesOf(observed)
    this.copies = [...observed.copies]
    this.waivers = new Set(target.waivers)
    this.definitions = new Map(
      observed.components.map(({ id, node, definition }) => [fileKey(node, definition), id]),
    )
  }

  get result(): { observed: Snapshot; target: Target } {
    const { components, kubelets, etcdMembers, handshakes, workloads, ...tables } = this.tables
    const observed: Snapshot = {
      ...this.now,
      ...tables,
      copies: this.copies,
      atMs: this.nowMs + 1_000,
      components: [...components.values()],
      kubelets: [...kubelets.values()],
      etcdMembers: [...etcdMembers.values()],
      handshakes: [...handshakes.values()],
      workloads: [...workloads.values()],
    }
    return { observed, target: { ...this.target, waivers: this.waivers } }
  }

  performAll(step: Step): void {
    if (step.kind !== 'together') this.perform(step)
    else {
      this.nowMs = endOfLanes(step, this.nowMs, ({ steps }, startMs) => {
        this.nowMs = startMs
        for (const action of steps) this.perform(action)
        return this.nowMs
      })
    }
  }

  private perform(action: Action): void {
    // Two events at the same instant could not be distinguished.
    this.nowMs += Math.max(1, Math.round(durationOf([action], this.nowMs) * 1_000))
    if (action.kind === 'write-file') this.write(action)
    else if (action.kind === 'patch-object') this.patch(action)
    else if (action.kind === 'restart') this.restart(action.process)
    else if (action.kind === 'rollout') this.roll(action.workload, action.annotation)
    else if (action.kind === 'wait') this.wait(action.until)
    else if (action.kind === 'confirm') this.waivers.add(action.id)
    else {
      const key = evidenceKey(action.subject)
      this.tables.evidence.set(key, { key, ok: true, atMs: this.nowMs, detail: 'foreseen' })
    }
  }

  // --- files

  private write({ node, path, content, mode, phase }: WriteFile): void {
    const { files, components } = this.tables
    const key = fileKey(node, path)
    const now = files.get(key)
    if (content.kind === 'nothing') files.delete(key)
    else if (content.kind === 'copies-over') this.copies = this.copies.filter((copy) => copy.node !== node)
    else if (content.kind === 'copies') {
      for (const { path: of, ...rest } of content.of)
        this.copies.push({ phase, node, of: { path: of }, ...rest })
    }
    if (content.kind === 'nothing' || content.kind === 'copies-over' || content.kind === 'copies') return
    const isLink = content.kind === 'link'
    const contains = isLink
      ? files.get(fileKey(node, content.to))?.contains
      : (contentBy(this, now?.contains, content) ?? now?.contains)
    const digest = `planned:bytes ${this.observed.atMs} ${this.count++}`
    files.set(key, {
      node,
      path,
      digest,
      mode,
      changedAtMs: this.nowMs,
      contains: contains ?? { kind: 'other' },
      ...(isLink && { linksTo: content.to }),
    })
    const component = components.get(this.definitions.get(key) ?? '')
    if (component !== undefined && content.kind === 'definition') {
      components.set(component.id, {
        ...component,
        definitionDigest: digest,
        flags: withChanges(component.flags, content.flags),
        annotations: withChanges(component.annotations, content.annotations ?? {}),
      })
    }
    this.readByApis(node, path)
  }

  record(digest: Digest): CertificateRecord | undefined {
    return this.tables.certificates.get(digest)
  }

  signed(leaf: Digest, by: CertificateRecord | undefined): Digest {
    const record = this.tables.certificates.get(leaf)
    if (record === undefined || by === undefined) return leaf
    const made = reissuedRecord(record, by, `planned:leaf ${this.observed.atMs} ${this.count++}`)
    this.tables.certificates.set(made.digest, made)
    return made.digest
  }

  signer(): CertificateRecord | undefined {
    const manager = this.manager()
    const path = manager?.flags['cluster-signing-cert-file']
    const file = manager && path ? this.tables.files.get(fileKey(manager.node, path)) : undefined
    return (
      this.tables.certificates.get(certificatesIn(file)[0] ?? '') ?? changeOf(this.target, 'cluster')?.newCa
    )
  }

  private manager(): ComponentSnapshot | undefined {
    for (const one of this.tables.components.values()) if (one.name === 'kube-controller-manager') return one
    return undefined
  }

  /** API servers reload their leaf certificates and client CAs by themselves, and publish the CAs. */
  private readByApis(node: string, path: string): void {
    const api = this.tables.components.get(`${node}/kube-apiserver`)
    if (api === undefined) return
    if (api.flags[leafFlags.serving.flag] === path) this.serve(api.id, node, path)
    const isClientCa = api.flags['client-ca-file'] === path
    if (isClientCa || api.flags['requestheader-client-ca-file'] === path)
      this.publishClientCas(this.now.extensionAuthentication)
  }

  private serve(server: string, node: string, path: string | undefined): void {
    const chain = path === undefined ? [] : certificatesIn(this.tables.files.get(fileKey(node, path)))
    if (chain.length > 0) this.tables.handshakes.set(server, { server, chain, atMs: this.nowMs })
  }

  /** API servers add to the published CAs. `undefined`: the object is created again. */
  private publishClientCas(before: Snapshot['extensionAuthentication']): void {
    const now = this.now.extensionAuthentication
    if (now === undefined) return
    const union = (field: 'client' | 'requestheader', flag: string): Trust => {
      const all = new Set(before?.[field])
      for (const { name, node, flags } of this.tables.components.values()) {
        const path = name === 'kube-apiserver' ? flags[flag] : undefined
        if (path === undefined) continue
        for (const digest of certificatesIn(this.tables.files.get(fileKey(node, path)))) all.add(digest)
      }
      return [...all]
    }
    const client = union('client', 'client-ca-file')
    const requestheader = union('requestheader', 'requestheader-client-ca-file')
    const isSame = client.join() === now.client.join() && requestheader.join() === now.requestheader.join()
    if (!isSame) this.now.extensionAuthentication = { ...now, client, requestheader, changedAtMs: this.nowMs }
  }

  // --- objects

  private patch({ object, change }: PatchObject): void {
    if (change.kind === 'cluster-info' && this.now.clusterInfo !== undefined) {
      const signatures = this.now.clusterInfo.signatures.map((one) => ({ ...one, isValid: true }))
      this.now.clusterInfo = { ...this.now.clusterInfo, trust: change.trust, signatures }
    } else if (change.kind === 'ca-bundle') {
      this.now.caBundles = this.now.caBundles.map((one) =>
        isBundleOf(one, object, change.field) ? { ...one, trust: change.trust } : one,
      )
    } else if (change.kind === 'extra-args' && this.now.kubeadm !== undefined) {
      const { extraArgs } = this.now.kubeadm
      const its = withChanges(extraArgs[change.component] ?? {}, change.flags)
      this.now.kubeadm = { ...this.now.kubeadm, extraArgs: { ...extraArgs, [change.component]: its } }
    } else if (change.kind === 'encryption-algorithm' && this.now.kubeadm !== undefined) {
      this.now.kubeadm = { ...this.now.kubeadm, encryptionAlgorithm: change.keyType }
    } else if (change.kind === 'delete' && object.kind === 'Secret' && this.now.kubeadm !== undefined) {
      const { certsSecret: _, ...others } = this.now.kubeadm
      this.now.kubeadm = others
    } else if (change.kind === 'delete') this.publishClientCas(undefined)
  }

  // --- processes, pods and waits

  private restart(id: string): void {
    const kubelet = this.tables.kubelets.get(id)
    const component = this.tables.components.get(id)
    const started = { startedAtMs: this.nowMs, isHealthy: true }
    if (kubelet !== undefined) {
      this.tables.kubelets.set(id, {
        ...kubelet,
        process: { ...started, flags: kubelet.process?.flags ?? {} },
      })
      this.serve(id, kubelet.node, servingPathOf(kubelet))
      this.renewTokens(kubelet.node)
    }
    const member = this.tables.etcdMembers.get(id)
    if (member !== undefined)
      this.tables.etcdMembers.set(id, { ...member, process: { ...started, flags: member.flags } })
    if (component === undefined) return
    this.tables.components.set(id, { ...component, process: { ...started, flags: component.flags } })
    const { name, node } = component
    this.verify(component)
    this.now.leases = this.now.leases?.map((lease) => {
      if (lease.name !== name || (lease.holder !== undefined && lease.holder !== node)) return lease
      const others = [...this.tables.components.values()].filter(
        (one) => one.name === name && one.node !== node,
      )
      return { ...lease, holder: others[0]?.node ?? node, renewedAtMs: this.nowMs }
    })
  }

  /** An API server reads the public keys of service account keys only at startup. */
  private verify(component: ComponentSnapshot): void {
    const { id, node, name } = component
    if (name !== 'kube-apiserver' || this.now.servedKeys === undefined) return
    const files = publicPaths(component).map((path) => this.tables.files.get(fileKey(node, path)))
    const keyIds = { value: files.flatMap(keysIn).map(keyIdFor) }
    this.now.servedKeys = this.now.servedKeys.map((one) => (one.process === id ? { ...one, keyIds } : one))
  }

  /** A kubelet that starts requests every token again. */
  private renewTokens(node: string): void {
    if (this.now.tokens === undefined) return
    const api = this.tables.components.values().find(({ name }) => name === 'kube-apiserver')
    const [key] =
      api === undefined ? [] : keysIn(this.tables.files.get(fileKey(api.node, privatePath(api) ?? '')))
    if (key === undefined) return
    const { nodes } = this.now.tokens
    const renewed = nodes.map((one) => {
      if (one.node !== node || 'unread' in one.tokens) return one
      const { mounted, ...rest } = one.tokens.value
      const value = { mounted: mounted.map((token) => ({ ...token, keyId: keyIdFor(key) })), ...rest }
      return { ...one, tokens: { value } }
    })
    this.now.tokens = { ...this.now.tokens, nodes: renewed }
  }

  /** The leader publishes the file as it read it at startup. */
  private publish(): void {
    const manager = this.manager()
    const path = manager?.process?.flags['root-ca-file']
    const trust = manager && path ? certificatesIn(this.tables.files.get(fileKey(manager.node, path))) : []
    // A playbook observes only what it needs.
    if (trust.length === 0 || this.now.published === undefined) return
    this.now.published = this.now.published.map((one) =>
      !one.isActive || one.unread !== undefined || (one.trust !== undefined && isSameTrust(one.trust, trust))
        ? one
        : { ...one, trust, changedAtMs: this.nowMs },
    )
  }

  private publishedTrust(): Trust | undefined {
    return this.now.published.find(({ isActive, trust }) => isActive && trust !== undefined)?.trust
  }

  private refreshVolumes(): void {
    const trust = this.publishedTrust()
    if (trust === undefined) return
    const volume = { trust, changedAtMs: this.nowMs }
    this.rolled = this.now.pods.map((pod) =>
      pod.volume === undefined || isSameTrust(pod.volume.trust, trust) ? pod : { ...pod, volume },
    )
    this.now.pods = this.rolled
  }

  private roll(id: string, annotation: string): void {
    const workload = this.tables.workloads.get(id)
    if (workload === undefined || workload.annotation === annotation) return
    this.tables.workloads.set(id, { ...workload, annotation })
    const trust = this.publishedTrust()
    // One list for all workloads: with 100,000 pods, one copy for each workload would take minutes.
    this.rolled ??= [...this.now.pods]
    this.podsAt ??= Map.groupBy(this.rolled.keys(), (index) => this.rolled?.[index]?.workload)
    for (const index of this.podsAt.get(id) ?? []) {
      const pod = this.rolled[index]
      if (pod === undefined) continue
      const volume = pod.volume && trust && { volume: { trust, changedAtMs: this.nowMs } }
      this.rolled[index] = { ...pod, startedAtMs: this.nowMs, ...volume }
    }
    this.now.pods = this.rolled
  }

  private wait(until: Condition): void {
    if (until.kind === 'leader' || until.kind === 'published') this.publish()
    else if (until.kind === 'volumes') this.refreshVolumes()
    else if (until.kind === 'instant') this.nowMs = Math.max(this.nowMs, until.atMs)
  }
}

function isSameTrust(one: Trust, other: Trust): boolean {
  return one === other || (one.length === other.length && one.every((digest, i) => digest === other[i]))
}
