import type { CertificateRecord, CertificateTable, Digest } from '../certificate-record.ts'
import { refusingVerifiers, type Verifier } from './trust.ts'

// Which trust holder verifies which certificate, and what each process may have in memory now. A cell may have several values: what a
// process read at startup and the later content on disk, because the time of its restart is unknown. Every value of a trust holder
// must accept every value of a credential holder. Equal trusts and equal chains share one value, so a path is built only once for
// all of them.

/** The kind of connection in a relation. It determines how a broken connection is explained. */
export type RelationKind =
  | 'server'
  | 'client'
  | 'kubelet-client'
  | 'kubelet-serving'
  | 'front-proxy'
  | 'handler'
  | 'etcd-server'
  | 'etcd-client'
  | 'etcd-peer'
  | 'user'

/** All credential holders and all trust holders of one kind of connection. */
export interface Relation {
  readonly kind: RelationKind
  readonly credentialHolders: Map<number, Set<Cell>>
  readonly trustHolders: Map<number, Set<Cell>>
}

export interface Cell {
  /** Name for the operator: "w1/kubelet, --client-ca-file", "Pod default/web-1". */
  readonly label: string
  readonly presentsIn: readonly Relation[]
  readonly verifiesIn: readonly Relation[]
  /** For a file with a pair: what is wrong with a value. */
  readonly flaw?: (value: readonly Digest[]) => string | undefined
  values: readonly number[]
}

/** One connection that would fail, or one process that would stop working. */
export interface BrokenPair {
  readonly kind: RelationKind | 'signing'
  readonly credentialHolder: string
  readonly trustHolder: string
  readonly shows: CertificateRecord | undefined
  readonly trusts: readonly CertificateRecord[]
  readonly refusing: readonly Verifier[]
  /** What is wrong with a signing pair. */
  readonly flaw?: string
}

/** The values, and the cells that contain them. */
export class Board {
  private readonly relations: Relation[] = []
  private readonly atMs: number
  private readonly table: Pick<CertificateTable, 'get'>
  private readonly made = new Map<Digest, CertificateRecord>()
  private readonly ids = new Map<string, number>()
  private readonly lists: (readonly Digest[])[] = []
  private readonly verdicts = new Map<number, readonly Verifier[]>()
  /** Pairs that failed before any change are not caused by the plan: relation, values, and the cells with these values. */
  private readonly before = new Map<
    Relation,
    Map<number, { credentialHolders: Set<Cell>; trustHolders: Set<Cell> }>
  >()
  private isWatching = false
  private found: BrokenPair | undefined
  private touched: Map<Cell, { readonly base: readonly number[]; readonly held: Set<number> }> | undefined

  constructor(certificates: CertificateTable, atMs: number) {
    this.atMs = atMs
    this.table = { get: (digest) => this.made.get(digest) ?? certificates.get(digest) }
  }

  /** Returns a new, empty relation. */
  relation(kind: RelationKind): Relation {
    const made = { kind, credentialHolders: new Map(), trustHolders: new Map() }
    this.relations.push(made)
    return made
  }

  record(digest: Digest | undefined): CertificateRecord | undefined {
    return digest === undefined ? undefined : this.table.get(digest)
  }

  learn(record: CertificateRecord): CertificateRecord {
    this.made.set(record.digest, record)
    return record
  }

  /** Returns the number of a list of certificates, in this order. */
  value(list: readonly Digest[]): number {
    const key = list.join()
    let id = this.ids.get(key)
    if (id === undefined) {
      id = this.lists.push(list) - 1
      this.ids.set(key, id)
    }
    return id
  }

  /** Returns the number of a chain. Leaf certificates that differ only in name and key share one number. */
  chain([leaf, ...others]: readonly Digest[]): number {
    const record = this.record(leaf)
    if (record === undefined || record.isCa || record.issuer === record.subject) {
      return this.value(leaf === undefined ? [] : [leaf, ...others])
    }
    const { issuer, authorityKeyId = '', signedBy = '', notBeforeMs, notAfterMs } = record
    const isValid = notBeforeMs <= this.atMs && this.atMs < notAfterMs
    const digest = `leaf:${issuer}|${authorityKeyId}|${signedBy}|${isValid}`
    if (!this.made.has(digest)) this.made.set(digest, { ...record, digest })
    return this.value([digest, ...others])
  }

  list(value: number): readonly Digest[] {
    return this.lists[value] ?? []
  }

  /** Returns a cell, which is part of its relations from now on. */
  cell(given: Pick<Cell, 'label'> & Partial<Cell>, values: readonly number[]): Cell {
    const cell: Cell = { presentsIn: [], verifiesIn: [], ...given, values: [] }
    this.set(cell, values)
    return cell
  }

