import { hash } from 'node:crypto'
import type { ApiObject } from '../cluster/malformed.ts'
import { orUndefined } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Expected, NodeAccess, Sha256 } from '../pki/node-access.ts'
import type { CopiedFile } from '../rotation/action.ts'
import { copiesFolder, copyPath, pastIndex } from '../rotation/material.ts'
import { manualRotation } from '../rotation/phase-table.ts'
import type { CopySnapshot, ObjectReference } from '../rotation/snapshot.ts'
import { textOf } from '../site/node-files.ts'

// Each node keeps the files that a rotation replaces there: the bytes, named by their digest, and a line in the index for the
// first change in each phase. The bytes are written first, so every line refers to existing bytes. Private keys never leave the
// node.

/** The index of the copies on a node. */
export interface Index {
  readonly copies: readonly CopySnapshot[]
  readonly text: string
  readonly replaces: Expected
}

/** The copies on the nodes. Copies are only added, never changed. */
export class Copies {
  private readonly nodeNamed: (name: string) => NodeAccess
  private readonly indexPath: string
  /** Only one action at a time changes an index. */
  private readonly turns = new Map<string, Promise<unknown>>()
  private readonly made = new Set<string>()

  /** The second argument is the playbook of the rotation that made the copies. */
  constructor(nodeNamed: (name: string) => NodeAccess, { copiesIndex } = manualRotation) {
    this.nodeNamed = nodeNamed
    this.indexPath = copiesIndex
  }

  /** Returns the copies on a node. Throws KCERT_BACKUP_DAMAGED. */
  async on(node: string): Promise<readonly CopySnapshot[]> {
    return (await readIndex(this.nodeNamed(node), this.indexPath)).copies
  }

  /** Copies the current content of a file. If the phase has already copied the file, the earlier copy is kept. */
  keepFile(node: string, path: string, phase: number): Promise<void> {
    if (path.startsWith(`${copiesFolder}/`)) return Promise.resolve()
    return this.inTurn(node, async () => {
      const index = await readIndex(this.nodeNamed(node), this.indexPath)
      const isKept = index.copies.some(
        (copy) => copy.phase === phase && 'path' in copy.of && copy.of.path === path,
      )
      if (!isKept) await this.add(node, index, await this.copyOf(node, path, phase))
    })
  }

  /** Copies several files with one change to the index. */
  keepFiles(node: string, files: readonly CopiedFile[], phase: number): Promise<void> {
    return this.inTurn(node, async () => {
      const index = await readIndex(this.nodeNamed(node), this.indexPath)
      const kept = new Set(
        index.copies.flatMap((copy) => (copy.phase === phase && 'path' in copy.of ? [copy.of.path] : [])),
      )
      const added: CopySnapshot[] = []
      for (const { path, flags, version } of files) {
        const said = { ...(flags && { flags }), ...(version && { version }) }
        if (!kept.has(path)) added.push(await this.copyOf(node, path, phase, said))
      }
      if (added.length > 0) await this.add(node, index, ...added)
    })
  }

  /** Copies an object to a node, as JSON. */
  keepObject(
    node: string,
    object: ObjectReference,
    now: ApiObject | undefined,
    phase: number,
  ): Promise<void> {
    return this.inTurn(node, async () => {
      const index = await readIndex(this.nodeNamed(node), this.indexPath)
      const isKept = index.copies.some(
        (copy) => copy.phase === phase && 'object' in copy.of && isSame(copy.of.object, object),
      )
      if (isKept) return
      const of = { object }
      if (now === undefined) return this.add(node, index, { phase, node, of })
      const text = `${JSON.stringify(now)}\n`
      const digest = hash('sha256', text)
      await this.makeFolder(this.nodeNamed(node))
      await this.nodeNamed(node).writeFile(copyPath(digest), text, { replaces: 'anything', mode: 0o600 })
      await this.add(node, index, { phase, node, of, digest })
    })
  }

  /** Renames the index. The copies stay, but no longer count as the state before a phase. */
  putAside(node: string): Promise<void> {
    return this.inTurn(node, async () => {
      const access = this.nodeNamed(node)
      const [file] = await access.statFiles([this.indexPath], { sha256: true })
      if (file?.found !== 'file' || file.sha256 === undefined) return
      const { sha256 } = file
      await access.copyFile(this.indexPath, pastIndex(sha256), { replaces: 'anything', sha256, mode: 0o600 })
      await access.removeFile(this.indexPath, { holds: { sha256 } })
    })
  }

  /** Returns the bytes of a copy. Throws KCERT_BACKUP_DAMAGED when they are missing. */
  async bytes(node: string, digest: Sha256): Promise<Uint8Array> {
    const [file] = await this.nodeNamed(node).readFiles([copyPath(digest)])
    if (file?.found === 'file' && file.sha256 === digest) return file.content
    const what = `${copyPath(digest)} on node "${node}" is missing or was changed`
    throw new KcertError('KCERT_BACKUP_DAMAGED', what, {
      why: `without the copy this change has no rollback; check the folder on node ${node}`,
      next: commandLine`ls -lR ${copiesFolder}`,
    })
  }

