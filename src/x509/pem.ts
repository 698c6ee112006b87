import { asBuffer } from './der.ts'

// PEM (RFC 7468, and RFC 1421's headers). Blocks are accepted as in Go's encoding/pem, because Kubernetes reads files with it.
// Blocks that Go drops silently are reported as defects. One pass: the time is linear in the size of the text.

interface PemPart {
  readonly label: string
  /** Index of the BEGIN line in the text, from 0. Damaged blocks are counted. */
  readonly index: number
  /** Byte offset of "-----BEGIN". */
  readonly offset: number
  /** Line of "-----BEGIN", from 1. */
  readonly line: number
}

export interface PemBlock extends PemPart {
  /** RFC 1421 headers, e.g. Proc-Type and DEK-Info of an encrypted key. */
  readonly headers: ReadonlyMap<string, string>
  readonly der: Uint8Array
}

export interface PemDefect extends PemPart {
  /** If the fault is on another line than the BEGIN line, it includes that line. */
  readonly reason: string
  /** The block's lines are joined or indented. Its content may be intact. */
  readonly isLayout: boolean
}

/** Labels of certificates: RFC 7468 section 5.1, and two of OpenSSL, one of them old. */
const certificateLabels: ReadonlySet<string> = new Set([
  'CERTIFICATE',
  'X509 CERTIFICATE',
  'TRUSTED CERTIFICATE',
])

export function isCertificateLabel(label: string): boolean {
  return certificateLabels.has(label)
}

// A longer list is not useful. A hostile text of "-----BEGIN A-----" lines causes one defect per line.
const maxDefects = 1000
// Even an empty block takes some microseconds: 20 MiB of empty ones took seconds. This number of the smallest possible
// certificates is larger than the part of a file that kcert reads.
const mostBlocks = 65_536
const tooManyBlocks = `more than ${mostBlocks} BEGIN lines are in the file, and from here on it is not read`
// The longest label in use has 27 characters.
const maxLabelLength = 64

const begin = '-----BEGIN '
const end = '-----END '
const dashes = '-----'
const mostLabels = 'CERTIFICATE-----'
const noHeaders: ReadonlyMap<string, string> = new Map()

const [lf, cr, space, tab, colon, equals] = [0x0a, 0x0d, 0x20, 0x09, 0x3a, 0x3d]

/** True when the bytes are PEM text rather than DER. */
export function looksLikePem(input: Uint8Array): boolean {
  // DER longer than 127 bytes begins like this, and text does not.
  if (input[0] === 0x30 && (input[1] ?? 0) >= 0x80) return false
  return utf8Of(input).includes(begin)
}

/** Returns all blocks of a text, and the defects of damaged ones. Never throws. */
export function readPem(input: Uint8Array | string): { blocks: PemBlock[]; defects: PemDefect[] } {
  return new PemScanner(typeof input === 'string' ? Buffer.from(input, 'utf8') : utf8Of(input)).scan()
}

/**
 * Returns a text in UTF-8. Decodes one with a UTF-16 byte order mark, as PowerShell's ">" writes it, and leaves other input
 * unchanged.
 */
export function utf8Of(input: Uint8Array): Buffer {
  const text = utf16Text(input)
  return text === undefined ? asBuffer(input) : Buffer.from(text, 'utf8')
}

/** Returns the text after a UTF-16 byte order mark in either byte order; undefined without a mark. */
function utf16Text(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  return undefined
}

const plainBegin = '-----BEGIN CERTIFICATE-----\n'
const plainEnd = '\n-----END CERTIFICATE-----\n'

/**
 * Returns the content of a text that consists of exactly one CERTIFICATE block. Every tool writes such files, and most files in a
 * large folder are of this form. Returns undefined for any other text, which `readPem` handles.
 */
