import { type Action, actionsOf, type Step, type WriteFile } from '../action.ts'
import { type CertificateRecord, type Digest, reissuedRecord } from '../certificate-record.ts'
import { changesOf } from '../effects.ts'
import { Board, type Cell, type Relation } from '../model/board.ts'
import { checkSteps, refusalOf } from '../model/check.ts'
import { contentBy } from '../model/file-effects.ts'
import { type ModelState, pass, scheduleValue, settled } from '../model/passing.ts'
import type { Refusal } from '../phase.ts'
import { rowNumbered } from '../phase-table.ts'
import {
  apiServers,
  certificatesIn,
  fileAt,
  fileKey,
  onNode,
  type ParsedContent,
  type ProcessId,
  type SectionName,
  type Snapshot,
} from '../snapshot.ts'
import { type CaChange, changeOf, type Target } from '../target.ts'
import {
  apiTrustFiles,
  type EtcdTrustFile,
  hasLoaded,
  healthcheckPath,
  memberTrustFiles,
  servingFlags,
} from './members.ts'
import { etcdRotation, etcdRow } from './phase-table.ts'

// Every connection to etcd: each ordered pair of members, each API server and kubeadm's health check client to each member, and each
// member to itself (its JSON gateway presents the serving certificate as a client). Files with trust are read at startup, chains at each
// handshake.

/** The sections of the snapshot that the model needs. */
export const etcdModelSections = [
  'components',
  'files',
  'etcdMembers',
  'copies',
] as const satisfies readonly SectionName[]

/** Returns why the steps would break a connection to etcd, wherever they stop; undefined if none breaks. */
export function brokenEtcdConnection(
  snapshot: Snapshot,
  target: Target,
  steps: readonly Step[],
): Refusal | undefined {
  const change = changeOf(target, 'etcd')
  if (change === undefined || steps.flatMap(actionsOf).every((action) => changesOf(action) === 'nothing'))
    return undefined
  const world = new EtcdWorld(snapshot, target, change)
  const edge = checkSteps(world, steps, (action) => world.perform(action))
  return edge && refusalOf(edge)
}

const restartRow = etcdRow('restart-etcd')

/** Phase 3 in the files of members, phase 4 in those of API servers. */
const writesNewAlone = new Set([restartRow.number, etcdRow('restart-api-servers').number])

/** A cell with the content of a file, and when the process reads it. */
interface Reading {
  readonly cell: Cell
  readonly key: string
  readonly part: 'trust' | 'chain'
  /** `use`: a program that starts anew each time. */
  readonly reload: 'hot' | 'start' | 'use'
  readonly process?: ProcessId
}

class EtcdWorld implements ModelState {
  readonly board: Board
  readonly unread: ModelState['unread'] = new Map()
  clockMs = 0
  private readonly snapshot: Snapshot
  private readonly target: Target
  private readonly change: CaChange
  private readonly files: Map<string, ParsedContent>
  private readonly readings: Reading[] = []
  /** Clients that trust only the old CA, while the bridge certificate is served. */
  private readonly oldAlone: Cell
  /** Clients with a certificate of the old CA, until members trust only the new one. */
  private readonly oldClient: Cell

  constructor(snapshot: Snapshot, target: Target, change: CaChange) {
    this.snapshot = snapshot
    this.target = target
    this.change = change
    this.board = new Board(snapshot.certificates, snapshot.atMs)
    this.files = new Map(snapshot.files.entries().map(([key, { contains }]) => [key, contains]))
    const servers = this.board.relation('etcd-server')
    const clients = this.board.relation('etcd-client')
    const peers = this.board.relation('etcd-peer')
    for (const member of snapshot.etcdMembers) {
      const { id, node, flags } = member
      this.present(id, node, flags[servingFlags.client], `--${servingFlags.client}`, [servers, clients])
      this.present(id, node, flags[servingFlags.peer], `--${servingFlags.peer}`, [peers])
      for (const file of memberTrustFiles(member))
        this.verify(file, [file.flag === 'trusted-ca-file' ? clients : peers])
      const etcdctl = `etcdctl on ${node}`
      this.present(etcdctl, node, healthcheckPath(flags), 'healthcheck-client.crt', [clients], 'use')
      const path = flags['trusted-ca-file']
      if (path !== undefined)
        this.verify({ process: etcdctl, node, path, flag: 'cacert', running: undefined }, [servers], 'use')
    }
    for (const { id, node, flags } of apiServers(snapshot))
      this.present(id, node, flags['etcd-certfile'], '--etcd-certfile', [clients])
    for (const file of apiTrustFiles(snapshot)) this.verify(file, [servers])
    this.oldAlone = this.board.cell(
      { label: 'a client that trusts only the old CA, with the bridge certificate', verifiesIn: [servers] },
      // From the removal of the bridge certificate on, kcert does not expect such clients.
      this.isBridgeServed() ? [this.board.value([change.oldCa.digest])] : [],
    )
    this.oldClient = this.board.cell(
      { label: 'a client with a certificate of the old CA', presentsIn: [clients] },
      [this.board.chain([this.leafOf(change.oldCa).digest])],
    )
    this.board.watch()
  }

