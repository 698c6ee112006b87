import { KcertError } from '../errors/kcert-error.ts'
import { changesText } from '../system/lasting-changes.ts'

// Node forgets it: standard streams cannot be destroyed, so the next write is tried as if nothing had been.
const deserted = new WeakSet<NodeJS.WriteStream>()

/**
 * Writes to standard output and returns once it is handed over, so that an exit cannot cut it off. A reader that went away
 * (`| head`) is no error: it has what it wanted. Throws KCERT_FILE_NOT_WRITTEN for all else, and says what stands all the same.
 */
export function writeOut(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      const isGone = (error as NodeJS.ErrnoException | null | undefined)?.code === 'EPIPE'
      if (isGone) deserted.add(stream)
      if (error && !isGone) reject(notWritten(error))
      else resolve()
    })
  })
}

/** True once a write has shown that nobody reads the stream any more. */
export function isReaderGone(stream: NodeJS.WriteStream): boolean {
  return deserted.has(stream)
}

/**
 * Lets the process live when a write to its standard streams fails. Of standard output `writeOut` says so; what cannot be said
 * on standard error is said nowhere, and is no reason to leave work half done.
 */
export function surviveFailedWrites(): void {
  const stay = (): void => {}
  process.stdout.on('error', stay)
  process.stderr.on('error', stay)
}

function notWritten(cause: Error): KcertError {
  const done = changesText()
  return new KcertError('KCERT_FILE_NOT_WRITTEN', 'standard output could not be written', {
    why: [cause.message, ...(done === '' ? [] : [`what was done before stands: ${done}`])].join('; '),
    next: 'look at where it goes to, and at the space there: df',
    cause,
  })
}
