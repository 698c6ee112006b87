import { hash } from 'node:crypto'
import type {
  Expected,
  FileContent,
  NodeAccess,
  NodeCall,
  Sha256,
  WriteOptions,
  Written,
} from '../pki/node-access.ts'
import { linkedFrom } from '../site/certificate-files.ts'
import { withoutContent } from '../site/node-files.ts'

// A node that is never changed: it records each write, and later reads return the recorded state. The executor that changes nodes
// therefore also writes runbooks, action by action, and no second implementation exists.

/** One change, as the functions of src/node/node-script.ts perform it. */
export type RecordedChange =
  | {
      readonly kind: 'write'
      readonly path: string
      readonly replaces: Expected
      readonly sha256: Sha256
      readonly mode: number | undefined
      /** The bytes, or a file on the node that contains them. */
      readonly content: Uint8Array | { readonly from: string }
      /** True for the private key of the certificate that the next change writes: one script line writes both. */
      readonly isKeyOfNext?: true
    }
  | { readonly kind: 'link'; readonly path: string; readonly to: string; readonly replaces: Expected }
  | { readonly kind: 'remove'; readonly path: string; readonly holds: Expected }
  | { readonly kind: 'make-folder'; readonly path: string; readonly mode: number }
  | { readonly kind: 'remove-folder'; readonly path: string }

export interface RecordingNode extends NodeAccess {
  /** Returns everything recorded since the last call. */
  take(): readonly RecordedChange[]
}

type Overlaid = { readonly content: Buffer; readonly mode: number } | { readonly to: string } | 'absent'

/** Returns a node that is read through `node` and never written. */
export function recordingNode(node: NodeAccess, now: () => Date): RecordingNode {
  const overlay = new Map<string, Overlaid>()
  let changes: RecordedChange[] = []

  const read = async (path: string, call: NodeCall & { largestBytes?: number }): Promise<FileContent> => {
    const own = overlay.get(path)
    if (own === undefined) {
      const [file] = await node.readFiles([path], call)
      return file ?? { path, found: 'unreadable', reason: 'the node returned no state for it' }
    }
    if (own === 'absent') return { path, found: 'absent' }
    if ('to' in own) {
      const target = await read(linkedFrom(path, own.to), call)
      return { ...target, path, linkTarget: own.to, linkedAt: now() }
    }
    const { content, mode } = own
    const sizeBytes = content.length
    const facts = { mode, uid: 0, gid: 0, sizeBytes, modifiedAt: now() }
    return { path, found: 'file', ...facts, content, sha256: hash('sha256', content) }
  }
  const readAll = async (
    paths: readonly string[],
    call: NodeCall & { largestBytes?: number } = {},
  ): Promise<FileContent[]> => {
    const others = paths.filter((path) => !overlay.has(path))
    const found = others.length === 0 ? [] : await node.readFiles(others, call)
    const byPath = new Map(found.map((file) => [file.path, file]))
    return Promise.all(paths.map(async (path) => byPath.get(path) ?? (await read(path, call))))
  }
  const write = async (
    path: string,
    content: Buffer,
    { replaces, mode }: WriteOptions,
    of: { readonly from?: string; readonly isKeyOfNext?: true } = {},
  ): Promise<Written> => {
    const before = await read(path, {})
    const sha256 = hash('sha256', content)
    const wasThere = before.found === 'file' ? before : undefined
    const isSame = wasThere?.sha256 === sha256 && (mode === undefined || mode === wasThere.mode)
    const said = { path, sha256, before: wasThere?.sha256 ?? ('absent' as const) }
    if (isSame) return { ...said, changed: false }
    overlay.set(path, { content, mode: mode ?? wasThere?.mode ?? 0o600 })
    const { from, ...rest } = of
    const source = from === undefined ? content : { from }
    changes.push({ kind: 'write', path, replaces, sha256, mode, content: source, ...rest })
    return { ...said, changed: true }
  }
  const contentOf = async (from: string): Promise<Buffer> => {
    const file = await read(from, {})
    if (file.found !== 'file') throw new TypeError(`${from} does not exist`)
    return Buffer.from(file.content)
  }
  const refuse = (): never => {
    throw new TypeError('a recorded node runs no commands')
  }

  return {
    name: node.name,
    identity: (call) => node.identity(call),
    readFiles: readAll,
    statFiles: async (paths, call) => (await readAll(paths, call)).map(withoutContent),
    listFolder: (path, call) => node.listFolder(path, call),
    matchPaths: (patterns, call) => node.matchPaths(patterns, call),
    processes: (programs, call) => node.processes(programs, call),
    podProcesses: (uids, call) => node.podProcesses(uids, call),
    clock: (call) => node.clock(call),
    freeSpace: (path, call) => node.freeSpace(path, call),
    unit: (name, call) => node.unit(name, call),
    run: refuse,
    restartUnit: refuse,
    async writeFile(path, content, { key, ...options }) {
      if (key !== undefined) {
        await write(key.path, Buffer.from(key.content), { replaces: key.replaces }, { isKeyOfNext: true })
      }
      return write(path, Buffer.from(content as Uint8Array), options)
    },
    async copyFile(from, to, { key, ...options }) {
      if (key !== undefined)
        await write(
          key.path,
          await contentOf(key.from),
          { replaces: key.replaces },
          { from: key.from, isKeyOfNext: true },
        )
      return write(to, await contentOf(from), options, { from })
    },
    async linkFile(path, target, { replaces }) {
      const before = await read(path, {})
      if (before.linkTarget === target) return false
      overlay.set(path, { to: target })
      changes.push({ kind: 'link', path, to: target, replaces })
      return true
    },
    async removeFile(path, { holds }) {
      const before = await read(path, {})
      if (before.found === 'absent' && before.linkTarget === undefined) return false
      overlay.set(path, 'absent')
      changes.push({ kind: 'remove', path, holds })
      return true
    },
    async makeFolder(path, { mode }) {
      const known = changes.some((one) => one.kind === 'make-folder' && one.path === path)
      if (!known) changes.push({ kind: 'make-folder', path, mode })
    },
    async removeFolder(path) {
      changes.push({ kind: 'remove-folder', path })
      return true
    },
    close: () => node.close(),
    take() {
      const taken = changes
      changes = []
      return taken
    },
  }
}