export function contentOfPlainCertificate(input: Uint8Array): Uint8Array | undefined {
  const stop = input.length - plainEnd.length
  if (stop < plainBegin.length || !isTextAt(input, 0, plainBegin) || !isTextAt(input, stop, plainEnd))
    return undefined
  const bytes = asBuffer(input)
  const content =
    decodeColumns(bytes, plainBegin.length, stop) ?? decodeBase64(bytes, plainBegin.length, stop)
  return typeof content === 'number' ? undefined : content
}

const columns = 64

/**
 * Decodes base64 in lines of 64 characters; returns undefined for any other text, or one with invalid characters. Node's decoder
 * is four times as fast as a loop, but it skips invalid characters and accepts "-" and "_" of the other alphabet. A skipped
 * character shortens the result, which the size check detects, because line breaks are counted before.
 */
function decodeColumns(bytes: Buffer, start: number, stop: number): Buffer | undefined {
  const breaks = Math.floor((stop - start) / (columns + 1))
  const characters = stop - start - breaks
  if (characters === 0 || characters % 4 !== 0) return undefined
  for (let i = 1; i <= breaks; i++) if (bytes[start + i * (columns + 1) - 1] !== lf) return undefined
  const paddings = bytes[stop - 1] !== equals ? 0 : bytes[stop - 2] !== equals ? 1 : 2
  const size = (characters / 4) * 3 - paddings
  const text = bytes.toString('latin1', start, stop)
  if (text.includes('-') || text.includes('_')) return undefined
  const content = Buffer.from(text, 'base64')
  return content.length === size ? content : undefined
}

function isTextAt(bytes: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false
  return true
}

class PemScanner {
  private readonly bytes: Buffer
  private readonly blocks: PemBlock[] = []
  private readonly defects: PemDefect[] = []
  private index = 0
  private line = 1
  private countedTo = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  scan(): { blocks: PemBlock[]; defects: PemDefect[] } {
    let at = this.nextBegin(0)
    while (at >= 0 && this.index < mostBlocks) {
      const before = this.defects.length
      const next = this.readBlock(at)
      // The rest of a damaged block may include its END line.
      at = this.nextBegin(next, this.defects.length > before)
    }
    if (at >= 0) {
      this.defects.splice(maxDefects - 1)
      this.addDefect('', at, tooManyBlocks)
    }
    return { blocks: this.blocks, defects: this.defects }
  }

  private nextBegin(from: number, isAfterDefect = false): number {
    if (from + end.length > this.bytes.length) return -1
    if (this.textAt(from, begin)) return from
    const at = this.bytes.indexOf(begin, from, 'latin1')
    if (!isAfterDefect) this.noteLostBegin(from, at < 0 ? this.bytes.length : at)
    return at
  }

  /** Handles an END line without its BEGIN line. Readers skip this block and use the next one instead. */
  private noteLostBegin(from: number, to: number): void {
    const offset = this.bytes.subarray(from, to).indexOf(end, 0, 'latin1') + from
    if (offset < from || !this.startsLine(offset) || this.defects.length >= maxDefects) return
    const label = this.labelAt(offset + end.length)
    if (label !== undefined) this.addDefect(label, offset, 'no BEGIN line before the END line')
  }

  private addDefect(label: string, offset: number, reason: string): void {
    const [index, line] = [this.index++, this.lineAt(offset)]
    this.defects.push({ label, index, offset, line, reason, isLayout: false })
  }

