import type { Command } from '@oclif/core'
import { descriptionBlocks } from '../../src/cli/description.ts'
import { generatedNote, table } from './page.ts'

export type Manifest = Record<string, Command.Cached>
type Flag = Command.Cached['flags'][string]

/** Returns docs/commands/<command>.md for every command, and an index of them. */
export function commandPages(commands: Manifest): [path: string, text: string][] {
  const visible = Object.values(commands).filter((command) => !command.hidden)
  return [['docs/commands/README.md', indexPage(visible)], ...visible.map(commandPage)]
}

function indexPage(commands: readonly Command.Cached[]): string {
  const rows = commands.map((command) => [
    `[\`kcert ${spoken(command.id)}\`](${fileName(command.id)})`,
    command.summary ?? '',
  ])
  return ['# Commands', generatedNote('src/commands/'), table(['command', 'what it does'], rows)]
    .join('\n\n')
    .concat('\n')
}

function commandPage(command: Command.Cached): [path: string, text: string] {
  const parts = [
    `# kcert ${spoken(command.id)}`,
    generatedNote(`src/commands/${command.id.replaceAll(':', '/')}.ts`),
    command.summary ?? '',
    descriptionPart(command.description ?? ''),
    argumentsPart(command),
    flagsPart(command),
    exitCodesPart(command),
    examplesPart(command),
  ]
  return [`docs/commands/${fileName(command.id)}`, `${parts.filter(Boolean).join('\n\n')}\n`]
}

function descriptionPart(description: string): string {
  const parts = descriptionBlocks(description).map((block) => {
    if (block.kind === 'text') return block.text
    if (block.kind === 'code') return block.lines.map((line) => `    ${line}`).join('\n')
    return table(
      ['', ''],
      block.rows.map(([word, meaning]) => [`**${word}**`, meaning]),
    )
  })
  return parts.join('\n\n')
}

function argumentsPart(command: Command.Cached): string {
  const rows = Object.values(command.args).map((arg) => [
    `\`${arg.name.toUpperCase()}\``,
    [sentence(arg.description), arg.required ? 'Required.' : ''].filter(Boolean).join(' '),
  ])
  return rows.length === 0 ? '' : `## Arguments\n\n${table(['argument', 'meaning'], rows)}`
}

function flagsPart(command: Command.Cached): string {
  const flags = Object.values(command.flags).filter((flag) => !flag.hidden)
  const rows = flags.map((flag) => [flagName(flag), flagMeaning(flag)])
  return rows.length === 0 ? '' : `## Flags\n\n${table(['flag', 'meaning'], rows)}`
}

/** Returns the text with a period, so that another sentence can follow. */
export function sentence(text = ''): string {
  return text === '' || /[.?!]$/.test(text) ? text : `${text}.`
}

function flagName(flag: Flag): string {
  const value =
    flag.type === 'option' ? ` ${(flag.helpValue as string | undefined) ?? flag.name.toUpperCase()}` : ''
  return `\`${flag.char ? `-${flag.char}, ` : ''}--${flag.name}${value}\``
}

/** Returns the description of a flag, its values and its default, as Markdown. */
export function flagMeaning(flag: Flag): string {
  const text = flag.description ?? flag.summary ?? ''
  const hasDefault = flag.type === 'option' && flag.default !== undefined
  const facts = [
    hasDefault ? `${text.replace(/\.$/, '')} (default \`${String(flag.default)}\`).` : sentence(text),
    flag.type === 'option' && flag.options ? `One of ${flag.options.join(', ')}.` : '',
    flag.type === 'option' && flag.multiple && !/may be repeated/.test(flag.description ?? '')
      ? 'May be repeated.'
      : '',
    flag.required ? 'Required.' : '',
  ]
  return facts.filter(Boolean).join(' ')
}

function exitCodesPart(command: Command.Cached): string {
  const codes = (command as { exitCodes?: Record<string, string> }).exitCodes ?? {}
  const rows = Object.entries(codes)
  return rows.length === 0 ? '' : `## Exit codes\n\n${table(['exit', 'meaning'], rows)}`
}

function examplesPart(command: Command.Cached): string {
  const blocks = exampleParts(command).map(({ title, code }) =>
    title === '' ? fenced(code) : `${title}\n\n${fenced(code)}`,
  )
  return blocks.length === 0 ? '' : `## Examples\n\n${blocks.join('\n\n')}`
}

/** Returns the examples of a command: the description of each, if it has one, and the command lines. */
export function exampleParts(command: Command.Cached): { title: string; code: string }[] {
  const texts = (command.examples ?? []).map((example) =>
    typeof example === 'string' ? example : `${example.description}\n\n${example.command}`,
  )
  return texts.map((text) => {
    const [first = '', ...rest] = text.replaceAll('<%= config.bin %>', 'kcert').split('\n\n')
    return rest.length === 0
      ? { title: '', code: first.trim() }
      : { title: first, code: rest.join('\n\n').trim() }
  })
}

function fenced(text: string): string {
  return `\`\`\`sh\n${text}\n\`\`\``
}

/** Returns "csr list" for "csr:list". */
export function spoken(id: string): string {
  return id.replaceAll(':', ' ')
}

function fileName(id: string): string {
  return `${id.replaceAll(':', '-')}.md`
}
