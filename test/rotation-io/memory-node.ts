import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import type {
  Expected,
  FileContent,
  NodeAccess,
  PodProcess,
  ProcessFacts,
  WriteOptions,
} from '../../src/pki/node-access.ts'
import type { NodeTree } from '../pki/kubeadm-tree.ts'

/** The clock of these nodes, and the creation time of their files. */
export const now = new Date('2026-11-21T12:00:00Z')

const made = new Date('2026-11-01T00:00:00Z')

interface StoredFile {
  readonly content: Buffer
  readonly mode: number
  readonly linkTarget?: string
  /** Set for a file that was written after the node was created. */
  readonly modifiedAt?: Date
}

/** A node in memory without running processes. The node disconnects after `writesLeft` writes. */
export class MemoryNode {
  readonly files = new Map<string, StoredFile>()
  readonly restarted: string[] = []
  writesLeft = Number.POSITIVE_INFINITY
  processes: readonly ProcessFacts[] = []
  podProcesses: readonly PodProcess[] = []
  /** Pods whose processes were read, in order. */
  readonly searched: string[] = []
  readonly access: NodeAccess

  constructor(name: string, tree: NodeTree) {
    for (const [path, { bytes, mode, linkTarget }] of tree.files) {
      this.files.set(path, {
        content: Buffer.from(bytes),
        mode,
        ...(linkTarget !== undefined && { linkTarget }),
      })
    }
    const access = {
      name,
      readFiles: async (paths: readonly string[]) => paths.map((path) => this.read(path)),
      statFiles: async (paths: readonly string[]) => paths.map((path) => this.read(path)),
      listFolder: async (path: string) => this.list(path),
      matchPaths: async (patterns: readonly string[]) => patterns.flatMap((pattern) => this.match(pattern)),
      identity: async () => ({ hostname: name, bootId: '', uid: 0, isRoot: true }),
      processes: async (programs: readonly string[]) =>
        this.processes.filter(({ program }) => programs.includes(program)),
      podProcesses: async (uids: readonly string[]) => {
        this.searched.push(...uids)
        return this.podProcesses.filter(({ podUid }) => uids.includes(podUid))
      },
      clock: async () => ({ at: now, aheadMs: { atLeast: 0, atMost: 0 }, roundTripMs: 0 }),
      unit: async (unit: string) => ({
        name: unit,
        loadState: 'not-found',
        dropInPaths: [],
      }),
      removeFolder: async () => {},
      makeFolder: async () => {},
      writeFile: async (
        path: string,
        content: string,
        { key, ...options }: Parameters<NodeAccess['writeFile']>[2],
      ) =>
        this.writeBoth(key && { ...key, content: Buffer.from(key.content) }, () =>
          this.write(path, Buffer.from(content), options),
        ),
      copyFile: async (
        from: string,
        to: string,
        { key, ...options }: Parameters<NodeAccess['copyFile']>[2],
      ) => {
        const contentOf = (path: string) => this.files.get(this.leads(path))!.content
        this.writeBoth(key && { ...key, content: contentOf(key.from) }, () =>
          this.write(to, contentOf(from), options),
        )
      },
      linkFile: async (path: string, to: string) => this.link(path, to),
      removeFile: async (path: string) => this.files.delete(path),
      restartUnit: async (unit: string) => this.restarted.push(unit),
    }
    this.access = access as unknown as NodeAccess
  }

  private leads(path: string): string {
    const to = this.files.get(path)?.linkTarget
    return to === undefined ? path : to.startsWith('/') ? to : `${path.slice(0, path.lastIndexOf('/'))}/${to}`
  }

  private read(path: string): FileContent {
    const own = this.files.get(path)
    const file = this.files.get(this.leads(path))
    if (own === undefined || file === undefined) {
      return { path, found: 'absent', ...(own?.linkTarget !== undefined && { linkTarget: own.linkTarget }) }
    }
    const { content, mode } = file
    const link = own.linkTarget === undefined ? {} : { linkTarget: own.linkTarget, linkedAt: made }
    const modifiedAt = file.modifiedAt ?? made
    const facts = { mode, uid: 0, gid: 0, sizeBytes: content.length, modifiedAt }
    return { path, found: 'file', ...facts, ...link, content, sha256: digest(content) }
  }

  private list(folder: string) {
    const kinds = new Map<string, 'file' | 'folder' | 'link'>()
    for (const [path, { linkTarget }] of this.files) {
      if (!path.startsWith(`${folder}/`)) continue
      const [name = '', ...below] = path.slice(folder.length + 1).split('/')
      kinds.set(name, below.length > 0 ? 'folder' : linkTarget === undefined ? 'file' : 'link')
    }
    if (kinds.size === 0) return { path: folder, found: 'absent' }
    const entries = [...kinds].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, kind]) => ({ name, kind }))
    return { path: folder, found: 'folder', entries }
  }

  private link(path: string, linkTarget: string): void {
    if (this.writesLeft-- <= 0) throw new Error('cut off')
    this.files.set(path, { content: Buffer.alloc(0), mode: 0o777, linkTarget })
  }

  private match(pattern: string): string[] {
    const words = pattern.split('*').map((word) => word.replaceAll(/[.$^+()[\]{}|\\]/g, '\\$&'))
    const expression = new RegExp(`^${words.join('[^/]*')}$`)
    return [...this.files.keys()].filter((path) => expression.test(path))
  }

  /** One write for both: the node disconnects before the pair or after it. */
  private writeBoth(
    key: { readonly path: string; readonly replaces: Expected; readonly content: Buffer } | undefined,
    write: () => void,
  ): void {
    if (key !== undefined && this.writesLeft > 0) {
      this.writesLeft++
      this.write(key.path, key.content, { replaces: key.replaces })
    }
    write()
  }

  private write(path: string, content: Buffer, { replaces, mode }: WriteOptions): void {
    if (this.writesLeft-- <= 0) throw new Error('cut off')
    const before = this.read(path)
    if (replaces === 'absent') expect(before.found).toBe('absent')
    if (typeof replaces === 'object' && 'sha256' in replaces) {
      expect(before).toMatchObject({ found: 'file', sha256: replaces.sha256 })
    }
    const was = this.files.get(this.leads(path))
    this.files.set(this.leads(path), { content, mode: mode ?? was?.mode ?? 0o600, modifiedAt: now })
  }
}

export function digest(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
