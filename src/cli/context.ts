import { fstatSync } from 'node:fs'
import { type Clock, systemClock } from '../system/clock.ts'
import { type RandomBytes, systemRandom } from '../system/random.ts'

/** The color level of a stream: chalk's levels, 0 for none. */
export type ColorLevel = 0 | 1 | 2 | 3

/** The process context of a command. It is created only here; other code does not read process, env or the terminal. */
export interface Context {
  readonly clock: Clock
  readonly random: RandomBytes
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string | undefined
  readonly workingFolder: string
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly stdin: NodeJS.ReadStream
  /** Columns of the terminal on stdout; 80 without a terminal, or COLUMNS if it is set. */
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
    // Node creates each stream on first use, and loads its modules for terminals and sockets: a fifth of the run time of an empty
    // program. Unused streams are not created.
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

// On Linux, major device number 1 is that of /dev/null and similar devices.
const memoryDevices = 1

/** Returns true for a terminal. Most other streams are recognized without Node's terminal modules. */
export function isTerminal(name: 'stdin' | 'stdout' | 'stderr'): boolean {
  try {
    const stats = fstatSync(['stdin', 'stdout', 'stderr'].indexOf(name))
    if (!stats.isCharacterDevice() || (process.platform === 'linux' && stats.rdev >> 8 === memoryDevices))
      return false
  } catch {
    // The descriptor is closed, or of a kind that only Node recognizes.
  }
  return process[name].isTTY === true
}

function terminalWidth(columns: number | undefined, fromEnv: string | undefined): number {
  const asked = Number(fromEnv)
  if (Number.isInteger(asked) && asked > 0) return asked
  return columns && columns > 0 ? columns : 80
}

/**
 * Returns the color level of a stream. A non-empty NO_COLOR (no-color.org) disables color, even if FORCE_COLOR is set. Pipes and
 * TERM=dumb get none.
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
