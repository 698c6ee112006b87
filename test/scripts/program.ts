import { spawn, spawnSync } from 'node:child_process'
import { resolve } from 'node:path'

/** What a whole run of the built program left behind. */
export interface Session {
  readonly stdout: string
  readonly stderr: string
  readonly exit: number | null
}

interface SessionOptions {
  readonly stdin?: string | Uint8Array
  /** Added to an environment that has PATH and HOME alone, so that a developer's own settings change no test. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** Runs the built kcert, as a user's shell would, and returns what it wrote and how it ended. */
export function kcert(args: readonly string[], options: SessionOptions = {}): Session {
  const { stdin = '', env = {}, cwd } = options
  const run = spawnSync(process.execPath, [resolve('bin/run.js'), ...args], {
    input: stdin,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: '/nonexistent', ...env },
    maxBuffer: 1 << 30,
    ...(cwd === undefined ? {} : { cwd }),
  })
  return { stdout: run.stdout, stderr: run.stderr, exit: run.status }
}

/** The same beside this process, so that a server in it (test/fakes/api-server.ts) can answer. `signal` is Ctrl-C. */
export function kcertBeside(
  args: readonly string[],
  options: SessionOptions & { readonly signal?: AbortSignal } = {},
): Promise<Session> {
  const { stdin = '', env = {}, cwd, signal } = options
  const child = spawn(process.execPath, [resolve('bin/run.js'), ...args], {
    env: { PATH: process.env.PATH, HOME: '/nonexistent', ...env },
    ...(cwd === undefined ? {} : { cwd }),
  })
  signal?.addEventListener('abort', () => child.kill('SIGINT'))
  const written = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text
    })
  }
  // A program that ends without reading is no fault of the test.
  child.stdin.on('error', () => {}).end(stdin)
  return new Promise((done, failed) => {
    child.once('error', failed)
    child.once('close', (exit) => done({ ...written, exit }))
  })
}
