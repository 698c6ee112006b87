import type { Stats } from 'node:fs'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  statSync,
} from 'node:fs'
import { resolve } from 'node:path'
import { messageOf, systemCode } from '../errors/caught.ts'
import type { FileFacts, Source, UnreadableSource } from '../inspection/source.ts'

/**
 * The size limit of a file. It keeps the cost of any file below 2 s and 512 MiB of memory. A Secret has at most 1 MiB; a bundle
 * of 20,000 certificates has 15 MiB.
 */
export const largestFileBytes = 20 * 1024 * 1024

const tooLargeDetailFor = (limit: number): string =>
  `is larger than ${limit / 1024 / 1024} MiB, the most that kcert reads of one file`

/** The detail for messages. */
export const tooLargeDetail = tooLargeDetailFor(largestFileBytes)

/** The fix for messages. Both ways pass all certificates to kcert in one call. */
export const tooLargeFix =
  "split it into files in a folder DIR, and pass DIR; save objects one namespace at a time (kubectl get -n NAMESPACE -o json), and split PEM with csplit -sz -n 6 -f DIR/part- FILE '/-----BEGIN/' '{*}'"

// Smaller files are read before their type is checked.
const foreignFromBytes = 16 * 1024

/** If a FIFO replaces a file between the check and the open, kcert must not wait for a writer. */
export const openFlags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

// Most PKI files fit in one read. The buffer is reused, so a file costs one allocation of its own size.
const buffer = Buffer.allocUnsafeSlow(256 * 1024)

type Failure = Pick<UnreadableSource, 'reason' | 'detail'>
type Link = Pick<FileFacts, 'path' | 'linkTarget'>

/**
 * Returns the regular file that a path leads to, or why it cannot be read. Never throws and never waits. Symbolic links are
 * followed. FIFOs, devices and sockets are never opened: opening one can block or have side effects. The opened file is
 * checked again by its descriptor, because the path may lead to another file by then.
 */
export function readFile(name: string, limit = largestFileBytes): Source | UnreadableSource {
  const link = linkAt(resolve(name))
  const failed = (failure: Failure): UnreadableSource => ({ name, ...failure, file: link })
  try {
    const found = statSync(link.path)
    if (!found.isFile()) return failed(notAFile(found))
    const opened = readOpened(link, limit)
    return 'reason' in opened ? failed(opened) : { name, ...opened }
  } catch (error) {
    return failed(failureOf(error, link))
  }
}

/** An opened file: its content and facts, or why it is not read. `foreign` means large and in no format that kcert reads. */
export type Opened = { bytes: Uint8Array; file: FileFacts } | Failure

/**
 * Returns the content of a regular file, or undefined when it is large and foreign; then only its beginning was read.
 * Throws the system's errors.
 */
export function readUnlessForeign(link: Link): Opened | undefined {
  const descriptor = openSync(link.path, openFlags)
  try {
    const bytes = smallText(descriptor)
    if (bytes !== undefined) return { bytes, file: new FactsOfText(link) }
    const found = fstatSync(descriptor)
    if (found.size >= foreignFromBytes && beginsForeign(descriptor)) return undefined
    return openedFile(descriptor, found, link)
  } finally {
    closeSync(descriptor)
  }
}

function readOpened(link: Link, limit: number): Opened {
  const descriptor = openSync(link.path, openFlags)
  try {
    return openedFile(descriptor, fstatSync(descriptor), link, limit)
  } finally {
    closeSync(descriptor)
  }
}

// Small files are read one after the other into a shared page: an allocation and a copy each take as long as the read.
const pageBytes = 16 * foreignFromBytes
let page = Buffer.alloc(0)
let pageUsed = 0

/**
 * Returns the complete content of a small file that ends with a newline, with a single read. Nearly all files of a large folder
 * are such files, and the newline shows that the file is not truncated. Returns undefined for any other file and reads nothing
 * of it. The system reports an error where the descriptor is not a seekable file.
 */
function smallText(descriptor: number): Uint8Array | undefined {
  if (page.length - pageUsed < foreignFromBytes) {
    page = Buffer.allocUnsafeSlow(pageBytes)
    pageUsed = 0
  }
  const start = pageUsed
  const count = readSync(descriptor, page, start, foreignFromBytes, 0)
  const lineFeed = 0x0a
  if (count === foreignFromBytes || count === 0 || page[start + count - 1] !== lineFeed) return undefined
  pageUsed += count
  return page.subarray(start, start + count)
}

