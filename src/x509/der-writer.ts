import { constructedTag, tags } from './der.ts'
import { encodeOid } from './oids.ts'
import { fitsPrintableString } from './strings.ts'

// Writes DER from the inside out: each function returns one element. All lengths are known when they are written, so the result
// is minimal by construction.

/** Returns one element with this identifier byte and the parts as its content. */
export function element(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  return elementOf(tag, parts)
}

/** Like `element`, for a list that may be too long for the arguments of a call. */
export function elementOf(tag: number, parts: readonly Uint8Array[]): Uint8Array {
  let length = 0
  for (const part of parts) length += part.length
  const lengthBytes =
    length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x10000 ? 2 : length < 0x1000000 ? 3 : 4
  const der = Buffer.allocUnsafe(2 + lengthBytes + length)
  der[0] = tag
  der[1] = lengthBytes === 0 ? length : 0x80 | lengthBytes
  if (lengthBytes > 0) der.writeUIntBE(length, 2, lengthBytes)
  let at = 2 + lengthBytes
  for (const part of parts) {
    der.set(part, at)
    at += part.length
  }
  return der
}

export const sequence = (...parts: readonly Uint8Array[]): Uint8Array => element(tags.sequence, ...parts)

/** SET OF: X.690 section 11.6 requires the elements in the order of their bytes. */
export const setOf = (...parts: readonly Uint8Array[]): Uint8Array =>
  element(tags.set, ...[...parts].sort(Buffer.compare))

/** EXPLICIT [number], or IMPLICIT of a constructed type. */
export const explicit = (number: number, ...parts: readonly Uint8Array[]): Uint8Array =>
  element(constructedTag(number), ...parts)

export const octetString = (content: Uint8Array): Uint8Array => element(tags.octetString, content)

export const bitString = (content: Uint8Array, unusedBits = 0): Uint8Array =>
  element(tags.bitString, Uint8Array.of(unusedBits), content)

export const boolean = (value: boolean): Uint8Array => element(tags.boolean, Uint8Array.of(value ? 0xff : 0))

export const nullElement: Uint8Array = element(tags.null)

/** INTEGER for a number up to 2^53, or for an unsigned magnitude in bytes. */
export function integer(value: number | Uint8Array): Uint8Array {
  return element(tags.integer, typeof value === 'number' ? twosComplement(BigInt(value)) : unsigned(value))
}

function unsigned(magnitude: Uint8Array): Uint8Array {
  let from = 0
  while (from < magnitude.length - 1 && magnitude[from] === 0) from++
  const trimmed = magnitude.subarray(from)
  const [first] = trimmed
  return first !== undefined && first < 0x80 ? trimmed : Buffer.concat([Uint8Array.of(0), trimmed])
}

function twosComplement(value: bigint): Uint8Array {
  const bytes: number[] = []
  let left = value
  let byte: number
  do {
    byte = Number(left & 0xffn)
    bytes.unshift(byte)
    left >>= 8n
  } while (left !== (byte >= 0x80 ? -1n : 0n))
  return Uint8Array.from(bytes)
}

const encodedOids = new Map<string, Uint8Array>()

/** OBJECT IDENTIFIER of a dotted text. */
export function oid(dotted: string): Uint8Array {
  const cached = encodedOids.get(dotted)
  if (cached !== undefined) return cached
  const encoded = element(tags.oid, Uint8Array.from(encodeOid(dotted)))
  // Identifiers come from kcert's tables and from flags, so there are never many.
  encodedOids.set(dotted, encoded)
  return encoded
}

export const utf8String = (text: string): Uint8Array => element(tags.utf8String, Buffer.from(text, 'utf8'))

export const ia5String = (text: string): Uint8Array => element(tags.ia5String, Buffer.from(text, 'latin1'))

/** PrintableString if the text fits, otherwise UTF8String. Go writes the same, so names written by either compare equal. */
export function directoryString(text: string): Uint8Array {
  return fitsPrintableString(text)
    ? element(tags.printableString, Buffer.from(text, 'latin1'))
    : utf8String(text)
}

/** UTCTime until 2049, GeneralizedTime from 2050 (RFC 5280 section 4.1.2.5). Fractions of a second are dropped. */
export function time(date: Date): Uint8Array {
  const digits = date.toISOString().replace(/\..*$/, '').replaceAll(/[-:T]/g, '')
  const year = date.getUTCFullYear()
  if (year >= 1950 && year < 2050) return element(tags.utcTime, Buffer.from(`${digits.slice(2)}Z`, 'latin1'))
  return element(tags.generalizedTime, Buffer.from(`${digits}Z`, 'latin1'))
}
