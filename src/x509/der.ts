// biome-ignore-all lint/style/noNonNullAssertion: bounds are checked before each read; a check per byte would slow every read
import { KcertError } from '../errors/kcert-error.ts'
import { knownOid, nameOfOid } from './oids.ts'

// Strict DER (ITU-T X.690) for X.509: one cursor over one array, no tree. It rejects what Go's cryptobyte rejects, so that
// kcert's result for a file matches that of the Kubernetes components.

/** Limits on the input. Everything within them is read in linear time and without copies. */
export const derLimits = {
  /** RFC 5280's deepest type, a directory name in name constraints, needs 14. The limit stops hostile nesting. */
  depth: 32,
  /** 65,536 bits: four times the longest RSA modulus that OpenSSL accepts. Longer ones only cost time. */
  integerBytes: 8192,
  /** The longest identifiers in use have 30 bytes. The decimal text of a longer arc takes more than linear time. */
  oidBytes: 256,
  /** One certificate, request or key. 20,000 SANs fit. The limit ensures that its members fit in memory. */
  documentBytes: 1024 * 1024,
  /** A PKCS#12 keystore or a PKCS#7 bundle: one of 10,000 certificates is about 10 MB. */
  containerBytes: 16 * 1024 * 1024,
} as const

/** Identifier bytes, including the constructed bit where DER sets it. */
export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  t61String: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  universalString: 0x1c,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/** Identifier byte of context tag [number], primitive (IMPLICIT of a primitive type). */
export const contextTag = (number: number): number => 0x80 | number
/** Identifier byte of context tag [number], constructed (EXPLICIT, or IMPLICIT of a constructed type). */
export const constructedTag = (number: number): number => 0xa0 | number

/** A view of the same memory with Buffer's fast text and hex methods. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** True when both ranges contain the same bytes. They are short, so a loop is faster than a call to Buffer. */
export function sameBytes(
  a: Uint8Array,
  aStart: number,
  aStop: number,
  b: Uint8Array,
  bStart: number,
  bStop: number,
): boolean {
  if (aStop - aStart !== bStop - bStart) return false
  for (let i = aStart, j = bStart; i < aStop; i++, j++) if (a[i] !== b[j]) return false
  return true
}

/** Returns the offset of the content of the DER or BER element at `at`. The bytes are unchecked. */
export function contentAt(bytes: Uint8Array, at: number): number {
  const length = bytes[at + 1] ?? 0
  return at + 2 + (length > 0x80 ? length & 0x7f : 0)
}

/** Returns the content bytes of a non-negative INTEGER as hex pairs without leading 00; "00" for zero. */
export function unsignedHex(bytes: Buffer, start: number, stop: number): string {
  const from = bytes[start] === 0 && stop - start > 1 ? start + 1 : start
  return bytes.toString('hex', from, stop)
}

/**
 * Reads DER from one array. The read methods store the bounds of the last element in `start` and `stop` (content) and `header`
 * (its first byte). `enter` moves into that element, `leave` moves to its end.
 *
 * Every error is a KCERT_X509_MALFORMED with the document, the field and the byte offset.
 */
export class DerReader {
  readonly bytes: Buffer
  /** Name of the input, which starts every error: "certificate", "request". */
  readonly document: string
  /** Prefix of the field names in errors, for example "tbsCertificate.issuer." */
  path = ''
  offset: number
  end: number
  tag = 0
  header = 0
  start = 0
  stop = 0
  private depth = 0

  constructor(bytes: Uint8Array, document: string, limit: number = derLimits.documentBytes) {
    this.bytes = asBuffer(bytes)
    this.document = document
    this.offset = 0
    this.end = bytes.length
    if (bytes.length > limit) this.fail('', `${bytes.length} bytes, more than the ${limit} that kcert reads`)
  }

