import { given } from '../../errors/given.ts'
import { type CertificateRecord, type Digest, reissuedRecord } from '../certificate-record.ts'
import { blindInstant, isWaived, rereadMs } from '../convergence.ts'
import {
  type ComponentName,
  type ComponentSnapshot,
  clientPathOf,
  fileKey,
  type ParsedContent,
  type PodSnapshot,
  type Snapshot,
  servingPathOf,
} from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { knowsByConfigMap } from '../verifying.ts'
import { Board, type Cell, type Relation } from './board.ts'
import { earlierContent, earlierTrust } from './earlier.ts'
import type { ModelState } from './passing.ts'
import { kubeletRoles, labelOf, type RelationName, type Role, rolesOf } from './roles.ts'

// Every trust holder and credential holder in a snapshot. A process that started before its file changed may still use the earlier
// content: the trust without the last step, or the leaf certificate of the old CA.

export interface Reading {
  readonly role: Role
  readonly cell: Cell
}

export interface ModelProcess extends Pick<ComponentSnapshot, 'id' | 'node' | 'runsAs'> {
  readonly name: ComponentName | 'kubelet'
  readonly definition?: string
  /** The flags in the current definition. */
  flags: Readonly<Record<string, string>>
  readonly readings: readonly Reading[]
  /** The client certificates on open connections from API servers to this process. */
  readonly kept?: Cell
  /** Leaf certificates that it signs now. */
  readonly signs?: Cell
  /** For a static pod with a new manifest: what it may read during startup. */
  starting?: Map<Cell, Set<number>>
}

/** Equivalent pods: same workload, same volume and same process state. */
export interface ModelPods {
  readonly workload: string | undefined
  readonly rereads: boolean
  readonly volume: Cell
  readonly known: Cell
  /** For handlers: the CAs with which they verify the front proxy. */
  readonly frontProxy?: Cell
}

/** The state of the model: cells on a board, and the data to determine how an action changes them. */
export class World implements ModelState {
  readonly board: Board
  readonly target: Target
  readonly snapshot: Snapshot
  readonly files: Map<string, ParsedContent>
  readonly processes = new Map<string, ModelProcess>()
  readonly byDefinition = new Map<string, ModelProcess>()
  private readonly byFlag = new Map<string, (Reading & { readonly who: ModelProcess })[]>()
  readonly readers = new Map<string, Set<ModelProcess>>()
  readonly pods: ModelPods[] = []
  readonly podsOf = new Map<string, ModelPods[]>()
  /** Kubeconfigs that are read at each use. */
  readonly holders = new Map<string, { readonly caData: Cell; readonly client: Cell }>()
  readonly bundles = new Map<string, Cell>()
  readonly published: Cell
  readonly clusterInfo: Cell
  readonly extension: { readonly client: Cell; readonly requestheader: Cell }
  /** Clients that trust only the old CA, while the bridge certificate exists. */
  readonly oldAlone: Cell
  readonly relations: Readonly<Record<RelationName, Relation>>
  readonly unread: ModelState['unread'] = new Map()
  clockMs = 0

  /** Equivalent pods of workloads that are not in `rolled` are merged, across workloads. */
  constructor(snapshot: Snapshot, target: Target, rolled: ReadonlySet<string>) {
    this.snapshot = snapshot
    this.target = target
    this.board = new Board(snapshot.certificates, snapshot.atMs)
    this.files = new Map(snapshot.files.entries().map(([key, { contains }]) => [key, contains]))
    this.relations = {
      servers: this.board.relation('server'),
      clients: this.board.relation('client'),
      atJoiner: this.board.relation('kubelet-client'),
      kubeletServing: this.board.relation('kubelet-serving'),
      frontProxy: this.board.relation('front-proxy'),
      users: this.board.relation('user'),
    }
    const { servers, users, atJoiner } = this.relations
    this.clusterInfo = this.trustHolder(
      'a joining node',
      snapshot.clusterInfo ? [snapshot.clusterInfo.trust] : [],
      [servers, atJoiner],
    )
    const published = snapshot.published.flatMap(({ isActive, trust }) => (isActive && trust ? [trust] : []))
    this.published = this.trustHolder('a starting pod', published, [servers])
    const extension = snapshot.extensionAuthentication
    const byConfigMap = snapshot.components.some(knowsByConfigMap)
    this.extension = {
      client: this.trustHolder(
        'kube-scheduler, with extension-apiserver-authentication',
        extension ? [extension.client] : [],
        byConfigMap ? [users] : [],
      ),
      requestheader: this.trustHolder(
        'a starting aggregated API server',
        extension ? [extension.requestheader] : [],
        snapshot.workloads.some(({ serves }) => serves.length > 0) ? [this.relations.frontProxy] : [],
      ),
    }
    const cluster = changeOf(target, 'cluster')
    this.oldAlone = this.trustHolder(
      'a client that trusts only the old CA, with the bridge certificate',
      cluster?.bridge && !target.isDropping ? [[cluster.oldCa.digest]] : [],
      [servers],
    )
    for (const component of snapshot.components) this.addComponent(component)
    for (const kubelet of snapshot.kubelets) this.addKubelet(kubelet)
    this.addHolders()
    this.addHandlers()
    this.addPods(rolled)
    this.board.watch()
  }