  /**
   * Returns what is wrong with the copies on a node, or undefined when they are intact. Each copy is restored to a scratch folder
   * and compared.
   */
  async rehearse(node: string): Promise<string | undefined> {
    const access = this.nodeNamed(node)
    const copies = (await this.on(node)).flatMap(({ digest, of }) =>
      digest === undefined ? [] : [[digest, 'path' in of ? of.path : of.object.name] as const],
    )
    if (copies.length === 0) return 'no copies exist'
    const scratch = `${copiesFolder}/.scratch`
    await access.makeFolder(scratch, { mode: 0o700 })
    try {
      for (const [digest, [same]] of Map.groupBy(copies, ([digest]) => digest)) {
        const to = `${scratch}/${digest}`
        try {
          await access.copyFile(copyPath(digest), to, { replaces: 'anything', sha256: digest, mode: 0o600 })
        } catch (error) {
          if (!(error instanceof KcertError)) throw error
          return `the copy of ${same?.[1]} does not restore: ${error.message}`
        }
        await access.removeFile(to, { holds: { sha256: digest } })
      }
      return undefined
    } finally {
      await access.removeFolder(scratch)
    }
  }

  private async copyOf(
    node: string,
    path: string,
    phase: number,
    said: Pick<CopySnapshot, 'flags' | 'version'> = {},
  ): Promise<CopySnapshot> {
    const access = this.nodeNamed(node)
    const [file] = await access.statFiles([path], { sha256: true })
    const line = { phase, node, of: { path }, ...said }
    if (file === undefined || file.found === 'absent') return line
    if (file.found !== 'file' || file.sha256 === undefined) {
      throw new KcertError('KCERT_NODE_REFUSED', `${path} on node "${node}" cannot be copied`, {
        why: file.found === 'unreadable' ? file.reason : 'it is a directory or a device',
      })
    }
    const { sha256, mode, linkTarget } = file
    await this.makeFolder(access)
    await access.copyFile(path, copyPath(sha256), { replaces: 'anything', sha256, mode: 0o600 })
    return { ...line, digest: sha256, mode, ...(linkTarget === undefined ? {} : { linksTo: linkTarget }) }
  }

  private async add(
    node: string,
    { text, replaces }: Index,
    ...copies: readonly CopySnapshot[]
  ): Promise<void> {
    const access = this.nodeNamed(node)
    await this.makeFolder(access)
    const lines = copies.map((copy) => `${JSON.stringify(copy)}\n`).join('')
    await access.writeFile(this.indexPath, `${text}${lines}`, { replaces, mode: 0o600 })
  }

  private async makeFolder(access: NodeAccess): Promise<void> {
    if (this.made.has(access.name)) return
    await access.makeFolder(copiesFolder, { mode: 0o700 })
    await access.makeFolder(`${copiesFolder}/by-digest`, { mode: 0o700 })
    this.made.add(access.name)
  }

  private inTurn<Result>(node: string, act: () => Promise<Result>): Promise<Result> {
    const done = (this.turns.get(node) ?? Promise.resolve()).then(act)
    this.turns.set(
      node,
      done.catch(() => {}),
    )
    return done
  }
}

/** Larger than any index: a line has about 200 bytes, and there is one line for each file and phase. */
const largestIndex = 8 * 1024 * 1024

/**
 * Returns the index of the copies on a node, or an empty one if there is none. No other function reads the index. Throws
 * KCERT_BACKUP_DAMAGED when the index is unreadable or a line has a different format: kcert always writes the whole index.
 */
export async function readIndex(node: NodeAccess, path = manualRotation.copiesIndex): Promise<Index> {
  const [file] = await node.readFiles([path], { largestBytes: largestIndex })
  if (file?.found === 'absent') return { copies: [], text: '', replaces: 'absent' }
  if (file?.found !== 'file')
    throw damaged(node.name, path, file?.found === 'unreadable' ? file.reason : 'it is not a regular file')
  const text = textOf(file)
  const lines = text.split('\n')
  if (lines.pop() !== '') throw damaged(node.name, path, 'its last line is incomplete')
  const copies = lines.map((line, at) => copyIn(line) ?? throwDamaged(node.name, path, at))
  return { copies, text, replaces: { sha256: file.sha256 } }
}

function copyIn(line: string): CopySnapshot | undefined {
  const copy = orUndefined((): Partial<CopySnapshot> | null => JSON.parse(line))
  const isWhole =
    Number.isInteger(copy?.phase) &&
    typeof copy?.node === 'string' &&
    isPlace(copy.of) &&
    (copy.digest === undefined || /^[\da-f]{64}$/.test(copy.digest))
  return isWhole ? (copy as CopySnapshot) : undefined
}

function isPlace(of: unknown): boolean {
  const { path, object } = (of ?? {}) as { path?: unknown; object?: Partial<ObjectReference> | null }
  if (path !== undefined) return typeof path === 'string' && path.startsWith('/')
  return typeof object?.kind === 'string' && typeof object.name === 'string'
}

function isSame(a: ObjectReference, b: ObjectReference): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name
}

function throwDamaged(node: string, path: string, at: number): never {
  throw damaged(node, path, `line ${at + 1} does not have the format that kcert writes`)
}

function damaged(node: string, path: string, why: string): KcertError {
  return new KcertError('KCERT_BACKUP_DAMAGED', `${path} on node "${node}" is not a valid index of copies`, {
    why: `${why}; without the index it is unknown which file each copy belongs to. Check it on node ${node}, then move the folder away`,
    next: commandLine`ls -lR ${copiesFolder}`,
  })
}
