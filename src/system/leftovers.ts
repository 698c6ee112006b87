import { hash, randomBytes } from 'node:crypto'
import { readdirSync, unlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { bootId, hasEnded, processNamespace, startedTicksOf } from './process-identity.ts'

// A process that is killed between writing a temporary file and renaming it leaves the file, possibly with a private key in it.
// The name identifies the process, so the next kcert can tell it from the file of a running process.

const suffix = '.kcert-tmp'
const owned = /\.([0-9a-f]{8})-([0-9a-f]{8})-(\d+)-(\d*)\.[0-9a-f]{12}\.kcert-tmp$/
const swept = new Set<string>()

/** Returns whether a file name is that of an unfinished write of kcert. */
export function isTemporaryName(name: string): boolean {
  return name.startsWith('.') && name.endsWith(suffix)
}

/** Returns whether the process of a temporary file is running, or cannot be checked from here. */
export function isOfLiving(name: string): boolean {
  return isTemporaryName(name) && owned.test(name) && !isLeftover(name)
}

/** Returns a new name for a temporary file of this process, next to the named file. */
export function temporaryName(name: string): string {
  const owner = `${machine()}-${short(bootId())}-${process.pid}-${startedTicksOf(process.pid).replaceAll(/\D/g, '')}`
  // The leading dot matters: the kubelet runs every file in its manifests folder whose name has none. Names have at most 255
  // bytes, and a character has up to 4 in UTF-8.
  return `.${name.slice(0, 40).toWellFormed()}.${owner}.${randomBytes(6).toString('hex')}${suffix}`
}

/**
 * Removes the temporary files that dead processes of this machine left in a folder, once per folder and process. It keeps the
 * files
 * of running processes, and those of other machines and containers, whose processes cannot be checked from here. Never throws.
 */
export function removeLeftovers(folder: string): void {
  if (swept.has(folder)) return
  swept.add(folder)
  try {
    for (const name of readdirSync(folder)) if (isLeftover(name)) unlinkSync(join(folder, name))
  } catch {
    // The folder cannot be listed. Files can still be written in it.
  }
}

function isLeftover(name: string): boolean {
  const [, where, boot, pid, ticks] = isTemporaryName(name) ? (owned.exec(name) ?? []) : []
  if (where === undefined || where !== machine()) return false
  return boot !== short(bootId()) || hasEnded(Number(pid), ticks)
}

/** Returns an identifier of the machine and the container: process ids are meaningful only there. */
function machine(): string {
  return short(`${hostname()} ${processNamespace() ?? ''}`)
}

function short(text: string): string {
  return hash('sha256', text).slice(0, 8)
}
