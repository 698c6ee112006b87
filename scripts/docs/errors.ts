import { errorCodes, exitCodes } from '../../src/errors/codes.ts'
import { generatedNote, table } from './page.ts'

/** The meaning of each exit code, for every command. */
export const exitMeanings: Record<keyof typeof exitCodes, string> = {
  done: 'success',
  defect: 'a bug in kcert',
  usage: 'wrong usage, or a missing input',
  no: 'a check failed, for example: expired, not trusted, not approved, precondition not met',
  unreachable: 'unreachable, or timed out',
  refused: 'refused for safety',
  notPermitted: 'not permitted: the API server rejects your credentials (401) or the request (403)',
}

/** Returns docs/errors.md: the exit codes, and every error code with its exit code. */
export function errorPage(): string {
  const exits = Object.entries(exitCodes).map(([name, code]) => [
    String(code),
    exitMeanings[name as keyof typeof exitCodes],
  ])
  const errors = Object.entries(errorCodes).map(([code, { exit, summary }]) => [
    `\`${code}\``,
    String(exit),
    summary,
  ])
  return [
    '# Errors and exit codes',
    generatedNote('src/errors/codes.ts'),
    'kcert prints each error to standard error: the code and what is wrong, then `why:`, `fix:` and `next:`. `next:` is one complete command to paste. `fix:` says what you must decide or change. Exit codes are the same for every command.',
    table(['exit', 'meaning'], exits),
    table(['code', 'exit', 'meaning'], errors),
    '',
  ]
    .join('\n\n')
    .trimEnd()
    .concat('\n')
}
