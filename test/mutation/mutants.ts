import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

// Stryker's mutants of a source, all in one text. Each is activated by its id.

/** One change of a source. */
export interface Mutant {
  readonly id: string
  readonly file: string
  /** Position among the mutants of its file. It is stable as long as the file is unchanged. */
  readonly index: number
  readonly line: number
  readonly column: number
  readonly mutator: string
  readonly original: string
  readonly replacement: string
}

interface Position {
  readonly line: number
  readonly column: number
}

interface StrykerMutant {
  readonly id: string
  readonly fileName: string
  readonly mutatorName: string
  readonly replacement: string
  readonly location: { readonly start: Position; readonly end: Position }
}

interface Instrumenter {
  instrument(
    files: readonly { name: string; mutate: true; content: string }[],
    options: { plugins: null; excludedMutations: readonly string[]; ignorers: readonly unknown[] },
  ): Promise<{ files: readonly { name: string; content: string }[]; mutants: readonly StrykerMutant[] }>
}

const silentLogger = { isDebugEnabled: () => false, debug() {}, info() {}, warn() {}, error() {} }

/** Returns the instrumented sources, by absolute path, and their mutants. */
export async function instrument(
  files: readonly string[],
): Promise<{ sources: Record<string, string>; mutants: Mutant[] }> {
  // Not a literal, so that type checking works without the package.
  const stryker: string = '@stryker-mutator/instrumenter'
  const { Instrumenter } = (await import(stryker)) as {
    Instrumenter: new (logger: typeof silentLogger) => Instrumenter
  }
  const inputs = files.map((name) => ({ name, mutate: true as const, content: readFileSync(name, 'utf8') }))
  const instrumented = await new Instrumenter(silentLogger).instrument(inputs, {
    plugins: null,
    excludedMutations: [],
    ignorers: [],
  })
  const sources = Object.fromEntries(
    instrumented.files.map(({ name, content }) => [`${process.cwd()}/${name}`, content]),
  )
  const counts = new Map<string, number>()
  const mutants = instrumented.mutants.flatMap((one): Mutant[] => {
    const { content } = inputs.find(({ name }) => name === one.fileName)!
    const original = textAt(content, one.location)
    if (isUserText(one.mutatorName, original)) return []
    const index = counts.get(one.fileName) ?? 0
    counts.set(one.fileName, index + 1)
    const { line, column } = one.location.start
    const [id, file, mutator, replacement] = [one.id, one.fileName, one.mutatorName, one.replacement]
    return [{ id, file, index, line: line + 1, column: column + 1, mutator, original, replacement }]
  })
  return { sources, mutants }
}

/** A string with a space is text for users and affects no decision. Names, paths, flags and codes have no spaces. */
function isUserText(mutator: string, original: string): boolean {
  return mutator === 'StringLiteral' && (original.includes(' ') || original.length <= 2)
}

function textAt(content: string, { start, end }: StrykerMutant['location']): string {
  const lines = content.split('\n')
  const offset = ({ line, column }: Position): number =>
    lines.slice(0, line).reduce((sum, { length }) => sum + length + 1, 0) + column
  return content.slice(offset(start), offset(end))
}

/** Returns a short digest of a file's content. */
export function digestOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 16)
}

/** Returns a short digest of a text. */
export function digestOfText(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