  private trustHolder(
    label: string,
    trusts: readonly (readonly Digest[])[],
    verifiesIn: readonly Relation[],
  ) {
    const values = trusts.map((trust) => this.board.value(trust))
    return this.board.cell({ label, verifiesIn }, values)
  }

  // --- files

  /** Returns the value of a role in the content of a file; undefined when there is none. */
  valueOf(who: Pick<ModelProcess, 'node'>, role: Role, flags: ModelProcess['flags']): number | undefined {
    const content = this.contentAt(who.node, flags[role.flag])
    if (role.part === 'signing') return this.signingValue(who, flags)
    return content && this.valueIn(content, role.part)
  }

  contentAt(node: string, path: string | undefined): ParsedContent | undefined {
    return path === undefined ? undefined : this.files.get(fileKey(node, path))
  }

  valueIn(content: ParsedContent, part: Role['part']): number | undefined {
    const { board } = this
    if (content.kind === 'kubeconfig') {
      if (part === 'caData') return board.value(content.caData)
      return part === 'client' && content.client !== undefined ? board.chain([content.client]) : undefined
    }
    if (content.kind !== 'certificates' && content.kind !== 'pair') return undefined
    if (content.certificates.length === 0) return board.value([])
    if (part === 'chain') return board.chain(content.certificates)
    if (part === 'client') return board.chain(content.certificates.slice(0, 1))
    return part === 'caData' ? undefined : board.value(content.certificates)
  }

  /** Returns the certificates followed by the key: a signer uses them as one unit. */
  private signingValue(
    { node }: Pick<ModelProcess, 'node'>,
    flags: ModelProcess['flags'],
  ): number | undefined {
    const certificates = this.contentAt(node, flags['cluster-signing-cert-file'])
    const key = this.contentAt(node, flags['cluster-signing-key-file'])
    if (certificates?.kind !== 'certificates') return undefined
    const spki =
      key?.kind === 'key' ? key.spki : (this.board.record(certificates.certificates[0])?.spki ?? '')
    return this.board.value([...certificates.certificates, `key:${spki}`])
  }

  /** Returns the leaf certificates that a signing pair issues. */
  signedBy(value: number): number | undefined {
    const [first, key, ...more] = this.board.list(value)
    const ca = this.board.record(first)
    if (ca === undefined || more.length > 0 || key !== `key:${ca.spki}`) return undefined
    return this.board.chain([this.leafOf(ca).digest])
  }

  /** Returns a leaf certificate of a CA that differs from others only in its issuer. */
  leafOf(ca: CertificateRecord): CertificateRecord {
    const digest = `model:leaf of ${ca.digest}`
    const known = this.board.record(digest)
    if (known !== undefined) return known
    const blank = { ...ca, subject: 'a certificate', spki: digest, isCa: false }
    const { subjectKeyId: _, ...leaf } = reissuedRecord(blank, ca, digest)
    return this.board.learn(leaf)
  }

  // --- processes and pods

  private addComponent(component: Snapshot['components'][number]): void {
    const { id, node, name, runsAs, definition, flags, process: now } = component
    const running = now === undefined ? flags : { ...flags, ...now.flags }
    const readings = rolesOf[name]
      .filter(({ flag }) => flags[flag] !== undefined || running[flag] !== undefined)
      .map((role) => this.reading({ id, node }, role, running, flags, now?.startedAtMs))
    const signing = readings.find(({ role }) => role.part === 'signing')?.cell
    const signs =
      signing &&
      this.board.cell(
        { label: `a certificate newly signed by ${id}`, presentsIn: [this.relations.clients] },
        signing.values.flatMap((value) => this.signedBy(value) ?? []),
      )
    this.enlist({ id, node, name, runsAs, definition, flags, readings, ...(signs && { signs }) })
  }

