import { isAbsolute, join, resolve } from 'node:path'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { KeyArchive } from '../../rotation/old-keys.ts'
import { writeFileAtomically } from '../../system/atomic-file.ts'
import { readFile } from '../../system/files.ts'
import { makeFolders } from '../../system/new-folder.ts'
import { requiredFile } from '../../system/required-file.ts'

/** Returns the folder on this machine for old keys. The first key creates it, with mode 0700. */
export function keyArchive(folder: string, workingFolder: string): KeyArchive {
  const whole = isAbsolute(folder) ? folder : resolve(workingFolder, folder)
  return {
    folder: whole,
    keep: async (name, content, mode) => {
      const path = join(whole, name)
      makeFolders(whole, 0o700)
      try {
        writeFileAtomically(path, content, { mode, exclusive: true, secret: true })
      } catch (error) {
        // A file of an earlier run is checked like one of this run.
        if (!(error instanceof KcertError) || error.code !== 'KCERT_FILE_EXISTS') throw error
        checkOwn(path, mode, error)
      }
      return requiredFile(path)
    },
  }
}

/** Throws for a symbolic link, and for a key that others may read. */
function checkOwn(path: string, mode: number, error: KcertError): void {
  const read = readFile(path)
  if (!('bytes' in read) || read.file === undefined || read.file.linkTarget !== undefined) throw error
  if ((read.file.mode & 0o077 & ~mode) === 0) return
  throw new KcertError('KCERT_FILE_EXISTS', `${path} exists and other users can read it`, {
    why: 'only the owner may read a private key',
    next: commandLine`chmod 600 ${path}`,
  })
}
