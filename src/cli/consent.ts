import { KcertError } from '../errors/kcert-error.ts'
import type { Context } from './context.ts'
import { canAsk, choose } from './prompts.ts'

/** Why an error has the same command with --dry-run as advice. */
export const noTerminal = 'there is no terminal to ask on: look with --dry-run, then add --yes'

export interface ConsentQuestion {
  /** --yes */
  readonly yes: boolean
  /** What is shown before the question: the change. */
  readonly proposal: string
  readonly question: string
  /** What stays undone without a yes, as a sentence of an error. */
  readonly what: string
}

/** True when the operator agrees, by --yes or at the terminal. Throws KCERT_UNCONFIRMED where nobody can be asked. */
export async function agreed(
  context: Context,
  { yes, proposal, question, what }: ConsentQuestion,
): Promise<boolean> {
  if (yes) return true
  if (!canAsk(context))
    throw new KcertError('KCERT_UNCONFIRMED', what, {
      why: noTerminal,
      next: '--dry-run',
    })
  context.stderr.write(proposal)
  return choose(context, question)
}
