import { hiddenCharacters } from './hidden-text.ts'

// Names in messages come from files, API responses and other users. An operator pastes the command from a message as root.

declare const built: unique symbol

/** Text with commands in which every value is quoted for the shell. Only {@link commandLine} creates one. */
export type CommandLine = string & { readonly [built]: true }

/**
 * A value in a command: a word, a list of words, or a part that needs no quotes ({@link embed}, {@link fixed}). Undefined adds
 * nothing.
 */
type Value =
  | (string & { readonly [built]?: never })
  | number
  | readonly string[]
  | { readonly part: string }
  | undefined

/**
 * Returns a command, or a sentence with commands, that can be pasted: commandLine`kcert inspect ${path}`. Each value becomes one
 * shell word, and so does each value of a list. A value that begins with "-" gets the prefix "./" if a flag could be in its
 * position; after a long flag it is that flag's value. Write the flags themselves literally, and optional ones as ${name ===
 * undefined ? undefined : embed(commandLine`--name ${name}`)}. An undefined value also removes the space before it.
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

/** Adds the cluster and node flags of this process to every command line that is built from now on. */
export function repeatInAdvice(flags: GivenFlags): void {
  given = flags
}

/** Returns a built command line as a part of another one, without quoting it again. */
export function embed(line: CommandLine): { readonly part: string } {
  return { part: line }
}

/** Returns words as an unquoted part. The type accepts only string literals. */
export function fixed<Text extends string>(
  text: string extends Text ? never : Text,
): { readonly part: string } {
  return { part: text }
}

/** Returns the whole argument vector of a command as a part of it. Only here may values be flags. */
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

// "-" alone means standard input.
function operand(word: string): string {
  return word.startsWith('-') && word !== '-' ? `./${word}` : word
}

/** Returns a word quoted for the shell, so that a command in a message can be pasted with any name. */
export function shellWord(word: string): string {
  // zsh replaces a word that begins with = by the path of a program.
  if (/^(?!=)[\w.,:=/@%+-]+$/.test(word)) return word
  return hidden().test(word) ? ansiQuoted(word) : `'${word.replaceAll("'", "'\\''")}'`
}

// Every character that the terminal output escapes (src/output/terminal.ts), including those that are marks in some positions.
// Escaping a command after it was quoted would change the file name in it.
function hidden(): RegExp {
  return new RegExp(`\\p{M}|${hiddenCharacters().source}`, 'gu')
}

/** POSIX.1-2024 $'...', the only quotes that can represent a control character visibly. Octal, because \x has no fixed length. */
function ansiQuoted(word: string): string {
  const octal = (character: string) =>
    Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return `$'${word.replace(/['\\]/g, '\\$&').replace(hidden(), octal)}'`
}

/** The command-line flags that select the cluster and the nodes, each with its value. */
export type GivenFlags = Readonly<
  Partial<Record<(typeof repeatedFlags)[number], string | readonly string[] | true>>
>

// Neither --token, which is a secret, nor --insecure-skip-tls-verify, which advice must not suggest.
const ofUser = ['user', 'as', 'as-group'] as const
const besideUser = ['kubeconfig', 'context', 'cluster', 'server', 'certificate-authority'] as const
const ofCluster = [...besideUser, ...ofUser] as const
const ofDiscovery = ['access', 'become', 'local', 'read-only', 'ssh-config', 'ssh-user'] as const

/** Flags that every later command in the advice needs too. Without them it would address another cluster or other nodes. */
export const repeatedFlags = [
  ...ofCluster,
  ...ofDiscovery,
  'inventory',
  'journal',
  'ca',
  'algorithm',
  'etcd-clients',
] as const

/**
 * Commands in advice, and the flags that each accepts. In other commands a flag has a different meaning, or requires a second
 * flag.
 */
const takers: readonly (readonly [RegExp, readonly (keyof GivenFlags)[]])[] = [
  // Not `create`: another user must grant the missing right.
  [
    /^kubectl(?= -| (?:annotate|apply|auth|delete|describe|edit|exec|get|label|logs|patch|rollout) )/,
    ofCluster,
  ],
  [
    /^kcert (?:csr (?:approve|deny|describe|explain|list|submit)|token (?:check|create|delete|list)|cluster-info (?:show|update)|bootstrap check)(?![\w-])/,
    ofCluster,
  ],
  [/^kcert rotate-ca discover(?![\w-])/, [...ofCluster, ...ofDiscovery]],
  // Their --user has a different meaning.
  [/^kcert (?:csr (?:fetch|request)|kubelet manage)(?![\w-])/, [...besideUser, 'as', 'as-group']],
  [/^kcert (?:inspect|csr check|audit)(?= .*--cluster\b)/s, ofCluster],
  [/^kcert probe(?= .*--(?:all|api-servers|nodes|etcd|webhooks)(?![\w-]))/s, ['inventory', ...ofCluster]],
  [/^kcert (?:rotate-ca recover|renew|kubelet doctor)(?![\w-])/, ['inventory']],
  // The commands that may begin a rotation.
  [
    /^kcert rotate-ca(?: plan| runbook|(?= --)|$)(?![\w-]|.*-old-key)/s,
    ['ca', 'algorithm', 'etcd-clients', 'inventory', 'journal', ...ofCluster],
  ],
  [
    /^kcert rotate-ca(?: (?:plan|rollback|runbook|status|verify))?(?![\w-])/,
    ['ca', 'inventory', 'journal', ...ofCluster],
  ],
  [/^kcert (?:kubelet forecast|rotate-sa-key plan)(?![\w-])/, ['inventory', ...ofCluster]],
  [
    /^kcert rotate-sa-key(?: (?:rollback|runbook|status|verify))?(?![\w-]| plan)/,
    ['inventory', 'journal', ...ofCluster],
  ],
]

const quoted = String.raw`\\.|\$'(?:[^'\\]|\\.)*'|(?<!\w)'[^']*'|"(?:[^"\\]|\\.)*"`

/**
 * Returns advice with the given flags added to each command that accepts them and does not have them. Without them it would
 * address another cluster.
 */
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
    const hasClusterName = /^kcert (?:inspect|csr check|audit) /.test(command)
    const missing = flags.flatMap((flag) => {
      const name = flag === 'cluster' && hasClusterName ? 'cluster-name' : flag
      const written = flag === 'inventory' ? '(?:--inventory|-i)' : `--${name}`
      return new RegExp(String.raw` ${written}(?![\w-])`).test(command) ? [] : [{ flag, name }]
    })
    const at = index + (taker?.exec(command)?.[0].length ?? 0)
    const more = missing.flatMap(({ flag, name }) =>
      [given[flag] ?? []]
        .flat()
        .map((value) => (value === true ? ` --${name}` : ` --${name} ${shellWord(value)}`)),
    )
    done += text.slice(from, at) + more.join('')
    from = at
  }
  return done + text.slice(from)
}
