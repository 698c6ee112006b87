// biome-ignore-all lint/style/noNonNullAssertion: callers check the length; read for both times of every certificate
import { type DerReader, tags } from './der.ts'

/**
 * Returns the milliseconds since 1970 of a UTCTime or GeneralizedTime. RFC 5280 section 4.1.2.5 requires seconds and "Z". Like
 * Go, kcert also accepts UTCTime without seconds and offsets other than zero.
 */
export function readTime(reader: DerReader, field: string): number {
  const at = reader.offset
  const tag = reader.next(field)
  if (tag === tags.utcTime) return utcTime(reader, field)
  if (tag === tags.generalizedTime) return generalizedTime(reader, field)
  return reader.fail(field, 'neither UTCTime nor GeneralizedTime', at)
}

function utcTime(reader: DerReader, field: string): number {
  const { bytes, start, stop } = reader
  const hasSeconds = stop - start === 13 || stop - start === 17
  const zoneAt = start + (hasSeconds ? 12 : 10)
  const offset = zoneOffset(bytes, zoneAt, stop)
  const shortYear = twoDigits(bytes, start)
  const second = hasSeconds ? twoDigits(bytes, start + 10) : 0
  // 50 to 99 are 1950 to 1999.
  const year = shortYear < 50 ? 2000 + shortYear : 1900 + shortYear
  const time = instant(bytes, year, start + 2, second, offset)
  return Number.isNaN(time) ? reader.fail(field, 'malformed UTCTime', start) : time
}

function generalizedTime(reader: DerReader, field: string): number {
  const { bytes, start, stop } = reader
  const offset = zoneOffset(bytes, start + 14, stop)
  const year = twoDigits(bytes, start) * 100 + twoDigits(bytes, start + 2)
  const time = instant(bytes, year, start + 4, twoDigits(bytes, start + 12), offset)
  return Number.isNaN(time) ? reader.fail(field, 'malformed GeneralizedTime', start) : time
}

const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const

/** Returns the milliseconds of year and MMDDhhmm at `at`; NaN when one of them is invalid. */
function instant(bytes: Uint8Array, year: number, at: number, second: number, offsetMs: number): number {
  const month = twoDigits(bytes, at)
  const day = twoDigits(bytes, at + 2)
  const hour = twoDigits(bytes, at + 4)
  const minute = twoDigits(bytes, at + 6)
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const lastDay = month === 2 && isLeap ? 29 : (monthDays[month - 1] ?? 0)
  const isValid = year >= 0 && day >= 1 && day <= lastDay && hour < 24 && minute < 60 && second < 60
  if (!isValid) return Number.NaN
  if (year >= 100) return Date.UTC(year, month - 1, day, hour, minute, second) - offsetMs
  // Date.UTC maps years below 100 to the last century. 400 years are 146,097 days.
  return Date.UTC(year + 400, month - 1, day, hour, minute, second) - 146_097 * 86_400_000 - offsetMs
}

/** Returns the number in two ASCII digits; NaN when they are not digits. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]! - 0x30
  const ones = bytes[at + 1]! - 0x30
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
}

/** Returns the milliseconds of "Z" or ±hhmm that fill at…stop; NaN for anything else, and for +0000, which is not canonical. */
function zoneOffset(bytes: Uint8Array, at: number, stop: number): number {
  if (stop - at === 1) return bytes[at] === 0x5a ? 0 : Number.NaN
  if (stop - at !== 5 || (bytes[at] !== 0x2b && bytes[at] !== 0x2d)) return Number.NaN
  const hours = twoDigits(bytes, at + 1)
  const minutes = twoDigits(bytes, at + 3)
  if (!(hours <= 24 && minutes < 60 && hours + minutes > 0)) return Number.NaN
  return (bytes[at] === 0x2b ? 1 : -1) * (hours * 60 + minutes) * 60_000
}
