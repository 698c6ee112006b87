import type { Command, Config } from '@oclif/core'
import { CommandHelp, Help } from '@oclif/core/help'
import { type Block, descriptionBlocks } from './description.ts'

// The help of one command in oclif's layout. Loading all of oclif takes twice as long as starting an empty Node process, so the
// build replaces the modules that help does not need with short ones (scripts/lean-oclif.ts).

/** A command and its subcommands, as in the manifest. */
export interface CommandEntries {
  readonly command: Command.Loadable
  readonly below: readonly Command.Loadable[]
}

/** Returns the help of a command, wrapped at this width. */
export async function commandHelp({ command, below }: CommandEntries, maxWidth: number): Promise<string> {
  const help = new KcertHelp(helpConfig(below), { maxWidth })
  await help.showCommandHelp(command)
  return help.text
}

/** Returns the parts of oclif's Config that help reads. */
function helpConfig(commands: readonly Command.Loadable[]): Config {
  const config = { bin: 'kcert', topicSeparator: ' ', topics: [], commands, plugins: new Map() }
  return config as unknown as Config
}

/**
 * oclif's help of a command, with kcert's exit codes after the flags. Command lines are not wrapped where that would break
 * pasting.
 */
class KcertCommandHelp extends CommandHelp {
  protected override sections() {
    const sections = super.sections()
    const examples = sections.findIndex(({ header }) => header === 'EXAMPLES')
    sections.splice(examples, 0, { header: 'EXIT CODES', generate: () => this.exitCodes() })
    return sections
  }

  // oclif's default lists every flag, with exclusive flags in brackets that may be half empty.
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
    // The summary comes before all sections.
    const blocks = descriptionBlocks(this.command.description ?? '')
    return blocks.map((block) => this.blockText(block)).join('\n\n')
  }

  // A newline inside quotes changes a shell command, so only the terminal wraps examples.
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

export class KcertHelp extends Help {
  protected override CommandHelpClass = KcertCommandHelp
  private readonly texts: string[] = []

  /** The complete output of `showHelp`. */
  get text(): string {
    return this.texts.join('')
  }

  protected override log(...args: string[]): void {
    this.texts.push(`${args.join(' ')}\n`)
  }
}
