import { harmlessJson } from '../errors/hidden-text.ts'
import { printable } from './terminal.ts'

export const logFormats = ['text', 'json'] as const

export type LogFormat = (typeof logFormats)[number]

export interface LogEntry {
  readonly level: 'info' | 'warning' | 'error'
  readonly message: string
  readonly fields?: Readonly<Record<string, string | number | undefined>>
}

/** Returns one line of a log. Text from requests and answers in it cannot end the line, add a field or move the cursor. */
export function logLine(format: LogFormat, time: Date, { level, message, fields = {} }: LogEntry): string {
  const ts = time.toISOString()
  if (format === 'json') return `${harmlessJson(JSON.stringify({ ts, level, msg: message, ...fields }))}\n`
  const pairs = Object.entries(fields).filter(([, value]) => value !== undefined)
  const words = pairs.map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  return `${printable([ts, level, message, ...words].join(' '))}\n`
}
