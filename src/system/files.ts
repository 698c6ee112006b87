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
 * Larger files are not read, so that none, whatever is in it, takes more than 2 s or 512 MiB. A Secret has 1 MiB at most, a bundle
 * of 20,000 certificates 15.
 */
export const largestFileBytes = 20 * 1024 * 1024

const tooLargeDetailFor = (limit: number): string =>
  `is larger than ${limit / 1024 / 1024} MiB, the most that kcert reads of one file`

/** For messages. */
export const tooLargeDetail = tooLargeDetailFor(largestFileBytes)

/** What to do about it: both ways bring everything to kcert in one call again. */
export const tooLargeFix =
  "split it, and name DIR; objects one namespace at a time (kubectl get -n NAMESPACE -o json), PEM so: csplit -sz -n 6 -f DIR/part- FILE '/-----BEGIN/' '{*}'"

// Smaller files are read before their type is checked.
const foreignFromBytes = 16 * 1024

/** A FIFO that takes a file's place between the look and the open must not make kcert wait for a writer. */
export const openFlags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

// Holds most files of a PKI at one read; reused, so that a file costs one allocation of its own size.
const buffer = Buffer.allocUnsafeSlow(256 * 1024)

type Failure = Pick<UnreadableSource, 'reason' | 'detail'>
type Link = Pick<FileFacts, 'path' | 'linkTarget'>

/**
 * Returns the regular file that a path leads to, or why it cannot be read. Never throws and never waits. Symbolic links are
 * followed; FIFOs, devices and sockets are never opened: opening one can wait for ever or set something off. What was opened is
 * checked again by its descriptor, since the path may lead elsewhere by then.
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

/** What was opened: the content with the file's facts, or why it is left. `foreign`: large, and plainly nothing that kcert reads. */
export type Opened = { bytes: Uint8Array; file: FileFacts } | Failure

/**
 * Returns the content of a regular file, or undefined when it is large and foreign: then only its beginning was read.
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

// Small files are read one behind the other into a page that they share: an allocation and a copy each take as long as the read.
const pageBytes = 16 * foreignFromBytes
let page = Buffer.alloc(0)
let pageUsed = 0

/**
 * The whole of a small file that ends with its line, as nearly all files of a large folder do, at the price of one read: such a
 * one is not cut off. Undefined for any other file, of which nothing is read then. What is no file has no place to read from,
 * which the system says.
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

/** No one needs the mode of a certificate, and asking for 10,000 takes a hundredth of a second. */
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

/** Returns what was opened, when it is a regular file within the limit. */
export function openedFile(descriptor: number, found: Stats, link: Link, limit = largestFileBytes): Opened {
  if (!found.isFile()) return notAFile(found)
  const bytes = found.size > limit ? undefined : contentOf(descriptor, found.size, limit)
  if (bytes === undefined) return { reason: 'too-large', detail: tooLargeDetailFor(limit) }
  const { path, linkTarget } = link
  const mode = found.mode & 0o7777
  return { bytes, file: linkTarget === undefined ? { path, mode } : { path, mode, linkTarget } }
}

/**
 * Returns what an open regular file holds, or undefined above the limit. Reads to the end rather than to the size: files of /proc
 * say 0, and a log may have grown.
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
    // A whole small file at once is by far the most common case, and asking for its end costs as much as the read.
    if (count === 0 || (total === size && count < buffer.length)) break
  }
  return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, total)
}

// Text has no zero bytes but in UTF-16, which has a mark in front, and DER begins with a SEQUENCE: what has zeros and is neither
// is a program, an archive, a database.
function beginsForeign(descriptor: number): boolean {
  const count = readSync(descriptor, buffer, 0, 4096, 0)
  const sequence = 0x30
  const isUtf16 = (buffer[0] === 0xff && buffer[1] === 0xfe) || (buffer[0] === 0xfe && buffer[1] === 0xff)
  return buffer[0] !== sequence && !isUtf16 && buffer.subarray(0, count).includes(0)
}

/** Returns an absolute path and where it points, when it is a symbolic link. */
export function linkAt(path: string): Link {
  try {
    return lstatSync(path).isSymbolicLink() ? { path, linkTarget: readlinkSync(path) } : { path }
  } catch {
    return { path }
  }
}

/** Why something other than a regular file is not read. */
export function notAFile(found: Stats): Failure {
  return { reason: 'not-a-file', detail: `is ${kindOf(found)}, which kcert does not read` }
}

/** Returns what a path leads to, in words. */
export function kindOf(found: Stats): string {
  if (found.isSymbolicLink()) return 'a symbolic link'
  if (found.isFile()) return 'a file'
  if (found.isDirectory()) return 'a folder'
  if (found.isFIFO()) return 'a FIFO'
  if (found.isSocket()) return 'a socket'
  return 'a device'
}

/** Returns what a system error means for the one who named the file. */
export function failureOf(error: unknown, { path, linkTarget }: Link): Failure {
  const code = systemCode(error)
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      if (linkTarget !== undefined)
        return { reason: 'dangling-link', detail: `points to ${linkTarget}, which does not exist` }
      // Node hands out names that are not UTF-8 with this character in the place of their bytes, and cannot open them.
      if (path.includes('\ufffd')) return { reason: 'io', detail: 'its name is not UTF-8' }
      return { reason: 'not-found', detail: 'does not exist' }
    case 'ELOOP':
      return {
        reason: 'dangling-link',
        detail: `points to ${linkTarget ?? 'a link'}, and the links go round in a circle`,
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
