import { spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { killGroup } from './process-group.ts'

/** How a program ended. */
export interface ProgramEnd {
  /** Absent when the program could not be started, a signal ended it, or its connection was lost. */
  readonly status?: number
  readonly cause?: Error
}

/** A program that runs: a process of this machine, or one in a container, behind an API server. */
export interface RunningProgram {
  /** Errors are no events of the stream: `exited` has them. */
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves when the program has exited. Its output may not have ended yet. */
  readonly exited: Promise<ProgramEnd>
  /** Resolves when its output has ended too. A process that it left running may delay that for as long as it runs. */
  readonly closed: Promise<ProgramEnd>
  /** Ends it by force, with the processes that it started on this machine. */
  kill(): void
}

/** Starts a process of this machine. If it cannot be started, `exited` and `closed` have the cause. */
export function startProcess([program = '', ...args]: readonly string[]): RunningProgram {
  // A separate process group: Ctrl-C reaches only kcert, which then ends its processes in order.
  const child = spawn(program, args, { stdio: 'pipe', detached: true })
  const failed = new Promise<ProgramEnd>((resolve) => child.once('error', (cause) => resolve({ cause })))
  const ended = (event: 'exit' | 'close'): Promise<ProgramEnd> =>
    new Promise((resolve) =>
      child.once(event, (status: number | null) => resolve(status === null ? {} : { status })),
    )
  child.stdin.on('error', () => {})
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    exited: Promise.race([failed, ended('exit')]),
    closed: Promise.race([failed, ended('close')]),
    kill: () => killGroup(child),
  }
}
