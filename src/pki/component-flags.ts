// Flags on a command line as Kubernetes' components read them (pflag; etcd takes one dash for two).

/** One flag in a command line. */
export interface FlagWord {
  /** Without dashes, and with "-" for "_", as the components take them for the same. */
  readonly name: string
  /** "true" for a flag without a value. */
  readonly value: string
  /** Index of its word. */
  readonly at: number
  /** `joined`: --name=value; `apart`: the value is the next word; `alone`: no value. */
  readonly form: 'joined' | 'apart' | 'alone'
}

/** Flags by name. Of one that is given twice the last counts. */
export type Flags = Readonly<Record<string, string>>

/** What becomes of flags: a new value, or null to take one out. */
export type FlagChanges = Readonly<Record<string, string | null>>

/** Returns the flags among the words behind a program's name, in their order. A word behind a flag without "=" is its value. */
export function flagWords(words: readonly string[]): FlagWord[] {
  const found: FlagWord[] = []
  for (let at = 0; at < words.length; at++) {
    const [word = '', next] = words.slice(at, at + 2)
    if (word === '--') break
    const [, written, value] = /^--?([A-Za-z][\w.-]*)(?:=([\s\S]*))?$/.exec(word) ?? []
    if (written === undefined) continue
    const name = normalized(written)
    if (value !== undefined) found.push({ name, value, at, form: 'joined' })
    else if (next === undefined || next.startsWith('-'))
      found.push({ name, value: 'true', at, form: 'alone' })
    else found.push({ name, value: next, at: at++, form: 'apart' })
  }
  return found
}

/** Returns flags, or annotations, with what becomes of them. */
export function withChanges(now: Flags, changes: FlagChanges): Record<string, string> {
  const flags = { ...now }
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete flags[name]
    else flags[name] = value
  }
  return flags
}

/** Returns the flags of a command line: program first, then its words. */
export function flagsOf(argv: readonly string[]): Flags {
  return Object.fromEntries(flagWords(argv.slice(1)).map(({ name, value }) => [name, value]))
}

/** The last part of a program's path: "/usr/local/bin/kubelet" → "kubelet". */
export function programOf(argv: readonly string[]): string {
  const [path = ''] = argv
  return path.slice(path.lastIndexOf('/') + 1)
}

/** The edits of the words of a command line; `at` counts as in `flagWords`. */
export type WordEdit =
  | { readonly do: 'replace'; readonly at: number; readonly word: string }
  | { readonly do: 'remove'; readonly at: number }
  | { readonly do: 'add'; readonly word: string }

/**
 * Returns the edits that make the words say what the changes ask for, the later words first, so that each `at` is right when
 * the ones before it in the list are done. None for what holds already.
 */
export function wordEdits(words: readonly string[], changes: FlagChanges): WordEdit[] {
  const found = flagWords(words)
  const edits: WordEdit[] = []
  const added: WordEdit[] = []
  for (const [name, value] of Object.entries(changes)) {
    const those = found.filter((flag) => flag.name === normalized(name))
    const last = those.at(-1)
    if (value === null) {
      for (const { at, form } of those) {
        edits.push({ do: 'remove', at })
        if (form === 'apart') edits.push({ do: 'remove', at: at + 1 })
      }
    } else if (last === undefined) {
      added.push({ do: 'add', word: `--${name}=${value}` })
    } else if (last.value !== value || (last.form === 'alone' && value !== 'true')) {
      const [written = ''] = (words[last.at] ?? '').split('=')
      edits.push(
        last.form === 'apart' && !value.startsWith('-')
          ? { do: 'replace', at: last.at + 1, word: value }
          : { do: 'replace', at: last.at, word: `${written}=${value}` },
      )
      if (last.form === 'apart' && value.startsWith('-')) edits.push({ do: 'remove', at: last.at + 1 })
    }
  }
  const place = (edit: WordEdit): number => ('at' in edit ? edit.at : -1)
  return [...edits.sort((a, b) => place(b) - place(a)), ...added]
}

function normalized(name: string): string {
  return name.replaceAll('_', '-')
}
