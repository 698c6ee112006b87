const minute = 60
const hour = 60 * minute
const day = 24 * hour
// the length of a year in the ages of kubeadm and kubectl
const year = 365 * day

/** Returns a duration in at most two units, rounded down: `9y`, `364d`, `2d 3h`, `5h 12m`, `40s`; `3d ago` when it is past. */
export function timeLeft(seconds: number): string {
  return seconds < 0 ? `${span(-seconds)} ago` : span(seconds)
}

function span(seconds: number): string {
  if (seconds >= 2 * year) return `${Math.floor(seconds / year)}y`
  if (seconds >= 10 * day) return `${Math.floor(seconds / day)}d`
  if (seconds >= day) return twoUnits(seconds, day, 'd', hour, 'h')
  if (seconds >= hour) return twoUnits(seconds, hour, 'h', minute, 'm')
  if (seconds >= minute) return `${Math.floor(seconds / minute)}m`
  return `${Math.floor(seconds)}s`
}

function twoUnits(seconds: number, big: number, bigUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((seconds % big) / small)
  return rest === 0
    ? `${Math.floor(seconds / big)}${bigUnit}`
    : `${Math.floor(seconds / big)}${bigUnit} ${rest}${smallUnit}`
}

/** Returns `2027-11-20 08:57` for an RFC 3339 time in UTC: short enough for a column, and sortable. */
export function minuteOf(rfc3339: string): string {
  // A year of four digits and whole seconds: nearly all times.
  if (rfc3339.length === '2027-11-20T08:57:31Z'.length)
    return `${rfc3339.slice(0, 10)} ${rfc3339.slice(11, 16)}`
  const end = rfc3339.lastIndexOf(':')
  const dayEnd = rfc3339.indexOf('T')
  return `${rfc3339.slice(0, dayEnd)} ${rfc3339.slice(dayEnd + 1, end)}`
}

/** Returns `2027-11-20 08:57:31 UTC`. */
export function secondOf(rfc3339: string): string {
  return `${rfc3339.replace('T', ' ').replace(/(?:\.\d+)?Z$/, '')} UTC`
}
