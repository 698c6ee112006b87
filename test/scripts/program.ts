import { spawn, spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { rehearsal } from '../fakes/rehearsal.ts'
import { type AdviceResult, type AdviceRun, adviceRuns } from './advice-running.ts'

/** The result of a whole run of the built program. */
export interface Session {
  readonly stdout: string
  readonly stderr: string
  readonly exit: number | null
}

interface SessionOptions {
  readonly stdin?: string | Uint8Array
  /** Added to an environment with only PATH and HOME, so that a developer's own settings affect no test. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
}

/** Runs the built kcert, as a user's shell would. Returns its output and exit code. */
export function kcert(args: readonly string[], options: SessionOptions = {}): Session {
  const { stdin = '', env = {}, cwd } = options
  const whole = { PATH: process.env.PATH, HOME: '/nonexistent', ...env }
  const run = spawnSync(process.execPath, [resolve('bin/run.js'), ...args], {
    input: stdin,
    encoding: 'utf8',
    env: whole,
    maxBuffer: 1 << 30,
    ...(cwd === undefined ? {} : { cwd }),
  })
  const { stdout, stderr, status: exit } = run
  for (const advice of adviceRuns({ args, cwd: cwd ?? process.cwd(), env: whole, stdout, stderr }))
    advice.check(rehearsed(advice))
  return { stdout, stderr, exit }
}

function rehearsed({ argv: [program, ...args], cwd, env }: AdviceRun): AdviceResult {
  const { stdout, stderr, status } = spawnSync(program!, args, {
    cwd,
    env,
    encoding: 'utf8',
    timeout: adviceMs,
  })
  return { exit: status, text: `${stdout}${stderr}` }
}

/** A command that runs longer has started: it is valid advice, whatever it waits for. */
const adviceMs = 20_000
let sessions = 0

/** The same asynchronously, so that a server in this process (test/fakes/api-server.ts) can respond. `signal` is Ctrl-C. */
export async function kcertBeside(
  args: readonly string[],
  options: SessionOptions & { readonly signal?: AbortSignal } = {},
): Promise<Session> {
  const { stdin = '', env = {}, cwd, signal } = options
  const whole = { PATH: process.env.PATH, HOME: '/nonexistent', ...env }
  await rehearsal.running
  sessions++
  const session = await spawned([process.execPath, resolve('bin/run.js'), ...args], {
    ...{ stdin, env: whole, cwd: cwd ?? process.cwd() },
    ...(signal && { signal }),
  }).finally(() => sessions--)
  // During another session, the fake API server could not tell which session counts.
  if (sessions === 0 && signal === undefined) {
    const runs = adviceRuns({ args, cwd: cwd ?? process.cwd(), env: whole, ...session })
    await rehearsal.during(async () => {
      for (const advice of runs) {
        const { argv, ...where } = advice
        const { stdout, stderr, exit } = await spawned(argv, { stdin: '', ...where, timeout: adviceMs })
        advice.check({ exit, text: `${stdout}${stderr}` })
      }
    })
  }
  return session
}

function spawned(
  [program, ...args]: readonly string[],
  options: SessionOptions & { readonly signal?: AbortSignal; readonly timeout?: number },
): Promise<Session> {
  const { stdin = '', signal, ...rest } = options
  const child = spawn(program!, args, rest)
  signal?.addEventListener('abort', () => child.kill('SIGINT'))
  const written = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text
    })
  }
  // A program that ends without reading its input is not an error of the test.
  child.stdin.on('error', () => {}).end(stdin)
  return new Promise((done, failed) => {
    child.once('error', failed)
    child.once('close', (exit) => done({ ...written, exit }))
  })
}
