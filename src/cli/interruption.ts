import { changesText } from '../system/lasting-changes.ts'
import { discardUnfinished } from '../system/new-files.ts'
import { tellLine } from './tell-line.ts'

/**
 * Returns a signal for when the operator presses Ctrl-C or the process receives SIGTERM, so that work stops where it loses nothing; a
 * second Ctrl-C ends the process at once. Once it is disposed of, the first does.
 */
export function interruptible(): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const interrupt = (): void => controller.abort()
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      process.off('SIGINT', interrupt)
      process.off('SIGTERM', interrupt)
    },
  }
}

/**
 * Returns what `act` returns. Ctrl-C, or being told to end, meanwhile writes what `tell` says to standard error and ends the process as
 * that signal does, 130 and 143 to a shell: between two steps of the program, so that no file is half written.
 */
export async function whileStoppable<Result>(
  tell: () => string,
  stderr: NodeJS.WritableStream,
  act: () => Promise<Result>,
): Promise<Result> {
  const forget = (): void => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, stop)
  }
  const stop = (signal: NodeJS.Signals): void => {
    tellLine(stderr, `interrupted: ${tell()}`)
    discardUnfinished()
    // A handler of our own would keep what waits for this process from seeing that a signal ended it.
    forget()
    process.kill(process.pid, signal)
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  try {
    return await act()
  } finally {
    forget()
  }
}

/** What to say where many things are done one by one, and each counts. */
export function tellChanges(): string {
  const done = changesText()
  return `${done === '' ? 'nothing was changed' : `the completed changes stay (${done})`}; run the same command again to continue`
}
