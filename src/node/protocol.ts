import { KcertError } from '../errors/kcert-error.ts'

// The framing between kcert and the script on a node: requests are shell words, answers are lines of records.

/** A line of an answer: its first word, the rest, and the bytes of the block that follows it, if any. */
export interface AnswerRecord {
  readonly name: string
  readonly rest: string
  readonly block?: Buffer
}

export interface Answer {
  /** 0, or 9 when the last record is a `fail`. */
  readonly status: number
  readonly records: readonly AnswerRecord[]
}

/** Records that are followed by a block of base64, up to a line that contains only a dot. */
const withBlock = new Set(['data', 'argv', 'stdout', 'stderr', 'fail', 'settings', 'build'])

/** Returns text quoted for every POSIX shell, on one line. Throws for a NUL byte, which no argument can contain. */
export function shellWord(text: string): string {
  if (text.includes('\0')) {
    throw new KcertError('KCERT_USAGE', `a path or argument contains a NUL byte: ${JSON.stringify(text)}`)
  }
  // A request is one line. In the script, $nl contains a newline.
  return `'${text.replaceAll("'", `'\\''`).replaceAll('\n', `'"$nl"'`)}'`
}

/** Returns base64 in lines that openssl accepts too. */
export function encodeContent(content: Uint8Array | string): string {
  const text = Buffer.from(content as Uint8Array).toString('base64')
  return text === '' ? '' : `${text.replace(/.{64}(?=.)/g, '$&\n')}\n`
}

// An answer contains the requested files in base64: a few MiB on any node.
const mostAnswerBytes = 256 * 1024 * 1024
// Base64 has 76 characters in a line, and a path at most 4096.
const longestLineBytes = 1024 * 1024

/** Thrown for a corrupt answer: another program wrote between its lines. */
export class BrokenAnswer extends Error {}

/**
 * Reads a session's output in chunks and returns complete answers, one per id. Output outside of the frames is ignored, such as
 * greetings and other output of a login profile.
 */
export class AnswerReader {
  private readonly mark: string
  private readonly rest: Buffer[] = []
  private bytes = 0
  private restBytes = 0
  private open: { id: string; lines: string[] } | undefined

  constructor(mark: string) {
    this.mark = `@${mark} `
  }

  /** Starts the size limit of the next answer, which includes other output before it. */
  begin(): void {
    this.bytes = 0
  }

  /** Returns the answers that these bytes complete. Throws BrokenAnswer for unbounded output. */
  take(bytes: Buffer): { id: string; lines: readonly string[]; status: number }[] {
    const answers: { id: string; lines: readonly string[]; status: number }[] = []
    this.bytes += bytes.length
    if (this.bytes > mostAnswerBytes)
      throw new BrokenAnswer(`it printed more than ${mostAnswerBytes >> 20} MiB in one response`)
    // Earlier chunks are copied once, when the line ends: a line in many chunks costs no more than a line in one.
    this.rest.push(bytes)
    const lineEnd = bytes.lastIndexOf(10)
    if (lineEnd === -1) {
      this.restBytes += bytes.length
      if (this.restBytes > longestLineBytes)
        throw new BrokenAnswer(`it printed a line longer than ${longestLineBytes >> 20} MiB`)
      return answers
    }
    const all = this.rest.length === 1 ? bytes : Buffer.concat(this.rest)
    const end = all.length - bytes.length + lineEnd
    this.rest.length = 0
    if (end + 1 < all.length) this.rest.push(all.subarray(end + 1))
    this.restBytes = all.length - end - 1
    for (const line of all.toString('utf8', 0, end).split('\n')) {
      const answer = this.line(line)
      if (answer !== undefined) answers.push(answer)
    }
    return answers
  }

  private line(line: string): { id: string; lines: readonly string[]; status: number } | undefined {
    if (!line.startsWith(this.mark)) {
      this.open?.lines.push(line)
      return undefined
    }
    const [verb, id = '', status = ''] = line.slice(this.mark.length).split(' ')
    if (verb === 'begin') {
      this.open = { id, lines: [] }
      return undefined
    }
    const { open } = this
    this.open = undefined
    return open === undefined || open.id !== id
      ? undefined
      : { id, lines: open.lines, status: Number(status) }
  }
}

/** Returns the records of an answer's lines. Throws BrokenAnswer if a block contains anything but base64 lines. */
export function readRecords(lines: readonly string[]): AnswerRecord[] {
  const records: AnswerRecord[] = []
  for (let at = 0, line = lines[at]; line !== undefined; line = lines[++at]) {
    const space = line.indexOf(' ')
    const name = space === -1 ? line : line.slice(0, space)
    const rest = space === -1 ? '' : line.slice(space + 1)
    if (!withBlock.has(name)) {
      records.push({ name, rest })
      continue
    }
    const end = lines.indexOf('.', at + 1)
    if (end === -1) throw new BrokenAnswer(`a block "${name}" has no end`)
    records.push({ name, rest, block: decodeBlock(lines.slice(at + 1, end)) })
    at = end
  }
  return records
}

function decodeBlock(lines: readonly string[]): Buffer {
  const width = lines[0]?.length ?? 0
  for (const [index, line] of lines.entries()) {
    const isLast = index === lines.length - 1
    if (isLast ? line.length > width : line.length !== width) throw new BrokenAnswer('a line of odd length')
  }
  const text = lines.join('')
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text))
    throw new BrokenAnswer('a line that is no base64')
  return Buffer.from(text, 'base64')
}
