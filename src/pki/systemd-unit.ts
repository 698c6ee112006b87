import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type FlagChanges, programOf, wordEdits } from './component-flags.ts'
import { type PlacedWord, systemdWord, systemdWords } from './systemd-words.ts'

/** A file of a unit: the unit itself, or a drop-in. */
export interface UnitFile {
  readonly path: string
  readonly text: string
}

/** A program that a unit starts. */
export interface UnitCommand {
  /** The file that contains its ExecStart=. */
  readonly path: string
  /** Program and arguments, with the environment applied. */
  readonly argv: readonly string[]
}

interface Directive {
  readonly section: string
  readonly name: string
  /** Offset of the value, including continued lines. */
  readonly start: number
  readonly end: number
}

/** Returns the paths of a unit's environment files, in order. Patterns are not expanded. */
export function environmentFiles(files: readonly UnitFile[]): string[] {
  // A leading dash: the unit also starts without the file.
  return effective(files, 'EnvironmentFile').map(({ file, directive }) =>
    valueText(file.text, directive).replace(/^-/, ''),
  )
}

/**
 * Returns the commands that a unit starts: from the unit's own file, then from its drop-ins in systemd's order (by file name).
 * `environment` contains the text of each existing environment file, by path. An empty ExecStart= in a drop-in clears the
 * previous ones.
 */
export function unitCommands(
  files: readonly UnitFile[],
  environment: ReadonlyMap<string, string> = new Map(),
): UnitCommand[] {
  const variables = unitVariables(files, environment)
  return effective(files, 'ExecStart').map(({ file, directive }) => {
    const written = systemdWords(file.text, directive.start, directive.end).map(({ text }) => text)
    return { path: file.path, argv: expanded(written, variables) }
  })
}

/** Returns the variables that a unit sets, by name. Those of environment files take precedence. */
export function unitVariables(
  files: readonly UnitFile[],
  environment: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const variables = new Map<string, string>()
  for (const { file, directive } of effective(files, 'Environment')) {
    for (const { text } of systemdWords(file.text, directive.start, directive.end)) {
      const equals = text.indexOf('=')
      if (equals > 0) variables.set(text.slice(0, equals), text.slice(equals + 1))
    }
  }
  for (const path of environmentFiles(files)) {
    for (const { name, value } of readEnvironment(environment.get(path) ?? '')) variables.set(name, value)
  }
  return variables
}

/**
 * Returns the text of a unit file with a program's flags changed on its ExecStart= line, in the layout of the surrounding lines.
 * Every other byte stays the same. Throws KCERT_EDIT_REFUSED when this file does not start the program.
 */
export function editUnit(text: string, program: string, flags: FlagChanges): string {
  const directive = effective([{ path: '', text }], 'ExecStart')
    .map((found) => found.directive)
    .find(({ start, end }) => {
      const [first] = systemdWords(text, start, end)
      return first !== undefined && programOf([withoutPrefix(first.text)]) === program
    })
  if (directive === undefined) {
    throw new KcertError('KCERT_EDIT_REFUSED', `the unit file does not start ${program}`, {
      why: 'none of its ExecStart= lines starts with that program',
      next: commandLine`systemctl cat ${program}`,
    })
  }
  return editWords(text, systemdWords(text, directive.start, directive.end), flags)
}

/** A variable of an environment file. */
export interface Variable {
  readonly name: string
  readonly value: string
}

/** Returns the variables of an environment file (systemd.exec(5)), in order. Comments and other lines are ignored. */
export function readEnvironment(text: string): Variable[] {
  return logicalLines(text).flatMap(({ start, end }) => {
    const [head = '', name] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=[ \t]*/.exec(text.slice(start, end)) ?? []
    const value = text.slice(start + head.length, end).trimEnd()
    return name === undefined ? [] : [{ name, value: unquoted(value) }]
  })
}

