import { closeSync, createReadStream, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { systemCode } from '../errors/caught.ts'
import type { Source, UnreadableSource } from '../inspection/source.ts'
import { contentOf, failureOf, largestFileBytes, notAFile, openFlags, tooLargeDetail } from './files.ts'

// Pipes that are named on the command line: bash's `<(command)`, standard input, and FIFOs for passwords. They have the size
// limit of files. Their writers may be slow, so reads do not block: signals and timers still work meanwhile.

/**
 * Returns the content of an inherited descriptor, such as that of bash's `<(command)`.
 * Nothing is opened. Only pipes and files are accepted. Never throws.
 */
export async function readDescriptor(name: string, descriptor: number): Promise<Source | UnreadableSource> {
  try {
    const found = fstatSync(descriptor)
    if (!isPipe(found) && !found.isFile()) return { name, ...notAFile(found) }
    const bytes = isPipe(found) ? await readWhole(pipeBytes(descriptor)) : contentOf(descriptor, 0)
    return bytes ? { name, bytes } : { name, reason: 'too-large', detail: tooLargeDetail }
  } catch (error) {
    return { name, ...failureOf(error, { path: name }) }
  }
}

/** Returns the bytes of an inherited descriptor, or undefined if it is neither a pipe nor a file. Throws the system's errors. */
export function descriptorBytes(descriptor: number): AsyncIterable<Buffer> | undefined {
  const found = fstatSync(descriptor)
  if (isPipe(found)) return pipeBytes(descriptor)
  return found.isFile() ? createReadStream('', { fd: descriptor }) : undefined
}

/** A file that is read piece by piece, because it may have any size. */
export interface OpenFile {
  readonly stats: Stats
  readonly bytes: AsyncIterable<Buffer>
  close(): void
}

/** Opens a regular file. Throws the system's errors. */
export function openFile(path: string): OpenFile {
  const fd = openSync(path, openFlags)
  const bytes = createReadStream('', { fd, autoClose: false, highWaterMark: 1024 * 1024 })
  return { stats: fstatSync(fd), bytes, close: () => closeSync(fd) }
}

function isPipe(found: Stats): boolean {
  return found.isFIFO() || found.isSocket()
}

function pipeBytes(fd: number): AsyncIterable<Buffer> {
  return new Socket({ fd, readable: true, writable: false })
}

/** Returns all bytes of a stream, or undefined above the limit. The default limit is that of a file. */
export async function readWhole(
  stream: AsyncIterable<Buffer>,
  limit = largestFileBytes,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of stream) {
    total += chunk.length
    if (total > limit) return undefined
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
}

const fifoPollMs = 20
const fifoBytes = 64 * 1024
const fifoBuffer = Buffer.allocUnsafeSlow(4096)

/**
 * Returns the first bytes of a FIFO, or those that arrived within `timeoutMs`. It never blocks: a FIFO without a writer would
 * otherwise hang the program. Meant for a line or two.
 */
export async function readFifo(path: string, timeoutMs: number): Promise<Uint8Array> {
  const descriptor = openSync(path, openFlags)
  try {
    const chunks: Buffer[] = []
    for (let waitedMs = 0; waitedMs <= timeoutMs; waitedMs += fifoPollMs) {
      const isOver = readWaiting(descriptor, chunks)
      if (isOver && chunks.length > 0) break
      await pause(fifoPollMs)
    }
    return Buffer.concat(chunks)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Reads the available bytes. Returns true when no writer has the FIFO open, which is also so before the first writer opens it.
 */
function readWaiting(descriptor: number, chunks: Buffer[]): boolean {
  for (;;) {
    try {
      const count = readSync(descriptor, fifoBuffer, 0, fifoBuffer.length, null)
      if (count === 0) return true
      chunks.push(Buffer.from(fifoBuffer.subarray(0, count)))
      if (chunks.length * fifoBuffer.length > fifoBytes) return true
    } catch (error) {
      if (systemCode(error) === 'EAGAIN') return false
      throw error
    }
  }
}

/** Returns true for a FIFO. FIFOs are opened only where one is expected. */
export function isFifo(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false
}
