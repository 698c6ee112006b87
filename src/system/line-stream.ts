import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { messageOf } from '../errors/caught.ts'

// The lines of a log of any size, plain or compressed with gzip, in constant memory.

/** A longer line is skipped. An API server's event with a list of all objects has some MiB. */
export const longestLineBytes = 16 * 1024 * 1024
const chunkBytes = 1024 * 1024
const newline = 0x0a

/** Receives each line without its line end. Returns false to stop reading. */
export type VisitLine = (line: string, number: number) => boolean

/** How reading a log ended. */
export interface LineReading {
  readonly lines: number
  /** Lines longer than the limit. */
  readonly long: number
  /** The text after the last line end, which may be a line that is being written. */
  readonly rest: string
  /** Why reading stopped before the end, a fragment. */
  readonly failure?: string
}

/** Passes each line to `visit`. Decompresses gzip, which is detected by its first bytes. Never throws for damaged bytes. */
export async function readLines(bytes: AsyncIterable<Buffer>, visit: VisitLine): Promise<LineReading> {
  const splitter = new LineSplitter(visit)
  const split = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of chunks) if (!splitter.push(chunk)) return
  }
  const { first, all } = await peeked(bytes)
  try {
    const isGzip = first[0] === 0x1f && first[1] === 0x8b
    await (isGzip ? pipeline(all, createGunzip({ chunkSize: chunkBytes }), split) : split(all))
  } catch (error) {
    // A stream that is closed before its end is no failure if the reader closed it.
    if (!splitter.isStopped) return { ...splitter.end(), failure: messageOf(error) }
  }
  return splitter.end()
}

/** Returns the first bytes, at least two if there are as many, and all bytes. */
async function peeked(bytes: AsyncIterable<Buffer>): Promise<{ first: Buffer; all: AsyncIterable<Buffer> }> {
  const iterator = bytes[Symbol.asyncIterator]()
  let first: Buffer = Buffer.alloc(0)
  let failure: unknown
  try {
    while (first.length < 2) {
      const { value, done } = await iterator.next()
      if (done) break
      first = Buffer.concat([first, value])
    }
  } catch (error) {
    failure = error
  }
  async function* all() {
    try {
      yield first
      if (failure !== undefined) throw failure
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value
    } finally {
      await iterator.return?.()
    }
  }
  return { first, all: all() }
}

/** Cuts chunks into lines. Keeps at most one line. */
class LineSplitter {
  isStopped = false
  private readonly visit: VisitLine
  private readonly parts: Buffer[] = []
  private length = 0
  private lines = 0
  private long = 0

  constructor(visit: VisitLine) {
    this.visit = visit
  }

  /** Returns false if no more chunks are needed. */
  push(chunk: Buffer): boolean {
    let start = 0
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const isWhole = this.length === 0
      const isLong = this.length + end - start > longestLineBytes
      this.lines++
      if (isLong) this.long++
      const line = isLong
        ? ''
        : isWhole
          ? chunk.toString('utf8', start, end)
          : this.joined(chunk.subarray(start, end))
      this.parts.length = 0
      this.length = 0
      start = end + 1
      this.isStopped = !isLong && !this.visit(line, this.lines)
      if (this.isStopped) return false
    }
    this.keep(chunk.subarray(start))
    return true
  }

  end(): LineReading {
    const isLong = this.length > longestLineBytes
    return { lines: this.lines, long: this.long + Number(isLong), rest: isLong ? '' : this.joined() }
  }

  private keep(rest: Buffer): void {
    this.length += rest.length
    if (this.length > longestLineBytes) this.parts.length = 0
    // A copy: the stream may use the chunk again.
    else if (rest.length > 0) this.parts.push(Buffer.from(rest))
  }

  private joined(...more: readonly Buffer[]): string {
    return Buffer.concat([...this.parts, ...more]).toString('utf8')
  }
}
