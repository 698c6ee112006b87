import { spawn } from 'node:child_process'

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  /** A program that takes longer is killed. */
  readonly timeoutMs: number
  /** True if Ctrl-C must not reach the program. */
  readonly detached?: boolean
  /** The prefix of each line that it prints. */
  readonly indent: string
}

/** Runs a program of the operator and records its output. Returns why it failed; undefined if it succeeded. Never throws. */
export function whyFailed(
  [program = '', ...words]: readonly string[],
  { env, timeoutMs, detached = false, indent }: Surroundings,
  note: (text: string) => void,
): Promise<string | undefined> {
  const child = spawn(program, words, {
    env,
    detached,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream
      .setEncoding('utf8')
      .on('data', (text: string) => note(text.replace(/\n$/, '').replace(/^/gm, indent)))
  }
  const limit = `after ${timeoutMs / 1000} s at most`
  return new Promise((ended) => {
    child.once('error', ({ message }) => ended(message))
    child.once('close', (status, signal) => {
      if (status === 0) return ended(undefined)
      ended(signal === null ? `it exited with status ${status}` : `it was killed by ${signal} ${limit}`)
    })
  })
}