  /** Reads the text after one "-----BEGIN ". Returns where to search for the next. */
  private readBlock(offset: number): number {
    const { bytes } = this
    const label = this.labelAt(offset + begin.length)
    if (label === undefined) return this.passOver(offset)
    const line = this.lineAt(offset)
    const index = this.index++
    const fail = (reason: string, next: number, isLayout = false): number => {
      if (this.defects.length < maxDefects)
        this.defects.push({ label, index, offset, line, reason, isLayout })
      return next
    }
    const misplaced = (reason: string, next: number): number => fail(reason, next, true)
    const bodyAt = offset + begin.length + label.length + dashes.length
    if (!this.startsLine(offset))
      return misplaced('"-----BEGIN" does not start its line, so readers skip the block', bodyAt)
    if (!this.endsLine(bodyAt)) return misplaced('the BEGIN line has text after its dashes', bodyAt)

    const marker = bytes.indexOf(dashes, bodyAt, 'latin1')
    if (marker < 0) return fail('no END line', bytes.length)
    if (this.textAt(marker, begin)) return fail('no END line before the next BEGIN', marker)
    const endLabel = this.textAt(marker, end) ? this.labelAt(marker + end.length) : undefined
    if (endLabel === undefined) return fail('damaged END line', marker + dashes.length)
    const next = marker + end.length + endLabel.length + dashes.length
    if (endLabel !== label) return fail(`the END line says ${endLabel}`, next)
    if (!this.startsLine(marker)) return misplaced('"-----END" does not start its line', next)
    if (!this.endsLine(next))
      return misplaced('no line break after the END line, so readers skip the block', next)

    const { headers, contentAt } = this.readHeaders(bodyAt, marker)
    const der = decodeBase64(bytes, contentAt, marker)
    if (typeof der === 'number') return fail(this.base64Defect(der, marker), next)
    this.blocks.push({ label, headers, der, index, offset, line })
    return next
  }

  /** A BEGIN line without its dashes is a defect. "-----BEGIN " in running text is not. */
  private passOver(offset: number): number {
    if (this.startsLine(offset) && this.defects.length < maxDefects) {
      const from = offset + begin.length
      const words = this.bytes.toString('latin1', from, from + maxLabelLength)
      const [, label = ''] = /^([A-Z0-9 ]+)-*\s/.exec(words) ?? []
      this.addDefect(label, offset, 'the BEGIN line does not end in "-----"')
    }
    return offset + begin.length
  }

  /** Returns the label that begins at `at` and ends in five dashes on the same line. */
  private labelAt(at: number): string | undefined {
    const { bytes } = this
    if (this.textAt(at, mostLabels)) return 'CERTIFICATE'
    const limit = Math.min(bytes.length, at + maxLabelLength + dashes.length)
    for (let to = at; to + dashes.length <= limit; to++) {
      const c = bytes.readUInt8(to)
      if (c < space || c > 0x7e) return undefined
      if (c === 0x2d && this.textAt(to, dashes))
        return to === at ? undefined : bytes.toString('latin1', at, to)
    }
    return undefined
  }

  private textAt(at: number, text: string): boolean {
    return isTextAt(this.bytes, at, text)
  }

  private startsLine(at: number): boolean {
    if (at === 0 || this.bytes[at - 1] === lf || this.bytes[at - 1] === cr) return true
    return at === 3 && this.bytes[0] === 0xef && this.bytes[1] === 0xbb && this.bytes[2] === 0xbf
  }

  private endsLine(from: number): boolean {
    let at = from
    while (this.bytes[at] === space || this.bytes[at] === tab) at++
    return at >= this.bytes.length || this.bytes[at] === lf || this.bytes[at] === cr
  }

  /** Continues from the last call, so that all calls together read the text once. Offsets only increase. */
  private lineAt(offset: number): number {
    if (offset === this.countedTo) return this.line
    let at = this.bytes.indexOf(lf, this.countedTo)
    for (; at >= 0 && at < offset; at = this.bytes.indexOf(lf, this.countedTo)) {
      this.line++
      this.countedTo = at + 1
    }
    return this.line
  }

  /** Header lines contain a colon, which base64 does not. */
  private readHeaders(
    bodyAt: number,
    marker: number,
  ): { headers: ReadonlyMap<string, string>; contentAt: number } {
    let headers: Map<string, string> | undefined
    let at = this.afterLine(bodyAt, marker)
    for (;;) {
      const next = this.afterLine(at, marker)
      const colonAt = at + this.bytes.subarray(at, next).indexOf(colon)
      if (colonAt < at) return { headers: headers ?? noHeaders, contentAt: at }
      headers ??= new Map()
      headers.set(
        this.bytes.toString('utf8', at, colonAt).trim(),
        this.bytes.toString('utf8', colonAt + 1, next).trim(),
      )
      at = next
    }
  }

