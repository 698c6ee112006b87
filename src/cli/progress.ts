import type { Context } from './context.ts'

/** Counts completed items, on standard error, separate from the result. */
export interface Progress {
  step(): void
  end(): void
}

/** Fewer items complete too quickly to show progress. */
const leastToShow = 100

/**
 * Returns a counter. On a terminal it rewrites one line; elsewhere it writes a line for each tenth, so that a log shows progress.
 */
export function progressOn({ stderr }: Pick<Context, 'stderr'>, what: string, total: number): Progress {
  if (total < leastToShow) return { step: () => undefined, end: () => undefined }
  const isTerminal = stderr.isTTY === true
  const each = Math.ceil(total / (isTerminal ? 200 : 10))
  const text = (count: number): string =>
    `${what} ${count.toLocaleString('en')} of ${total.toLocaleString('en')}`
  let count = 0
  return {
    step() {
      count++
      if (count % each !== 0 && count !== total) return
      stderr.write(isTerminal ? `\r\u001b[K${text(count)}` : `${text(count)}\n`)
    },
    end() {
      if (isTerminal) stderr.write('\r\u001b[K')
    },
  }
}
