import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { messageOf, systemCode } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { noteChange } from './lasting-changes.ts'
import { isTemporaryName, removeLeftovers, temporaryName } from './leftovers.ts'
import { linkTrust } from './trusted-path.ts'

/** The system calls of a write. A test can stop the program at each of them. */
export type FileCalls = Pick<
  typeof fs,
  | 'closeSync'
  | 'fchmodSync'
  | 'fchownSync'
  | 'fstatSync'
  | 'fsyncSync'
  | 'linkSync'
  | 'lstatSync'
  | 'openSync'
  | 'readSync'
  | 'renameSync'
  | 'unlinkSync'
  | 'writeSync'
>

export interface AtomicWrite {
  /** Permission bits of a new file. An existing file keeps its mode and owner. */
  readonly mode: number
  /** Refuse to replace an existing file. */
  readonly exclusive?: boolean
  /** A private key: it always gets `mode` and this process's owner, and no symbolic link is followed. */
  readonly secret?: boolean
}

interface Target {
  readonly path: string
  /** The existing file. */
  readonly before: fs.Stats | undefined
}

/**
 * Writes a file so that a reader sees either the old or the new content, complete, at any moment and after any crash. Returns
 * when the new content is on the disk. A symbolic link is kept: its target is replaced. Throws KCERT_FILE_EXISTS if the write is
 * exclusive and the file exists, otherwise KCERT_FILE_NOT_WRITTEN; the old content remains. Other hard links keep the old
 * content. ACLs and extended attributes are not copied.
 */
export function writeFileAtomically(
  path: string,
  content: Uint8Array | string,
  { mode, exclusive = false, secret = false }: AtomicWrite,
  calls: FileCalls = fs,
): void {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const target = targetOf(path, secret, calls)
  if (exclusive && target.before) throw alreadyThere(path)
  const folder = dirname(target.path)
  removeLeftovers(folder)
  const temporary = join(folder, temporaryName(basename(target.path)))
  try {
    writeTemporary(temporary, bytes, mode, secret ? undefined : target.before, calls)
    if (exclusive) {
      // Unlike rename, link fails if another process created the file first.
      calls.linkSync(temporary, target.path)
      removeQuietly(temporary, calls)
    } else {
      calls.renameSync(temporary, target.path)
    }
  } catch (error) {
    removeQuietly(temporary, calls)
    if (systemCode(error) === 'EEXIST' && exclusive) throw alreadyThere(path)
    throw notWritten(path, error)
  }
  syncFolder(path, folder, calls)
  if (!isTemporaryName(basename(path))) noteChange(`${path} is written`)
}

function targetOf(path: string, secret: boolean, calls: FileCalls): Target {
  try {
    const named = calls.lstatSync(path, { throwIfNoEntry: false })
    if (secret && named?.isSymbolicLink()) throw linked(path, 'and a private key is not written through it')
    const target = linkTarget(path)
    if (named === undefined) return { path, before: undefined }
    const real = named.isSymbolicLink() ? target : path
    const before = calls.lstatSync(real)
    if (before.isFile()) return { path: real, before }
  } catch (error) {
    if (error instanceof KcertError) throw error
    throw notWritten(path, error)
  }
  throw new KcertError('KCERT_FILE_NOT_WRITTEN', `${path} is not written`, {
    why: 'it exists and is not a regular file; replacing a folder, device or FIFO by a file would break it',
    fix: 'name a file, or leave the flag out and redirect standard output',
  })
}

/**
 * Returns the target of a path that is written. Throws KCERT_FILE_EXISTS for a symbolic link that another user created in a folder
 * that all users can write to, anywhere on the way, and the system's errors.
 */
export function linkTarget(path: string): string {
  const trust = linkTrust(path)
  if ('path' in trust) return trust.path
  throw linked(trust.untrusted.path, 'which another user created in a folder that all users can write to')
}

function writeTemporary(
  path: string,
  bytes: Uint8Array,
  newMode: number,
  before: fs.Stats | undefined,
  calls: FileCalls,
): void {
  const descriptor = openTemporary(path, calls)
  try {
    if (before) keepOwner(descriptor, before, calls)
    fill(descriptor, bytes, before ? before.mode & 0o7777 : newMode, calls)
    calls.fsyncSync(descriptor)
    checkWritten(descriptor, bytes, calls)
  } finally {
    calls.closeSync(descriptor)
  }
}

