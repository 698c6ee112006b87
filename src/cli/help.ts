import { type Command, CommandHelp, Config, Help } from '@oclif/core'
import { KcertError } from '../errors/kcert-error.ts'
import { formatError } from '../output/error.ts'
import { processContext } from './context.ts'

/** Prints help or the version, or says which command was probably meant. Everything that is not a known command ends here. */
export async function helpOrMistake(argv: readonly string[]): Promise<void> {
  const root = new URL('..', import.meta.url).href
  const args = argv[0] === 'help' ? [...argv.slice(1), '--help'] : [...argv]
  const config = await Config.load(root)
  const mistake = unknownCommand(args, config)
  if (mistake) {
    process.stderr.write(formatError(mistake, processContext().stderrColor))
    process.exitCode = mistake.exitCode
    return
  }
  if (args[0] === '--version') {
    process.stdout.write(`${config.userAgent}\n`)
    return
  }
  await new KcertHelp(config).showHelp(args)
}

/** oclif's help of a command with kcert's exit codes behind the flags. */
class KcertCommandHelp extends CommandHelp {
  protected override sections() {
    const sections = super.sections()
    const examples = sections.findIndex(({ header }) => header === 'EXAMPLES')
    sections.splice(examples, 0, { header: 'EXIT CODES', generate: () => this.exitCodes() })
    return sections
  }

  private exitCodes(): string | undefined {
    const { exitCodes: codes = {} } = this.command as Command.Cached & { exitCodes?: Record<string, string> }
    const lines = Object.entries(codes).map(([code, meaning]) => `${code}  ${meaning}`)
    return lines.length === 0 ? undefined : lines.join('\n')
  }
}

class KcertHelp extends Help {
  protected override CommandHelpClass = KcertCommandHelp
}

function unknownCommand(args: readonly string[], config: Config): KcertError | undefined {
  const [first] = args
  if (first === undefined || first === '--version' || first === '--help' || first === '-h') return undefined
  const words = args.filter((arg) => !arg.startsWith('-'))
  const topics = config.topics.map((topic) => topic.name)
  // Words behind a command are its arguments; behind a topic there can only be a command.
  const isCommand = config.commandIDs.some((id) =>
    id.split(':').every((word, index) => word === words[index]),
  )
  if (!first.startsWith('-') && (isCommand || topics.includes(words.join(':')))) return undefined
  const asked = words.join(' ') || first
  const names = [...config.commandIDs, ...topics].map((name) => name.replaceAll(':', ' '))
  const wish = words.slice(0, 2).join(' ').replaceAll(':', ' ')
  const begun = wish.includes(' ') ? names.find((name) => name.startsWith(wish)) : undefined
  const near = begun ?? nearest(wish, names) ?? nearest(words[0] ?? first, names)
  const isFlagFirst = first.startsWith('-') && isCommand
  return new KcertError(
    'KCERT_USAGE',
    isFlagFirst ? `${first} stands before the command` : `kcert has no command "${asked}"`,
    {
      ...(isFlagFirst
        ? { why: 'flags stand behind the command that they are for' }
        : near
          ? { why: `did you mean "${near}"?` }
          : {}),
      next: near ? `kcert ${near} --help` : 'kcert --help',
    },
  )
}

function nearest(asked: string, names: readonly string[]): string | undefined {
  const ranked = names
    .map((name) => ({ name, distance: editDistance(asked, name) }))
    .sort((a, b) => a.distance - b.distance)
  const best = ranked[0]
  return best && best.distance <= Math.max(2, best.name.length / 3) ? best.name : undefined
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= Math.min(a.length, 64); i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      current[j] = Math.min(previous[j]! + 1, current[j - 1]! + 1, substitution)
    }
    previous = current
  }
  return previous[b.length]!
}
