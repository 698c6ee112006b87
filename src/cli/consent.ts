import type { ErrorCode } from '../errors/codes.ts'
import { type ErrorAdvice, KcertError } from '../errors/kcert-error.ts'
import type { Context } from './context.ts'
import { canAsk, choose } from './prompts.ts'
import { tellLine } from './tell-line.ts'

/** Why an error has the same command with --dry-run as advice. */
export const noTerminal = 'no terminal to confirm on: check with --dry-run, then add --yes'

export interface ConsentQuestion {
  /** --yes */
  readonly yes: boolean
  /** What is shown before the question, line by line: the change. */
  readonly proposal: readonly string[]
  readonly question: string
  /** What stays undone without a yes, as a sentence of an error. */
  readonly what: string
  /** Of that error; KCERT_UNCONFIRMED where it is not said. */
  readonly code?: ErrorCode
  /** Where it is not the same command with --dry-run. */
  readonly advice?: ErrorAdvice
}

const withDryRun = { why: noTerminal, next: '--dry-run' }

/** True when the operator agrees, by --yes or at the terminal. Throws `code` where nobody can be asked. */
export async function agreed(
  context: Context,
  { yes, proposal, question, what, code = 'KCERT_UNCONFIRMED', advice = withDryRun }: ConsentQuestion,
): Promise<boolean> {
  if (yes) return true
  if (!canAsk(context)) throw new KcertError(code, what, advice)
  for (const line of proposal) tellLine(context.stderr, line)
  return choose(context, question)
}
