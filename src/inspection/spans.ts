const units: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
]

/** Returns a duration in words, in the largest unit of which there are at least two: "12 days", "36 hours". */
export function spanText(ms: number): string {
  for (const [unitMs, name] of units) {
    const count = Math.floor(ms / unitMs)
    if (count >= 2) return `${count} ${name}s`
  }
  const minutes = Math.max(Math.floor(ms / 60_000), 0)
  return minutes === 1 ? '1 minute' : minutes === 0 ? 'less than a minute' : `${minutes} minutes`
}

const dayMs = 86_400_000
const twoDigits = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'))
let lastDays = Number.NaN
let lastDay = ''

/** Returns the time, a Date or milliseconds since 1970, in RFC 3339, UTC, in seconds. */
export function timeText(time: Date | number): string {
  const ms = Number(time)
  const days = Math.floor(ms / dayMs)
  if (days !== lastDays) {
    // Certificates in one folder expire on few different days, and this is the slow part.
    lastDay = new Date(days * dayMs).toISOString().slice(0, -'00:00:00.000Z'.length)
    lastDays = days
  }
  const seconds = Math.floor((ms - days * dayMs) / 1000)
  const [hour, minute] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  return `${lastDay}${twoDigits[hour]}:${twoDigits[minute]}:${twoDigits[seconds % 60]}Z`
}
