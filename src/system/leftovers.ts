import { hash, randomBytes } from 'node:crypto'
import { readdirSync, unlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { bootId, processNamespace, startedTicksOf } from './process-identity.ts'

// A process that is killed between writing a temporary file and putting it in place leaves it behind, with the private key that
// may be in it. Its name says whose it is, so that the next kcert can tell it from the file of a living one.

const suffix = '.kcert-tmp'
const owned = /\.([0-9a-f]{8})-([0-9a-f]{8})-(\d+)-(\d*)\.[0-9a-f]{12}\.kcert-tmp$/
const swept = new Set<string>()

/** Returns whether a file name is one of kcert's own unfinished writes. */
export function isTemporaryName(name: string): boolean {
  return name.startsWith('.') && name.endsWith(suffix)
}

/** Returns whether a file name is that of a temporary file whose process is alive, or cannot be asked about from here. */
export function isOfLiving(name: string): boolean {
  return isTemporaryName(name) && owned.test(name) && !isLeftover(name)
}

/** Returns a new name for a temporary file of this process beside the file of that name. */
export function temporaryName(name: string): string {
  const owner = `${machine()}-${short(bootId())}-${process.pid}-${startedTicksOf(process.pid).replaceAll(/\D/g, '')}`
  // The dot in front matters: the kubelet runs every file in its manifests folder whose name has none. Names end at 255 bytes,
  // and a character takes up to 4 in UTF-8.
  return `.${name.slice(0, 40).toWellFormed()}.${owner}.${randomBytes(6).toString('hex')}${suffix}`
}

/**
 * Removes the temporary files that processes of this machine have left in a folder when they died; once for each folder and
 * process. Those of living processes stay, and those of other machines and containers, of which no one here can tell. Never throws.
 */
export function removeLeftovers(folder: string): void {
  if (swept.has(folder)) return
  swept.add(folder)
  try {
    for (const name of readdirSync(folder)) if (isLeftover(name)) unlinkSync(join(folder, name))
  } catch {
    // A folder that may not be listed: what is written in it is written all the same.
  }
}

function isLeftover(name: string): boolean {
  const [, where, boot, pid, ticks] = isTemporaryName(name) ? (owned.exec(name) ?? []) : []
  if (where === undefined || where !== machine()) return false
  return boot !== short(bootId()) || startedTicksOf(Number(pid)).replaceAll(/\D/g, '') !== ticks
}

/** Tells the machine, and the container on it, from others: process ids mean something there alone. */
function machine(): string {
  return short(`${hostname()} ${processNamespace() ?? ''}`)
}

function short(text: string): string {
  return hash('sha256', text).slice(0, 8)
}
