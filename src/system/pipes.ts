import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { systemCode } from '../errors/caught.ts'
import type { Source, UnreadableSource } from '../inspection/source.ts'
import { contentOf, failureOf, largestFileBytes, notAFile, openFlags, tooLargeDetail } from './files.ts'

// Pipes that somebody named on the command line: bash's `<(command)`, standard input, and FIFOs for passwords. Their size is bounded
// as that of files; their writers may take their time, so they are read without blocking: signals and timers still work meanwhile.

/**
 * Returns the content of a descriptor that this process was started with, as bash's `<(command)` hands it over.
 * Nothing is opened. Refuses what is neither a pipe nor a file. Never throws.
 */
export async function readDescriptor(name: string, descriptor: number): Promise<Source | UnreadableSource> {
  try {
    const found = fstatSync(descriptor)
    const isPipe = found.isFIFO() || found.isSocket()
    if (!isPipe && !found.isFile()) return { name, ...notAFile(found) }
    const bytes = isPipe
      ? await readWhole(new Socket({ fd: descriptor, readable: true, writable: false }))
      : contentOf(descriptor, 0)
    return bytes ? { name, bytes } : { name, reason: 'too-large', detail: tooLargeDetail }
  } catch (error) {
    return { name, ...failureOf(error, { path: name }) }
  }
}

/** Returns everything that a stream delivers, or undefined when that is more than the limit: as much as kcert reads of a file, unless named. */
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
 * Returns the first bytes of a FIFO, as a writer hands them over, or what of them came until `timeoutMs` were over. Never waits
 * longer, and never blocks: a FIFO that no one writes to would otherwise hold the program for ever. Meant for a line or two.
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

/** Reads the available bytes; true when no writer holds the other end, which is so before the first has come too. */
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

/** True for a FIFO, which is opened nowhere but where one was requested. */
export function isFifo(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false
}
