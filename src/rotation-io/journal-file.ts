import type { JournalFile } from '../rotation/ports.ts'
import { AppendFile } from '../system/append-file.ts'
import { acquireLock } from '../system/lock.ts'

export interface JournalMirror {
  /** Returns the last mirrored text; undefined when there is no complete one. */
  read(): Promise<string | undefined>
  /** Receives the whole text after each line. Never throws and never waits. */
  follow(text: string): void
}

/**
 * Returns the journal at this path. No other kcert on this machine uses it until it is disposed of. Each line is on disk when
 * `append` resolves. If the file does not exist, the mirror in the cluster is used. Throws KCERT_LOCKED, KCERT_FILE_UNREADABLE
 * and KCERT_FILE_NOT_WRITTEN.
 */
export async function openJournal(path: string, mirror?: JournalMirror): Promise<JournalFile & Disposable> {
  const lock = await acquireLock(path, 0)
  const file = new AppendFile(path, 'journal')
  let known: string | undefined
  const read = async (): Promise<string> => {
    known ??= await wholeLines(file, mirror)
    return known
  }
  return {
    read,
    async append(line) {
      const before = await read()
      file.append(Buffer.from(line))
      known = before + line
      mirror?.follow(known)
    },
    [Symbol.dispose]: () => lock[Symbol.dispose](),
  }
}

async function wholeLines(file: AppendFile, mirror: JournalMirror | undefined): Promise<string> {
  const bytes = Buffer.from(file.read())
  const whole = bytes.lastIndexOf('\n') + 1
  // An incomplete line was being written when kcert was killed. The action that it announces did not run.
  if (whole < bytes.length) file.cut(whole)
  const text = bytes.subarray(0, whole).toString('utf8')
  const mirrored = text === '' ? await mirror?.read() : undefined
  if (mirrored === undefined) return text
  file.append(Buffer.from(mirrored))
  return mirrored
}
