import { KcertError } from '../errors/kcert-error.ts'

// Go's time.ParseDuration, which parses Kubernetes' flags and cfssl's files, plus days, which Go does not support.

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

// int64 nanoseconds: about 292 years. Go also rejects a longer duration.
const longestMs = 2 ** 63 / 1e6

const pattern = /^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h|d))+)$/
const part = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)/g

/**
 * Returns the milliseconds of "876000h", "1h30m", "90d" or "-5m". Fractions of a millisecond are kept. Throws KCERT_USAGE with
 * `by`, the flag or member that contains the duration.
 */
export function parseDuration(text: string, by?: string): number {
  // Longer texts are not durations, and take time to match.
  if (text.length > 100 || !pattern.test(text))
    throw refusal(text, by, 'it is written like 8760h, 1h30m or 365d')
  let ms = 0
  for (const [, number, unit = ''] of text.matchAll(part)) ms += Number(number) * (unitMs[unit] ?? Number.NaN)
  if (ms > longestMs) throw refusal(text, by, 'it is longer than 292 years, the longest duration in Go')
  return text.startsWith('-') ? -ms : ms
}

/** Returns a duration as Go prints whole seconds: "8760h0m0s", "5m0s". */
export function formatDuration(ms: number): string {
  const sign = ms < 0 ? '-' : ''
  const seconds = Math.floor(Math.abs(ms) / 1000)
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds % 60}s`
  return minutes > 0 ? `${sign}${minutes}m${seconds % 60}s` : `${sign}${seconds}s`
}

function refusal(text: string, by: string | undefined, why: string): KcertError {
  const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text
  return new KcertError('KCERT_USAGE', `${by === undefined ? '' : `${by} `}"${shown}" is not a duration`, {
    why,
  })
}
