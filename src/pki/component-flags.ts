import { orUndefined } from '../errors/caught.ts'
import { parseDuration } from './duration.ts'

// Flags on a command line as Kubernetes components parse them (pflag; etcd treats one dash as two).

/** One flag in a command line. */
export interface FlagWord {
  /** Without dashes, and with "-" instead of "_", because components treat them alike. */
  readonly name: string
  /** "true" for a flag without a value. */
  readonly value: string
  /** Index of the argument. */
  readonly at: number
  /** `joined`: --name=value; `apart`: the value is the next argument; `alone`: no value. */
  readonly form: 'joined' | 'apart' | 'alone'
}

/** Flags by name. If a flag is given twice, the last one is used; the values of `listFlags` are joined, as components do. */
export type Flags = Readonly<Record<string, string>>

const listFlags = new Set(['feature-gates', 'etcd-servers', 'etcd-servers-overrides'])

/** Changes to flags: a new value, or null to remove the flag. */
export type FlagChanges = Readonly<Record<string, string | null>>

/** Returns the flags among the arguments after a program's name, in order. An argument after a flag without "=" is its value. */
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

/** Returns flags, or annotations, after the changes. */
export function withChanges(now: Flags, changes: FlagChanges): Record<string, string> {
  const flags = { ...now }
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete flags[name]
    else flags[name] = value
  }
  return flags
}

/** Returns the flags of a command line: program first, then its arguments. */
export function flagsOf(argv: readonly string[]): Flags {
  const byName = Map.groupBy(flagWords(argv.slice(1)), ({ name }) => name)
  return Object.fromEntries(
    Array.from(byName, ([name, words]) => {
      const values = words.map(({ value }) => value)
      return [name, (listFlags.has(name) ? values : values.slice(-1)).join()]
    }),
  )
}

/**
 * Returns how long an API server still serves after SIGTERM, in milliseconds: --shutdown-delay-duration, 0 if it is not set or not a
 * duration.
 */
export function shutdownDelayMs({ 'shutdown-delay-duration': text = '0' }: Flags): number {
  return Math.max(0, orUndefined(() => parseDuration(text)) ?? 0)
}

/** Returns the last part of a program's path: "/usr/local/bin/kubelet" → "kubelet". */
export function programOf(argv: readonly string[]): string {
  const [path = ''] = argv
  return path.slice(path.lastIndexOf('/') + 1)
}

/** An edit of the arguments of a command line. `at` counts as in `flagWords`. */
export type WordEdit =
  | { readonly do: 'replace'; readonly at: number; readonly word: string }
  | { readonly do: 'remove'; readonly at: number }
  | { readonly do: 'add'; readonly word: string }

/**
 * Returns the edits that apply the changes, the later arguments first, so that each `at` is still correct when the previous edits
 * are done. Returns no edit for a flag that already has the value.
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
