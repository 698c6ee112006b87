import { type Command, CommandHelp, Config, Help } from '@oclif/core'
import { KcertError } from '../errors/kcert-error.ts'
import { formatError } from '../output/error.ts'
import { processContext } from './context.ts'
import { type Block, descriptionBlocks } from './description.ts'
import { surviveFailedWrites, writeOut } from './standard-output.ts'

/** Prints help or the version, or says which command was probably meant. Everything that is not a known command ends here. */
export async function helpOrMistake(argv: readonly string[]): Promise<void> {
  surviveFailedWrites()
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
    await print(`${config.userAgent}\n`)
    return
  }
  const help = new KcertHelp(config)
  await help.showHelp(args)
  await print(help.text)
}

async function print(text: string): Promise<void> {
  try {
    await writeOut(process.stdout, text)
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    process.stderr.write(formatError(error, processContext().stderrColor))
    process.exitCode = error.exitCode
  }
}

/** oclif's help of a command with kcert's exit codes behind the flags, and nothing cut where it could not be pasted. */
class KcertCommandHelp extends CommandHelp {
  protected override sections() {
    const sections = super.sections()
    const examples = sections.findIndex(({ header }) => header === 'EXAMPLES')
    sections.splice(examples, 0, { header: 'EXIT CODES', generate: () => this.exitCodes() })
    return sections
  }

  // oclif's own has a word for every flag, and what excludes what in brackets that it leaves half empty.
  protected override defaultUsage(): string {
    const { id, args, flags } = this.command
    const operands = Object.values(args).map(({ name, required, multiple }) => {
      const word = `${name.toUpperCase()}${multiple ? '...' : ''}`
      return required ? word : `[${word}]`
    })
    const needed = Object.values(flags).flatMap((flag) =>
      flag.required && flag.type === 'option' ? [`--${flag.name} ${flag.helpValue ?? 'VALUE'}`] : [],
    )
    return [id, ...operands, ...needed, '[FLAGS]'].join(' ')
  }

  protected override description(): string {
    // The summary stands above all sections.
    const blocks = descriptionBlocks(this.command.description ?? '')
    return blocks.map((block) => this.blockText(block)).join('\n\n')
  }

  // A shell command with line ends in its quotes is another one, so it is left to the terminal to break it.
  protected override examples(examples: Command.Example[] | string | undefined): string {
    const each = typeof examples === 'string' ? [examples] : (examples ?? [])
    return each
      .map((example) => {
        if (typeof example === 'string') return this.render(example)
        const description = this.wrap(example.description, this.indentSpacing * 2)
        return `${description}\n\n${this.indent(`$ ${this.render(example.command)}`)}`
      })
      .join('\n\n')
  }

  private exitCodes(): string | undefined {
    const { exitCodes: codes = {} } = this.command as Command.Cached & { exitCodes?: Record<string, string> }
    const rows = Object.entries(codes)
    return rows.length === 0 ? undefined : this.blockText({ kind: 'table', rows }).trimStart()
  }

  private blockText(block: Block): string {
    if (block.kind === 'text') return this.wrap(block.text)
    if (block.kind === 'code') return this.indent(block.lines.join('\n'), 4)
    const width = Math.max(...block.rows.map(([word]) => word.length)) + 2
    const lines = block.rows.flatMap(([word, meaning]) =>
      this.wrap(meaning, this.indentSpacing + width)
        .split('\n')
        .map((line, index) => (index === 0 ? word : '').padEnd(width) + line),
    )
    return lines.join('\n')
  }
}

class KcertHelp extends Help {
  protected override CommandHelpClass = KcertCommandHelp
  private readonly texts: string[] = []

  /** All that `showHelp` has shown. */
  get text(): string {
    return this.texts.join('')
  }

  protected override log(...args: string[]): void {
    this.texts.push(`${args.join(' ')}\n`)
  }
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
