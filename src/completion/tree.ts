import { shellWord } from '../errors/command-line.ts'

// The valid words of kcert's command line: the command manifest in the form that completion needs.

/** What to offer for a value: these words, files, folders, or nothing. */
export type Wanted = 'file' | 'folder' | 'nothing' | readonly string[]

export interface CompletedFlag {
  /** "--output", and "-o" if it has a short form. */
  readonly names: readonly string[]
  readonly summary: string
  /** Undefined for a flag that takes no value. */
  readonly value: Wanted | undefined
}

/** A command, or a prefix of several commands ("csr"). */
export interface CompletedCommand {
  /** "csr list"; "" for kcert itself. */
  readonly path: string
  readonly isCommand: boolean
  /** The words that may follow, each with its summary. */
  readonly next: readonly (readonly [word: string, summary: string])[]
  readonly flags: readonly CompletedFlag[]
  readonly operand: Wanted
}

interface ManifestFlag {
  readonly name: string
  readonly char?: string
  readonly type: string
  readonly description?: string
  readonly hidden?: boolean
  readonly allowNo?: boolean
  readonly options?: readonly string[]
  readonly helpValue?: string
}

/** The parts of oclif.manifest.json and package.json that completion uses. */
export interface Manifest {
  readonly commands: Readonly<
    Record<
      string,
      {
        readonly summary?: string
        readonly hidden?: boolean
        readonly args: Readonly<Record<string, Pick<ManifestFlag, 'description' | 'options'>>>
        readonly flags: Readonly<Record<string, ManifestFlag>>
      }
    >
  >
}

/** Returns everything that can be completed, kcert itself first. `topics` has the summaries of command prefixes. */
export function completionTree(
  { commands }: Manifest,
  topics: Readonly<Record<string, { readonly description?: string }>>,
): CompletedCommand[] {
  const visible = Object.entries(commands).filter(([, { hidden }]) => !hidden)
  const paths = new Set(visible.flatMap(([id]) => prefixesOf(id.split(':'))))
  const commandAt = (path: string) => commands[path.replaceAll(' ', ':')]
  const summaryOf = (path: string) => commandAt(path)?.summary ?? topics[path]?.description ?? ''
  const sorted = [...paths].sort()
  return sorted.map((path) => {
    const command = commandAt(path)
    const next = sorted
      .filter((other) => other !== '' && other.slice(0, Math.max(0, other.lastIndexOf(' '))) === path)
      .map((other): [string, string] => [other.slice(other.lastIndexOf(' ') + 1), summaryOf(other)])
    const [operand] = Object.values(command?.args ?? {})
    return {
      path,
      isCommand: command !== undefined,
      next,
      flags: [
        ...Object.values(command?.flags ?? {})
          .filter(({ hidden }) => !hidden)
          .flatMap(flagOf),
        { names: ['--help'], summary: 'show help', value: undefined },
        ...(path === '' ? [{ names: ['--version'], summary: 'show the version', value: undefined }] : []),
      ],
      operand: operand === undefined ? 'nothing' : (operand.options ?? placeIn(operand.description ?? '')),
    }
  })
}

/** Returns the prefixes of a command: "" and "csr" for "csr:list". */
function prefixesOf(words: readonly string[]): string[] {
  return words.map((_, index) => words.slice(0, index + 1).join(' ')).concat('')
}

function flagOf({
  name,
  char,
  type,
  description = '',
  allowNo,
  options,
  helpValue,
}: ManifestFlag): CompletedFlag[] {
  const names = [`--${name}`, ...(char === undefined ? [] : [`-${char}`])]
  if (type === 'option') return [{ names, summary: description, value: options ?? settingsOf(helpValue) }]
  const opposite = { names: [`--no-${name}`], summary: `not: ${description}`, value: undefined }
  return [{ names, summary: description, value: undefined }, ...(allowNo ? [opposite] : [])]
}

function settingsOf(helpValue = ''): Wanted {
  const [kind] = helpValue.split('|')
  if (kind === 'FILE') return 'file'
  return kind === 'DIR' || kind === 'FOLDER' ? 'folder' : 'nothing'
}

/** Only the description of an operand shows its kind. */
function placeIn(description: string): Wanted {
  if (/^(?:the )?folder\b/.test(description)) return 'folder'
  return /\b(?:file|PEM|kubeconfig)\b/.test(description) ? 'file' : 'nothing'
}

/** Returns an arm of a shell's `case` for each command with completions, as `armOf` writes it. */
export function commandCases<StatusText extends { readonly length: number }>(
  tree: readonly CompletedCommand[],
  saidOf: (command: CompletedCommand) => StatusText,
  armOf: (said: StatusText) => string,
): string {
  return tree
    .map((command) => ({ path: command.path, said: saidOf(command) }))
    .filter(({ said }) => said.length > 0)
    .map(({ path, said }) => `  ${shellWord(path)}) ${armOf(said)} ;;`)
    .join('\n')
}

/** Returns the long names of flags, each with its summary. */
export function longFlags({ flags }: CompletedCommand): (readonly [name: string, summary: string])[] {
  return flags.flatMap(({ names, summary }) =>
    names.filter((name) => name.startsWith('--')).map((name) => [name, summary] as const),
  )
}

/**
 * Returns the places for each kind of value: "csr list --signer", or "inspect" for its operands. Places of the same kind are
 * grouped.
 */
export function placesBySettings(tree: readonly CompletedCommand[]): Map<string, string[]> {
  const rows = tree.flatMap(({ path, flags, operand, isCommand }): { place: string; settings: Wanted }[] => [
    ...flags.flatMap(({ names, value: settings }) =>
      settings === undefined ? [] : names.map((name) => ({ place: `${path} ${name}`, settings })),
    ),
    ...(isCommand && operand !== 'nothing' ? [{ place: path, settings: operand }] : []),
  ])
  const grouped = Map.groupBy(rows, ({ settings }) =>
    typeof settings === 'string' ? `/${settings}` : settings.join(' '),
  )
  return new Map([...grouped].map(([settings, all]) => [settings, all.map(({ place }) => place)]))
}
