import * as fs from 'node:fs'
import { orUndefined } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type FileCalls, writeFileAtomically } from './atomic-file.ts'
import { kindOf } from './files.ts'
import { requiredFile } from './required-file.ts'

export interface OutputChoice {
  /** --force: a file that is there is replaced. */
  readonly replace: boolean
}

/**
 * Throws KCERT_FILE_EXISTS when a private key may not be written to the path: something is there and must not be replaced, or it
 * is a symbolic link, FIFO, device, socket or folder, which a key is never written to.
 */
export function checkKeyPath(path: string, { replace }: OutputChoice): void {
  const found = statOf(path)
  if (found === undefined) return
  if (!replace) throw exists(path, found)
  if (found.isFile()) return
  const what = `${path} is ${kindOf(found)}, and a private key is not written to it`
  throw new KcertError('KCERT_FILE_EXISTS', what, {
    why: 'other users could read the key there',
    fix: 'name a file',
  })
}

/** Throws KCERT_FILE_EXISTS when something is there and must not be replaced. */
export function checkOutputPath(path: string, { replace }: OutputChoice): void {
  const found = replace ? undefined : statOf(path)
  if (found !== undefined) throw exists(path, found)
}

/** Writes a private key that no one but this process's user can read, not for one moment. Throws as `checkKeyPath` does. */
export function writeKeyFile(path: string, pem: string, choice: OutputChoice, calls?: FileCalls): void {
  checkKeyPath(path, choice)
  writeFileAtomically(path, pem, { mode: 0o600, exclusive: !choice.replace, secret: true }, calls)
}

/** Writes what everybody may read, a certificate or a bundle. Throws as `checkOutputPath` does. */
export function writePublicFile(path: string, text: string, choice: OutputChoice, calls?: FileCalls): void {
  checkOutputPath(path, choice)
  writeFileAtomically(path, text, { mode: 0o644, exclusive: !choice.replace }, calls)
}

/**
 * Replaces a file that everybody may read and returns where its old content is kept: `FILE.20261121T085731Z.bak` for this time,
 * `FILE.20261121T085731Z.2.bak` for the second of that time, with the mode that the file had. Undefined when there was no file.
 */
export function replaceKeepingBackup(
  path: string,
  text: string,
  now: Date,
  calls?: FileCalls,
): string | undefined {
  const found = statOf(path)
  const backup =
    found?.isFile() || found?.isSymbolicLink() ? freeName(`${path}.${fileStamp(now)}`) : undefined
  if (backup !== undefined) {
    const mode = fs.statSync(path).mode & 0o777
    writeFileAtomically(backup, requiredFile(path), { mode, exclusive: true }, calls)
  }
  writePublicFile(path, text, { replace: true }, calls)
  return backup
}

/** Returns a time as in the names of copies: 20261121T085731Z. */
export function fileStamp(at: Date): string {
  return at.toISOString().replaceAll(/[-:]|\.\d+/g, '')
}

function freeName(stem: string): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? `${stem}.bak` : `${stem}.${number}.bak`
    if (statOf(name) === undefined) return name
  }
}

function statOf(path: string): fs.Stats | undefined {
  // A folder that is not there or may not be searched: writing says so.
  return orUndefined(() => fs.lstatSync(path, { throwIfNoEntry: false }))
}

function exists(path: string, found: fs.Stats): KcertError {
  const kind = found.isFile() ? '' : ` (${kindOf(found)})`
  return new KcertError('KCERT_FILE_EXISTS', `${path} exists${kind} and is not replaced`, {
    why: 'it may be the only copy',
    fix: found.isFile() ? 'name another file, or add --force to replace it' : 'name another file',
  })
}
