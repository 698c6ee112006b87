import { printable } from '../output/terminal.ts'
import type { Context } from './context.ts'

// Questions on the terminal. Each has a flag that answers it in advance, so a script without a terminal never hangs.

interface Question {
  /** The flag that gives the same answer, without dashes. */
  readonly flag: string
  readonly message: string
}

export interface TextQuestion extends Question {
  readonly default?: string
  /** Returns why the answer is invalid, or undefined. */
  readonly fault?: (answer: string) => string | undefined
}

export interface ChoiceQuestion<Value extends string = string> extends Question {
  readonly choices: readonly { readonly value: Value; readonly name: string }[]
}

export interface Asker {
  text(question: TextQuestion): Promise<string>
  choice<Value extends string>(question: ChoiceQuestion<Value>): Promise<Value>
}

/** The operator cancelled a question (Ctrl-C, Ctrl-D). Nothing is done, and this is not a failure. */
export class DeclinedError extends Error {
  override readonly name = 'DeclinedError'
}

/** Returns true if an operator can answer: questions are read from standard input and shown on standard error. */
export function canAsk({ stdinIsTerminal, stderr }: Context): boolean {
  return stdinIsTerminal && stderr.isTTY === true
}

type Ask = <Answer>(question: object) => Promise<Answer>

/** Returns a function that runs one inquirer prompt. Prompts go to standard error: standard output is for the result. */
async function askOn({ stdin, stderr }: Context): Promise<Ask> {
  const { default: inquirer } = await import('inquirer')
  const prompt = inquirer.createPromptModule({ input: stdin, output: stderr })
  return async <Answer>(question: object): Promise<Answer> => {
    try {
      const answers = await prompt([{ ...question, name: 'answer' }] as never)
      return (answers as { answer: Answer }).answer
    } catch (error) {
      if ((error as Error).name === 'ExitPromptError') throw new DeclinedError()
      throw error
    }
  }
}

/** Returns the asker for this terminal. */
export async function terminalAsker(context: Context): Promise<Asker> {
  const ask: Ask = await askOn(context)
  return {
    text: async ({ message, fault, default: preset }) => {
      const validate = (answer: string): true | string => fault?.(answer.trim()) ?? true
      return (await ask<string>({ type: 'input', message, validate, default: preset })).trim()
    },
    choice: ({ message, choices }) => ask({ type: 'select', message, choices }),
  }
}

/** Returns the answer; a cancelled question counts as no. */
export async function answered(ask: () => Promise<boolean>): Promise<boolean> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof DeclinedError) return false
    throw error
  }
}

/** Asks for y or n in one line. Enter, Ctrl-C and Ctrl-D mean no. */
export function confirm(context: Context, message: string): Promise<boolean> {
  return answered(async () => {
    const ask = await askOn(context)
    return ask<boolean>({ type: 'confirm', message: printable(message), default: false })
  })
}

/** Returns true if the operator confirms. Ctrl-C and Ctrl-D mean no. */
export function choose(context: Context, message: string): Promise<boolean> {
  const choices = ['no', 'yes'].map((answer) => ({ value: answer, name: answer }))
  return answered(async () => {
    const ask = await askOn(context)
    return (await ask<string>({ type: 'select', message: printable(message), choices })) === 'yes'
  })
}
