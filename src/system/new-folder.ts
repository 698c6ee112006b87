import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf, orUndefined, systemCode } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { removeQuietly, syncFolder, writeFileAtomically } from './atomic-file.ts'
import { isTemporaryName } from './leftovers.ts'
import { trustedPath, unfinishedNote } from './trusted-file.ts'
import { pathTrust } from './trusted-path.ts'

/**
 * Makes a folder, and those above it that are missing; it is there after a power failure too. Throws KCERT_FILE_NOT_WRITTEN.
 * One level at a time: Node's own way to make folders above a folder never ends in /proc.
 */
export function makeFolders(path: string, mode: number): void {
  // What lies at the path, be it a file, is for the first write into it to tell.
  if (fs.existsSync(path)) return
  const above = dirname(path)
  if (above !== path) makeFolders(above, mode)
  try {
    fs.mkdirSync(path, { mode })
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return
    throw new KcertError('KCERT_FILE_NOT_WRITTEN', `cannot create the folder ${path}`, {
      why: messageOf(error),
      next: commandLine`ls -ld ${above}`,
      cause: error,
    })
  }
  syncFolder(path, above, fs)
}

// Lies in a folder as long as files are written into it, and names them.
const unfinished = '.unfinished.kcert-tmp'

/**
 * Makes a folder that its owner alone can look into; what a run of `writeInto` that was stopped has left there is removed. Throws
 * KCERT_FILE_EXISTS when something is there that is no empty folder, and KCERT_FILE_UNTRUSTED when other users can change it.
 */
export function newFolder(path: string): void {
  try {
    makeFolders(path, 0o700)
    removeUnfinished(trustedPath('output folder', path))
    // What was killed in its first write is swept up by the next one.
    if (fs.readdirSync(path).some((name) => !isTemporaryName(name))) throw exists(path, 'it is not empty')
    fs.chmodSync(path, 0o700)
  } catch (error) {
    if (error instanceof KcertError) throw error
    const code = systemCode(error)
    if (code === 'EEXIST' || code === 'ENOTDIR') throw exists(path, 'it is no folder')
    throw new KcertError('KCERT_FILE_NOT_WRITTEN', path, { why: messageOf(error), cause: error })
  }
}

/**
 * Writes files below a folder of `newFolder`, readable by their owner alone; each is whole or not there, and a folder that lacks one says so
 * by a file of its own, for the next `newFolder`.
 */
export function writeInto(
  folder: string,
  files: readonly { readonly path: string; readonly content: Uint8Array | string }[],
): void {
  const marker = join(folder, unfinished)
  const names = files.map(({ path }) => path)
  writeFileAtomically(marker, JSON.stringify(names), { mode: 0o600, exclusive: true })
  for (const { path, content } of files) {
    const whole = join(folder, path)
    makeFolders(dirname(whole), 0o700)
    writeFileAtomically(whole, content, { mode: 0o600, exclusive: true, secret: true })
  }
  removeQuietly(marker)
}

/** Removes what is named as unfinished, and nothing else. `folder` has no symbolic links on its way. */
function removeUnfinished(folder: string): void {
  const names = namesIn(join(folder, unfinished))
  if (names === undefined) return
  const files = names
    .filter((name) => !name.split('/').includes('..'))
    .map((name) => join(folder, name))
    .filter(isOwn)
  const folders = new Set(files.map((file) => dirname(file)).filter((path) => path !== folder))
  for (const file of files) fs.rmSync(file, { force: true })
  for (const path of folders) {
    for (const name of fs.readdirSync(path).filter(isTemporaryName)) fs.unlinkSync(join(path, name))
    fs.rmdirSync(path)
  }
  for (const name of fs.readdirSync(folder).filter(isTemporaryName)) fs.unlinkSync(join(folder, name))
}

/** False for what others have put there, for what a link leads to, and where a folder on the way is missing. */
function isOwn(path: string): boolean {
  const trust = orUndefined(() => pathTrust(path))
  return trust !== undefined && 'path' in trust && trust.path === path
}

/** Undefined for a file that kcert has not written: it is somebody else's. */
function namesIn(marker: string): string[] | undefined {
  const note = unfinishedNote(marker)
  const names = orUndefined((): unknown => JSON.parse(note ?? ''))
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : undefined
}

function exists(path: string, why: string): KcertError {
  return new KcertError('KCERT_FILE_EXISTS', `kcert does not write into ${path}`, {
    why: `${why}: name a folder that does not exist yet`,
  })
}
