import { closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs'
import { basename } from 'node:path'
import { commandLine } from '../errors/command-line.ts'
import { type Advice, KcertError } from '../errors/kcert-error.ts'
import type { Source, UnreadableSource } from '../inspection/source.ts'
import { failureOf, openedFile, openFlags } from './files.ts'
import { fileError } from './required-file.ts'
import { isTrusted, pathTrust, type UntrustedEntry, untrustedEntry } from './trusted-path.ts'

// Files whose contents decide what kcert runs, signals, approves or signs: inventories with their hooks, journals, policies, signing
// profiles, templates, ssh configurations. A user who can change one of them acts with the rights of the caller.

/** The purpose of such a file, for messages. */
export type TrustedKind =
  | 'inventory'
  | 'journal'
  | 'approval policy'
  | 'signing profile'
  | 'certificate template'
  | 'ssh configuration'
  | 'kubeconfig'
  | 'provider file'
  | 'PID file'
  | 'output folder'
  | 'unfinished write'

/**
 * Returns the target of such a path if only root and the caller can change it and every folder above it. The file
 * itself may be absent. Throws KCERT_FILE_UNTRUSTED with the owner and mode of the first entry that others can change, and
 * KCERT_FILE_NOT_FOUND or KCERT_FILE_UNREADABLE if a folder cannot be examined.
 */
export function trustedPath(kind: TrustedKind, path: string): string {
  const trust = orFileError(path, () => pathTrust(path))
  if ('untrusted' in trust) throw refusal(kind, path, trust.untrusted)
  return trust.path
}

/**
 * Throws KCERT_FILE_UNTRUSTED for an ssh configuration that other users can change: ssh checks only the owner of ~/.ssh/config,
 * and ProxyCommand runs a program. For `ssh -F`, "none" means no file (ssh(1)).
 */
export function checkSshConfig(path: string): void {
  if (path !== 'none') trustedPath('ssh configuration', path)
}

/** Returns such a file, or why it cannot be read. Owner and mode are those of the opened file. Throws KCERT_FILE_UNTRUSTED. */
export function readTrustedFile(kind: TrustedKind, name: string, limit?: number): Source | UnreadableSource {
  try {
    const trust = pathTrust(name)
    if ('untrusted' in trust) throw refusal(kind, name, trust.untrusted)
    const { path } = trust
    const descriptor = openSync(path, openFlags | constants.O_NOFOLLOW)
    try {
      checkTrusted(kind, name, descriptor)
      return { name, ...openedFile(descriptor, fstatSync(descriptor), { path }, limit) }
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (error instanceof KcertError) throw error
    return { name, ...failureOf(error, { path: name }) }
  }
}

/** Returns the bytes of such a file. Throws KCERT_FILE_UNTRUSTED, and as `requiredFile` does. */
export function requiredTrustedFile(kind: TrustedKind, name: string): Uint8Array {
  const read = readTrustedFile(kind, name)
  if ('reason' in read) throw fileError(read)
  return read.bytes
}

/**
 * Returns the text of a note that an interrupted write of kcert left at a path; undefined if there is none. A symbolic link does
 * not count: kcert creates none. Throws KCERT_FILE_UNTRUSTED for a note of another user, and as `requiredFile` does if it is
 * unreadable.
 */
export function unfinishedNote(path: string): string | undefined {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return undefined
  return Buffer.from(requiredTrustedFile('unfinished write', path)).toString('utf8')
}

/**
 * Throws KCERT_FILE_UNTRUSTED when the descriptor refers to a regular file that others can change. Pipes belong to the caller.
 */
export function checkTrusted(kind: TrustedKind, name: string, descriptor: number): void {
  const found = orFileError(name, () => fstatSync(descriptor))
  if (found.isFile() && !isTrusted(found)) throw refusal(kind, name, untrustedEntry(name, found))
}

function orFileError<Result>(name: string, act: () => Result): Result {
  try {
    return act()
  } catch (error) {
    throw fileError({ name, ...failureOf(error, { path: name }) })
  }
}

function refusal(kind: TrustedKind, name: string, entry: UntrustedEntry): KcertError {
  const { path, uid, gid, mode } = entry
  const shown = `owner ${uid}, group ${gid}, mode ${mode.toString(8).padStart(4, '0')}`
  return new KcertError('KCERT_FILE_UNTRUSTED', `the ${kind} ${name} can be changed by other users`, {
    why: `the ${entry.kind} ${path} has ${shown}; a file that decides what kcert does, and every folder above it, must belong to root or the caller and be writable by no one else`,
    ...remedy(kind, name, entry),
  })
}

function remedy(kind: TrustedKind, name: string, { path, uid }: UntrustedEntry): Advice {
  if (kind === 'unfinished write') return { next: commandLine`mv ${name} ${name}.stale` }
  if (kind === 'PID file')
    return { fix: 'use --exec instead of --signal, or a PID file in a folder that only you can change' }
  if (kind === 'output folder') return { fix: 'name a new folder, below one that only you can change' }
  const fix = 'read it, and if its contents are right, copy it to a folder that only you can change'
  // Redirected input has no path here that a command could name.
  if (name === 'standard input') return { fix: `${fix}, and redirect the copy` }
  return uid === process.geteuid?.()
    ? { next: commandLine`chmod go-w ${path}` }
    : { fix, next: commandLine`install -m 600 ${name} ~/${basename(name)}` }
}
