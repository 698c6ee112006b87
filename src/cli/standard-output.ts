import { writeSync } from 'node:fs'
import { systemCode } from '../errors/caught.ts'
import { KcertError, messageOf } from '../errors/kcert-error.ts'
import { changesText } from '../system/lasting-changes.ts'

// Node does not keep this state: standard streams cannot be destroyed, so it would try the next write as usual.
let isDeserted = false

// Until the stream itself is used, output goes directly to the descriptor.
const made = { stdout: false, stderr: false }

/**
 * Writes to standard output and returns after the write, so that an exit cannot truncate it. A closed pipe (`| head`) is not an
 * error: the reader has what it needs. Throws KCERT_FILE_NOT_WRITTEN for all other errors, with the changes that persist.
 */
export async function writeOut(text: string): Promise<void> {
  try {
    const rest = made.stdout || process.platform === 'win32' ? text : writeAtOnce(Buffer.from(text))
    if (rest.length > 0) await writeToStream(rest)
  } catch (error) {
    if (systemCode(error) !== 'EPIPE') throw notWritten(error)
    isDeserted = true
  }
}

/** Writes as Node does to files, pipes and terminals. Returns the rest that a non-blocking descriptor did not accept. */
function writeAtOnce(bytes: Uint8Array): Uint8Array {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(1, bytes, written)
  } catch (error) {
    if (systemCode(error) !== 'EAGAIN') throw error
  }
  return bytes.subarray(written)
}

function writeToStream(content: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(content, (error) => (error ? reject(error) : resolve()))
  })
}

/** Returns true after a write has shown that standard output has no reader. */
export function isReaderGone(): boolean {
  return isDeserted
}

/**
 * Keeps the process running when a write to its standard streams fails. `writeOut` reports such errors of standard output. Errors
 * of standard error cannot be reported, and are not a reason to stop in the middle of the work.
 */
export function ignoreFailedWrites(): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const own = Object.getOwnPropertyDescriptor(process, name) ?? {}
    // The first read of the property creates the stream in this getter.
    const get = (): NodeJS.WriteStream => {
      Object.defineProperty(process, name, own)
      made[name] = true
      return process[name].on('error', () => {})
    }
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get })
  }
}

function notWritten(cause: unknown): KcertError {
  const done = changesText()
  return new KcertError('KCERT_FILE_NOT_WRITTEN', 'standard output could not be written', {
    why: [messageOf(cause), ...(done === '' ? [] : [`completed changes stay: ${done}`])].join('; '),
    fix: 'check where it goes, and the free disk space there',
    next: 'df',
    cause,
  })
}
