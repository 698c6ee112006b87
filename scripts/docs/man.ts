import type { Command } from '@oclif/core'
import { descriptionBlocks } from '../../src/cli/description.ts'
import { errorCodes, exitCodes } from '../../src/errors/codes.ts'
import { exampleParts, flagMeaning, type Manifest, sentence, spoken } from './commands.ts'
import { exitMeanings } from './errors.ts'

// Man pages in mdoc(7), from the manifest that also generates docs/commands and --help: kcert(1), a page for each command, and a
// page for each topic, which lists its commands.

interface Topics {
  readonly [name: string]: { readonly description: string }
}

/** Returns the man pages, by file name. `date` is the date of the release. */
export function manPages(
  commands: Manifest,
  topics: Topics,
  version: string,
  date: Date,
): Map<string, string> {
  const visible = Object.values(commands).filter((command) => !command.hidden)
  const head = (name: string): string => {
    const day = date.toLocaleDateString('en-US', { dateStyle: 'long', timeZone: 'UTC' })
    // The second line keeps "BSD" out of the first line of the page.
    return lines(
      `.Dd ${day}`,
      '.ds doc-volume-operating-system kcert',
      `.Dt ${name.toUpperCase()} 1`,
      `.Os "kcert ${version}"`,
    )
  }
  const groups = Object.entries(topics).filter(([name]) => commands[name] === undefined)
  const pages = [
    ['kcert', [head('kcert'), overview(visible)]],
    ...groups.map(([topic, { description }]) => [
      pageName(topic),
      [head(pageName(topic)), topicPage(topic, description, visible)],
    ]),
    ...visible.map((command) => [
      pageName(command.id),
      [head(pageName(command.id)), commandPage(command, visible)],
    ]),
  ] as [string, string[]][]
  return new Map(pages.map(([name, parts]) => [`${name}.1`, `${parts.join('\n')}\n`]))
}

function overview(commands: readonly Command.Cached[]): string {
  const exits = Object.entries(exitCodes).map(([name, code]) => [
    String(code),
    exitMeanings[name as keyof typeof exitCodes],
  ])
  return lines(
    '.Sh NAME',
    '.Nm kcert',
    '.Nd manage the certificates of Kubernetes clusters',
    '.Sh SYNOPSIS',
    '.Nm',
    '.Ar command',
    '.Op Ar argument ...',
    '.Op Fl \\-flag Ns = Ns Ar value ...',
    '.Sh DESCRIPTION',
    ...prose(
      'kcert inspects certificates in files and clusters. It creates, checks, approves and signs certificate signing requests. It renews expired certificates and rotates the CAs of a cluster.',
    ),
    '.Pp',
    ...prose(
      'Each command has its own page, for example kcert-inspect(1). kcert inspect --help prints the same text.',
    ),
    '.Sh COMMANDS',
    ...definitions(commands.map(({ id, summary = '' }) => [`.It Cm ${escaped(spoken(id))}`, summary])),
    '.Sh ENVIRONMENT',
    ...definitions([
      ['.It Ev KUBECONFIG', 'The kubeconfig files, separated by colons, if --kubeconfig is not set.'],
      ['.It Ev NO_COLOR', 'Any value turns colors off.'],
    ]),
    '.Sh EXIT STATUS',
    ...definitions(exits.map(([code, meaning = '']) => [`.It ${code}`, meaning])),
    '.Pp',
    ...prose(
      `An error is printed to standard error as a code and what is wrong, then why, then the next command. There are ${Object.keys(errorCodes).length} codes.`,
    ),
    '.Sh EXAMPLES',
    ...overviewExamples.flatMap(([title, code], index) => [
      ...(index === 0 ? [] : ['.Pp']),
      ...prose(title),
      ...literal([code]),
    ]),
    '.Sh SEE ALSO',
    ...references([...commands.map(({ id }) => pageName(id)), 'kubectl', 'openssl']),
  )
}

const overviewExamples = [
  ['Find certificates of this node that expire soon:', 'sudo kcert inspect --only expired,expiring'],
  ['Find them in the objects of a cluster:', 'kcert inspect --cluster --only expired,expiring'],
  [
    'Renew the kubeadm certificates that are due, even when the API server is down:',
    'sudo kcert renew --all',
  ],
  ['Explain a TLS error:', 'kubectl get nodes 2>&1 | kcert explain-error -'],
] as const

function topicPage(topic: string, description: string, commands: readonly Command.Cached[]): string {
  const own = commands.filter(({ id }) => id.startsWith(`${topic}:`))
  return lines(
    '.Sh NAME',
    `.Nm ${pageName(topic)}`,
    `.Nd ${escaped(clause(description))}`,
    '.Sh SYNOPSIS',
    `.Nm kcert ${escaped(spoken(topic))}`,
    '.Ar command',
    '.Sh DESCRIPTION',
    ...prose(description),
    '.Sh COMMANDS',
    ...definitions(own.map(({ id, summary = '' }) => [`.It Cm ${escaped(spoken(id))}`, summary])),
    '.Sh SEE ALSO',
    ...references(['kcert', ...own.map(({ id }) => pageName(id))]),
  )
}

