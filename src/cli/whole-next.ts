import { argumentVector, commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { FlagShapes } from './operands.ts'

// What throws an error about a flag does not know the command line that has it.

const token = /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/

/**
 * Returns the error with a complete command where `next` is flags alone: the command line as it was given, with these flags in
 * the place of those with the same names or values. A bootstrap token on the command line is a secret, and is left out with the rest.
 */
export function withWholeNext(
  error: KcertError,
  id: string,
  argv: readonly string[],
  shapes: FlagShapes,
): KcertError {
  const { code, message, why, next, cause } = error
  if (!next?.startsWith('--')) return error
  const names = Array.from(next.matchAll(/(?:^|\s)--([\w-]+)/g), ([, name]) => name!)
  // "--dns 10.0.0.1" goes where the advice is "--ip 10.0.0.1": the value belongs to the other flag.
  const moved = argv.flatMap((word, index) => {
    const value = argv[index + 1]
    return word.startsWith('--') && value !== undefined && next.split(' ').includes(value)
      ? word.slice(2)
      : []
  })
  const isSecret = argv.some((word) => token.test(word))
  const given = isSecret ? [] : without(argv, [...names, ...moved], shapes)
  const words = ['kcert', ...id.split(':').filter(Boolean), ...given]
  const whole = commandLine`${argumentVector(words)} ${{ part: next }}`
  return new KcertError(code, message, { ...(why !== undefined && { why }), next: whole, cause })
}

/** The command line without these flags and their values. */
function without(argv: readonly string[], names: readonly string[], shapes: FlagShapes): string[] {
  return argv.filter((word, index) => {
    const isNamed = (one = ''): boolean =>
      names.some((name) => one === `--${name}` || one === charOf(name, shapes))
    const before = argv[index - 1]
    const isValue = before !== undefined && isNamed(before) && shapes[before.slice(2)]?.type !== 'boolean'
    return !isValue && !isNamed(word) && !names.some((name) => word.startsWith(`--${name}=`))
  })
}

function charOf(name: string, shapes: FlagShapes): string | undefined {
  const char = shapes[name]?.char
  return char === undefined ? undefined : `-${char}`
}
