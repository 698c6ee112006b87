import { fstatSync } from 'node:fs'
import { type Clock, systemClock } from '../system/clock.ts'
import { type RandomBytes, systemRandom } from '../system/random.ts'

/** How much colour a stream gets: chalk's levels, 0 for none. */
export type ColorLevel = 0 | 1 | 2 | 3

/** What a command may know of the process around it. Built once here; nothing else reads process, env or the terminal. */
export interface Context {
  readonly clock: Clock
  readonly random: RandomBytes
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string | undefined
  readonly workingFolder: string
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly stdin: NodeJS.ReadStream
  /** Columns of the terminal on stdout; 80 where there is none, COLUMNS where that is set. */
  readonly width: number
  readonly stdoutIsTerminal: boolean
  readonly stdinIsTerminal: boolean
  readonly stdoutColor: ColorLevel
  readonly stderrColor: ColorLevel
}

/** Returns the context of this process. */
export function processContext(): Context {
  const { env } = process
  const stdoutIsTerminal = isTerminal('stdout')
  return {
    clock: systemClock,
    random: systemRandom,
    env,
    home: env.HOME,
    workingFolder: process.cwd(),
    // Node makes each stream when it is first asked for, and loads its modules for terminals and sockets for that: a fifth of what
    // an empty program takes. What is asked of none is not made.
    get stdout() {
      return process.stdout
    },
    get stderr() {
      return process.stderr
    },
    get stdin() {
      return process.stdin
    },
    width: terminalWidth(stdoutIsTerminal ? process.stdout.columns : undefined, env.COLUMNS),
    stdoutIsTerminal,
    get stdinIsTerminal() {
      return isTerminal('stdin')
    },
    stdoutColor: colorLevel({ isTTY: stdoutIsTerminal }, env),
    get stderrColor() {
      return colorLevel({ isTTY: isTerminal('stderr') }, env)
    },
  }
}

// On Linux the first major number is that of /dev/null and its like.
const memoryDevices = 1

/** True for a terminal. Most streams are seen not to be one without Node's part for terminals. */
export function isTerminal(name: 'stdin' | 'stdout' | 'stderr'): boolean {
  try {
    const stats = fstatSync(['stdin', 'stdout', 'stderr'].indexOf(name))
    if (!stats.isCharacterDevice() || (process.platform === 'linux' && stats.rdev >> 8 === memoryDevices))
      return false
  } catch {
    // Closed, or of a kind that only Node knows.
  }
  return process[name].isTTY === true
}

function terminalWidth(columns: number | undefined, fromEnv: string | undefined): number {
  const asked = Number(fromEnv)
  if (Number.isInteger(asked) && asked > 0) return asked
  return columns && columns > 0 ? columns : 80
}

/**
 * Returns how much colour to write to a stream. NO_COLOR (no-color.org) switches it off whenever it is set and not
 * empty, also where FORCE_COLOR is set: who says no means no. Pipes and TERM=dumb get none.
 */
export function colorLevel(
  stream: { isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): ColorLevel {
  if (env.NO_COLOR) return 0
  const forced = env.FORCE_COLOR
  if (forced !== undefined) return forced === '0' || forced === 'false' ? 0 : forcedLevel(forced)
  if (!stream.isTTY || env.TERM === 'dumb') return 0
  if (env.COLORTERM === 'truecolor' || env.COLORTERM === '24bit') return 3
  return env.TERM?.includes('256') ? 2 : 1
}

function forcedLevel(value: string): ColorLevel {
  return value === '2' ? 2 : value === '3' ? 3 : 1
}
