import { hash } from 'node:crypto'
import * as fs from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { orUndefined } from '../errors/caught.ts'
import { type AtomicWrite, type FileCalls, removeQuietly, writeFileAtomically } from './atomic-file.ts'
import { readFile } from './files.ts'
import { checkKeyPath, checkOutputPath, type OutputChoice, writeKeyFile } from './output-file.ts'
import { fileError } from './required-file.ts'
import { unfinishedNote } from './trusted-file.ts'

// Two files cannot be replaced in one step. So the certificate is first written to a note next to its place, with the digest of
// its key file; then the key is written, then the certificate. After a crash, the digest in the note shows how far the write got,
// and the pair is finished or the note discarded.

interface FileContent {
  readonly path: string
  readonly content: string
}

interface Note {
  readonly certificate: string
  readonly keyPath: string
  readonly keySha256: string
  /** The mode of the certificate's file if there was none. */
  readonly mode: number
}

/**
 * Writes a certificate, or a request, and its private key. After a crash and `finishKeyPair`, both are old or both are new.
 * When the write fails, both are unchanged. The caller holds the lock of the certificate's path.
 */
export function writeKeyPair(
  certificate: FileContent,
  key: FileContent,
  choice: OutputChoice & { readonly mode?: number },
  calls: FileCalls = fs,
): void {
  const { mode = 0o644 } = choice
  checkKeyPath(key.path, choice)
  checkOutputPath(certificate.path, choice)
  const note = notePath(certificate.path)
  const before = { certificate: contentOf(certificate.path), key: contentOf(key.path) }
  // The note decides what `finishKeyPair` writes. So an existing file of another user determines neither owner, mode nor place of
  // it.
  writeFileAtomically(note, noteOf(certificate, key, mode), { mode: 0o600, secret: true }, calls)
  try {
    writeKeyFile(key.path, key.content, choice, calls)
    const exclusive = !choice.replace
    writeFileAtomically(certificate.path, certificate.content, { mode, exclusive }, calls)
  } catch (error) {
    // The certificate comes first: if the key cannot be restored, the note can still finish the pair.
    const isRestored =
      restore(certificate.path, before.certificate, { mode }, calls) &&
      restore(key.path, before.key, { mode: 0o600, secret: true }, calls)
    if (isRestored) removeQuietly(note, calls)
    throw error
  }
  // A note that remains is correct: a later `finishKeyPair` writes the same content, or discards it.
  removeQuietly(note, calls)
}

/**
 * Finishes a pair whose write was interrupted by a crash. Returns 'finished' when the new certificate was written next to its
 * key, 'forgotten' when the old state is kept, and undefined when there was nothing to do. Throws KCERT_FILE_UNTRUSTED for a note
 * that other users can change.
 */
export function finishKeyPair(certificatePath: string): 'finished' | 'forgotten' | undefined {
  const path = notePath(certificatePath)
  const text = unfinishedNote(path)
  if (text === undefined) return undefined
  const note = readNote(text)
  const key = note && contentOf(note.keyPath)
  const isFinished = note !== undefined && key !== undefined && sha256(key) === note.keySha256
  if (isFinished) writeFileAtomically(certificatePath, note.certificate, { mode: note.mode })
  fs.unlinkSync(path)
  return isFinished ? 'finished' : 'forgotten'
}

/** Returns true when a crash left a pair to finish. */
export function isKeyPairPending(certificatePath: string): boolean {
  return fs.existsSync(notePath(certificatePath))
}

function notePath(certificatePath: string): string {
  return join(
    dirname(certificatePath),
    `.${basename(certificatePath).slice(0, 50).toWellFormed()}.pair.kcert-tmp`,
  )
}

function noteOf(certificate: FileContent, key: FileContent, mode: number): string {
  const note: Note = {
    certificate: certificate.content,
    keyPath: resolve(key.path),
    keySha256: sha256(key.content),
    mode,
  }
  return JSON.stringify(note)
}

function readNote(text: string): Note | undefined {
  const note = orUndefined((): Note | undefined => JSON.parse(text))
  const texts = [note?.certificate, note?.keyPath, note?.keySha256]
  return note && texts.every((one) => typeof one === 'string')
    ? { ...note, mode: note.mode ?? 0o644 }
    : undefined
}

function restore(path: string, before: string | undefined, write: AtomicWrite, calls: FileCalls): boolean {
  try {
    // A failed write may have changed the content: the failing step may have been the sync.
    if (contentOf(path) === before) return true
    if (before === undefined) calls.unlinkSync(path)
    else writeFileAtomically(path, before, write, calls)
    return true
  } catch {
    // The original error is the one to report.
    return false
  }
}

/**
 * Returns the content of a file, undefined if there is none. Throws if it is unreadable: a pair is replaced only if it can be
 * restored.
 */
function contentOf(path: string): string | undefined {
  const read = readFile(path)
  if ('bytes' in read) return Buffer.from(read.bytes).toString('latin1')
  // For a folder or a device, the write reports the error.
  if (read.reason === 'not-found' || read.reason === 'dangling-link' || read.reason === 'not-a-file')
    return undefined
  throw fileError(read)
}

function sha256(content: string): string {
  return hash('sha256', Buffer.from(content, 'latin1'))
}