  private addKubelet(kubelet: Snapshot['kubelets'][number]): void {
    const { id, node, clientCaFile, kubeconfig, process: now } = kubelet
    const serving = servingPathOf(kubelet)
    const client = clientPathOf(kubelet)
    const flags = given({ clientCAFile: clientCaFile, kubeconfig, client, serving })
    const own = this.board.relation('kubelet-client')
    const readings = kubeletRoles
      .filter(({ flag }) => flag in flags)
      .map((role) => {
        const alsoIn = role.flag === 'clientCAFile' ? [own] : []
        return this.reading({ id, node }, role, flags, flags, now?.startedAtMs, alsoIn)
      })
    const kept = this.board.cell(
      { label: `API servers to ${id}`, presentsIn: [own] },
      this.keptTo(now?.startedAtMs ?? 0),
    )
    this.enlist({ id, node, name: 'kubelet', runsAs: 'unit', flags, readings, kept })
  }

  /** API servers keep a connection to a kubelet open for 5 minutes, with the certificate from its start. */
  private keptTo(kubeletStartMs: number): number[] {
    const { atMs, files } = this.snapshot
    return this.cellsOf('kube-apiserver', 'kubelet-client-certificate').flatMap(({ cell, who, role }) => {
      const file = files.get(fileKey(who.node, who.flags[role.flag] ?? ''))
      const isYoung = file !== undefined && file.changedAtMs + rereadMs > atMs
      if (!isYoung || file.changedAtMs < kubeletStartMs) return cell.values
      const earlier = this.valueIn(earlierContent(this, file.contains), role.part)
      return earlier === undefined ? cell.values : [...cell.values, earlier]
    })
  }

  private reading(
    { id, node }: Pick<ModelProcess, 'id' | 'node'>,
    role: Role,
    running: ModelProcess['flags'],
    defined: ModelProcess['flags'],
    startedAtMs: number | undefined,
    alsoIn: readonly Relation[] = [],
  ): Reading {
    const [present, verify] = [role.presentsIn ?? [], role.verifiesIn ?? []]
    const given = {
      label: labelOf(id, role),
      presentsIn: present.map((name) => this.relations[name]),
      verifiesIn: [...verify.map((name) => this.relations[name]), ...alsoIn],
      ...(role.part === 'signing' && { flaw: (list: readonly Digest[]) => this.flawOfSigning(list) }),
    }
    const file = this.snapshot.files.get(fileKey(node, running[role.flag] ?? ''))
    const isOlder = startedAtMs !== undefined && file !== undefined && startedAtMs <= file.changedAtMs
    const values = [
      this.valueOf({ node }, role, running),
      this.valueOf({ node }, role, defined),
      role.reload === 'start' && isOlder
        ? this.valueIn(earlierContent(this, file.contains), role.part)
        : undefined,
    ].filter((value) => value !== undefined)
    return { role, cell: this.board.cell(given, values) }
  }

  private flawOfSigning(list: readonly Digest[]): string | undefined {
    const count = list.length - 1
    if (count !== 1)
      return `${count} certificates in --cluster-signing-cert-file, which must contain exactly one`
    const spki = this.board.record(list[0])?.spki
    return list.at(-1) === `key:${spki}` ? undefined : 'certificate and key of the signing pair do not match'
  }

  private enlist(who: ModelProcess): void {
    this.processes.set(who.id, who)
    if (who.definition !== undefined) this.byDefinition.set(fileKey(who.node, who.definition), who)
    for (const reading of who.readings) {
      listIn(this.byFlag, `${who.name} ${reading.role.flag}`).push({ ...reading, who })
    }
    this.bind(who)
  }

  /** From now on, changes to its files affect the process. */
  bind(who: ModelProcess): void {
    const paths = who.readings.map(({ role }) => who.flags[role.flag])
    for (const path of [...paths, who.flags['cluster-signing-key-file']]) {
      if (path === undefined) continue
      const key = fileKey(who.node, path)
      this.readers.set(key, (this.readers.get(key) ?? new Set()).add(who))
    }
  }

  /** Returns the cells of a flag's file in every process with this name. */
  cellsOf(name: ModelProcess['name'], flag: string): readonly (Reading & { readonly who: ModelProcess })[] {
    return this.byFlag.get(`${name} ${flag}`) ?? []
  }

  /** Returns the different values of these. */
  valuesOf(name: ModelProcess['name'], flag: string): readonly number[] {
    return [...new Set(this.cellsOf(name, flag).flatMap(({ cell }) => cell.values))]
  }

