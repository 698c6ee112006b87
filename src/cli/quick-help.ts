import { release } from 'node:os'
import type { CommandEntries } from './command-help.ts'
import { isTerminal } from './context.ts'
import { print } from './print.ts'
import type { ProgramScripts } from './program-scripts.ts'
import { ignoreFailedWrites } from './standard-output.ts'

// The list of commands as oclif prints it, made by the build for every width (scripts/root-help.ts), because oclif whole takes
// twice as long to load as an empty Node. Where oclif could print something else, oclif prints it.

/** From which width on which text; `{userAgent}` stands for kcert's and Node's versions. */
export type RootHelp = readonly (readonly [fromWidth: number, text: string])[]

/** Prints the list of commands or the version and returns true; returns false where that is for oclif. */
export async function quickHelp(
  argv: readonly string[],
  version: string,
  scripts: ProgramScripts,
): Promise<boolean> {
  const entries = commandEntriesOf(argv, scripts)
  if (entries !== undefined) return quickCommandHelp(entries, scripts)
  const [word, ...more] = argv
  const isVersion = word === '--version'
  const isHelp = word === undefined || word === '--help' || word === '-h' || word === 'help'
  if (more.length > 0 || !(isVersion || isHelp)) return false
  const { platform, arch } = process
  if (!isUsual()) return false
  const userAgent = `kcert/${version} ${platform}-${arch} node-${process.version}`
  const text = isVersion ? `${userAgent}\n` : rootHelp(scripts, userAgent)
  if (text === undefined) return false
  ignoreFailedWrites()
  await print(text)
  return true
}

/** oclif gives some machines another name, or another width. */
function isUsual(): boolean {
  const { arch, env } = process
  return arch !== 'ia32' && !release().toLowerCase().includes('microsoft') && env.OCLIF_COLUMNS === undefined
}

/** Of a command alone, with nothing else beside it that oclif might look at. */
function commandEntriesOf(argv: readonly string[], scripts: ProgramScripts): string | undefined {
  const isWord = argv[0] === 'help'
  const words = isWord ? argv.slice(1) : argv.slice(0, -1)
  const asks = isWord || argv.at(-1) === '--help' || argv.at(-1) === '-h'
  if (!asks || words.length === 0 || !words.every((word) => /^[a-z][a-z-]*$/.test(word))) return undefined
  const name = `help/${words.join('/')}.json`
  return scripts.has(name) ? name : undefined
}

async function quickCommandHelp(entries: string, scripts: ProgramScripts): Promise<boolean> {
  const shape = isUsual() ? shapeOfOutput() : undefined
  if (shape === undefined) return false
  const { commandHelp } = scripts.load('cli/command-help.js') as typeof import('./command-help.ts')
  globalThis.kcertHelpIsStyled = shape.isBold
  const text = await commandHelp(JSON.parse(scripts.text(entries)) as CommandEntries, shape.width)
  ignoreFailedWrites()
  await print(text)
  return true
}

declare global {
  /** Read by what stands for oclif's colours in the help of a command (scripts/lean-oclif.ts). */
  var kcertHelpIsStyled: boolean | undefined
}

/** Width and style of what is printed, where it is one of the two cases that nearly everybody has; oclif's colours depend on many things. */
function shapeOfOutput(): { readonly width: number; readonly isBold: boolean } | undefined {
  const { env } = process
  const isOnTerminal = isTerminal('stdout')
  if (env.FORCE_COLOR !== undefined || env.CI !== undefined) return undefined
  const isBold = isOnTerminal && env.NO_COLOR === undefined && /^(?:xterm|screen|tmux)/.test(env.TERM ?? '')
  if (!isBold && (isOnTerminal || env.COLORTERM !== undefined)) return undefined
  return { width: isOnTerminal ? Math.max(40, process.stdout.columns || 80) : 80, isBold }
}

function rootHelp(scripts: ProgramScripts, userAgent: string): string | undefined {
  const shape = shapeOfOutput()
  if (shape === undefined) return undefined
  const texts = JSON.parse(scripts.text('root-help.json')) as RootHelp
  const [, text] = texts.findLast(([fromWidth]) => fromWidth <= shape.width) ?? []
  const whole = text?.replace('{userAgent}', userAgent)
  return shape.isBold ? whole?.replaceAll(/^[A-Z][A-Z ]*$/gm, '\x1b[1m$&\x1b[22m') : whole
}
