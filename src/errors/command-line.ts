import { hiddenCharacters } from './hidden-text.ts'

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
  let [line = ''] = texts
  for (const [index, value] of values.entries()) {
    const part = partOf(value, line)
    const after = texts[index + 1] ?? ''
    const isGone = part === '' && /^(?![^ ;,:)])/.test(after)
    line = (isGone ? line.replace(/ $/, '') : line + part) + after
  }
  return withGivenFlags(line, given) as CommandLine
}

let given: GivenFlags = {}

/** Makes every command line that is built from now on say which cluster and nodes are meant, as the command line of this process did. */
export function repeatInAdvice(flags: GivenFlags): void {
  given = flags
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

/** Returns a word as a shell takes it, so that a command of a message can be pasted whatever its names are. */
export function shellWord(word: string): string {
  if (/^[\w.,:=/@%+-]+$/.test(word)) return word
  return hidden().test(word) ? ansiQuoted(word) : `'${word.replaceAll("'", "'\\''")}'`
}

// Every character that the terminal output escapes (src/output/terminal.ts), which are marks in some places too: a command that
// is escaped after it was quoted names another file.
function hidden(): RegExp {
  return new RegExp(`\\p{M}|${hiddenCharacters().source}`, 'gu')
}

/** POSIX.1-2024 $'...', the one form of quotes that shows a control character. Octal, since \x has no fixed length. */
function ansiQuoted(word: string): string {
  const octal = (character: string) =>
    Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return `$'${word.replace(/['\\]/g, '\\$&').replace(hidden(), octal)}'`
}

/** The flags of the command line that say which cluster and which nodes are meant, each with its value. */
export type GivenFlags = Readonly<Partial<Record<(typeof repeatedFlags)[number], string | readonly string[]>>>

// Neither --token, which is a secret, nor --insecure-skip-tls-verify, which advice must not suggest.
const ofUser = ['user', 'as', 'as-group'] as const
const besideUser = ['kubeconfig', 'context', 'cluster', 'server', 'certificate-authority'] as const
const ofCluster = [...besideUser, ...ofUser] as const

/** Flags that every later command of the advice must have too: without them it is for another cluster or other nodes. */
export const repeatedFlags = [...ofCluster, 'inventory', 'journal'] as const

/** Commands in advice, and which of the flags each takes. Others have another meaning of a flag, or require a second flag. */
const takers: readonly (readonly [RegExp, readonly (keyof GivenFlags)[]])[] = [
  // Not `create`: a right is granted by another user than the one who lacks it.
  [
    /^kubectl(?= -| (?:annotate|apply|auth|delete|describe|edit|exec|get|label|logs|patch|rollout) )/,
    ofCluster,
  ],
  [
    /^kcert (?:csr (?:approve|deny|describe|explain|list|submit)|token (?:check|create|delete|list)|cluster-info (?:show|update)|bootstrap check|rotate-ca discover)(?![\w-])/,
    ofCluster,
  ],
  // Their --user has another meaning.
  [/^kcert (?:csr (?:fetch|request)|kubelet manage)(?![\w-])/, [...besideUser, 'as', 'as-group']],
  [/^kcert (?:inspect|csr check)(?= .*--cluster\b)/s, ofCluster],
  [/^kcert probe(?= .*--(?:all|api-servers|nodes|etcd|webhooks)(?![\w-]))/s, ['inventory', ...ofCluster]],
  [/^kcert (?:rotate-ca recover|renew|kubelet doctor)(?![\w-])/, ['inventory']],
  [
    /^kcert rotate-ca(?: (?:plan|rollback|runbook|status|verify))?(?![\w-])/,
    ['inventory', 'journal', ...ofCluster],
  ],
  [/^kcert kubelet forecast(?![\w-])/, ['inventory', ...ofCluster]],
]

const quoted = String.raw`\\.|\$'(?:[^'\\]|\\.)*'|(?<!\w)'[^']*'|"(?:[^"\\]|\\.)*"`

/** Returns advice with the flags that were given, in each command that takes them and has them not: else it is for another cluster. */
export function withGivenFlags(text: string, given: GivenFlags): string {
  const program = new RegExp(String.raw`${quoted}|(?<![\w./-])(?:kcert|kubectl)(?= )`, 'gs')
  const whole = new RegExp(String.raw`(?:${quoted}|[^;&|()\n])*`, 'sy')
  let done = ''
  let from = 0
  for (const { 0: word, index } of text.matchAll(program)) {
    if (word !== 'kcert' && word !== 'kubectl') continue
    whole.lastIndex = index
    const [command = ''] = whole.exec(text) ?? []
    const [taker, flags = []] = takers.find(([one]) => one.test(command)) ?? []
    // Their --cluster is a boolean.
    const hasClusterName = /^kcert (?:inspect|csr check) /.test(command)
    const missing = flags.flatMap((flag) => {
      const name = flag === 'cluster' && hasClusterName ? 'cluster-name' : flag
      const written = flag === 'inventory' ? '(?:--inventory|-i)' : `--${name}`
      return new RegExp(String.raw` ${written}(?![\w-])`).test(command) ? [] : [{ flag, name }]
    })
    const at = index + (taker?.exec(command)?.[0].length ?? 0)
    const more = missing.flatMap(({ flag, name }) =>
      [given[flag] ?? []].flat().map((value) => ` --${name} ${shellWord(value)}`),
    )
    done += text.slice(from, at) + more.join('')
    from = at
  }
  return done + text.slice(from)
}