function commandPage(command: Command.Cached, all: readonly Command.Cached[]): string {
  const summary = command.summary ?? ''
  const args = Object.values(command.args)
  // --no-color is a flag of every command, so it comes last.
  const flags = Object.values(command.flags)
    .filter((flag) => !flag.hidden)
    .sort((a, b) => Number(a.name === 'no-color') - Number(b.name === 'no-color'))
  const codes = Object.entries((command as { exitCodes?: Record<string, string> }).exitCodes ?? {})
  const examples = exampleParts(command)
  const [topic = ''] = command.id.split(':')
  const related = all.filter(({ id }) => id !== command.id && id.split(':')[0] === topic)
  return lines(
    '.Sh NAME',
    `.Nm ${pageName(command.id)}`,
    `.Nd ${escaped(clause(summary))}`,
    '.Sh SYNOPSIS',
    `.Nm kcert ${escaped(spoken(command.id))}`,
    ...synopsisArguments(command),
    ...(flags.length === 0 ? [] : ['.Op Ar flags']),
    '.Sh DESCRIPTION',
    // NAME has the summary already. Without the first .Pp, which mdoc(7) does not allow after .Sh.
    ...(command.description ? descriptionLines(command.description).slice(1) : prose(summary)),
    ...(args.length === 0
      ? []
      : [
          '.Sh ARGUMENTS',
          ...definitions(
            args.map((arg) => [`.It Ar ${escaped(arg.name.toUpperCase())}`, sentence(arg.description)]),
          ),
        ]),
    ...(flags.length === 0
      ? []
      : ['.Sh OPTIONS', ...definitions(flags.map((flag) => [flagItem(flag), plain(flagMeaning(flag))]))]),
    ...(codes.length === 0
      ? []
      : [
          '.Sh EXIT STATUS',
          ...definitions(codes.map(([code, meaning]) => [`.It ${code}`, sentence(meaning)])),
        ]),
    ...(examples.length === 0 ? [] : ['.Sh EXAMPLES']),
    ...examples.flatMap(({ title, code }, index) => [
      ...(index === 0 ? [] : ['.Pp']),
      ...(title === '' ? [] : prose(title.endsWith(':') ? title : `${title}:`)),
      ...literal(code.split('\n')),
    ]),
    '.Sh SEE ALSO',
    ...references(['kcert', ...related.map(({ id }) => pageName(id))]),
  )
}

function synopsisArguments({ args }: Command.Cached): string[] {
  return Object.values(args).map(
    ({ name, required, multiple }) =>
      `${required ? '.Ar' : '.Op Ar'} ${escaped(name.toUpperCase())}${multiple ? ' ...' : ''}`,
  )
}

function descriptionLines(description: string): string[] {
  return descriptionBlocks(description).flatMap((block) => {
    if (block.kind === 'text') return ['.Pp', ...prose(block.text)]
    if (block.kind === 'code') return literal(block.lines)
    return definitions(block.rows.map(([word, meaning]) => [`.It ${escaped(word)}`, meaning]))
  })
}

function flagItem(flag: Command.Cached['flags'][string]): string {
  const short = flag.char === undefined ? '' : `Fl ${flag.char} , `
  return `.It ${short}Fl \\-${escaped(flag.name)}${flag.type === 'option' ? ` Ar ${escaped(valueName(flag))}` : ''}`
}

function valueName(flag: Command.Cached['flags'][string] & { type: 'option' }): string {
  const values = flag.options?.join('|') ?? ''
  if (typeof flag.helpValue === 'string') return flag.helpValue
  // Longer values do not fit on the line of the flag. The text below it lists them.
  return values !== '' && values.length <= 40 ? values : flag.name.toUpperCase()
}

function definitions(rows: readonly (readonly [item: string, text: string])[]): string[] {
  return ['.Bl -tag -width 8n', ...rows.flatMap(([item, text]) => [item, ...prose(text)]), '.El']
}

function literal(code: readonly string[]): string[] {
  return ['.Bd -literal -offset indent', ...code.map(textLine), '.Ed']
}

/** Each sentence is on a separate line, as mdoc(7) requires, with lines of at most 80 bytes. */
function prose(text: string): string[] {
  return text
    .replaceAll(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.!?][)"']*) /)
    .flatMap((one) => one.match(/.{1,56}(?= |$)|\S+/g) ?? [])
    .map((line) =>
      textLine(line.trim().replaceAll(unbrokenWord, `${unbroken}$&`)).replaceAll(unbroken, '\\%'),
    )
}

// Flags, file names and Kubernetes names are not hyphenated, so that they can be copied and searched.
const unbroken = '\u0001'
const unbrokenWord = /(?<![^ ("])[^ ("]*(?:-|[./=]\w|[a-z][A-Z])[^ ]*/g

/**
 * Escapes text so that nothing in it is a request or an escape. Hyphens stay ASCII, so that commands can be copied from the page.
 */
function textLine(text: string): string {
  const line = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
  return /^[.']/.test(line) ? `\\&${line}` : line
}

/** Escapes arguments of a macro, so that macro names and delimiters in them are text. */
function escaped(text: string): string {
  return textLine(text)
    .replaceAll('"', '\\(dq')
    .split(' ')
    .map((word) => (/^(?:[A-Z][a-z]|[.,:;()[\]?!|])$/.test(word) ? `\\&${word}` : word))
    .join(' ')
}

/** Inline code of Markdown, without its marks. */
function plain(markdown: string): string {
  return markdown.replaceAll(/`([^`]*)`/g, '$1')
}

/** Returns a summary for the NAME section: without an initial capital and without a period. */
function clause(summary: string): string {
  const [first = ''] = summary.split(/(?<=[.:]) /)
  const text = first.replace(/[.:]$/, '')
  return /^[A-Z][a-z]/.test(text) ? `${text[0]?.toLowerCase()}${text.slice(1)}` : text
}

function references(names: readonly string[]): string[] {
  return names.map((name, index) => `.Xr ${name} 1${index === names.length - 1 ? '' : ' ,'}`)
}

function pageName(id: string): string {
  return `kcert-${id.replaceAll(':', '-')}`
}

function lines(...all: readonly string[]): string {
  return all.join('\n')
}
