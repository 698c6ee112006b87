import { Chalk } from 'chalk'
import type { KcertError } from '../errors/kcert-error.ts'
import { printable } from './terminal.ts'

/** Returns an error as the operator reads it: code and what, then why, then what to do next. Ends with a newline. */
export function formatError(error: KcertError, color: 0 | 1 | 2 | 3): string {
  const chalk = new Chalk({ level: color })
  const lines = [`${chalk.red.bold(error.code)}: ${printable(error.message)}`]
  if (error.why) lines.push(`${chalk.bold('why:')} ${printable(error.why)}`)
  if (error.next) lines.push(`${chalk.bold('next:')} ${printable(error.next)}`)
  return `${lines.join('\n')}\n`
}