  /** Sets the values of a cell. While watching, records what breaks because of a new value. */
  set(cell: Cell, values: readonly number[]): void {
    const unique = [...new Set(values)]
    const log = this.touched?.get(cell)
    if (log !== undefined) for (const value of unique) log.held.add(value)
    else this.touched?.set(cell, { base: cell.values, held: new Set([...cell.values, ...unique]) })
    const gone = cell.values.filter((value) => !unique.includes(value))
    const added = unique.filter((value) => !cell.values.includes(value))
    for (const { credentialHolders } of cell.presentsIn) move(credentialHolders, cell, gone, added)
    for (const { trustHolders } of cell.verifiesIn) move(trustHolders, cell, gone, added)
    cell.values = unique
    if (!this.isWatching || this.found !== undefined) return
    for (const value of added) this.found ??= this.brokenBy(cell, value)
  }

  add(cell: Cell, values: readonly number[]): void {
    if (values.some((value) => !cell.values.includes(value))) this.set(cell, [...cell.values, ...values])
  }

  /** Keeps the values that meet the claim, or all values if none does, because the wait does not end then. */
  keep(cell: Cell | undefined, isPossible: (list: readonly Digest[]) => boolean): void {
    const kept = cell?.values.filter((value) => isPossible(this.list(value))) ?? []
    if (cell !== undefined && kept.length > 0) this.set(cell, kept)
  }

  /** From now on, records what breaks. Connections that are already broken are ignored. */
  watch(): void {
    for (const one of this.relations) {
      for (const [chain, credentialHolders] of one.credentialHolders) {
        for (const [trust, trustHolders] of one.trustHolders) {
          if (this.refusing(trust, chain).length === 0) continue
          const pairs = this.before.get(one) ?? new Map()
          pairs.set(pairOf(trust, chain), {
            credentialHolders: new Set(credentialHolders),
            trustHolders: new Set(trustHolders),
          })
          this.before.set(one, pairs)
        }
      }
    }
    this.isWatching = true
  }

  /** Returns what broke since the last call. */
  takeBroken(): BrokenPair | undefined {
    const found = this.found
    this.found = undefined
    return found
  }

  /** Calls a function, and returns for each changed cell its earlier values and all values during the call. */
  tracing(
    run: () => void,
  ): ReadonlyMap<Cell, { readonly base: readonly number[]; readonly held: Set<number> }> {
    const touched = new Map<Cell, { base: readonly number[]; held: Set<number> }>()
    this.touched = touched
    run()
    this.touched = undefined
    return touched
  }

  /** Calls a function without recording what it breaks. */
  unwatched(run: () => void): void {
    const was = this.isWatching
    this.isWatching = false
    run()
    this.isWatching = was
  }

  private refusing(trust: number, chain: number): readonly Verifier[] {
    const pair = pairOf(trust, chain)
    let verdict = this.verdicts.get(pair)
    if (verdict === undefined) {
      const { table: certificates, atMs } = this
      verdict = refusingVerifiers({ chain: this.list(chain), trust: this.list(trust), certificates, atMs })
      this.verdicts.set(pair, verdict)
    }
    return verdict
  }

  private brokenBy(cell: Cell, value: number): BrokenPair | undefined {
    const flaw = cell.flaw?.(this.list(value))
    if (flaw !== undefined) {
      const nobody = {
        credentialHolder: cell.label,
        trustHolder: 'clients that request certificates',
        shows: undefined,
      }
      return { kind: 'signing', ...nobody, trusts: [], refusing: [], flaw }
    }
    for (const one of cell.presentsIn) {
      for (const trust of one.trustHolders.keys()) {
        const broken = this.brokenPair(one, trust, value)
        if (broken !== undefined) return broken
      }
    }
    for (const one of cell.verifiesIn) {
      for (const chain of one.credentialHolders.keys()) {
        const broken = this.brokenPair(one, value, chain)
        if (broken !== undefined) return broken
      }
    }
    return undefined
  }

  private brokenPair(one: Relation, trust: number, chain: number): BrokenPair | undefined {
    const refusing = this.refusing(trust, chain)
    if (refusing.length === 0) return undefined
    const before = this.before.get(one)?.get(pairOf(trust, chain))
    const credentialHolders = [...(one.credentialHolders.get(chain) ?? [])]
    const trustHolders = [...(one.trustHolders.get(trust) ?? [])]
    const credentialHolder = credentialHolders.find((cell) => !before?.credentialHolders.has(cell))
    const trustHolder = trustHolders.find((cell) => !before?.trustHolders.has(cell))
    if (credentialHolder === undefined && trustHolder === undefined) return undefined
    return {
      kind: one.kind,
      credentialHolder: (credentialHolder ?? credentialHolders[0])?.label ?? '',
      trustHolder: (trustHolder ?? trustHolders[0])?.label ?? '',
      shows: this.record(this.list(chain)[0]),
      trusts: this.list(trust).flatMap((digest) => this.record(digest) ?? []),
      refusing,
    }
  }
}

function move(
  classes: Map<number, Set<Cell>>,
  cell: Cell,
  gone: readonly number[],
  added: readonly number[],
): void {
  for (const value of gone) {
    const cells = classes.get(value)
    cells?.delete(cell)
    if (cells?.size === 0) classes.delete(value)
  }
  for (const value of added) classes.set(value, (classes.get(value) ?? new Set()).add(cell))
}

/** There are never 2^20 different lists. */
function pairOf(trust: number, chain: number): number {
  return trust * 0x10_0000 + chain
}
