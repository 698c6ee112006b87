import type { CompletedCommand, Wanted } from './tree.ts'

/** The possible completions of a command line. */
export interface Answers {
  readonly words: readonly (readonly [word: string, summary: string])[]
  readonly also: 'file' | 'folder' | 'nothing'
}

/** Returns the completions of the last word; `line` is everything after "kcert", and the last word may be empty. */
export function answersFor(line: readonly string[], tree: readonly CompletedCommand[]): Answers {
  const typed = line.at(-1) ?? ''
  const before = line.slice(0, -1)
  const command = commandOf(before, tree)
  const rest = before.slice(command.path === '' ? 0 : command.path.split(' ').length)
  if (rest.includes('--')) return begun(typed, wanted(command.operand))
  const [flagName, equalsValue] = splitFlag(typed)
  const asked = equalsValue === undefined ? rest.at(-1) : flagName
  const flag = command.flags.find(({ names, value }) => value !== undefined && names.includes(asked ?? ''))
  if (flag?.value !== undefined) return begun(equalsValue ?? typed, wanted(flag.value))
  if (typed.startsWith('-')) {
    const flags = command.flags.flatMap(({ names, summary }) =>
      names.filter((name) => name.startsWith('--')).map((name): [string, string] => [name, summary]),
    )
    return begun(typed, { words: flags, also: 'nothing' })
  }
  const operand = wanted(command.operand)
  return begun(typed, {
    words: [...(rest.length === 0 ? command.next : []), ...operand.words],
    also: operand.also,
  })
}

/** Returns the completions in the format of kubectl_complete-NAME: one per line, then the directive. */
export function kubectlAnswers({ words, also }: Answers): string {
  // Directives of spf13/cobra: 4 offers no files, 0 offers files, 16 offers only folders.
  const directive = { nothing: 4, file: 0, folder: 16 }[also]
  return [
    ...words.map(([word, summary]) => (summary === '' ? word : `${word}\t${summary}`)),
    `:${directive}`,
    '',
  ].join('\n')
}

function commandOf(line: readonly string[], tree: readonly CompletedCommand[]): CompletedCommand {
  for (let count = Math.min(line.length, 3); count >= 0; count--) {
    const found = tree.find(({ path }) => path === line.slice(0, count).join(' '))
    if (found !== undefined) return found
  }
  throw new TypeError('the commands have no root')
}

/** Splits "--output=js" into the flag and the beginning of its value. */
function splitFlag(word: string): [string, string | undefined] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1
  return at === -1 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)]
}

function wanted(value: Wanted): Answers {
  return typeof value === 'string'
    ? { words: [], also: value }
    : { words: value.map((word) => [word, '']), also: 'nothing' }
}

function begun(typed: string, { words, also }: Answers): Answers {
  return { words: words.filter(([word]) => word.startsWith(typed)), also }
}