  /** Returns a reader for the element that was just read, header included. Its offsets remain those of the whole input. */
  fork(): DerReader {
    const fork = new DerReader(this.bytes, this.document, this.bytes.length)
    fork.path = this.path
    fork.depth = this.depth
    fork.offset = this.header
    fork.end = this.stop
    return fork
  }

  /** @param fix what to do if the bytes are complete and only Go rejects them; another copy would not help */
  fail(field: string, reason: string, offset: number = this.offset, fix?: string): never {
    const name = field === '' ? this.path.replace(/\.$/, '') : this.path + field
    const where = name === '' ? `offset ${offset}` : `${name} at offset ${offset}`
    throw new KcertError('KCERT_X509_MALFORMED', `${this.document}: ${where}: ${reason}`, {
      fix,
    })
  }

  get atEnd(): boolean {
    return this.offset >= this.end
  }

  /** True when the next element begins with this tag. */
  peek(tag: number): boolean {
    return this.offset < this.end && this.bytes[this.offset] === tag
  }

  /** Reads any element; returns its tag. */
  next(field: string): number {
    const bytes = this.bytes
    const end = this.end
    let at = this.offset
    if (at + 2 > end) this.fail(field, at >= end ? 'missing' : 'truncated')
    const tag = bytes[at]!
    if ((tag & 0x1f) === 0x1f) this.fail(field, 'tag number above 30')
    let length = bytes[at + 1]!
    this.header = at
    at += 2
    if (length >= 0x80) {
      const count = length & 0x7f
      if (count === 0) this.fail(field, 'indefinite length, which is BER and not DER')
      if (count > 4) this.fail(field, `length in ${count} bytes`)
      if (at + count > end) this.fail(field, 'truncated')
      const first = bytes[at]!
      length = 0
      for (const stop = at + count; at < stop; at++) length = length * 256 + bytes[at]!
      if (first === 0 || length < 0x80) this.fail(field, 'length is not minimal')
    }
    if (length > end - at) this.fail(field, `truncated: length ${length}, but ${end - at} bytes are left`)
    this.tag = tag
    this.start = at
    this.stop = at + length
    this.offset = this.stop
    return tag
  }

  /** Reads one element with this tag. */
  read(tag: number, field: string): void {
    const at = this.offset
    if (this.next(field) !== tag) this.fail(field, `${tagName(this.tag)} where ${tagName(tag)} belongs`, at)
  }

  /** Reads one element if it has this tag. Returns false if something else, or nothing, follows. */
  readOptional(tag: number, field: string): boolean {
    if (!this.peek(tag)) return false
    this.next(field)
    return true
  }

  /** Enters the element that was just read. Returns the value that `leave` needs. */
  enterLast(field: string): number {
    if (++this.depth > derLimits.depth) this.fail(field, `nested deeper than ${derLimits.depth}`, this.header)
    const outer = this.end
    this.offset = this.start
    this.end = this.stop
    return outer
  }

  /** Reads one element with this tag and enters it. Returns the value that `leave` needs. */
  enter(tag: number, field: string): number {
    this.read(tag, field)
    return this.enterLast(field)
  }

  /** Moves to the end of the element. Ignores unread content, as Go does. */
  leave(outer: number): void {
    this.offset = this.end
    this.end = outer
    this.depth--
  }

  /**
   * Reads one element with this tag and returns the result of `read` for its content. For rarely read elements: `enter` needs no
   * closure.
   */
  within<Value>(tag: number, field: string, read: () => Value): Value {
    const outer = this.enter(tag, field)
    const value = read()
    this.leave(outer)
    return value
  }

  /** Reads one element with this tag, and every element in it with `read`. */
  each(tag: number, field: string, read: () => void): void {
    this.within(tag, field, () => {
      while (!this.atEnd) read()
    })
  }

  /** Reads the bytes between two offsets, then returns to the previous position. Returns the result of `read`. */
  between<Value>(start: number, stop: number, read: () => Value): Value {
    const { offset, end } = this
    this.offset = start
    this.end = stop
    const value = read()
    this.offset = offset
    this.end = end
    return value
  }

