import { hash } from 'node:crypto'
import * as fs from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { orUndefined } from '../errors/caught.ts'
import { type AtomicWrite, type FileCalls, removeQuietly, writeFileAtomically } from './atomic-file.ts'
import { readFile } from './files.ts'
import { checkKeyPath, checkOutputPath, type OutputChoice, writeKeyFile } from './output-file.ts'
import { fileError } from './required-file.ts'
import { unfinishedNote } from './trusted-file.ts'

// Two files cannot be put in place at one moment. So the certificate is first put beside its place, with the digest of its
// key file; then the key, then the certificate. After a crash, the first note shows by the digest how far it came,
// and finishes or forgets.

interface FileContent {
  readonly path: string
  readonly content: string
}

interface Note {
  readonly certificate: string
  readonly keyPath: string
  readonly keySha256: string
  /** Of the certificate's file, where there was none. */
  readonly mode: number
}

/**
 * Writes a certificate, or a request, and its private key so that after any crash, once `finishKeyPair` has run, both are old or both new.
 * When it fails, both are as they were. The caller holds the lock of the certificate's path.
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
  // It decides what `finishKeyPair` writes, so what others have put there gives it neither owner, mode nor place.
  writeFileAtomically(note, noteOf(certificate, key, mode), { mode: 0o600, secret: true }, calls)
  try {
    writeKeyFile(key.path, key.content, choice, calls)
    const exclusive = !choice.replace
    writeFileAtomically(certificate.path, certificate.content, { mode, exclusive }, calls)
  } catch (error) {
    // The certificate first: where the key cannot be put back, the note still knows how to finish the pair.
    const isRestored =
      restore(certificate.path, before.certificate, { mode }, calls) &&
      restore(key.path, before.key, { mode: 0o600, secret: true }, calls)
    if (isRestored) removeQuietly(note, calls)
    throw error
  }
  // A note that stays is true: a later `finishKeyPair` writes the existing content, or forgets.
  removeQuietly(note, calls)
}

/**
 * Brings a pair to an end whose writing a crash interrupted. Returns what was done: 'finished' when the new certificate was put
 * beside its key, 'forgotten' when the old state is kept, undefined when there was nothing to do. Throws KCERT_FILE_UNTRUSTED for a note
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

/** True when a crash left something to finish. */
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
    // A failed write may have been done all the same: what failed was to make it durable.
    if (contentOf(path) === before) return true
    if (before === undefined) calls.unlinkSync(path)
    else writeFileAtomically(path, before, write, calls)
    return true
  } catch {
    // The error that led here is the one to tell.
    return false
  }
}

/** Throws for a file that is there and cannot be read: a pair is only replaced where it can be put back. */
function contentOf(path: string): string | undefined {
  const read = readFile(path)
  if ('bytes' in read) return Buffer.from(read.bytes).toString('latin1')
  // The write tells what it thinks of a folder or a device.
  if (read.reason === 'not-found' || read.reason === 'dangling-link' || read.reason === 'not-a-file')
    return undefined
  throw fileError(read)
}

function sha256(content: string): string {
  return hash('sha256', Buffer.from(content, 'latin1'))
}
