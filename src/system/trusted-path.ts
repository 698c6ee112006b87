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

/** The target of a path with its symbolic links resolved, or the first untrusted entry on the way. */
export type PathTrust = { readonly path: string } | { readonly untrusted: UntrustedEntry }

// The same limit as in Linux.
const mostLinks = 40

/**
 * Returns the target of a path if only root and the caller can change the entry and every traversed folder, starting from /.
 * The last component may be absent. Throws the system's errors.
 *
 * The walk starts at /, so no other user can change what was already checked. No other user can swap an entry between this check
 * and a later open of the returned path, because that path has no symbolic links.
 */
export function pathTrust(path: string): PathTrust {
  return walk(path, (entry, stats, folder) =>
    // A link cannot be written to. It can be replaced by a user who can write to its folder, or by its owner in a sticky folder.
    stats.isSymbolicLink()
      ? !isShared(folder) || isTrustedOwner(stats)
      : isTrusted(stats) || isNullDevice(entry, stats) || isReadOnly(entry, stats),
  )
}

/**
 * Returns the target of a path, or the first symbolic link on the way that another user created in a folder that all users can
 * write to. Otherwise as `pathTrust`.
 *
 * Linux refuses such links in sticky folders (fs.protected_symlinks, proc_sys_fs(5)), but not those that kcert reads itself. kcert
 * refuses them in folders without the sticky bit too. Without this check, any user could have kcert replace a file of the caller.
 */
export function linkTrust(path: string): PathTrust {
  return walk(path, (_, stats, folder) => !stats.isSymbolicLink() || !isForeignLink(stats, folder))
}

function isForeignLink({ uid }: Stats, folder: Stats): boolean {
  return (folder.mode & 0o002) !== 0 && uid !== process.geteuid?.() && uid !== folder.uid
}

/** Resolves a path as the kernel does. Stops at the first entry, or symbolic link, that is not trusted. */
function walk(path: string, isAccepted: (entry: string, stats: Stats, folder: Stats) => boolean): PathTrust {
  const pending = componentsOf(path.startsWith('/') ? path : `${process.cwd()}/${path}`)
  const root = lstatSync('/')
  if (!isAccepted('/', root, root)) return { untrusted: untrustedEntry('/', root) }
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
    if (!isAccepted(entry, stats, folder)) return { untrusted: untrustedEntry(entry, stats) }
    if (stats.isSymbolicLink()) {
      if (++links > mostLinks) throw Object.assign(new Error('too many symbolic links'), { code: 'ELOOP' })
      const target = readlinkSync(entry)
      pending.unshift(...componentsOf(target))
      if (!target.startsWith('/')) continue
      at = '/'
      folder = root
      continue
    }
    at = entry
    folder = stats
  }
  return { path: at }
}

/**
 * Returns true when root or the caller owns an entry and no other user can change it. A sticky folder counts as trusted: the
 * owner of each entry decides there. A group other than root's counts as other users, as for sshd and sudo: its members, now or
 * later, are unknown. An ACL that grants write access is visible in the group bits.
 */
export function isTrusted(stats: Stats): boolean {
  return isTrustedOwner(stats) && (!isShared(stats) || isSticky(stats))
}

/** Returns the entry as `ls -l` and `stat` show it. */
export function untrustedEntry(path: string, stats: Stats): UntrustedEntry {
  const kind = stats.isDirectory() ? 'folder' : stats.isSymbolicLink() ? 'symbolic link' : 'file'
  return { path, kind, uid: stats.uid, gid: stats.gid, mode: stats.mode & 0o7777 }
}

/** Returns true for /dev/null. It has mode 0666 and is always empty. */
function isNullDevice(path: string, stats: Stats): boolean {
  return path === '/dev/null' && stats.isCharacterDevice() && isTrustedOwner(stats)
}

/**
 * Returns true on a read-only mount, which refuses every change whatever the mode. In a pod, the folder of a ConfigMap or Secret
 * is such a mount with mode 0777.
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

/** Returns true when users other than the owner and root's group can write. */
function isShared({ mode, gid }: Stats): boolean {
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== 0)
}

function isSticky(stats: Stats): boolean {
  return stats.isDirectory() && (stats.mode & 0o1000) !== 0
}

function componentsOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.')
}
