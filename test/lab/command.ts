import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { LabError } from './lab-error.ts'

export interface CommandOptions {
  readonly cwd?: string
  readonly env?: Record<string, string>
  readonly input?: string | Buffer
  readonly timeoutMs?: number
  /** Resolves for any exit code. */
  readonly mayFail?: boolean
  readonly next?: string
  readonly signal?: AbortSignal | undefined
}

export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const running = new Set<ChildProcess>()

/** Kills the foreground commands of this process, for Ctrl-C. */
export function endRunningCommands(): void {
  for (const child of running) child.kill('SIGTERM')
}

/** Returns the output of a command. Throws for a non-zero exit code unless it may fail, and after its time limit. */
export async function run(argv: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const [file, ...args] = argv as [string, ...string[]]
  const spawnOptions: SpawnOptions = { stdio: ['pipe', 'pipe', 'pipe'] }
  if (options.cwd !== undefined) spawnOptions.cwd = options.cwd
  if (options.env !== undefined) spawnOptions.env = options.env
  if (options.timeoutMs !== undefined)
    Object.assign(spawnOptions, { timeout: options.timeoutMs, killSignal: 'SIGKILL' })
  if (options.signal !== undefined) spawnOptions.signal = options.signal
  const child = spawn(file, args, spawnOptions)
  running.add(child)
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => err.push(chunk))
  child.stdin?.on('error', () => {}) // a command that ends without reading its input is no failure by itself
  child.stdin?.end(options.input ?? '')
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (exit, signal) => resolve(signal === null ? (exit ?? 1) : 128))
  })
    .catch((cause: NodeJS.ErrnoException) => {
      throw new LabError(`cannot run ${file}`, { why: cause.message, cause })
    })
    .finally(() => running.delete(child))
  const result = { code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }
  if (code !== 0 && options.mayFail !== true) {
    throw new LabError(`${argv.slice(0, 12).join(' ')}: exit ${code}`, {
      why: lastLines(result.stderr || result.stdout, 12),
      ...(options.next === undefined ? {} : { next: options.next }),
    })
  }
  return result
}

/** Runs a command on this terminal and returns its exit code. */
export async function runOnTerminal(argv: readonly string[], env?: Record<string, string>): Promise<number> {
  const [file, ...args] = argv as [string, ...string[]]
  const child = spawn(file, args, env === undefined ? { stdio: 'inherit' } : { stdio: 'inherit', env })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(signal === null ? (code ?? 1) : 130))
  })
}

/** A process by its id and its start time, since ids are reused. */
export interface ProcessIdentity {
  readonly pid: number
  /** Field 22 of /proc/PID/stat: clock ticks since boot. */
  readonly startTime: string
}

/** Starts a process that outlives this one, with its output appended to a file. */
export async function startDetached(argv: readonly string[], logFile: string): Promise<ProcessIdentity> {
  const [file, ...args] = argv as [string, ...string[]]
  const log = openSync(logFile, 'a')
  try {
    const child = spawn(file, args, { detached: true, stdio: ['ignore', log, log] })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    return identityOf(child.pid!)!
  } finally {
    closeSync(log)
  }
}

/** Returns the identity of a process id; undefined when it does not exist or is a zombie. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The command's name may contain spaces and brackets, so the fields begin after its last bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : { pid, startTime: fields[19]! }
  } catch {
    return undefined
  }
}

/** Returns whether exactly this process still runs. */
export function isRunning(process: ProcessIdentity): boolean {
  return identityOf(process.pid)?.startTime === process.startTime
}

/** Ends exactly this process if it still runs, and waits until it is gone. Throws if it does not end. */
export async function endProcess(target: ProcessIdentity, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (!isRunning(target)) return
  process.kill(target.pid, signal)
  await until(`process ${target.pid} has ended`, 120_000, async () => !isRunning(target), 50)
}

/** Waits until a check is true. At the deadline, throws with the last error of the check. */
export async function until(
  what: string,
  limitMs: number,
  check: () => Promise<boolean>,
  everyMs = 250,
  advice: { next?: string } = {},
): Promise<void> {
  const deadline = performance.now() + limitMs
  let last: unknown
  for (;;) {
    try {
      if (await check()) return
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) {
      const why = last instanceof LabError ? last.message : last === undefined ? undefined : String(last)
      throw new LabError(`waited ${limitMs / 1000} s in vain until ${what}`, {
        ...(why === undefined ? {} : { why }),
        ...advice,
      })
    }
    await sleep(everyMs)
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function lastLines(text: string, count: number): string {
  return text.trimEnd().split('\n').slice(-count).join('\n')
}
