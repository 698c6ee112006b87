import type { Config } from '@oclif/core'
import { commandConfig } from './cli/oclif-config.ts'
import { type PackageRoot, type ProgramScripts, scriptsOf } from './cli/program-scripts.ts'

// The entry point: a known command is loaded and run at once. Help, versions and mistakes go through oclif.

interface RunnableCommand {
  id?: string
  new (argv: string[], config: Config): { _run(): Promise<unknown> }
}

declare const KCERT_VERSION: string
// Identifies one build of all scripts.
declare const KCERT_BUILD: string

/** Runs a command line with the scripts of `root`/dist. */
export async function run(argv: readonly string[], root: string): Promise<void> {
  const scripts = scriptsOf(`${root}/dist/`, KCERT_BUILD)
  await main(argv, scripts, root)
  process.once('exit', () => scripts.keepCode())
}

/** Runs a command line. `root` is the folder of package.json and the command manifest, or a function that reads them. */
export async function main(
  argv: readonly string[],
  scripts: ProgramScripts,
  root: PackageRoot,
): Promise<void> {
  const words = argv.slice(0, firstNonWord(argv))
  const known = asksForHelp(argv) ? undefined : longestCommand(words, scripts)
  if (known === undefined) {
    const { quickHelp } = scripts.load('cli/quick-help.js') as typeof import('./cli/quick-help.ts')
    if (await quickHelp(argv, KCERT_VERSION, scripts)) return
    const { helpOrMistake } = scripts.load('cli/help.js') as typeof import('./cli/help.ts')
    return helpOrMistake(argv, root)
  }
  const Command = scripts.load(known.script) as RunnableCommand
  Command.id = known.words.join(':')
  const command = new Command(argv.slice(known.words.length), commandConfig(KCERT_VERSION))
  await command._run()
}

function firstNonWord(args: readonly string[]): number {
  const end = args.findIndex((arg) => !/^[a-z][a-z-]*$/.test(arg))
  return end === -1 ? args.length : end
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end === -1 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

function longestCommand(
  candidates: readonly string[],
  scripts: ProgramScripts,
): { words: readonly string[]; script: string } | undefined {
  for (let count = Math.min(candidates.length, 3); count > 0; count--) {
    const words = candidates.slice(0, count)
    const script = `commands/${words.join('/')}.js`
    if (scripts.has(script)) return { words, script }
  }
  return undefined
}