/** Returns the descriptor of a new, empty file. No other user can open it before it has its owner and mode. */
export function openTemporary(path: string, calls: FileCalls): number {
  return calls.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600)
}

/** Sets the mode of a new file, then writes its content. */
export function fill(descriptor: number, bytes: Uint8Array, mode: number, calls: FileCalls): void {
  calls.fchmodSync(descriptor, mode)
  writeAll(descriptor, bytes, calls)
}

function keepOwner(descriptor: number, { uid, gid }: fs.Stats, calls: FileCalls): void {
  const mine = calls.fstatSync(descriptor)
  if (mine.uid === uid && mine.gid === gid) return
  calls.fchownSync(descriptor, uid, gid)
}

function writeAll(descriptor: number, bytes: Uint8Array, calls: FileCalls): void {
  let written = 0
  while (written < bytes.length) {
    const count = calls.writeSync(descriptor, bytes, written, bytes.length - written, written)
    if (count === 0) throw new Error('the system accepts no more bytes')
    written += count
  }
}

/** Throws if a file does not contain the bytes that were written. */
export function checkWritten(descriptor: number, bytes: Uint8Array, calls: FileCalls): void {
  // One byte more than was written, to detect extra content.
  const found = Buffer.alloc(bytes.length + 1)
  let total = 0
  for (;;) {
    const count = calls.readSync(descriptor, found, total, found.length - total, total)
    total += count
    if (count === 0 || total === found.length) break
  }
  if (!found.subarray(0, total).equals(bytes))
    throw new Error('the file does not contain the bytes that were written')
}

/** Makes new names in a folder durable. Throws KCERT_FILE_NOT_WRITTEN. */
export function syncFolder(path: string, folder: string, calls: FileCalls): void {
  try {
    const descriptor = calls.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY)
    try {
      calls.fsyncSync(descriptor)
    } finally {
      calls.closeSync(descriptor)
    }
  } catch (error) {
    // Some file systems (FUSE, SMB) do not support this call, and a folder can be writable without being readable.
    if (['EINVAL', 'ENOTSUP', 'ENOSYS', 'EACCES'].includes(systemCode(error) ?? '')) return
    const what = `${path} has its new content, but may lose it in a power failure`
    throw new KcertError('KCERT_FILE_NOT_WRITTEN', what, {
      why: `the folder could not be synced to disk: ${messageOf(error)}; check the disk, then run the command again`,
      next: 'dmesg',
      cause: error,
    })
  }
}

/** Removes a file that may not exist. Never throws. */
export function removeQuietly(path: string, calls: Pick<FileCalls, 'unlinkSync'> = fs): void {
  try {
    calls.unlinkSync(path)
  } catch {
    // The file was never created, or the disk refuses every call. The first error is the one to report.
  }
}

/** Returns the error for a write that may not replace an existing file. */
export function alreadyThere(path: string): KcertError {
  return new KcertError('KCERT_FILE_EXISTS', `${path} exists and is not replaced`, {
    why: 'it may be the only copy',
    fix: 'name another file, or move this one away',
  })
}

function linked(path: string, reason: string): KcertError {
  return new KcertError('KCERT_FILE_EXISTS', `${path} is a symbolic link, ${reason}`, {
    why: 'the owner of the link controls which file is written',
    fix: 'give the path of the target file, or remove the link',
  })
}

/** Returns the error for a write that failed and changed nothing. */
export function notWritten(path: string, cause: unknown): KcertError {
  const folder = dirname(path)
  const isNowhere = systemCode(cause) === 'ENOENT' && !fs.existsSync(folder)
  const what = `${path} could not be written and is unchanged`
  return new KcertError('KCERT_FILE_NOT_WRITTEN', what, {
    why: isNowhere ? `the folder ${folder} does not exist` : messageOf(cause),
    next: isNowhere ? commandLine`mkdir -p ${folder}` : commandLine`ls -ld ${folder}; df ${folder}`,
    cause,
  })
}
