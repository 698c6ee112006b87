import type { KcertError } from '../errors/kcert-error.ts'
import { printable } from './terminal.ts'

/** Returns an error as text: its code and message, then why, then the fix, then a command. Ends with a newline. */
export function formatError(error: KcertError, color: 0 | 1 | 2 | 3): string {
  const lines = [`${stroke(color, red, stroke(color, bold, error.code))}: ${printable(error.message)}`]
  if (error.why) lines.push(`${stroke(color, bold, 'why:')} ${printable(error.why)}`)
  if (error.fix) lines.push(`${stroke(color, bold, 'fix:')} ${printable(error.fix)}`)
  if (error.next) lines.push(`${stroke(color, bold, 'next:')} ${printable(error.next)}`)
  return `${lines.join('\n')}\n`
}

// Every command loads this file, but few need colour. Two SGR codes of ECMA-48, the same that chalk writes, avoid loading chalk.
const bold = [1, 22] as const
const red = [31, 39] as const

function stroke(color: 0 | 1 | 2 | 3, [on, off]: readonly [number, number], text: string): string {
  return color === 0 ? text : `\x1b[${on}m${text}\x1b[${off}m`
}
