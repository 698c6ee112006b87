import { argumentVector, commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { parseThreshold } from '../inspection/thresholds.ts'

const dateTime =
  /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)([Zz]|[+-]\d{2}:\d{2})?)?$/

/**
 * Returns the time that an operator gives: RFC 3339 ("2027-01-01T00:00:00Z"), a date or a time without a zone (UTC),
 * or a span from now ("+90d", "-1h"). Throws KCERT_USAGE.
 */
export function parseInstant(text: string, now: Date): Date {
  const instant = /^[+-]/.test(text) ? fromNow(text, now) : absolute(text)
  if (instant === undefined || Number.isNaN(instant.getTime())) {
    throw new KcertError('KCERT_USAGE', `invalid time ${JSON.stringify(text)}`, {
      fix: 'write it as 2027-01-01, 2027-01-01T12:00:00Z or +90d',
    })
  }
  return instant
}

/** Returns the milliseconds of a duration such as "5s" or "1m30s"; `flag` is named in the error. Throws KCERT_USAGE. */
export function parseDuration(text: string, flag: string): number {
  const durationMs = durationOf(text)
  if (durationMs === undefined || durationMs <= 0) {
    throw new KcertError('KCERT_USAGE', `${flag} ${JSON.stringify(text)} is not a duration`, {
      why: 'a duration is a text such as 5s, 1m30s or 0.5s',
      next: commandLine`${argumentVector([flag, '5s'])}`,
    })
  }
  return durationMs
}

function absolute(text: string): Date | undefined {
  const [, date, time = '00:00:00', zone = 'Z'] = dateTime.exec(text) ?? []
  if (date === undefined) return undefined
  const instant = new Date(`${date}T${time.length === 5 ? `${time}:00` : time}${zone.toUpperCase()}`)
  // Date turns 30 February into a day in March, which is not what the operator meant.
  const rolled = new Date(`${date}T00:00:00Z`)
  const stays = !Number.isNaN(rolled.getTime()) && rolled.toISOString().startsWith(date)
  return stays ? instant : undefined
}

function fromNow(text: string, now: Date): Date | undefined {
  const durationMs = durationOf(text.slice(1))
  if (durationMs === undefined) return undefined
  return new Date(now.getTime() + (text.startsWith('-') ? -durationMs : durationMs))
}

function durationOf(text: string): number | undefined {
  try {
    const { durationMs, percent } = parseThreshold(text)
    return percent === undefined ? durationMs : undefined
  } catch {
    return undefined
  }
}
