import { type Dirent, readdirSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { orUndefined } from '../errors/caught.ts'
import type { Source, UnreadableSource } from '../inspection/source.ts'
import { failureOf, linkAt, readUnlessForeign } from './files.ts'
import { isTemporaryName } from './leftovers.ts'

interface Entry {
  /** The name as the operator would write it: below the folder as it was named. */
  readonly name: string
  /** The absolute path. */
  readonly path: string
  readonly kind: 'folder' | 'linked folder' | 'file' | 'link'
}

/**
 * Yields every file below a folder, sorted by name, and unreadable entries with the reason. Never throws.
 * Links are followed, because /etc/kubernetes/pki is often on another disk. Each folder is walked once, by the name of the link
 * if a link leads to it. A link to the root folder or a folder above it is not followed, so the walk terminates. FIFOs, sockets
 * and devices are skipped, as are pseudo file systems, large files in foreign formats and kcert's own unfinished files. `onForeign`
 * receives the names of files in foreign formats.
 */
export function* readFolder(
  name: string,
  onForeign?: (name: string) => void,
): Generator<Source | UnreadableSource> {
  const start: Entry = { name: name.replace(/(?<=.)\/+$/, ''), path: resolve(name), kind: 'folder' }
  const root = start.path
  const visited: Visited = { folders: new Set(), devices: new Map() }
  const pending: Entry[] = [start]
  for (let entry = pending.pop(); entry; entry = pending.pop()) {
    try {
      if (entry.kind === 'folder' || entry.kind === 'linked folder') {
        if (entry.kind === 'linked folder' && holds(entry.path, root)) continue
        const visit = visitOf(entry.path, visited)
        // Its files were read under the other name. This entry is only noted, so that the folder is not reported as empty.
        if (visit === 'repeated' && entry.kind === 'linked folder') yield seenBefore(entry, root)
        if (visit !== 'first') continue
        for (const child of childrenOf(entry).toReversed()) pending.push(child)
        continue
      }
      const read = readUnlessForeign(entry.kind === 'link' ? linkAt(entry.path) : entry)
      if (read === undefined) {
        onForeign?.(entry.name)
        continue
      }
      if ('reason' in read) yield { name: entry.name, root, ...read, file: linkAt(entry.path) }
      else yield { name: entry.name, root, bytes: read.bytes, file: read.file }
    } catch (error) {
      const link = linkAt(entry.path)
      const failure = failureOf(error, link)
      // A file that disappeared meanwhile was replaced or cleaned up. Its successor is in the list, or it is not needed.
      if (failure.reason !== 'not-found') yield unread(entry, root, failure, link)
    }
  }
}

function seenBefore(entry: Entry, root: string): UnreadableSource {
  const failure = {
    reason: 'seen-before',
    detail: 'points to a folder that was already read under another name',
  } as const
  return unread(entry, root, failure, linkAt(entry.path))
}

function unread(
  { name, kind }: Entry,
  root: string,
  failure: Pick<UnreadableSource, 'reason' | 'detail'>,
  file: ReturnType<typeof linkAt>,
): UnreadableSource {
  return { name, root, ...failure, file, ...(kind.endsWith('folder') && { isFolder: true }) }
}

/** Returns whether the path leads to a folder, directly or through links. */
export function isFolder(path: string): boolean {
  return orUndefined(() => statSync(path))?.isDirectory() ?? false
}

function visitOf(path: string, visited: Visited): 'first' | 'repeated' | 'pseudo' {
  const { dev, ino } = statSync(path, { bigint: true })
  let isPseudo = visited.devices.get(dev)
  if (isPseudo === undefined) {
    isPseudo = pseudoFileSystems.has(statfsSync(path).type)
    visited.devices.set(dev, isPseudo)
  }
  if (isPseudo) return 'pseudo'
  const identity = `${dev}:${ino}`
  if (visited.folders.has(identity)) return 'repeated'
  visited.folders.add(identity)
  return 'first'
}

interface Visited {
  readonly folders: Set<string>
  /** Whether the mounted file system is a pseudo file system, by device. */
  readonly devices: Map<bigint, boolean>
}

// The kernel's pseudo file systems, by the numbers of statfs(2). They contain no certificates, their files have no end or wait
// for events, and reading some of them has side effects.
const pseudoFileSystems: ReadonlySet<number> = new Set([
  0x9fa0, // proc
  0x62656572, // sysfs
  0x27e0eb, // cgroup
  0x63677270, // cgroup2
  0x64626720, // debugfs
  0x74726163, // tracefs
  0x73636673, // securityfs
  0x62656570, // configfs
  0xcafe4a11, // bpf
  0x6165676c, // pstore
  0x1cd1, // devpts
])

function childrenOf(folder: Entry): Entry[] {
  const files: string[] = []
  const others = new Map<string, Entry>()
  for (const child of readdirSync(folder.path, { withFileTypes: true })) {
    const { name } = child
    if (isVolumePlumbing(name) || isTemporaryName(name)) continue
    if (child.isFile()) files.push(name)
    else {
      const entry = child.isDirectory() ? entryBelow(folder, name, 'folder') : linkEntry(folder, child)
      if (entry !== undefined) others.set(name, entry)
    }
  }
  // Without a custom comparison, V8 sorts names three times as fast.
  const names = others.size === 0 ? files.sort() : [...files, ...others.keys()].sort()
  const entries = names.map((name) => others.get(name) ?? entryBelow(folder, name, 'file'))
  // pki -> ssl: operators refer to the folder by the name of the link.
  return others.size === 0
    ? entries
    : entries.sort((a, b) => Number(b.kind === 'linked folder') - Number(a.kind === 'linked folder'))
}

/** Returns true when the folder that the link leads to is the root folder or a folder above it. */
function holds(link: string, root: string): boolean {
  const target = realpathSync(link)
  return target === '/' || `${realpathSync(root)}/`.startsWith(`${target}/`)
}

// A mounted ConfigMap or Secret keeps its files in ..2026_11_21_…/, points ..data to this folder, and exposes each file as a link
// through ..data. Only these links are read; otherwise every file would be listed three times.
function isVolumePlumbing(name: string): boolean {
  return name.startsWith('..')
}

function linkEntry(folder: Entry, child: Dirent): Entry | undefined {
  if (!child.isSymbolicLink()) return undefined
  const { name } = child
  const link = entryBelow(folder, name, 'link')
  const target = orUndefined(() => statSync(link.path))
  // A dangling link stays in the list: reading it reports the reason.
  if (target === undefined || target.isFile()) return link
  return target.isDirectory() ? entryBelow(folder, name, 'linked folder') : undefined
}

function entryBelow(folder: Entry, name: string, kind: Entry['kind']): Entry {
  const shown = below(folder.name, name)
  // One shared string where both are equal, which is so when the folder was given by its absolute path.
  return { name: shown, path: folder.name === folder.path ? shown : below(folder.path, name), kind }
}

function below(folder: string, name: string): string {
  return folder.endsWith('/') ? folder + name : `${folder}/${name}`
}
