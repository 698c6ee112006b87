import type { ErrorCode } from '../errors/codes.ts'
import { type ErrorAdvice, KcertError } from '../errors/kcert-error.ts'
import type { Context } from './context.ts'
import { canAsk, choose } from './prompts.ts'
import { tellLine } from './tell-line.ts'

/** The reason that goes with the advice to run the same command with --dry-run. */
export const noTerminal = 'no terminal to confirm on: check with --dry-run, then add --yes'

export interface ConsentQuestion {
  readonly yes: boolean
  /** The change, as lines printed before the question. */
  readonly proposal: readonly string[]
  readonly question: string
  /** What is not done without a confirmation, as a sentence of an error. */
  readonly what: string
  /** The code of that error; default KCERT_UNCONFIRMED. */
  readonly code?: ErrorCode
  /** The advice, if it is not the same command with --dry-run. */
  readonly advice?: ErrorAdvice
}

const withDryRun = { why: noTerminal, next: '--dry-run' }

/** Returns true if the operator confirms, by --yes or at the terminal. Throws `code` without a terminal and --yes. */
export async function agreed(
  context: Context,
  { yes, proposal, question, what, code = 'KCERT_UNCONFIRMED', advice = withDryRun }: ConsentQuestion,
): Promise<boolean> {
  if (yes) return true
  if (!canAsk(context)) throw new KcertError(code, what, advice)
  for (const line of proposal) tellLine(context.stderr, line)
  return choose(context, question)
}