  private addHolders(): void {
    const { servers, clients, users } = this.relations
    for (const { id, at, exported } of this.snapshot.kubeconfigs) {
      if (this.target.waivers.has(id)) continue
      const key = at && fileKey(at.node, at.path)
      const content = key === undefined ? exported : this.files.get(key)
      const isKubeconfig = content !== undefined && 'caData' in content
      const chain = isKubeconfig && content.client !== undefined ? [this.board.chain([content.client])] : []
      const presentsIn = key?.includes('kube-proxy') ? [clients] : [clients, users]
      this.holders.set(key ?? id, {
        caData: this.trustHolder(`kubeconfig ${id}`, isKubeconfig ? [content.caData] : [], [servers]),
        client: this.board.cell({ label: `kubeconfig ${id}`, presentsIn }, chain),
      })
    }
  }

  private addHandlers(): void {
    const shown = new Map(this.snapshot.handshakes.map(({ server, chain }) => [server, chain]))
    for (const { id, trust, server } of this.snapshot.caBundles) {
      const chain = shown.get(server)
      if (chain === undefined || this.target.waivers.has(server)) continue
      const own = this.board.relation('handler')
      this.board.cell({ label: server, presentsIn: [own] }, [this.board.chain(chain)])
      this.bundles.set(id, this.trustHolder(`API servers, with the caBundle of ${id}`, [trust], [own]))
    }
  }

  private addPods(rolled: ReadonlySet<string>): void {
    const classes = new Set<string>()
    const handlers = new Set(
      this.snapshot.workloads.flatMap(({ id, serves }) => (serves.length > 0 ? [id] : [])),
    )
    for (const pod of this.snapshot.pods) {
      if (isWaived(pod, this.target)) continue
      const rereads = pod.rereads && this.target.trustsReloadingClients
      const [volume, known] = this.trustsOf(pod, rereads)
      const serves = pod.workload !== undefined && handlers.has(pod.workload)
      const workload = pod.workload !== undefined && rolled.has(pod.workload) ? pod.workload : undefined
      const frontProxy = serves ? this.frontProxyOf(pod) : []
      const key = `${workload ?? ''}|${rereads}|${volume}|${known}|${serves}|${frontProxy}`
      if (classes.has(key)) continue
      classes.add(key)
      const cell = (verifiesIn: readonly Relation[], values: readonly number[]): Cell =>
        this.board.cell({ label: `Pod ${pod.id}`, verifiesIn }, values)
      const made: ModelPods = {
        workload,
        rereads,
        volume: cell([], volume),
        known: cell([this.relations.servers], known),
        ...(serves && { frontProxy: cell([this.relations.frontProxy], frontProxy) }),
      }
      const { atMs } = this.snapshot
      const [value] = volume
      if (known.length > 1 && rereads && pod.volume !== undefined && value !== undefined) {
        this.unread.set(made.known, { sinceMs: pod.volume.changedAtMs - atMs, value, lagMs: rereadMs })
      }
      this.pods.push(made)
      if (workload !== undefined) listIn(this.podsOf, workload).push(made)
    }
  }

  /** Returns the CAs in a pod's volume, and those that its process may have read. */
  private trustsOf(pod: PodSnapshot, rereads: boolean): [number[], number[]] {
    const { board, snapshot } = this
    const { volume, startedAtMs } = pod
    if (volume === undefined) {
      const now = [...this.published.values]
      const earlier = now.map((value) => board.value(earlierTrust(this, board.list(value))))
      return [now, startedAtMs >= blindInstant(snapshot, pod) ? now : [...now, ...earlier]]
    }
    const now = board.value(volume.trust)
    if (startedAtMs >= volume.changedAtMs) return [[now], [now]]
    const earlier = board.value(earlierTrust(this, volume.trust))
    if (!rereads) return [[now], [earlier]]
    return [[now], snapshot.atMs >= volume.changedAtMs + rereadMs ? [now] : [now, earlier]]
  }

  private frontProxyOf({ startedAtMs }: PodSnapshot): number[] {
    const extension = this.snapshot.extensionAuthentication
    if (extension === undefined) return []
    const now = this.board.value(extension.requestheader)
    if (startedAtMs >= extension.changedAtMs) return [now]
    return [now, this.board.value(earlierTrust(this, extension.requestheader))]
  }
}

function listIn<Item>(lists: Map<string, Item[]>, key: string): Item[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}
