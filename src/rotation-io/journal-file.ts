import type { JournalFile } from '../rotation/ports.ts'
import { AppendFile } from '../system/append-file.ts'
import { acquireLock } from '../system/lock.ts'

/** A mirror of the journal. */
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
    // An incomplete line was being written when kcert was killed. The action that it announces did not run.
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
