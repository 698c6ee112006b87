import * as fs from 'node:fs'
import { orUndefined } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type FileCalls, writeFileAtomically } from './atomic-file.ts'
import { kindOf } from './files.ts'
import { requiredFile } from './required-file.ts'

export interface OutputChoice {
  /** --force: an existing file is replaced. */
  readonly replace: boolean
}

/**
 * Throws KCERT_FILE_EXISTS when a private key may not be written to the path: it exists and must not be replaced, or it is
 * a symbolic link, FIFO, device, socket or folder. A key is never written to one of these.
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

/** Throws KCERT_FILE_EXISTS when the path exists and must not be replaced. */
export function checkOutputPath(path: string, { replace }: OutputChoice): void {
  const found = replace ? undefined : statOf(path)
  if (found !== undefined) throw exists(path, found)
}

/** Writes a private key that only this process's user can read, from the first byte on. Throws as `checkKeyPath` does. */
export function writeKeyFile(path: string, pem: string, choice: OutputChoice, calls?: FileCalls): void {
  checkKeyPath(path, choice)
  writeFileAtomically(path, pem, { mode: 0o600, exclusive: !choice.replace, secret: true }, calls)
}

/** Writes a file that everyone may read, such as a certificate or a bundle. Throws as `checkOutputPath` does. */
export function writePublicFile(path: string, text: string, choice: OutputChoice, calls?: FileCalls): void {
  checkOutputPath(path, choice)
  writeFileAtomically(path, text, { mode: 0o644, exclusive: !choice.replace }, calls)
}

/**
 * Replaces a file that everyone may read. Returns the path of the backup: `FILE.20261121T085731Z.bak` for this time, or
 * `FILE.20261121T085731Z.2.bak` for the second backup of that time. A backup has the mode of the old file. Undefined if there was
 * none.
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

/** Returns a time as used in the names of backups: 20261121T085731Z. */
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
  // If the folder is missing or may not be searched, the write reports the error.
  return orUndefined(() => fs.lstatSync(path, { throwIfNoEntry: false }))
}

function exists(path: string, found: fs.Stats): KcertError {
  const kind = found.isFile() ? '' : ` (${kindOf(found)})`
  return new KcertError('KCERT_FILE_EXISTS', `${path} exists${kind} and is not replaced`, {
    why: 'it may be the only copy',
    fix: found.isFile() ? 'name another file, or add --force to replace it' : 'name another file',
  })
}
