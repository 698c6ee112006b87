// biome-ignore-all lint/style/noNonNullAssertion: at < stop; these loops read every byte of every name
import { isAscii, isUtf8 } from 'node:buffer'
import { tags } from './der.ts'

// ASN.1 character strings. The texts keep all characters, including control characters. The output code escapes them for
// terminals.

/** Returns a table of the bytes that a string type allows. */
function bytesOf(characters: string): Uint8Array {
  const bytes = new Uint8Array(256)
  for (const character of characters) bytes[character.charCodeAt(0)] = 1
  return bytes
}

// X.680's PrintableString, plus "*" and "&", which certificates in use contain and Go accepts.
const printable = bytesOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 '()+,-./:=?*&")
const numeric = bytesOf('0123456789 ')

function hasOnly(allowed: Uint8Array, bytes: Uint8Array, start: number, stop: number): boolean {
  for (let at = start; at < stop; at++) if (allowed[bytes[at]!] === 0) return false
  return true
}

/** True when every byte is below 0x80 (IA5String). */
export function isIa5(bytes: Uint8Array, start: number, stop: number): boolean {
  for (let at = start; at < stop; at++) if (bytes[at]! >= 0x80) return false
  return true
}

/** Returns the text of ASCII or Latin-1 bytes. For short ones, JavaScript is faster than Buffer. */
export function latin1(bytes: Buffer, start: number, stop: number): string {
  if (stop - start > 12) return bytes.toString('latin1', start, stop)
  let text = ''
  for (let at = start; at < stop; at++) text += String.fromCharCode(bytes[at]!)
  return text
}

/** True when this text can be written as a PrintableString, without the two characters that are not in X.680. */
export function fitsPrintableString(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c > 0x7f || printable[c] === 0 || c === 0x2a || c === 0x26) return false
  }
  return true
}

/** Returns the text of a character string of the types that Go reads in names; undefined when the bytes do not fit the type. */
export function readString(bytes: Buffer, tag: number, start: number, stop: number): string | undefined {
  switch (tag) {
    case tags.printableString:
      return hasOnly(printable, bytes, start, stop) ? latin1(bytes, start, stop) : undefined
    case tags.utf8String:
      return readUtf8(bytes, start, stop)
    case tags.ia5String:
      return isIa5(bytes, start, stop) ? latin1(bytes, start, stop) : undefined
    // T.61 is read as Latin-1, as in other certificate libraries.
    case tags.t61String:
      return latin1(bytes, start, stop)
    case tags.numericString:
      return hasOnly(numeric, bytes, start, stop) ? latin1(bytes, start, stop) : undefined
    case tags.bmpString:
      return readBmp(bytes, start, stop)
    default:
      return undefined
  }
}

const stringTags: ReadonlySet<number> = new Set([
  tags.printableString,
  tags.utf8String,
  tags.ia5String,
  tags.t61String,
  tags.numericString,
  tags.bmpString,
])

/** True for the string types that Go accepts in names of certificates. UniversalString is not one of them. */
export function isStringTag(tag: number): boolean {
  return stringTags.has(tag)
}

function readUtf8(bytes: Buffer, start: number, stop: number): string | undefined {
  if (isIa5(bytes, start, stop)) return latin1(bytes, start, stop)
  return isUtf8(bytes.subarray(start, stop)) ? bytes.toString('utf8', start, stop) : undefined
}

// UCS-2: no surrogates and no Unicode noncharacters. One terminating NUL is dropped.
function readBmp(bytes: Buffer, start: number, stop: number): string | undefined {
  if ((stop - start) % 2 !== 0) return undefined
  const end = stop - start >= 2 && bytes[stop - 1] === 0 && bytes[stop - 2] === 0 ? stop - 2 : stop
  let text = ''
  for (let at = start; at < end; at += 2) {
    const unit = bytes.readUInt16BE(at)
    if (unit >= 0xfffe || (unit >= 0xfdd0 && unit <= 0xfdef) || (unit >= 0xd800 && unit <= 0xdfff))
      return undefined
    text += String.fromCharCode(unit)
  }
  return text
}

/** Returns the text of a UniversalString (UCS-4); undefined when it is invalid. Read in requests only. */
export function readUniversal(bytes: Buffer, start: number, stop: number): string | undefined {
  if ((stop - start) % 4 !== 0) return undefined
  let text = ''
  for (let at = start; at < stop; at += 4) {
    const point = bytes.readUInt32BE(at)
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return undefined
    text += String.fromCodePoint(point)
  }
  return text
}

/** True when the text is pure ASCII. */
export function isAsciiText(text: string): boolean {
  return isAscii(Buffer.from(text, 'utf8'))
}

/** Returns the text in quotation marks for an error: cut after 80 characters, everything but visible ASCII and spaces escaped. */
export function quoted(text: string): string {
  const visible = text
    .slice(0, 80)
    .replaceAll(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return text.length > 80 ? `"${visible}…"` : `"${visible}"`
}
