import { argumentVector, commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'

/** A flag, as in oclif's definitions of a command and in its manifest. */
export interface FlagShape {
  readonly char?: string
  readonly type: 'boolean' | 'option'
  readonly aliases?: readonly string[]
  readonly allowNo?: boolean
  readonly helpGroup?: string
  readonly options?: readonly string[]
}

export type FlagShapes = Readonly<Record<string, FlagShape>>

/** What evaluates a command's --dry-run: only kcert, or the API server (dryRun=All). */
export type DryRunBy = 'client' | 'server'

/** A command line in two parts: the flags with their values, in order, and the operands. */
export interface SplitLine {
  readonly flags: string[]
  readonly operands: string[]
}

/**
 * Returns the operands of a command line separately from its flags and their values. oclif's parser takes seconds for ten
 * thousand operands (`kcert inspect **`), because its work grows with their square; it still checks every flag.
 */
export function splitOperands(argv: readonly string[], shapes: FlagShapes): SplitLine {
  const split: SplitLine = { flags: [], operands: [] }
  for (const { isOperand, words } of partsOf(argv, shapes))
    for (const word of words) (isOperand ? split.operands : split.flags).push(word)
  return split
}

/**
 * Returns the command line with `--dry-run=VALUE` resolved: as `--dry-run`, or omitted for "none". `--x=false` becomes `--no-x`
 * if the command has that flag, as for kubectl's --embed-certs=false. Throws KCERT_USAGE for a value of any other boolean flag:
 * oclif would set the flag for any value and take the value as an operand, so that `--force=false` would mean --force.
 */
export function withoutBooleanValues(
  argv: readonly string[],
  shapes: FlagShapes,
  dryRunBy: DryRunBy,
): string[] {
  const plain: string[] = []
  const dryRuns = new Set<boolean>()
  let hasEnd = false
  for (const { isOperand, isBehindEnd, words, boolean } of partsOf(argv, shapes)) {
    if (boolean?.name === 'dry-run') {
      const isDryRun = boolean.value === undefined || dryRunOf(boolean.value, dryRunBy)
      dryRuns.add(isDryRun)
      if (dryRuns.size > 1)
        throw new KcertError('KCERT_USAGE', '--dry-run and --dry-run=none are mutually exclusive', {
          fix: 'give one of them',
        })
      if (isDryRun) plain.push('--dry-run')
      continue
    }
    const isSettable =
      boolean !== undefined && shapes[boolean.name]?.allowNo && !boolean.flag.startsWith('--no-')
    if (isSettable && (boolean.value === 'true' || boolean.value === 'false')) {
      plain.push(`--${boolean.value === 'true' ? '' : 'no-'}${boolean.name}`)
      continue
    }
    if (boolean?.value !== undefined) throw takesNoValue(boolean.flag, boolean.value)
    if (isOperand && isBehindEnd && !hasEnd) {
      plain.push('--')
      hasEnd = true
    }
    plain.push(...words)
  }
  return plain
}

/** An operand, a flag, or a flag and its value. */
export interface Part {
  readonly isOperand: boolean
  /** After "--", where everything is an operand. */
  readonly isBehindEnd?: boolean
  readonly words: readonly string[]
  /** The long names of the flags in it. Empty for an unknown flag, or one that lacks its value. */
  readonly names: readonly string[]
  /** A boolean flag by its long name, or any flag with a value; `flag` is its spelling on the command line. */
  readonly boolean?: { readonly name: string; readonly flag: string; readonly value?: string }
}

/** Returns the command line flag by flag and operand by operand, as oclif's parser reads it. Unknown flags are left for oclif. */
export function* partsOf(argv: readonly string[], shapes: FlagShapes): Generator<Part> {
  const known = spellings(shapes)
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? ''
    if (word === '--') {
      for (const operand of argv.slice(i + 1))
        yield { isOperand: true, isBehindEnd: true, words: [operand], names: [] }
      return
    }
    if (word === '-' || !word.startsWith('-')) {
      yield { isOperand: true, words: [word], names: [] }
      continue
    }
    const read = word.startsWith('--') ? readLong(word, known) : readShort(word, known)
    if (read.needsValue === undefined || i + 1 >= argv.length)
      yield { isOperand: false, words: [word], names: read.needsValue ? [] : read.names, ...read.part }
    else {
      const value = argv[++i] ?? ''
      const [, written = ''] = /^(--[^=]+)=/.exec(value) ?? []
      // oclif refuses a flag in place of a value only if that flag has no attached value.
      if (known.has(written)) throw valueIsMissing(read.needsValue, value)
      yield { isOperand: false, words: [word, value], names: read.names }
    }
  }
}

