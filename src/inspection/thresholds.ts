import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'

/** The remaining time that triggers a problem. If there are several limits, the smallest is used. */
export interface Threshold {
  readonly durationMs?: number
  /** Percentage of the lifetime, 0 to 100. */
  readonly percent?: number
}

export interface Thresholds {
  readonly warn: Threshold
  readonly crit: Threshold
  /** True when the operator set none. Then a kubelet's certificate is no problem until its rotation is overdue. */
  readonly areDefault?: boolean
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** 30 days, but at most a fifth of the lifetime, so that a healthy 24-hour certificate causes no warning. */
export const defaultThresholds: Thresholds = {
  warn: { durationMs: 30 * day, percent: 20 },
  crit: { durationMs: 7 * day, percent: 5 },
  areDefault: true,
}

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: minute,
  h: hour,
  d: day,
  w: 7 * day,
  y: 365 * day,
}
const durationPattern = /^(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h|d|w|y))+$/
const partPattern = /(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)/g
const percentPattern = /^(\d{1,3}(?:\.\d{1,6})?)\s*%$/

/**
 * Returns the threshold of a text: a duration ("30d", "12h", "1w", "1d12h", also Go's "720h0m0s"), a share of the lifetime
 * ("20%"), or several separated by commas, of which the smallest is used. Throws KCERT_USAGE.
 */
export function parseThreshold(text: string): Threshold {
  return text.split(',').reduce((found, part) => least(found, parsePart(part.trim(), text)), {})
}

/** Returns both thresholds of an operator. Throws KCERT_USAGE if nothing could ever be a warning. */
export function parseThresholds(warn: string, crit: string): Thresholds {
  const parsed = { warn: parseThreshold(warn), crit: parseThreshold(crit) }
  const shared = (['durationMs', 'percent'] as const).flatMap((unit) => {
    const { [unit]: warnAt } = parsed.warn
    const { [unit]: critAt } = parsed.crit
    return warnAt === undefined || critAt === undefined ? [] : [warnAt < critAt]
  })
  if (shared.length > 0 && shared.every(Boolean)) {
    throw new KcertError('KCERT_USAGE', `--warn ${warn} is less than --crit ${crit}`, {
      why: 'every certificate below it is critical already, so none could be a warning',
      next: commandLine`--warn ${crit} --crit ${warn}`,
    })
  }
  return parsed
}

function parsePart(part: string, text: string): Threshold {
  const percent = percentPattern.exec(part)
  if (percent !== null) {
    const value = Number(percent[1])
    if (value > 100) throw refusal(text, 'more than 100 %')
    return { percent: value }
  }
  if (part === '') throw refusal(text, 'empty')
  if (!durationPattern.test(part)) throw refusal(text, 'neither a duration nor a percentage')
  let durationMs = 0
  for (const [, count, unit = ''] of part.matchAll(partPattern))
    durationMs += Number(count) * (unitMs[unit] ?? 0)
  return { durationMs }
}

function refusal(text: string, why: string): KcertError {
  return new KcertError('KCERT_USAGE', `invalid threshold ${JSON.stringify(text)}`, {
    why: `${why}; use a duration such as 30d, 12h or 1w, or a share of the lifetime such as 20%`,
    next: 'kcert inspect --help',
  })
}

function least(a: Threshold, b: Threshold): Threshold {
  return given({
    durationMs: lesser(a.durationMs, b.durationMs),
    percent: lesser(a.percent, b.percent),
  })
}

function lesser(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b)
}

/** Returns the remaining time, in milliseconds, at and below which the threshold is reached. */
export function thresholdMs({ durationMs, percent }: Threshold, lifetimeMs: number): number {
  return Math.min(
    durationMs ?? Number.POSITIVE_INFINITY,
    percent === undefined ? Number.POSITIVE_INFINITY : (lifetimeMs * percent) / 100,
  )
}

/** Returns the thresholds of --warn and --crit, each with its default. Throws KCERT_USAGE. */
export function thresholdsOf(warn: string | undefined, crit: string | undefined): Thresholds {
  if (warn === undefined && crit === undefined) return defaultThresholds
  if (warn !== undefined && crit !== undefined) return parseThresholds(warn, crit)
  return {
    warn: warn === undefined ? defaultThresholds.warn : parseThreshold(warn),
    crit: crit === undefined ? defaultThresholds.crit : parseThreshold(crit),
  }
}