  /** Rejects unread content. */
  finish(field: string): void {
    if (this.offset < this.end) this.fail(field, `${this.end - this.offset} bytes too many`)
  }

  boolean(field: string): boolean {
    this.read(tags.boolean, field)
    const value = this.bytes[this.start]
    if (this.stop - this.start !== 1 || (value !== 0 && value !== 0xff)) {
      this.fail(field, 'BOOLEAN is neither 00 nor FF', this.start)
    }
    return value === 0xff
  }

  /** Reads an INTEGER of any size. Its two's complement is in start…stop. */
  integer(field: string, tag: number = tags.integer): void {
    this.read(tag, field)
    const { bytes, start } = this
    const length = this.stop - start
    if (length === 0) this.fail(field, 'empty INTEGER', start)
    if (length > derLimits.integerBytes) {
      this.fail(
        field,
        `INTEGER of ${length} bytes, more than the ${derLimits.integerBytes} that kcert reads`,
        start,
      )
    }
    if (length === 1) return
    const [first, second] = [bytes[start]!, bytes[start + 1]!]
    if ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80)) {
      this.fail(field, 'INTEGER is not minimal', start)
    }
  }

  /** True when the INTEGER that was just read is below zero. */
  get isNegative(): boolean {
    return this.bytes[this.start]! >= 0x80
  }

  /** Reads an INTEGER of at most 64 bits, as a number. Above 2^53 the last digits are lost. */
  int64(field: string, tag: number = tags.integer): number {
    this.integer(field, tag)
    if (this.stop - this.start > 8) this.fail(field, 'INTEGER above 64 bits', this.start)
    let value = this.isNegative ? -1 : 0
    for (let at = this.start; at < this.stop; at++) value = value * 256 + this.bytes[at]!
    return value
  }

  /** Magnitude of the non-negative INTEGER that was just read, as hex pairs without leading 00; "00" for zero. */
  unsignedHex(): string {
    return unsignedHex(this.bytes, this.start, this.stop)
  }

  /** Reads a BIT STRING and returns the number of unused bits. The bytes are in start…stop. */
  bitString(field: string): number {
    this.read(tags.bitString, field)
    const { bytes, start, stop } = this
    if (start === stop) this.fail(field, 'empty BIT STRING', start)
    const unused = bytes[start]!
    const isValid =
      unused === 0 || (unused < 8 && stop - start > 1 && (bytes[stop - 1]! & ((1 << unused) - 1)) === 0)
    if (!isValid) this.fail(field, 'BIT STRING with unused bits that are not zero', start)
    this.start = start + 1
    return unused
  }

  /** Content of the BIT STRING that was just read, shifted right so that the unused bits come first, as in Go. */
  rightAligned(unused: number): Uint8Array {
    const content = this.bytes.subarray(this.start, this.stop)
    if (unused === 0) return content
    const shifted = Buffer.alloc(content.length)
    for (let i = 0; i < content.length; i++) {
      shifted[i] = (content[i]! >> unused) | (i === 0 ? 0 : content[i - 1]! << (8 - unused))
    }
    return shifted
  }

  /** Returns a reader at the same position of a copy in which the BIT STRING that was just read is right-aligned. */
  rightAlignedFork(unused: number): DerReader {
    const copy = Buffer.from(this.bytes)
    copy.set(this.rightAligned(unused), this.start)
    copy[this.start - 1] = 0
    const fork = new DerReader(copy, this.document, copy.length)
    const { offset, end, header, start, stop, path, depth } = this
    return Object.assign(fork, { offset, end, header, start, stop, path, depth })
  }

  /** Reads an OBJECT IDENTIFIER in dotted form. Rejects arcs above 2^31, as Go does outside certificate policies. */
  oid(field: string): string {
    this.read(tags.oid, field)
    return this.oidOfLast(field, false)
  }

  /** Reads an OBJECT IDENTIFIER. Returns its name in the RFC that defines it, or the dotted form. */
  oidName(field: string): string {
    const oid = this.oid(field)
    return nameOfOid(oid) ?? oid
  }

  /** Reads an OBJECT IDENTIFIER with arcs of any size, in dotted form. */
  oidOfAnySize(field: string): string {
    this.read(tags.oid, field)
    return this.oidOfLast(field, true)
  }

  /** Returns the element that was just read, decoded as the content of an OBJECT IDENTIFIER. */
  oidOfLast(field: string, anySize: boolean): string {
    const { bytes, start, stop } = this
    const known = knownOid(bytes, start, stop)
    if (known !== undefined) return known
    if (start === stop) this.fail(field, 'empty OBJECT IDENTIFIER', start)
    if (stop - start > derLimits.oidBytes)
      this.fail(field, `OBJECT IDENTIFIER of ${stop - start} bytes`, start)
    const arcs: string[] = []
    for (let at = start; at < stop; ) {
      if (bytes[at] === 0x80) this.fail(field, 'OBJECT IDENTIFIER is not minimal', at)
      let end = at
      while (end < stop && bytes[end]! >= 0x80) end++
      if (end === stop) this.fail(field, 'OBJECT IDENTIFIER is truncated', at)
      const arc = base128(bytes, at, end)
      if (!anySize && arc > 0x7fffffff) this.fail(field, 'OBJECT IDENTIFIER with an arc above 2^31', at)
      arcs.push(...(at === start ? firstTwoArcs(arc) : [String(arc)]))
      at = end + 1
    }
    return arcs.join('.')
  }

  /** The element that was just read, header included. */
  get lastElement(): Uint8Array {
    return this.bytes.subarray(this.header, this.stop)
  }

  /** Content of the element that was just read. */
  get lastContent(): Uint8Array {
    return this.bytes.subarray(this.start, this.stop)
  }
}

