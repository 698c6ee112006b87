import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import { writeFileAtomically } from './atomic-file.ts'

/** Makes a folder that its owner alone can look into. Throws KCERT_FILE_EXISTS when something is there that is no empty folder. */
export function newFolder(path: string): void {
  try {
    fs.mkdirSync(path, { recursive: true, mode: 0o700 })
    if (fs.readdirSync(path).length > 0) throw exists(path, 'it is not empty')
    fs.chmodSync(path, 0o700)
  } catch (error) {
    if (error instanceof KcertError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || code === 'ENOTDIR') throw exists(path, 'it is no folder')
    throw new KcertError('KCERT_FILE_NOT_WRITTEN', path, { why: message, cause: error })
  }
}

/** Writes files below a folder of `newFolder`, readable by their owner alone; each is whole or not there. */
export function writeInto(
  folder: string,
  files: readonly { readonly path: string; readonly content: Uint8Array | string }[],
): void {
  const made = new Set<string>()
  for (const { path, content } of files) {
    const whole = join(folder, path)
    const parent = dirname(whole)
    if (!made.has(parent)) fs.mkdirSync(parent, { recursive: true, mode: 0o700 })
    made.add(parent)
    writeFileAtomically(whole, content, { mode: 0o600, exclusive: true, secret: true })
  }
}

function exists(path: string, why: string): KcertError {
  return new KcertError('KCERT_FILE_EXISTS', `${path} is not written into`, {
    why,
    next: 'name a folder that is not there yet',
  })
}
