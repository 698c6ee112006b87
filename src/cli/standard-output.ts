import { writeSync } from 'node:fs'
import { KcertError } from '../errors/kcert-error.ts'
import { changesText } from '../system/lasting-changes.ts'

// Node forgets it: standard streams cannot be destroyed, so the next write is tried as if nothing had been.
let isDeserted = false

// Until somebody wants the stream itself, what is written goes straight to the descriptor.
const made = { stdout: false, stderr: false }

/**
 * Writes to standard output and returns once it is handed over, so that an exit cannot cut it off. A reader that went away
 * (`| head`) is no error: it has what it wanted. Throws KCERT_FILE_NOT_WRITTEN for all else, and says what stands all the same.
 */
export async function writeOut(text: string): Promise<void> {
  try {
    const rest = made.stdout || process.platform === 'win32' ? text : writeAtOnce(Buffer.from(text))
    if (rest.length > 0) await writeToStream(rest)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw notWritten(error as Error)
    isDeserted = true
  }
}

/** Writes as Node does to files, pipes and terminals, and returns what a descriptor that does not block leaves for later. */
function writeAtOnce(bytes: Uint8Array): Uint8Array {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(1, bytes, written)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
  }
  return bytes.subarray(written)
}

function writeToStream(content: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(content, (error) => (error ? reject(error) : resolve()))
  })
}

/** True once a write has shown that standard output has no reader any more. */
export function isReaderGone(): boolean {
  return isDeserted
}

/**
 * Lets the process live when a write to its standard streams fails. Of standard output `writeOut` says so; what cannot be said
 * on standard error is said nowhere, and is no reason to leave work half done.
 */
export function ignoreFailedWrites(): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const own = Object.getOwnPropertyDescriptor(process, name) ?? {}
    // The first read of the property creates the stream, and comes through here.
    const get = (): NodeJS.WriteStream => {
      Object.defineProperty(process, name, own)
      made[name] = true
      return process[name].on('error', () => {})
    }
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get })
  }
}

function notWritten(cause: Error): KcertError {
  const done = changesText()
  return new KcertError('KCERT_FILE_NOT_WRITTEN', 'standard output could not be written', {
    why: [cause.message, ...(done === '' ? [] : [`completed changes stay: ${done}`])].join('; '),
    fix: 'check where it goes to, and the space there',
    next: 'df',
    cause,
  })
}