/** Returns the value of a variable after processing quotes, escapes and continued lines. */
function unquoted(written: string): string {
  const quote = /^["']/.exec(written)?.[0]
  const isQuoted = quote !== undefined && written.length > 1 && written.endsWith(quote)
  if (isQuoted && quote === "'") return written.slice(1, -1)
  const inner = isQuoted ? written.slice(1, -1) : written
  return inner.replace(/\\(\r?\n|[\s\S])/g, (whole, code: string) => {
    if (code.endsWith('\n')) return ''
    return !isQuoted || /["\\`$]/.test(code) ? code : whole
  })
}

/** Returns the effective directives with that name: an empty one clears those before it. */
function effective(
  files: readonly UnitFile[],
  name: string,
): { readonly file: UnitFile; readonly directive: Directive }[] {
  let found: { file: UnitFile; directive: Directive }[] = []
  for (const file of files) {
    for (const directive of directivesOf(file.text)) {
      if (directive.section !== 'Service' || directive.name !== name) continue
      if (valueText(file.text, directive) === '') found = []
      else found.push({ file, directive })
    }
  }
  return found
}

function directivesOf(text: string): Directive[] {
  const directives: Directive[] = []
  let section = ''
  for (const { start, end } of logicalLines(text)) {
    const line = text.slice(start, end)
    section = /^\s*\[(.+)\]\s*$/.exec(line)?.[1] ?? section
    const [head = '', name] = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*=[ \t]*/.exec(line) ?? []
    if (name !== undefined) directives.push({ section, name, start: start + head.length, end })
  }
  return directives
}

/** Returns lines joined with their continuation lines, without comments and empty lines. */
function logicalLines(text: string): { readonly start: number; readonly end: number }[] {
  const lines: { start: number; end: number }[] = []
  let last = { start: 0, end: 0 }
  let continues = false
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const next = newline === -1 ? text.length : newline + 1
    const end = text[next - 1] === '\n' ? (text[next - 2] === '\r' ? next - 2 : next - 1) : next
    const isComment = /^\s*[#;]/.test(text.slice(start, end))
    if (continues) last.end = end
    else if (!isComment && text.slice(start, end).trim() !== '') {
      last = { start, end }
      lines.push(last)
    }
    // A comment within continued lines never ends them, whatever its last character is.
    if (!(continues && isComment)) continues = !isComment && text[end - 1] === '\\'
    start = next
  }
  return lines
}

function valueText(text: string, { start, end }: Directive): string {
  return text.slice(start, end).trim()
}

/** Prefixes of a program in ExecStart=: no error, other name, privileges, no expansion. */
function withoutPrefix(word: string): string {
  return word.replace(/^[-@:+!|]+/, '')
}

function expanded(written: readonly string[], variables: ReadonlyMap<string, string>): string[] {
  const [first = '', ...rest] = written
  const prefixes = first.slice(0, first.length - withoutPrefix(first).length)
  const program = withoutPrefix(first)
  if (prefixes.includes(':')) return [program, ...rest]
  return [
    program,
    ...rest.flatMap((word) => {
      const [, alone] = /^\$([A-Za-z_]\w*)$/.exec(word) ?? []
      if (alone !== undefined) {
        const value = variables.get(alone) ?? ''
        return systemdWords(value, 0, value.length).map(({ text }) => text)
      }
      const filled = word.replace(/\$(?:\{([A-Za-z_]\w*)\}|\$)/g, (_, name?: string) =>
        name === undefined ? '$' : (variables.get(name) ?? ''),
      )
      return [filled.replaceAll('%%', '%')]
    }),
  ]
}

/** Returns the text with changed flags among the words after the first one. */
function editWords(text: string, placed: readonly PlacedWord[], flags: FlagChanges): string {
  const words = placed.slice(1)
  const [last] = placed.slice(-1)
  if (last === undefined) return text
  const edits = wordEdits(
    words.map((word) => word.text),
    flags,
  )
  const splices = edits.flatMap((edit): (readonly [from: number, to: number, put: string])[] => {
    if (edit.do === 'add') return [[last.end, last.end, gapBefore(text, placed) + systemdWord(edit.word)]]
    const [before, word] = placed.slice(edit.at)
    if (before === undefined || word === undefined) return []
    return edit.do === 'replace'
      ? [[word.start, word.end, systemdWord(edit.word)]]
      : [removal(text, before.end, word.start, word.end)]
  })
  let cut = text.length
  return splices
    .toSorted((a, b) => a[0] - b[0])
    .reduceRight((edited, [from, to, put]) => {
      const until = Math.min(to, cut)
      cut = from
      return edited.slice(0, from) + put + edited.slice(until)
    }, text)
}

/** Removes a word with the preceding space, including the line end. If a comment follows, removes the word's own line instead. */
function removal(
  text: string,
  before: number,
  start: number,
  end: number,
): readonly [number, number, string] {
  const line = text.slice(before, start).lastIndexOf('\n') + 1
  const continuation = /^[ \t]*\\\r?\n/.exec(text.slice(end))
  return /^\s*[#;]/m.test(text.slice(before, start)) && continuation !== null
    ? [before + line, end + continuation[0].length, '']
    : [before, end, '']
}

/** Returns the separator before the last word, which also separates a new word. */
function gapBefore(text: string, words: readonly PlacedWord[]): string {
  const [before, last] = words.slice(-2)
  if (before === undefined || last === undefined) return ' '
  const gap = text.slice(before.end, last.start)
  return gap.includes('\n') && !/^\s*[#;]/m.test(gap) ? gap : ' '
}
