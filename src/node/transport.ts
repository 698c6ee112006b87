import type { CommandLine } from '../errors/command-line.ts'
import type { KcertError } from '../errors/kcert-error.ts'

/** How to start a shell on a node. */
export interface Transport {
  /** The title in messages: "ssh cp1", "docker exec -i cp1". */
  readonly title: CommandLine
  /**
   * Returns the argument vector of a process on this machine, whose input and output are those of the shell script on the node.
   */
  start(script: string): readonly string[]
  /** Returns the error for a process that ended before the shell responded. */
  explain(end: TransportEnd): KcertError | undefined
  /** Closes what the transport itself keeps open. */
  close(): Promise<void>
}

export interface TransportEnd {
  /** Absent when the process could not be started, or a signal ended it. */
  readonly status?: number
  /** The end of its standard error. */
  readonly stderr: string
  readonly cause?: Error
}

/** Becomes root with sudo, for users who do not log in as root. It never prompts: if a password is needed, the error says so. */
export type Become = 'sudo'

/** Returns the argument vector of a shell that runs the script. */
export function shellVector(script: string, become: Become | undefined): string[] {
  return [...(become === 'sudo' ? ['sudo', '-n', '--'] : []), 'sh', '-c', script]
}
