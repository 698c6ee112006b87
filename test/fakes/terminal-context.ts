import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../src/cli/context.ts'

export interface TerminalContext {
  readonly context: Context
  /** Returns the text on standard error. */
  shown(): string
  /** Types keys as soon as this text is shown. */
  typesAt(words: string, ...keys: readonly string[]): Promise<void>
}

export const keys = { enter: '\r', down: '\u001b[B', interrupt: '\u0003' } as const

/** A context whose standard input and standard error are in memory, each a terminal or not. */
export function terminalContext(
  { input = true, output = true }: { readonly input?: boolean; readonly output?: boolean } = {},
  fields: Partial<Context> = {},
): TerminalContext {
  const stdin = new PassThrough()
  const stderr = Object.assign(new PassThrough(), { isTTY: output, columns: 120 })
  let text = ''
  stderr.on('data', (chunk) => {
    text += chunk
  })
  return {
    context: {
      stdin,
      stderr,
      stdinIsTerminal: input,
      workingFolder: process.cwd(),
      ...fields,
    } as unknown as Context,
    shown: () => text,
    async typesAt(words, ...typed) {
      while (!text.includes(words)) await delay(1)
      for (const key of typed) {
        stdin.write(key)
        await delay(1)
      }
    },
  }
}
