import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

// The file system of this process with an injected fault. It applies to every module of kcert, however it imported node:fs.

/** Calls that change the disk's content, or sync it. */
const changing = [
  'appendFileSync',
  'chmodSync',
  'chownSync',
  'copyFileSync',
  'cpSync',
  'fchmodSync',
  'fchownSync',
  'fsyncSync',
  'ftruncateSync',
  'linkSync',
  'mkdirSync',
  'mkdtempSync',
  'openSync',
  'renameSync',
  'rmSync',
  'rmdirSync',
  'symlinkSync',
  'truncateSync',
  'unlinkSync',
  'utimesSync',
  'writeFileSync',
  'writeSync',
] as const
const observing = [
  'closeSync',
  'existsSync',
  'fstatSync',
  'lstatSync',
  'readFileSync',
  'readSync',
  'readdirSync',
  'statSync',
] as const

type Name = (typeof changing)[number] | (typeof observing)[number]
type Call = (...args: unknown[]) => unknown

/** The fault of a call: the process ends after it, the call fails, or it writes only a part. */
export type Fault = 'stop' | 'short' | 'ENOSPC' | 'EIO' | 'EROFS' | 'EACCES'

export const errorCodes = ['ENOSPC', 'EIO', 'EROFS', 'EACCES'] as const

const replaced = [...changing, ...observing, 'fsync'] as const
const real = Object.fromEntries(replaced.map((name) => [name, fs[name]])) as unknown as Record<Name, Call>

/** Thrown by every call after the process should have exited, so later calls never reach the disk. */
export class Stopped extends Error {}

export interface Watched {
  /** Changing calls below the folder, in order. */
  readonly calls: readonly Name[]
  /** Calls of any kind below the folder. */
  readonly all: number
  readonly isStopped: boolean
}

/** Returns the calls of `act` below the folder, with a fault at the changing call of that number (from 1); 0 for none. */
export async function withFault(
  folder: string,
  at: number,
  fault: Fault,
  act: () => Promise<void>,
): Promise<Watched> {
  const calls: Name[] = []
  const descriptors = new Set<unknown>()
  let all = 0
  let isStopped = false

  const concerns = (args: readonly unknown[]): boolean =>
    args.slice(0, 2).some((arg) => typeof arg === 'string' && arg.startsWith(folder)) ||
    (typeof args[0] === 'number' && descriptors.has(args[0]))

  const wrapped = (name: Name): Call => {
    const call = real[name]
    return (...args) => {
      if (!concerns(args)) return call(...args)
      all++
      if (isStopped) throw new Stopped(`${name} after the end`)
      const isChange =
        name !== 'openSync'
          ? isChanging(name)
          : typeof args[1] === 'number'
            ? (args[1] & 3) !== 0
            : args[1] !== 'r'
      if (!isChange) return done(name, args, call(...args))
      calls.push(name)
      if (calls.length !== at) return done(name, args, call(...args))
      if (fault === 'short') return shortened(name, args, call)
      if (fault !== 'stop') throw failure(fault, name)
      const result = call(...args)
      isStopped = true
      return done(name, args, result)
    }
  }
  const done = (name: Name, args: readonly unknown[], result: unknown): unknown => {
    if (name === 'openSync') descriptors.add(result)
    if (name === 'closeSync') descriptors.delete(args[0])
    return result
  }

  for (const name of [...changing, ...observing]) Object.assign(fs, { [name]: wrapped(name) })
  const sync = wrapped('fsyncSync')
  const fsync = (descriptor: number, callback: (error: Error | null) => void): void => {
    try {
      sync(descriptor)
    } catch (error) {
      callback(error as Error)
      return
    }
    callback(null)
  }
  Object.assign(fs, { fsync })
  syncBuiltinESMExports()
  try {
    await act()
  } finally {
    Object.assign(fs, real)
    syncBuiltinESMExports()
    // The descriptors that the dead process had open.
    if (isStopped) for (const descriptor of descriptors) real.closeSync(descriptor)
  }
  return { calls, all, isStopped }
}

function isChanging(name: Name): boolean {
  return (changing as readonly string[]).includes(name)
}

/** Behaves like a nearly full file system: it writes a part, and returns its length. */
function shortened(name: Name, args: readonly unknown[], call: Call): unknown {
  if (name !== 'writeSync') return call(...args)
  const [descriptor, bytes, from, length, position] = args as [number, Uint8Array, number, number, number]
  return call(descriptor, bytes, from, Math.max(1, Math.floor(length / 2)), position)
}

function failure(code: string, name: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: told to fail, ${name.replace('Sync', '')}`), {
    code,
    syscall: name,
  })
}
