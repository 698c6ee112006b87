import { Config, execute } from '@oclif/core'
import { exitCodes } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { formatError } from '../output/error.ts'
import { asKcertError } from './base-command.ts'
import { processContext } from './context.ts'

/** Prints help or the version, or says which command was probably meant. Everything that is not a known command ends here. */
export async function helpOrMistake(argv: readonly string[]): Promise<void> {
  const root = new URL('..', import.meta.url).href
  const args = argv[0] === 'help' ? [...argv.slice(1), '--help'] : [...argv]
  const config = await Config.load(root)
  const mistake = unknownCommand(args, config)
  if (mistake) {
    process.stderr.write(formatError(mistake, processContext().stderrColor))
    process.exitCode = mistake.exitCode
    return
  }
  try {
    await execute({ args, loadOptions: config })
  } catch (error) {
    const known = asKcertError(error as Error)
    process.stderr.write(formatError(known, processContext().stderrColor))
    process.exitCode = known.exitCode ?? exitCodes.usage
  }
}

function unknownCommand(args: readonly string[], config: Config): KcertError | undefined {
  const words = args.filter((arg) => !arg.startsWith('-'))
  const first = args[0]
  if (first === undefined || first === '--version' || first === '--help' || first === '-h') return undefined
  const id = words.join(':')
  const exists = [...config.commandIDs, ...config.topics.map((topic) => topic.name)]
  if (exists.some((name) => id === name || id.startsWith(`${name}:`))) return undefined
  const asked = words.join(' ') || first
  const near = nearest(
    asked,
    exists.map((name) => name.replaceAll(':', ' ')),
  )
  return new KcertError('KCERT_USAGE', `kcert has no command "${asked}"`, {
    ...(near ? { why: `did you mean "${near}"?` } : {}),
    next: near ? `kcert ${near} --help` : 'kcert --help',
  })
}

function nearest(asked: string, names: readonly string[]): string | undefined {
  const ranked = names
    .map((name) => ({ name, distance: editDistance(asked, name) }))
    .sort((a, b) => a.distance - b.distance)
  const best = ranked[0]
  return best && best.distance <= Math.max(2, best.name.length / 3) ? best.name : undefined
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= Math.min(a.length, 64); i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      current[j] = Math.min(previous[j]! + 1, current[j - 1]! + 1, substitution)
    }
    previous = current
  }
  return previous[b.length]!
}