  perform(action: Action): void {
    if (rowNumbered(etcdRotation, action.phase)?.endsBridge) this.board.set(this.oldAlone, [])
    if (action.phase === restartRow.number) this.board.set(this.oldClient, [])
    if (action.kind === 'write-file') this.write(action)
    else if (action.kind === 'restart') this.restart(action.process)
    else if (action.kind === 'probe' && 'forMs' in action.subject) pass(this, action.subject.forMs)
  }

  private isBridgeServed(): boolean {
    return this.snapshot.etcdMembers.every(({ node, flags }) => {
      const [leaf = '', ...others] = certificatesIn(fileAt(this.snapshot, node, flags[servingFlags.client]))
      return others.length > 0 || this.snapshot.certificates.get(leaf)?.signedBy === this.change.oldCa.spki
    })
  }

  private present(
    id: string,
    node: string,
    path: string | undefined,
    name: string,
    presentsIn: readonly Relation[],
    reload: Reading['reload'] = 'hot',
  ): void {
    const key = fileKey(node, path ?? '')
    const contains = this.files.get(key)
    if (contains === undefined) return
    const value = this.valueIn(contains, 'chain')
    const cell = this.board.cell({ label: `${id}, ${name}`, presentsIn }, value === undefined ? [] : [value])
    this.readings.push({ cell, key, part: 'chain', reload })
  }

  /** A process that is older than its file may have the old CA in memory, or the new one if the file contained it alone. */
  private verify(
    trust: EtcdTrustFile,
    verifiesIn: readonly Relation[],
    reload: Reading['reload'] = 'start',
  ): void {
    const { oldCa, newCa } = this.change
    const { process, node, path, flag, running } = trust
    const file = fileAt(this.snapshot, node, path)
    const value = file && this.valueIn(file.contains, 'trust')
    const isOlder = reload === 'start' && running !== undefined && !hasLoaded(this.snapshot, trust)
    const wasNew = onNode(this.snapshot.copies, node).some(
      ({ phase, of }) => writesNewAlone.has(phase) && 'path' in of && of.path === path,
    )
    const before = wasNew ? [oldCa, newCa] : [oldCa]
    const earlier = isOlder ? before.map(({ digest }) => this.board.value([digest])) : []
    const values = value === undefined ? earlier : [value, ...earlier]
    const cell = this.board.cell({ label: `${process}, --${flag}`, verifiesIn }, values)
    this.readings.push({ cell, key: fileKey(node, path), part: 'trust', reload, process })
  }

  private valueIn(contains: ParsedContent, part: Reading['part']): number | undefined {
    if (contains.kind !== 'certificates' && contains.kind !== 'pair') return undefined
    return part === 'chain'
      ? this.board.chain(contains.certificates)
      : this.board.value(contains.certificates)
  }

  private write({ node, path, content, phase }: WriteFile): void {
    const key = fileKey(node, path)
    const now = this.files.get(key)
    const contains =
      content.kind === 'copy'
        ? this.contentByCopy(node, content.digest, phase, now)
        : contentBy(
            {
              target: this.target,
              record: (digest) => this.board.record(digest),
              signed: (leaf, by) => (by === undefined ? leaf : this.leafOf(by).digest),
              signer: () => undefined,
            },
            now,
            content,
          )
    if (contains === undefined) return
    this.files.set(key, contains)
    for (const { cell, key: its, part, reload } of this.readings) {
      const value = its === key ? this.valueIn(contains, part) : undefined
      if (value === undefined) continue
      if (reload === 'use') settled(this, cell, [value])
      else if (reload === 'hot') scheduleValue(this, cell, value)
      // A crash or a restart by others may happen at any time.
      else this.board.add(cell, [value])
    }
  }

  /** Returns the content of a copy: as it was read, or as the phase found it. */
  private contentByCopy(
    node: string,
    digest: Digest,
    phase: number,
    now: ParsedContent | undefined,
  ): ParsedContent | undefined {
    const { oldCa, newCa, bridge } = this.change
    const copies = onNode(this.snapshot.copies, node)
    const read = copies.find((copy) => copy.digest === digest && copy.contains !== undefined)?.contains
    if (read !== undefined || now?.kind !== 'certificates') return read
    const [first = '', ...others] = now.certificates
    if (this.board.record(first)?.isCa)
      return { kind: 'certificates', certificates: [first === newCa.digest ? oldCa.digest : first] }
    const isLast = rowNumbered(etcdRotation, phase)?.endsBridge === true
    return {
      kind: 'certificates',
      certificates: isLast && bridge ? [first, bridge.digest, ...others] : [this.leafOf(oldCa).digest],
    }
  }

  private restart(id: ProcessId): void {
    pass(this, leastMs)
    for (const { cell, key, part, process: its } of this.readings) {
      const contains = its === id ? this.files.get(key) : undefined
      const value = contains && this.valueIn(contains, part)
      if (value !== undefined) settled(this, cell, [value])
    }
  }

  private leafOf(ca: CertificateRecord): CertificateRecord {
    const digest = `model:leaf of ${ca.digest}`
    const known = this.board.record(digest)
    if (known !== undefined) return known
    const { subjectKeyId: _, ...blank } = { ...ca, subject: 'a certificate', spki: digest, isCa: false }
    return this.board.learn(reissuedRecord(blank, ca, digest))
  }
}

/** The shortest restart: after SIGKILL a member is back after 1.1 s. */
const leastMs = 1_000