interface ReadFlag {
  readonly names: readonly string[]
  /** The spelling of a flag whose value is the next argument. */
  readonly needsValue?: string
  readonly part?: Pick<Part, 'boolean'>
}

function readLong(word: string, known: Spellings): ReadFlag {
  const end = word.indexOf('=')
  const flag = end === -1 ? word : word.slice(0, end)
  const found = known.get(flag)
  if (found === undefined) return { names: [] }
  const names = [found.name]
  if (found.type === 'option') return end === -1 ? { names, needsValue: flag } : { names }
  const value = end === -1 ? {} : { value: word.slice(end + 1) }
  return { names, part: { boolean: { name: found.name, flag, ...value } } }
}

/** Short flags can be combined in one argument, where the last may have a value: -yo json, -yojson, -yo=json. */
function readShort(word: string, known: Spellings): ReadFlag {
  const names: string[] = []
  for (let at = 1; at < word.length; at++) {
    const flag = `-${word[at]}`
    const found = known.get(flag)
    if (found === undefined) return { names: [] }
    names.push(found.name)
    const rest = word.slice(at + 1)
    if (found.type === 'option') return rest === '' ? { names, needsValue: flag } : { names }
    if (rest.startsWith('='))
      return { names, part: { boolean: { name: found.name, flag, value: rest.slice(1) } } }
  }
  return { names }
}

type Spellings = ReadonlyMap<string, { readonly name: string; readonly type: FlagShape['type'] }>

/** Returns every spelling of each flag: its name, aliases, character, and --no-NAME. */
function spellings(shapes: FlagShapes): Spellings {
  return new Map(
    Object.entries(shapes).flatMap(([name, { type, char, aliases, allowNo }]) => {
      const names = aliases === undefined ? [name] : [name, ...aliases]
      const written = names.flatMap((one) => (allowNo ? [`--${one}`, `--no-${one}`] : [`--${one}`]))
      if (char !== undefined) written.push(`-${char}`)
      return written.map((flag) => [flag, { name, type }] as const)
    }),
  )
}

function dryRunOf(value: string, by: DryRunBy): boolean {
  if (value === 'none') return false
  if (value === by) return true
  if (value === 'client')
    throw new KcertError('KCERT_USAGE', '--dry-run=client is not available for this command', {
      why: 'its dry run sends the objects to the API server, which checks them and stores none',
      next: '--dry-run',
    })
  if (value === 'server')
    throw new KcertError('KCERT_USAGE', '--dry-run=server is not available for this command', {
      why: 'its dry run only reads: kcert works out the change, and the API server does not check it',
      next: '--dry-run',
    })
  throw new KcertError('KCERT_USAGE', `invalid --dry-run value "${value}"`, {
    why: `as in kubectl, it is "none", "server" or "client"`,
    next: '--dry-run',
  })
}

function takesNoValue(flag: string, value: string): KcertError {
  return new KcertError('KCERT_USAGE', `${flag} takes no value, but "${value}" was given`, {
    why: `${flag} is a boolean flag: write it without "=" or leave it out`,
    // In kubectl, --cluster takes a name.
    ...(flag === '--cluster' && { next: commandLine`--cluster --cluster-name ${value}` }),
  })
}

function valueIsMissing(flag: string, word: string): KcertError {
  return new KcertError('KCERT_USAGE', `${flag} needs a value, but "${word}" is another flag`, {
    fix: commandLine`give the value after ${argumentVector([flag])}`,
  })
}