  private afterLine(from: number, limit: number): number {
    let at = from
    while (at < limit && this.bytes[at] !== lf && this.bytes[at] !== cr) at++
    if (at < limit && this.bytes[at] === cr && this.bytes[at + 1] === lf) at++
    return Math.min(at + 1, limit)
  }

  private base64Defect(at: number, marker: number): string {
    if (at >= marker) return 'the base64 text is incomplete'
    const c = this.bytes.readUInt8(at)
    const shown =
      c > space && c < 0x7f ? `"${String.fromCharCode(c)}"` : `byte 0x${c.toString(16).padStart(2, '0')}`
    return `${shown} at line ${this.lineAt(at)} does not belong in base64`
  }
}

const [digit, skip] = [1, 2]
const kinds = new Uint8Array(256)
for (const c of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
  kinds[c.charCodeAt(0)] = digit
for (const c of [lf, cr, space, tab]) kinds[c] = skip

/** Returns the bytes of start…stop, or the offset of the first invalid character; `stop` when characters are missing. */
function decodeBase64(bytes: Buffer, start: number, stop: number): Buffer | number {
  let digits = 0
  let at = start
  for (; at < stop; at++) {
    // biome-ignore lint/style/noNonNullAssertion: at < stop; this loop reads every byte of every file
    const kind = kinds[bytes[at]!]
    if (kind === digit) digits++
    else if (kind !== skip) break
  }
  if (at < stop) {
    const misplaced = bytes[at] === equals ? misplacedPadding(bytes, at, stop, digits % 4) : at
    if (misplaced >= 0) return misplaced
  } else if (digits % 4 !== 0) return stop
  return Buffer.from(bytes.toString('latin1', start, at), 'base64')
}

/** Returns −1 when the padding that begins at `at` completes the last group and nothing follows. */
function misplacedPadding(bytes: Buffer, at: number, stop: number, count: number): number {
  if (count < 2) return at
  let missing = 4 - count
  for (let i = at; i < stop; i++) {
    if (bytes[i] === equals && missing > 0) missing--
    else if (kinds[bytes.readUInt8(i)] !== skip) return i
  }
  return missing === 0 ? -1 : stop
}

/** Returns the PEM text of one block: 64 columns, LF, a newline at the end (RFC 7468). */
export function writePem(label: string, der: Uint8Array): string {
  const base64 = asBuffer(der).toString('base64')
  let text = `${begin}${label}-----\n`
  for (let at = 0; at < base64.length; at += 64) text += `${base64.slice(at, at + 64)}\n`
  return `${text}${end}${label}-----\n`
}

/** Forms of PEM that other programs read, but that Go's pem.Decode or Kubernetes ignores. */
export type UnseenText = 'byte order mark' | 'UTF-16' | 'CR line ends' | 'label' | 'headers'

/** Returns why Go, and therefore Kubernetes, does not find a block that `readPem` found; undefined if it does. */
export function unseenByGo(text: Uint8Array, block: PemBlock): UnseenText | undefined {
  const { offset, label, headers } = block
  if (isCertificateLabel(label)) {
    if (label !== 'CERTIFICATE') return 'label'
    if (headers.size > 0) return 'headers'
  }
  if (utf16Text(text.subarray(0, 2)) !== undefined) return 'UTF-16'
  if (offset === 3 && text[0] === 0xef) return 'byte order mark'
  const bodyAt = offset + begin.length + label.length + dashes.length
  const endAt = asBuffer(text).indexOf(end, bodyAt, 'latin1')
  let restAt = endAt + end.length + label.length + dashes.length
  while (text[restAt] === space || text[restAt] === tab) restAt++
  const isLoneCr = (at: number): boolean => text[at] === cr && text[at + 1] !== lf
  return isLoneCr(offset - 1) || isLoneCr(bodyAt) || isLoneCr(endAt - 1) || isLoneCr(restAt)
    ? 'CR line ends'
    : undefined
}
