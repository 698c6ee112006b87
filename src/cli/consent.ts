import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Context } from './context.ts'
import { canAsk, choose } from './prompts.ts'

export interface ConsentQuestion {
  /** --yes */
  readonly yes: boolean
  /** What is shown before the question: the change. */
  readonly proposal: string
  readonly question: string
  /** What stays undone without a yes, as a sentence of an error. */
  readonly what: string
  /** The command that only looks. */
  readonly look: CommandLine
}

/** True when the operator agrees, by --yes or at the terminal. Throws KCERT_UNCONFIRMED where nobody can be asked. */
export async function agreed(
  context: Context,
  { yes, proposal, question, what, look }: ConsentQuestion,
): Promise<boolean> {
  if (yes) return true
  if (!canAsk(context))
    throw new KcertError('KCERT_UNCONFIRMED', what, {
      why: 'there is no terminal to ask on',
      next: commandLine`look at ${embed(look)}, then add --yes`,
    })
  context.stderr.write(proposal)
  return choose(context, question)
}
