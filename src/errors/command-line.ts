import { shellWord } from './shell-word.ts'

// Names in messages come from files, API answers and other people. An operator pastes the command of a message as root.

declare const built: unique symbol

/** Text with commands in it in which every value is quoted for the shell. Only {@link commandLine} makes one. */
export type CommandLine = string & { readonly [built]: true }

/** What goes into a command: a word, a list of words, or a part that needs no quotes ({@link embed}, {@link fixed}). Nothing for undefined. */
type Value =
  | (string & { readonly [built]?: never })
  | number
  | readonly string[]
  | { readonly part: string }
  | undefined

/**
 * Returns a command, or a sentence with commands in it, that can be pasted: commandLine`kcert inspect ${path}`. Each value is
 * one word for the shell whatever is in it, each of a list too. A value that begins with "-" where a flag could be expected gets
 * "./" in front; after a long flag it is that flag's value. Write the flags themselves out, and optional ones as
 * ${name === undefined ? undefined : embed(commandLine`--name ${name}`)}: a value without words takes the space before it along.
 */
export function commandLine(texts: TemplateStringsArray, ...values: readonly Value[]): CommandLine {
  let line = texts[0]!
  for (const [index, value] of values.entries()) {
    const part = partOf(value, line)
    const after = texts[index + 1]!
    const isGone = part === '' && /^(?![^ ;,:)])/.test(after)
    line = (isGone ? line.replace(/ $/, '') : line + part) + after
  }
  return line as CommandLine
}

/** Returns a built command line as a part of another: its quotes stay as they are. */
export function embed(line: CommandLine): { readonly part: string } {
  return { part: line }
}

/** Returns words as a part that is not quoted. The type refuses all but text that is written in the source. */
export function fixed<Text extends string>(
  text: string extends Text ? never : Text,
): { readonly part: string } {
  return { part: text }
}

/** Returns the whole argument vector of a command as a part of it: the one place where values may be flags. */
export function argumentVector(words: readonly string[]): { readonly part: string } {
  return { part: words.map(shellWord).join(' ') }
}

function partOf(value: Value, before: string): string {
  if (value === undefined) return ''
  if (typeof value === 'object' && 'part' in value) return value.part
  const words = typeof value === 'object' ? value : [String(value)]
  const beginsWord = /(?:^|[\s;&|(])$/.test(before) && !/(?:^|\s)--\w[\w-]*\s+$/.test(before)
  return words.map((word) => shellWord(beginsWord ? operand(word) : word)).join(' ')
}

// "-" alone is standard input.
function operand(word: string): string {
  return word.startsWith('-') && word !== '-' ? `./${word}` : word
}
