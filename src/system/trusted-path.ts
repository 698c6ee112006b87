import { accessSync, constants, lstatSync, readlinkSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { systemCode } from '../errors/caught.ts'

/** A file, folder or symbolic link that users other than root and the caller can change or replace. */
export interface UntrustedEntry {
  readonly path: string
  readonly kind: 'file' | 'folder' | 'symbolic link'
  readonly uid: number
  readonly gid: number
  /** Permission bits. */
  readonly mode: number
}

/** Where a path leads, symbolic links resolved, or the first entry on the way that is not trusted. */
export type PathTrust = { readonly path: string } | { readonly untrusted: UntrustedEntry }

// As many as Linux follows.
const mostLinks = 40

/**
 * Returns where a path leads when root and the caller alone can change the entry and every folder that is traversed, from / on.
 * The last component may be absent. Throws the system's errors.
 *
 * It goes from / down, so no other user can change what was already checked, and no one can swap an entry between this check and
 * a later open of the returned path: that path has no symbolic links.
 */
export function pathTrust(path: string): PathTrust {
  const pending = componentsOf(path.startsWith('/') ? path : `${process.cwd()}/${path}`)
  const root = lstatSync('/')
  if (!isTrusted(root)) return { untrusted: untrustedEntry('/', root) }
  let at = '/'
  let folder = root
  let links = 0
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    if (name === '..') {
      at = dirname(at)
      folder = lstatSync(at)
      continue
    }
    const entry = at === '/' ? `/${name}` : `${at}/${name}`
    const stats = lstatSync(entry, { throwIfNoEntry: pending.length > 0 })
    if (stats === undefined) return { path: entry }
    if (stats.isSymbolicLink()) {
      // A link cannot be written to; it can be replaced by a user who can write to its folder, or in a sticky folder by its owner.
      if (isShared(folder) && !isTrustedOwner(stats)) return { untrusted: untrustedEntry(entry, stats) }
      if (++links > mostLinks) throw Object.assign(new Error('too many symbolic links'), { code: 'ELOOP' })
      const target = readlinkSync(entry)
      pending.unshift(...componentsOf(target))
      if (!target.startsWith('/')) continue
      at = '/'
      folder = root
      continue
    }
    if (!isTrusted(stats) && !isNullDevice(entry, stats) && !isReadOnly(entry, stats))
      return { untrusted: untrustedEntry(entry, stats) }
    at = entry
    folder = stats
  }
  return { path: at }
}

/**
 * True when root or the caller owns a file or folder and no other user can change it. A sticky folder counts as trusted: there,
 * the owner of each entry decides. A group other than root's counts as other users, as for sshd and sudo: who is in it, or comes
 * into it later, cannot be told from here. An ACL that lets somebody write shows in the bits of the group.
 */
export function isTrusted(stats: Stats): boolean {
  return isTrustedOwner(stats) && (!isShared(stats) || isSticky(stats))
}

/** As `ls -l` and `stat` show it. */
export function untrustedEntry(path: string, stats: Stats): UntrustedEntry {
  const kind = stats.isDirectory() ? 'folder' : stats.isSymbolicLink() ? 'symbolic link' : 'file'
  return { path, kind, uid: stats.uid, gid: stats.gid, mode: stats.mode & 0o7777 }
}

/** /dev/null has mode 0666 and is empty, whatever other users write to it. */
function isNullDevice(path: string, stats: Stats): boolean {
  return path === '/dev/null' && stats.isCharacterDevice() && isTrustedOwner(stats)
}

/**
 * A read-only mount refuses everybody's changes, whatever the bits say. In a pod, the folder of a ConfigMap or Secret is such a
 * mount, and its mode is 0777.
 */
function isReadOnly(path: string, stats: Stats): boolean {
  if (!isTrustedOwner(stats)) return false
  try {
    accessSync(path, constants.W_OK)
    return false
  } catch (error) {
    return systemCode(error) === 'EROFS'
  }
}

function isTrustedOwner({ uid }: Stats): boolean {
  return uid === 0 || uid === process.geteuid?.()
}

/** True when more than the owner and root's group can write. */
function isShared({ mode, gid }: Stats): boolean {
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== 0)
}

function isSticky(stats: Stats): boolean {
  return stats.isDirectory() && (stats.mode & 0o1000) !== 0
}

function componentsOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.')
}
