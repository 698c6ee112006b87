interface FlagShape {
  readonly name?: string
  readonly char?: string
  readonly type: 'boolean' | 'option'
  readonly aliases?: readonly string[]
}

/** A command line in two: what the flags are, in their order, and what stands between them. */
export interface SplitLine {
  readonly flags: string[]
  readonly operands: string[]
}

/**
 * Returns the operands of a command line apart from its flags and their values. oclif's own parser takes seconds for ten
 * thousand operands (`kcert inspect **`), because its work grows with their square; it still judges every flag.
 */
export function splitOperands(
  argv: readonly string[],
  shapes: Readonly<Record<string, FlagShape>>,
): SplitLine {
  const split: SplitLine = { flags: [], operands: [] }
  const withValue = new Set(
    Object.entries(shapes)
      .filter(([, { type }]) => type === 'option')
      .flatMap(([name, { char, aliases = [] }]) => [
        ...[name, ...aliases].map((one) => `--${one}`),
        ...(char === undefined ? [] : [`-${char}`]),
      ]),
  )
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!
    if (word === '--') {
      for (const operand of argv.slice(i + 1)) split.operands.push(operand)
      break
    }
    if (word === '-' || !word.startsWith('-')) {
      split.operands.push(word)
      continue
    }
    split.flags.push(word)
    if (withValue.has(word) && i + 1 < argv.length) split.flags.push(argv[++i]!)
  }
  return split
}
