import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { orUndefined } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type FileCalls, notWritten, syncFolder, writeFileAtomically } from './atomic-file.ts'
import { failureOf, linkAt } from './files.ts'
import { makeFolders } from './new-folder.ts'
import { requiredFile } from './required-file.ts'

// The files of a pair store (src/kubelet/pair-store.ts), on the disk.

type LinkCalls = FileCalls & Pick<typeof fs, 'symlinkSync'>

/** Returns the files of this machine. `calls` are the system calls; a test can stop the program at each of them. */
export function pairFiles(calls: LinkCalls = fs) {
  return {
    entryAt(path: string): 'absent' | 'file' | 'link' | 'other' {
      const found = orUnreadable(path, () => fs.lstatSync(path, { throwIfNoEntry: false }))
      if (found === undefined) return 'absent'
      if (found.isSymbolicLink()) return 'link'
      return found.isFile() ? 'file' : 'other'
    },

    leadsToFile(path: string): boolean {
      return orUnreadable(path, () => fs.statSync(path, { throwIfNoEntry: false }))?.isFile() ?? false
    },

    read(path: string): Uint8Array {
      return requiredFile(path)
    },

    writeNew(path: string, text: string): void {
      makeFolders(dirname(path), 0o755)
      writeFileAtomically(path, text, { mode: 0o600, exclusive: true, secret: true }, calls)
    },

    pointLink(path: string, target: string, by: string): void {
      try {
        // A leftover of a crash. The kubelet removes it as well.
        if (fs.lstatSync(by, { throwIfNoEntry: false })?.isSymbolicLink()) calls.unlinkSync(by)
        calls.symlinkSync(target, by)
        // In one step: the kubelet removes the old link first, and a read in between finds no link.
        calls.renameSync(by, path)
      } catch (error) {
        throw notWritten(path, error)
      }
      syncFolder(path, dirname(path), calls)
    },

    namesIn(folder: string): readonly string[] {
      return orUndefined(() => fs.readdirSync(folder)) ?? []
    },

    nudge(path: string): void {
      try {
        const { atime, mtime } = fs.statSync(path)
        fs.utimesSync(path, atime, mtime)
      } catch {
        // The file was removed meanwhile, and its watchers were notified of that.
      }
    },

    rename(from: string, to: string): void {
      try {
        calls.renameSync(from, to)
      } catch (error) {
        throw notWritten(to, error)
      }
      syncFolder(to, dirname(to), calls)
    },
  }
}

function orUnreadable<Result>(path: string, observe: () => Result): Result {
  try {
    return observe()
  } catch (error) {
    const { detail } = failureOf(error, linkAt(path))
    throw new KcertError('KCERT_FILE_UNREADABLE', `${path} cannot be read`, {
      why: detail,
      next: commandLine`ls -l ${path}`,
      cause: error,
    })
  }
}