/** Returns the arc whose last byte is at `end`: a number, or a bigint if it does not fit. */
function base128(bytes: Uint8Array, start: number, end: number): number | bigint {
  if (end - start < 7) {
    let value = 0
    for (let at = start; at <= end; at++) value = value * 128 + (bytes[at]! & 0x7f)
    return value
  }
  // An identifier has at most 256 bytes, so shifting the whole value for each byte takes negligible time.
  let value = 0n
  for (let at = start; at <= end; at++) value = (value << 7n) | BigInt(bytes[at]! & 0x7f)
  return value
}

function firstTwoArcs(packed: number | bigint): [string, string] {
  if (packed >= 80) return ['2', String(typeof packed === 'bigint' ? packed - 80n : packed - 80)]
  const value = Number(packed)
  return [String(Math.floor(value / 40)), String(value % 40)]
}

const tagNames = new Map<number, string>([
  [tags.boolean, 'BOOLEAN'],
  [tags.integer, 'INTEGER'],
  [tags.bitString, 'BIT STRING'],
  [tags.octetString, 'OCTET STRING'],
  [tags.null, 'NULL'],
  [tags.oid, 'OBJECT IDENTIFIER'],
  [tags.utf8String, 'UTF8String'],
  [tags.numericString, 'NumericString'],
  [tags.printableString, 'PrintableString'],
  [tags.t61String, 'T61String'],
  [tags.ia5String, 'IA5String'],
  [tags.utcTime, 'UTCTime'],
  [tags.generalizedTime, 'GeneralizedTime'],
  [tags.universalString, 'UniversalString'],
  [tags.bmpString, 'BMPString'],
  [tags.sequence, 'SEQUENCE'],
  [tags.set, 'SET'],
])

/** Name of an identifier byte for messages: "SEQUENCE", "[0]", "tag 0x7e". */
export function tagName(tag: number): string {
  if ((tag & 0xc0) === 0x80) return `[${tag & 0x1f}]`
  return tagNames.get(tag) ?? `tag 0x${tag.toString(16).padStart(2, '0')}`
}
