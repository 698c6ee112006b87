import { existsSync } from 'node:fs'
import type { Config } from '@oclif/core'
import { commandConfig } from './cli/oclif-config.ts'

// The program: a known command is loaded and run at once; help, versions and mistakes take oclif's longer way.

interface RunnableCommand {
  id?: string
  new (argv: string[], config: Config): { _run(): Promise<unknown> }
}

declare const KCERT_VERSION: string

// By a name that the bundler does not follow: scripts/build.ts makes it apart, with oclif whole.
const helpBundle: string = new URL('./cli/help.js', import.meta.url).href

const argv = process.argv.slice(2)
const words = argv.slice(0, firstNonWord(argv))
const known = asksForHelp(argv) ? undefined : longestCommand(words)

if (known) {
  const { default: Command } = (await import(known.url.href)) as { default: RunnableCommand }
  Command.id = known.words.join(':')
  const command = new Command(argv.slice(known.words.length), commandConfig(KCERT_VERSION))
  await command._run()
} else {
  const { helpOrMistake } = (await import(helpBundle)) as typeof import('./cli/help.ts')
  await helpOrMistake(argv)
}

function firstNonWord(args: readonly string[]): number {
  const end = args.findIndex((arg) => !/^[a-z][a-z-]*$/.test(arg))
  return end === -1 ? args.length : end
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end === -1 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

function longestCommand(candidates: readonly string[]): { words: readonly string[]; url: URL } | undefined {
  for (let count = Math.min(candidates.length, 3); count > 0; count--) {
    const taken = candidates.slice(0, count)
    const url = new URL(`./commands/${taken.join('/')}.js`, import.meta.url)
    if (existsSync(url)) return { words: taken, url }
  }
  return undefined
}
