import { type Dirent, readdirSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { orUndefined } from '../errors/caught.ts'
import type { Source, UnreadableSource } from '../inspection/source.ts'
import { failureOf, linkAt, readUnlessForeign } from './files.ts'
import { isTemporaryName } from './leftovers.ts'

interface Entry {
  /** As the operator would write it: below the folder that was named. */
  readonly name: string
  /** Absolute. */
  readonly path: string
  readonly kind: 'folder' | 'linked folder' | 'file' | 'link'
}

/**
 * Yields every file below a folder, sorted by name, and what cannot be read with its reason. Never throws.
 * Links are followed: many keep /etc/kubernetes/pki on another disk. Each folder is walked once, by the name of the link where
 * one leads to it, and a link to a folder around the one that was named is left, so the walk ends. FIFOs, sockets and devices are
 * passed over, and so are the kernel's pseudo file systems, large files that are plainly foreign, and kcert's own unfinished
 * temporary files.
 */
export function* readFolder(name: string): Generator<Source | UnreadableSource> {
  const start: Entry = { name: name.replace(/(?<=.)\/+$/, ''), path: resolve(name), kind: 'folder' }
  const root = start.path
  const visited: Visited = { folders: new Set(), devices: new Map() }
  const pending: Entry[] = [start]
  for (let entry = pending.pop(); entry; entry = pending.pop()) {
    try {
      if (entry.kind === 'folder' || entry.kind === 'linked folder') {
        if (entry.kind === 'linked folder' && holds(entry.path, root)) continue
        const visit = visitOf(entry.path, visited)
        // What lies there was read by the other name: that is all there is to know of this one, and it is not empty.
        if (visit === 'repeated' && entry.kind === 'linked folder') yield seenBefore(entry, root)
        if (visit !== 'first') continue
        for (const child of childrenOf(entry).toReversed()) pending.push(child)
        continue
      }
      const read = readUnlessForeign(entry.kind === 'link' ? linkAt(entry.path) : entry)
      if (read === undefined) continue
      if ('reason' in read) yield { name: entry.name, root, ...read, file: linkAt(entry.path) }
      else yield { name: entry.name, root, bytes: read.bytes, file: read.file }
    } catch (error) {
      const link = linkAt(entry.path)
      const failure = failureOf(error, link)
      // What was there a moment ago and is gone was replaced or tidied away: its successor is in the list, or no one misses it.
      if (failure.reason !== 'not-found') yield unread(entry, root, failure, link)
    }
  }
}

function seenBefore(entry: Entry, root: string): UnreadableSource {
  const failure = {
    reason: 'seen-before',
    detail: 'leads to a folder that was already read under another name',
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

/** Returns whether the path leads to a folder, through links too. */
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
  /** Whether what is mounted there is pseudo, by device. */
  readonly devices: Map<bigint, boolean>
}

// The kernel's own, by the numbers of statfs(2): no one keeps a certificate there, the files have no end or wait for events, and
// reading some of them does something.
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
  // Without a comparison of its own the engine sorts names three times as quickly.
  const names = others.size === 0 ? files.sort() : [...files, ...others.keys()].sort()
  const entries = names.map((name) => others.get(name) ?? entryBelow(folder, name, 'file'))
  // pki -> ssl: the name of the link is the one that means something.
  return others.size === 0
    ? entries
    : entries.sort((a, b) => Number(b.kind === 'linked folder') - Number(a.kind === 'linked folder'))
}

/** True when the folder that the link leads to is the root, or somewhere above it. */
function holds(link: string, root: string): boolean {
  const target = realpathSync(link)
  return target === '/' || `${realpathSync(root)}/`.startsWith(`${target}/`)
}

// A mounted ConfigMap or Secret keeps its files in ..2026_11_21_…/, points ..data at it, and shows each file as a link
// through ..data. The links are what people mean; through the other two everything would count three times.
function isVolumePlumbing(name: string): boolean {
  return name.startsWith('..')
}

function linkEntry(folder: Entry, child: Dirent): Entry | undefined {
  if (!child.isSymbolicLink()) return undefined
  const { name } = child
  const link = entryBelow(folder, name, 'link')
  const target = orUndefined(() => statSync(link.path))
  // A link that leads nowhere stays in the list: reading it says why.
  if (target === undefined || target.isFile()) return link
  return target.isDirectory() ? entryBelow(folder, name, 'linked folder') : undefined
}

function entryBelow(folder: Entry, name: string, kind: Entry['kind']): Entry {
  const shown = below(folder.name, name)
  // One string where both are the same, which is where the folder was named by its absolute path.
  return { name: shown, path: folder.name === folder.path ? shown : below(folder.path, name), kind }
}

function below(folder: string, name: string): string {
  return folder.endsWith('/') ? folder + name : `${folder}/${name}`
}
