import { dirname } from 'node:path'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Source, UnreadableSource } from '../inspection/source.ts'
import { readFile, tooLargeFix } from './files.ts'

/** Returns the bytes of a regular file. Throws KCERT_FILE_NOT_FOUND, KCERT_FILE_UNREADABLE or KCERT_FILE_TOO_LARGE. */
export function requiredFile(path: string): Uint8Array {
  const read = readFile(path)
  if ('reason' in read) throw fileError(read)
  return read.bytes
}

/** Returns the bytes of a file that was read; undefined if it does not exist. Throws as `requiredFile` does for other reasons. */
export function bytesIfThere(read: Source | UnreadableSource): Uint8Array | undefined {
  if ('bytes' in read) return read.bytes
  if (read.reason === 'not-found' || read.reason === 'dangling-link') return undefined
  throw fileError(read)
}

/** Returns the text of a regular file; undefined if it cannot be read for any reason. */
export function textIfReadable(path: string): string | undefined {
  const read = readFile(path)
  return 'bytes' in read ? Buffer.from(read.bytes).toString('utf8') : undefined
}

/** Returns the error for a named file that cannot be read. */
export function fileError({ name, reason, detail }: UnreadableSource): KcertError {
  const next = commandLine`ls -l ${dirname(name)}`
  if (reason === 'not-found' && /^[a-z][a-z0-9+.-]*:\/\//i.test(name))
    return new KcertError('KCERT_FILE_NOT_FOUND', `${name} is not a file`, {
      why: 'it is a URL: download it, and pass the file',
    })
  if (reason === 'not-found')
    return new KcertError('KCERT_FILE_NOT_FOUND', `${name} does not exist`, { next })
  if (reason !== 'too-large')
    return new KcertError('KCERT_FILE_UNREADABLE', `${name} cannot be read`, { why: detail, next })
  return new KcertError('KCERT_FILE_TOO_LARGE', `${name} ${detail}`, {
    why: 'it is read into memory',
    fix: tooLargeFix,
  })
}
