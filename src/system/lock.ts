import { hash, randomBytes, randomInt } from 'node:crypto'
import { existsSync, linkSync, lstatSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { messageOf, orUndefined, systemCode } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { removeQuietly } from './atomic-file.ts'
import { isOfLiving, temporaryName } from './leftovers.ts'
import { bootId, hasEnded, processNamespace, startedTicksOf } from './process-identity.ts'
import { textIfReadable } from './required-file.ts'

// Only one kcert at a time works on a file: a lock file next to it names the process that holds the lock. It works on one machine
// only: kcert cannot check whether a holder on another machine, or in another container, is still running.

interface Holder {
  readonly pid: number
  readonly host: string
  /** The namespace of its process id: a container may have the host name of its machine. */
  readonly namespace?: string | undefined
  /** Identifies the boot of the machine and the start of the process: process ids are reused. */
  readonly bootId: string
  readonly startedTicks: string
  readonly token: string
}

const retryMs = 25

/** How often processes that find the same dead holder may withdraw before it counts as waiting. */
const mostWithdrawals = 200

/** Returns the result of `act`, which runs while no other kcert works on the file. Throws as `acquireLock` does. */
export async function withLock<Result>(
  path: string,
  act: () => Promise<Result> | Result,
  waitMs = 30_000,
): Promise<Result> {
  using _lock = await acquireLock(path, waitMs)
  return await act()
}

/**
 * Returns a lock on the file, which excludes every other kcert until disposal. A lock whose process has died is taken over.
 * Throws KCERT_LOCKED when it is not free in time, and KCERT_FILE_NOT_WRITTEN when the lock file cannot be created.
 */
export async function acquireLock(path: string, waitMs: number): Promise<Disposable> {
  const lock = lockPath(path)
  const mine = JSON.stringify(thisProcess())
  let withdrawals = 0
  for (let waited = 0; !take(lock, mine, path); ) {
    if (breakIfDead(lock, path) && withdrawals++ < mostWithdrawals) {
      await pause(randomInt(retryMs))
      continue
    }
    if (waited >= waitMs) {
      const error = locked(path, lock)
      // The lock may be gone: removed above, or released before its holder was read. Then the error would be wrong.
      if (existsSync(lock)) throw error
      continue
    }
    await pause(retryMs)
    waited += retryMs
  }
  return {
    [Symbol.dispose]() {
      // The action is complete. A lock that cannot be removed soon counts as that of a dead process.
      if (textIfReadable(lock) === mine) removeQuietly(lock)
    },
  }
}

/** Returns the path of a file's lock. Its name is that of a temporary file, which kcert skips when it reads folders. */
export function lockPath(path: string): string {
  return join(dirname(path), `.${basename(path).slice(0, 50).toWellFormed()}.lock.kcert-tmp`)
}

/** Returns true when this process now holds the lock. The lock file is linked into place, so it always has its content. */
function take(lock: string, content: string, path: string): boolean {
  const prepared = join(dirname(lock), temporaryName('lock'))
  try {
    writeFileSync(prepared, content, { mode: 0o600, flag: 'wx' })
    linkSync(prepared, lock)
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw notLocked(path, error)
  } finally {
    removeQuietly(prepared)
  }
}

/**
 * Removes the lock of a process that has died. Two processes that find the same dead holder must not both remove it: the second
 * would remove the lock of a process that acquired it in between. So each one first writes a claim with a unique name and then
 * looks for other claims. Of two processes, at least one sees the other and withdraws. The claim of a process that died is
 * recognized by its name and ignored. Returns true when it withdrew.
 */
function breakIfDead(lock: string, path: string): boolean {
  const found = lstatSync(lock, { throwIfNoEntry: false })
  // A FIFO, a folder or a symbolic link: kcert never creates one as a lock, so waiting is pointless.
  if (found?.isFile() === false) throw locked(path, lock)
  if (!isDead(lock)) return false
  const about = `claim-${hash('sha256', basename(lock)).slice(0, 16)}`
  const claim = temporaryName(about)
  try {
    writeFileSync(join(dirname(lock), claim), '', { mode: 0o600, flag: 'wx' })
    const others = readdirSync(dirname(lock)).filter(
      (name) => name.startsWith(`.${about}.`) && name !== claim && isOfLiving(name),
    )
    const isWithdrawn = others.length > 0
    // Another process may have taken over before this claim was written.
    if (!isWithdrawn && isDead(lock)) unlinkSync(lock)
    return isWithdrawn
  } catch (error) {
    throw notLocked(path, error)
  } finally {
    removeQuietly(join(dirname(lock), claim))
  }
}

function isDead(lock: string): boolean {
  const holder = holderOf(lock)
  if (holder?.host !== hostname() || holder.namespace !== processNamespace()) return false
  return holder.bootId !== bootId() || hasEnded(holder.pid, holder.startedTicks)
}

function holderOf(lock: string): Holder | undefined {
  return orUndefined(() => {
    const holder: Holder = JSON.parse(textIfReadable(lock) ?? '')
    return Number.isSafeInteger(holder.pid) && holder.pid > 0 ? holder : undefined
  })
}

function thisProcess(): Holder {
  return {
    pid: process.pid,
    host: hostname(),
    namespace: processNamespace(),
    bootId: bootId(),
    startedTicks: startedTicksOf(process.pid),
    token: randomBytes(8).toString('hex'),
  }
}

function notLocked(path: string, cause: unknown): KcertError {
  return new KcertError('KCERT_FILE_NOT_WRITTEN', `cannot lock ${path}`, {
    why: messageOf(cause),
    next: commandLine`ls -ld ${dirname(path)}`,
    cause,
  })
}

function locked(path: string, lock: string): KcertError {
  const holder = holderOf(lock)
  return new KcertError('KCERT_LOCKED', `${path} is in use by another kcert`, {
    why:
      holder === undefined
        ? `${lock} is not a lock file of kcert`
        : `process ${holder.pid} on ${holder.host} holds ${lock}: wait for it, or move the lock away if that process no longer runs`,
    next: commandLine`mv ${lock} ${lock}.stale`,
  })
}