/** Reads the mode only on request: certificates do not need it, and 10,000 stat calls take 10 ms. */
class FactsOfText implements FileFacts {
  readonly path: string
  declare readonly linkTarget?: string

  constructor({ path, linkTarget }: Link) {
    this.path = path
    if (linkTarget !== undefined) this.linkTarget = linkTarget
  }

  get mode(): number {
    return (statSync(this.path, { throwIfNoEntry: false })?.mode ?? 0) & 0o7777
  }
}

/** Returns the opened file if it is a regular file within the limit. */
export function openedFile(descriptor: number, found: Stats, link: Link, limit = largestFileBytes): Opened {
  if (!found.isFile()) return notAFile(found)
  const bytes = found.size > limit ? undefined : contentOf(descriptor, found.size, limit)
  if (bytes === undefined) return { reason: 'too-large', detail: tooLargeDetailFor(limit) }
  const { path, linkTarget } = link
  const mode = found.mode & 0o7777
  return { bytes, file: linkTarget === undefined ? { path, mode } : { path, mode, linkTarget } }
}

/**
 * Returns the content of an open regular file, or undefined above the limit. It reads to the end of the file, not to its size:
 * /proc files report size 0, and a log may have grown.
 */
export function contentOf(
  descriptor: number,
  size: number,
  limit = largestFileBytes,
): Uint8Array | undefined {
  const chunks: Buffer[] = []
  let total = 0
  for (;;) {
    const count = readSync(descriptor, buffer, 0, buffer.length, null)
    total += count
    if (total > limit) return undefined
    if (count > 0) chunks.push(Buffer.from(buffer.subarray(0, count)))
    // A complete small file in one read is the most common case, and a second read to find the end costs as much as the first.
    if (count === 0 || (total === size && count < buffer.length)) break
  }
  return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, total)
}

// Text contains zero bytes only in UTF-16, which starts with a byte order mark, and DER begins with a SEQUENCE. Other content
// with zero bytes is a program, an archive or a database.
function beginsForeign(descriptor: number): boolean {
  const count = readSync(descriptor, buffer, 0, 4096, 0)
  const sequence = 0x30
  const isUtf16 = (buffer[0] === 0xff && buffer[1] === 0xfe) || (buffer[0] === 0xfe && buffer[1] === 0xff)
  return buffer[0] !== sequence && !isUtf16 && buffer.subarray(0, count).includes(0)
}

/** Returns an absolute path and, for a symbolic link, its target. */
export function linkAt(path: string): Link {
  try {
    return lstatSync(path).isSymbolicLink() ? { path, linkTarget: readlinkSync(path) } : { path }
  } catch {
    return { path }
  }
}

/** Returns why something other than a regular file is not read. */
export function notAFile(found: Stats): Failure {
  return { reason: 'not-a-file', detail: `is ${kindOf(found)}, which kcert does not read` }
}

/** Returns the kind of a file system entry, in words. */
export function kindOf(found: Stats): string {
  if (found.isSymbolicLink()) return 'a symbolic link'
  if (found.isFile()) return 'a file'
  if (found.isDirectory()) return 'a folder'
  if (found.isFIFO()) return 'a FIFO'
  if (found.isSocket()) return 'a socket'
  return 'a device'
}

/** Returns the reason and detail to show for a system error. */
export function failureOf(error: unknown, { path, linkTarget }: Link): Failure {
  const code = systemCode(error)
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      if (linkTarget !== undefined)
        return { reason: 'dangling-link', detail: `points to ${linkTarget}, which does not exist` }
      // Node replaces the bytes of a name that is not UTF-8 with this character, and cannot open such a file.
      if (path.includes('\ufffd')) return { reason: 'io', detail: 'its name is not UTF-8' }
      return { reason: 'not-found', detail: 'does not exist' }
    case 'ELOOP':
      return {
        reason: 'dangling-link',
        detail: `points to ${linkTarget ?? 'a link'}, and the links form a loop`,
      }
    case 'EACCES':
    case 'EPERM':
      return { reason: 'permission', detail: 'this user may not read it' }
    default:
      // "EIO: i/o error, read" → "i/o error, read (EIO)"
      return {
        reason: 'io',
        detail:
          code === undefined ? messageOf(error) : `${messageOf(error).replace(`${code}: `, '')} (${code})`,
      }
  }
}
