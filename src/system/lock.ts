import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import { bootId, startedTicksOf } from './process-identity.ts'

// One kcert at a time on a file: a lock file beside it, that names the process which holds it. It guards one machine only:
// of a holder on another machine, or in another container, nobody here can tell whether it still runs.

interface Holder {
  readonly pid: number
  readonly host: string
  /** Of this start of the machine, and of the process in it: process ids are used again. */
  readonly bootId: string
  readonly startedTicks: string
  readonly token: string
}

const retryMs = 25

/**
 * Returns what `act` returns, done while no other kcert works on the file. A lock whose process has died is taken over.
 * Throws KCERT_LOCKED when it is not free in time, KCERT_FILE_NOT_WRITTEN when the folder takes no lock file.
 */
export async function withLock<Result>(
  path: string,
  act: () => Promise<Result> | Result,
  waitMs = 30_000,
): Promise<Result> {
  const lock = lockPath(path)
  const mine = JSON.stringify(thisProcess())
  for (let waited = 0; !take(lock, mine, path); waited += retryMs) {
    // Whoever does not wait takes over from the dead all the same.
    if (breakIfDead(lock, mine, path)) continue
    if (waited >= waitMs) throw locked(path, lock)
    await new Promise((resolve) => setTimeout(resolve, retryMs))
  }
  try {
    return await act()
  } finally {
    if (contentOf(lock) === mine) unlinkSync(lock)
  }
}

/** Where the lock of a file is. Its name is that of a temporary file, which kcert's own readers of folders pass over. */
export function lockPath(path: string): string {
  return join(dirname(path), `.${basename(path).slice(0, 50).toWellFormed()}.lock.kcert-tmp`)
}

/** True when the lock is ours now. Its content is there from the first moment, for it is linked into place. */
function take(lock: string, content: string, path: string): boolean {
  const prepared = `${lock}.${randomBytes(6).toString('hex')}.kcert-tmp`
  try {
    writeFileSync(prepared, content, { mode: 0o600, flag: 'wx' })
    linkSync(prepared, lock)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new KcertError('KCERT_FILE_NOT_WRITTEN', `${path} cannot be locked`, {
      why: (error as Error).message,
      next: `ls -ld ${dirname(path)}`,
      cause: error,
    })
  } finally {
    removeQuietly(prepared)
  }
}

/**
 * Removes the lock of a process that has died; true when it did. Only who holds the second lock may do so: without it, two who see the same dead
 * holder would remove each other's new lock.
 */
function breakIfDead(lock: string, mine: string, path: string): boolean {
  if (!isDead(contentOf(lock))) return false
  const second = `${lock}.break.kcert-tmp`
  if (!take(second, mine, path)) return false
  try {
    const isStillDead = isDead(contentOf(lock))
    if (isStillDead) unlinkSync(lock)
    return isStillDead
  } finally {
    removeQuietly(second)
  }
}

function isDead(content: string | undefined): boolean {
  const holder = content === undefined ? undefined : holderOf(content)
  if (holder === undefined || holder.host !== hostname()) return false
  return holder.bootId !== bootId() || startedTicksOf(holder.pid) !== holder.startedTicks
}

function holderOf(content: string): Holder | undefined {
  try {
    const holder = JSON.parse(content) as Holder
    return Number.isSafeInteger(holder.pid) && holder.pid > 0 ? holder : undefined
  } catch {
    return undefined
  }
}

function thisProcess(): Holder {
  return {
    pid: process.pid,
    host: hostname(),
    bootId: bootId(),
    startedTicks: startedTicksOf(process.pid),
    token: randomBytes(8).toString('hex'),
  }
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was never made.
  }
}

function locked(path: string, lock: string): KcertError {
  const holder = holderOf(contentOf(lock) ?? '')
  const who = holder === undefined ? 'another process' : `process ${holder.pid} on ${holder.host}`
  return new KcertError('KCERT_LOCKED', `${path} is in use by another kcert`, {
    why: `${who} holds ${lock}`,
    next: `wait for it; if it no longer runs: rm ${lock}`,
  })
}
