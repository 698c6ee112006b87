import type { CommandLine } from '../errors/command-line.ts'
import type { KcertError } from '../errors/kcert-error.ts'

/** How a shell on a node is started. */
export interface Transport {
  /** As messages show it: "ssh cp1", "docker exec -i cp1". */
  readonly title: CommandLine
  /** The argument vector, on this machine, of a process whose input and output are those of the shell script on the node. */
  start(script: string): readonly string[]
  /** Returns what it means that the process ended before the shell answered. */
  explain(end: TransportEnd): KcertError | undefined
  /** Ends what the transport itself keeps open. */
  close(): Promise<void>
}

export interface TransportEnd {
  /** Absent when the process could not be started, or a signal ended it. */
  readonly status?: number
  /** The end of what it wrote to standard error. */
  readonly stderr: string
  readonly cause?: Error
}

/** Root by sudo, for those who log in as somebody else. It never prompts: if a password is needed, the error says so. */
export type Become = 'sudo'

/** The argument vector of a shell that runs the script. */
export function shellVector(script: string, become: Become | undefined): string[] {
  return [...(become === 'sudo' ? ['sudo', '-n', '--'] : []), 'sh', '-c', script]
}
