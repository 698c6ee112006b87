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
 * Creates a folder and its missing parents, durable across a power failure. Throws KCERT_FILE_NOT_WRITTEN.
 * It creates one level at a time: Node's recursive mkdir never returns in /proc.
 */
export function makeFolders(path: string, mode: number): void {
  // If something else exists at the path, even a file, the first write into it reports the error.
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

// Lists the files of an unfinished write. It exists only while the files of a folder are being written.
const unfinished = '.unfinished.kcert-tmp'

/**
 * Creates a folder with mode 0700, and removes what an interrupted `writeInto` left there. Throws KCERT_FILE_EXISTS if the path
 * exists and is not an empty folder, and KCERT_FILE_UNTRUSTED if other users can change it.
 */
export function newFolder(path: string): void {
  try {
    makeFolders(path, 0o700)
    removeUnfinished(trustedPath('output folder', path))
    // The next write removes the temporary file of a process that was killed during its first write.
    if (fs.readdirSync(path).some((name) => !isTemporaryName(name))) throw exists(path, 'it is not empty')
    fs.chmodSync(path, 0o700)
  } catch (error) {
    if (error instanceof KcertError) throw error
    const code = systemCode(error)
    if (code === 'EEXIST' || code === 'ENOTDIR') throw exists(path, 'it is not a folder')
    throw new KcertError('KCERT_FILE_NOT_WRITTEN', path, { why: messageOf(error), cause: error })
  }
}

/**
 * Writes files below a folder of `newFolder`, readable by their owner only. Each file is complete or absent. While one is
 * missing, a marker file in the folder says so, for the next `newFolder`.
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

/** Removes only the files that are listed as unfinished. The path of `folder` has no symbolic links. */
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

/** Returns false for files of other users, for link targets, and where a parent folder is missing. */
function isOwn(path: string): boolean {
  const trust = orUndefined(() => pathTrust(path))
  return trust !== undefined && 'path' in trust && trust.path === path
}

/** Returns undefined for a file that kcert did not write. */
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
