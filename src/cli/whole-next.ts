import {
  argumentVector,
  commandLine,
  embed,
  type GivenFlags,
  repeatedFlags,
  withGivenFlags,
} from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { defaultInventory } from './flags.ts'
import { type FlagShapes, type Part, partsOf } from './operands.ts'

// The code that throws an error about a flag does not have the complete command line; this module adds it.

const token = /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/

/** The command of an error. */
interface GivenCommand {
  readonly id: string
  readonly argv: readonly string[]
  readonly shapes: FlagShapes
  readonly takesOperands: boolean
}

/**
 * Returns the error with a complete command if `next` is only flags: the given command line, where these flags replace
 * those with the same names or values. Unknown flags are omitted, since their values may be anything. A command line with a
 * bootstrap token, which is a secret, is omitted completely.
 */
export function withWholeNext(error: KcertError, given: GivenCommand): KcertError {
  const { code, message, why, fix, next, cause } = error
  const withNext = (whole: string) =>
    new KcertError(code, message, { ...(why !== undefined && { why }), fix, next: whole, cause })
  if (next === undefined) return error
  if (!next.startsWith('--')) {
    const repeating = withGivenFlags(next, givenFlags(given))
    return repeating === next ? error : withNext(repeating)
  }
  const names = Array.from(next.matchAll(/(?:^|\s)--([\w-]+)/g), ([, name = '']) => name)
  const values = next.split(' ')
  const isSecret = given.argv.some((word) => token.test(word))
  // "--dns 10.0.0.1" is removed if the advice is "--ip 10.0.0.1": the value belongs to the other flag.
  const kept = (isSecret ? [] : knownParts(given)).filter(
    (part) =>
      !part.names.includes('token') &&
      !part.names.some((name) => names.includes(name)) &&
      !(part.words[1] && values.includes(part.words[1])),
  )
  const wordsOf = (parts: readonly Part[]): string[] => parts.flatMap(({ words }) => words)
  const behindEnd = wordsOf(kept.filter(({ isBehindEnd }) => isBehindEnd))
  const words = [
    'kcert',
    ...given.id.split(':').filter(Boolean),
    ...wordsOf(kept.filter(({ isBehindEnd }) => !isBehindEnd)),
  ]
  const end = behindEnd.length === 0 ? undefined : embed(commandLine`-- ${argumentVector(behindEnd)}`)
  const whole = commandLine`${argumentVector(words)} ${{ part: next }} ${end}`
  return withNext(whole)
}

/** Returns the cluster and nodes that the command line names, for other commands of the advice. */
export function givenFlags(given: Pick<GivenCommand, 'argv' | 'shapes'>): GivenFlags {
  // The --context of `verify` is a context of the file that it reads.
  const shapes = 'kubeconfig' in given.shapes || 'inventory' in given.shapes ? given.shapes : {}
  const parts = knownParts({ ...given, shapes, id: '', takesOperands: false })
  const found: Record<string, string | true> = {}
  const asGroups: string[] = []
  for (const { names, words } of parts) {
    const [written = ''] = names
    const [flag = '', value = flag.replace(/^(?:--[^=]*=|-\w=?)/, '')] = words
    const name = written === 'cluster-name' ? 'cluster' : written
    if (!repeatedFlags.some((one) => one === name)) continue
    // The --user of `csr fetch` is a user of the kubeconfig that it writes.
    const isOther = ['cluster', 'user', 'server'].includes(name) && shapes[written]?.helpGroup !== 'CLUSTER'
    const isSwitch = shapes[written]?.type === 'boolean'
    // The journal has the CAs of the page's rotation. In other commands, --ca has a different meaning.
    const isJournaled = name === 'ca' && value !== 'etcd'
    if (isOther || isJournaled || (isSwitch && name !== 'read-only')) continue
    if (name === 'as-group') asGroups.push(value)
    else found[name] = isSwitch || value
  }
  const isAllNodes = parts.some(({ names }) => names.includes('all-nodes'))
  return {
    ...(isAllNodes && { inventory: defaultInventory }),
    ...found,
    ...(asGroups.length > 0 && { 'as-group': asGroups }),
  }
}

/**
 * Returns a report whose advice (`fix`, `next`, `commands`) repeats these flags, as the advice of errors does. If there
 * is a fix without a command, `next` repeats the fix, for programs that read only `next`.
 */
export function withRepeatedAdvice<Report extends object>(report: Report, given: GivenFlags): Report {
  return repeatedIn(report, given, false) as Report
}

const adviceKeys: ReadonlySet<string> = new Set(['fix', 'next', 'commands'])

function repeatedIn(value: unknown, given: GivenFlags, isAdvice: boolean): unknown {
  if (typeof value === 'string') return isAdvice ? withGivenFlags(value, given) : value
  if (Array.isArray(value)) {
    const members = value.map((one) => repeatedIn(one, given, isAdvice))
    return members.some((one, index) => one !== value[index]) ? members : value
  }
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value
  // Most of a large report has no advice, and is not copied.
  let isChanged = false
  const entries = Object.entries(value).map(([key, member]) => {
    const advises = adviceKeys.has(key) || (isAdvice && key === 'command')
    const repeated = repeatedIn(member, given, advises)
    isChanged ||= repeated !== member
    return [key, repeated] as const
  })
  const repeated: { fix?: unknown; next?: unknown } = isChanged ? Object.fromEntries(entries) : value
  const isAlone = typeof repeated.fix === 'string' && repeated.next === undefined
  return isAlone ? { ...repeated, next: repeated.fix } : repeated
}

/** Returns the known flags with their values, and the operands. A word after an unknown flag may be its value. */
function knownParts({ argv, shapes, takesOperands }: GivenCommand): Part[] {
  try {
    const parts = [...partsOf(argv, shapes)]
    const isUnknown = (part?: Part) => part?.isOperand === false && part.names.length === 0
    return parts.filter((part, index) =>
      part.isOperand ? takesOperands && (part.isBehindEnd || !isUnknown(parts[index - 1])) : !isUnknown(part),
    )
  } catch {
    // A flag without its value is reported as another error.
    return []
  }
}
