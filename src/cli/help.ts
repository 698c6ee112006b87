import { stripVTControlCharacters } from 'node:util'
import { Config, Plugin } from '@oclif/core'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { formatError } from '../output/error.ts'
import { closestName } from './closest-name.ts'
import { KcertHelp } from './command-help.ts'
import { processContext } from './context.ts'
import { print } from './print.ts'
import type { PackageRoot } from './program-scripts.ts'
import { ignoreFailedWrites } from './standard-output.ts'

/** Prints help or the version, or suggests the closest command. Every command line without a known command ends here. */
export async function helpOrMistake(argv: readonly string[], root: PackageRoot): Promise<void> {
  ignoreFailedWrites()
  const args = argv[0] === 'help' ? [...argv.slice(1), '--help'] : [...argv]
  const config = await configOf(root)
  const mistake = unknownCommand(args, config)
  if (mistake) {
    process.stderr.write(formatError(mistake, processContext().stderrColor))
    process.exitCode = mistake.exitCode
    return
  }
  if (args[0] === '--version') {
    await print(`${config.userAgent}\n`)
    return
  }
  const help = new KcertHelp(config)
  await help.showHelp(args)
  await print(help.text)
}

/** Returns oclif's Config, for a package in a folder or one without a folder. */
async function configOf(root: PackageRoot): Promise<Config> {
  if (typeof root === 'string') return Config.load(root)
  const pjson = root('package.json') as Plugin['pjson']
  const manifest = root('oclif.manifest.json') as Plugin['manifest']
  const plugin = new Plugin({ isRoot: true, pjson, root: '/' })
  // This property is not public, so test/scripts/executable.test.ts checks it: it is the only place where a plugin reads its
  // manifest.
  Object.assign(plugin, { _manifest: async () => manifest })
  await plugin.load()
  plugin.commandIDs = Object.keys(manifest.commands)
  return Config.load({ root: '/', pjson, plugins: new Map([[plugin.name, plugin]]) })
}

/**
 * Returns the help of a command or, without one, the list of all commands, without color. `userAgent` replaces the versions in
 * it.
 */
export async function plainHelp(
  root: string,
  words: readonly string[],
  maxWidth: number,
  userAgent: string,
): Promise<string> {
  const config = await Config.load(root)
  config.userAgent = userAgent
  const help = new KcertHelp(config, { maxWidth })
  await help.showHelp([...words])
  return stripVTControlCharacters(help.text)
}

function unknownCommand(args: readonly string[], config: Config): KcertError | undefined {
  const [first] = args
  if (first === undefined || first === '--version' || first === '--help' || first === '-h') return undefined
  const words = args.filter((arg) => !arg.startsWith('-'))
  const topics = config.topics.map((topic) => topic.name)
  // Words after a command are its arguments; a word after a topic can only be a command.
  const isCommand = config.commandIDs.some((id) =>
    id.split(':').every((word, index) => word === words[index]),
  )
  if (!first.startsWith('-') && (isCommand || topics.includes(words.join(':')))) return undefined
  const asked = words.join(' ') || first
  const names = [...config.commandIDs, ...topics].map((name) => name.replaceAll(':', ' '))
  const given = words.slice(0, 2).join(' ').replaceAll(':', ' ')
  const begun = given.includes(' ') ? names.find((name) => name.startsWith(given)) : undefined
  const near =
    words[0] === undefined ? undefined : (begun ?? closestName(given, names) ?? closestName(words[0], names))
  const isFlagFirst = first.startsWith('-') && isCommand
  const what = isFlagFirst ? `flag ${first} is before the command` : `unknown command "${asked}"`
  return new KcertError('KCERT_USAGE', what, {
    ...(isFlagFirst
      ? { why: 'put flags after the command' }
      : near
        ? { why: `did you mean "${near}"?` }
        : {}),
    next: near ? commandLine`kcert ${near.split(' ')} --help` : 'kcert --help',
  })
}
