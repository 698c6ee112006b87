import type { CommandLine } from '../errors/command-line.ts'
import type { KcertError } from '../errors/kcert-error.ts'
import type { ProgramEnd, RunningProgram } from '../system/running-program.ts'

/** How to start a shell on a node. */
export interface Transport {
  /** The title in messages: "ssh cp1", "docker exec -i cp1". */
  readonly title: CommandLine
  /** A shell that is idle for this time ends. Absent: it stays until the node is closed. */
  readonly idleMs?: number
  /**
   * Starts a shell that runs the script on the node. Returns a program whose input and output are those of the script. A transport
   * that must create something first waits for it here, until the signal aborts.
   */
  start(script: string, signal?: AbortSignal): Promise<RunningProgram>
  /** Returns the error for a program that ended before the shell responded. */
  explain(end: TransportEnd): KcertError | undefined
  /** Closes what the transport itself keeps open. */
  close(): Promise<void>
}

export interface TransportEnd extends ProgramEnd {
  /** The end of its standard error. */
  readonly stderr: string
}

/** Becomes root with sudo, for users who do not log in as root. It never prompts: if a password is needed, the error says so. */
export type Become = 'sudo'

/** Returns the argument vector of a shell that runs the script. */
export function shellVector(script: string, become: Become | undefined): string[] {
  return [...(become === 'sudo' ? ['sudo', '-n', '--'] : []), 'sh', '-c', script]
}
