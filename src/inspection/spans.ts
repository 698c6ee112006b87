const units: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
]

/** Returns a span of time in words, in the largest unit of which there are at least two: "12 days", "36 hours". */
export function spanText(ms: number): string {
  for (const [unitMs, name] of units) {
    const count = Math.floor(ms / unitMs)
    if (count >= 2) return `${count} ${name}s`
  }
  const minutes = Math.max(Math.floor(ms / 60_000), 0)
  return minutes === 1 ? '1 minute' : minutes === 0 ? 'less than a minute' : `${minutes} minutes`
}

/** Returns the time, a Date or milliseconds since 1970, in RFC 3339, UTC, to the second. */
export function timeText(time: Date | number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`
}
