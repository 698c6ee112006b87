import { changesText } from '../system/lasting-changes.ts'
import { discardUnfinished } from '../system/new-files.ts'
import { tellLine } from './tell-line.ts'

/**
 * Returns a signal that aborts when the operator presses Ctrl-C or the process receives SIGTERM, so that work can stop safely. A
 * second Ctrl-C ends the process at once. After disposal, the first one does.
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
 * Returns the result of `act`. Ctrl-C or SIGTERM meanwhile writes the text of `tell` to standard error and ends the process with
 * that signal (exit code 130 or 143 in a shell). This happens between two steps of the program, so no file is half written.
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
    // With our own handler, the parent process could not see that a signal ended this process.
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

/** Returns the text for an interruption of many separate changes: the changes so far. */
export function tellChanges(): string {
  const done = changesText()
  return `${done === '' ? 'nothing was changed' : `the completed changes stay (${done})`}; run the same command again to continue`
}
