import { KcertError } from '../errors/kcert-error.ts'
import { contentAt, derLimits } from './der.ts'
import { element, elementOf } from './der-writer.ts'

// While the input is rewritten, its elements are kept separately. An element that is already DER counts as one, whatever it
// contains.
const maxElements = 100_000

// PKCS#7 and PKCS#12 may be BER (RFC 2315, RFC 7292): indefinite lengths, strings in pieces, long lengths. Certificates may not.

const octetString = 0x04
const constructedOctetString = 0x24

/** Returns the same value with definite, minimal lengths and OCTET STRINGs in one piece. Returns `bytes` itself if it is DER. */
export function derFromBer(bytes: Uint8Array, document: string): Uint8Array {
  const isDer = bytes.length <= derLimits.containerBytes && derEnd(bytes, 0, bytes.length, 0) === bytes.length
  if (isDer) return bytes
  const reader = new BerReader(bytes, document)
  const der = reader.read(0)
  if (reader.offset < bytes.length) reader.fail(`${bytes.length - reader.offset} bytes too many`)
  return der
}

/** Returns the end of the element at `at` if the element and its content are DER, otherwise undefined. Allocates nothing. */
function derEnd(bytes: Uint8Array, at: number, limit: number, depth: number): number | undefined {
  const tag = bytes[at]
  if (tag === undefined || (tag & 0x1f) === 0x1f || tag === constructedOctetString || depth > derLimits.depth)
    return undefined
  const first = bytes[at + 1]
  if (first === undefined || first === 0x80 || first > 0x84) return undefined
  const lengthBytes = first > 0x80 ? first & 0x7f : 0
  let length = first > 0x80 ? 0 : first
  for (let i = 0; i < lengthBytes; i++) length = length * 256 + (bytes[at + 2 + i] ?? 0)
  const isMinimal = lengthBytes === 0 || (length >= 0x80 && bytes[at + 2] !== 0)
  const start = at + 2 + lengthBytes
  if (!isMinimal || start + length > limit) return undefined
  const end = start + length
  if ((tag & 0x20) === 0) return end
  for (let child = start; child < end; ) {
    const next = derEnd(bytes, child, end, depth + 1)
    if (next === undefined) return undefined
    child = next
  }
  return end
}

class BerReader {
  offset = 0
  private elements = 0
  private readonly bytes: Uint8Array
  private readonly document: string

  constructor(bytes: Uint8Array, document: string) {
    this.bytes = bytes
    this.document = document
    if (bytes.length > derLimits.containerBytes) {
      this.fail(`${bytes.length} bytes, more than the ${derLimits.containerBytes} that kcert reads`)
    }
  }

  fail(reason: string): never {
    throw new KcertError('KCERT_X509_MALFORMED', `${this.document}: offset ${this.offset}: ${reason}`)
  }

  read(depth: number): Uint8Array {
    if (depth > derLimits.depth) this.fail(`nested deeper than ${derLimits.depth}`)
    if (++this.elements > maxElements) this.fail(`more than ${maxElements} elements that are not DER`)
    const der = derEnd(this.bytes, this.offset, this.bytes.length, depth)
    if (der !== undefined) {
      const start = this.offset
      this.offset = der
      return this.bytes.subarray(start, der)
    }
    const tag = this.byte()
    if ((tag & 0x1f) === 0x1f) this.fail('tag number above 30')
    const length = this.length()
    if ((tag & 0x20) === 0) {
      if (length === undefined) this.fail('indefinite length of a primitive')
      const content = this.bytes.subarray(this.offset, this.offset + length)
      this.offset += length
      return element(tag, content)
    }
    const children = this.children(length, depth)
    if (tag !== constructedOctetString) return elementOf(tag, children)
    return elementOf(
      octetString,
      children.map((child) => this.piece(child)),
    )
  }

  private children(length: number | undefined, depth: number): Uint8Array[] {
    const children: Uint8Array[] = []
    if (length !== undefined) {
      const end = this.offset + length
      while (this.offset < end) children.push(this.read(depth + 1))
      if (this.offset !== end) this.fail('an element reaches past the end of its parent')
      return children
    }
    while (this.bytes[this.offset] !== 0 || this.bytes[this.offset + 1] !== 0)
      children.push(this.read(depth + 1))
    this.offset += 2
    return children
  }

  /** Returns the content of one piece of a string. The piece has already been converted to DER. */
  private piece(der: Uint8Array): Uint8Array {
    if (der[0] !== octetString) this.fail('OCTET STRING with a piece of another type')
    return der.subarray(contentAt(der, 0))
  }

  private byte(): number {
    const byte = this.bytes[this.offset] ?? this.fail('truncated')
    this.offset++
    return byte
  }

  /** Returns undefined for an indefinite length. */
  private length(): number | undefined {
    const first = this.byte()
    if (first === 0x80) return undefined
    let length = first
    if (first > 0x80) {
      if (first > 0x84) this.fail(`length in ${first & 0x7f} bytes`)
      length = 0
      for (let i = first & 0x7f; i > 0; i--) length = length * 256 + this.byte()
    }
    if (length > this.bytes.length - this.offset) this.fail('truncated')
    return length
  }
}
