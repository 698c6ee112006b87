import type { JournalFile } from '../rotation/ports.ts'
import { AppendFile } from '../system/append-file.ts'
import { acquireLock } from '../system/lock.ts'

/** What follows what is written to a journal. */
export interface JournalMirror {
  /** The text as it was mirrored last; undefined when there is none that is whole. */
  read(): Promise<string | undefined>
  /** Told of the whole text after each line. Never throws and never waits. */
  follow(text: string): void
}

/**
 * Returns the journal of that path, which no other kcert of this machine uses until it is disposed of. Each line is on the disk when
 * `append` comes back. Where the file is not there, what was mirrored in the cluster is taken up.
 * Throws KCERT_LOCKED, KCERT_FILE_UNREADABLE and KCERT_FILE_NOT_WRITTEN.
 */
export async function openJournal(path: string, mirror?: JournalMirror): Promise<JournalFile & Disposable> {
  return new LocalJournal(path, mirror, await acquireLock(path, 0))
}

class LocalJournal implements JournalFile, Disposable {
  private readonly file: AppendFile
  private readonly lock: Disposable
  private readonly mirror: JournalMirror | undefined
  private text = ''
  private isOpen = false

  constructor(path: string, mirror: JournalMirror | undefined, lock: Disposable) {
    this.lock = lock
    this.file = new AppendFile(path)
    this.mirror = mirror
  }

  async read(): Promise<string> {
    await this.open()
    return this.text
  }

  async append(line: string): Promise<void> {
    await this.open()
    this.file.append(Buffer.from(line))
    this.text += line
    this.mirror?.follow(this.text)
  }

  [Symbol.dispose](): void {
    this.lock[Symbol.dispose]()
  }

  private async open(): Promise<void> {
    if (this.isOpen) return
    const bytes = Buffer.from(this.file.read())
    const whole = bytes.lastIndexOf('\n') + 1
    // A line without its end was being written when kcert was killed: what it announces did not happen.
    if (whole < bytes.length) this.file.cut(whole)
    this.text = bytes.subarray(0, whole).toString('utf8')
    const mirrored = this.text === '' ? await this.mirror?.read() : undefined
    if (mirrored !== undefined) {
      this.file.append(Buffer.from(mirrored))
      this.text = mirrored
    }
    this.isOpen = true
  }
}
