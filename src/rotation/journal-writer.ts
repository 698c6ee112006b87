import type { Digest } from './certificate-record.ts'
import { type JournalEntry, type JournalRecord, journalLine, readJournal } from './journal.ts'
import type { JournalFile, Pace } from './ports.ts'

/** An action, as the journal names it before it starts and after it finishes. */
export interface AnnouncedAct {
  readonly phase: number
  readonly action: Digest
  /** In words. */
  readonly what: string
}

/** The one place that writes the journal: line after line, though acts run side by side, each with the digest of the one before. */
export class JournalWriter {
  private readonly file: JournalFile
  private readonly pace: Pick<Pace, 'now'>
  private readonly entries: JournalEntry[]
  private last: string | undefined
  private writing: Promise<void> = Promise.resolve()

  private constructor(file: JournalFile, pace: Pick<Pace, 'now'>, text: string) {
    this.file = file
    this.pace = pace
    this.entries = [...readJournal(text)]
    this.last = text.split('\n').slice(0, -1).at(-1)
  }

  /** Reads the journal that is there. Throws KCERT_JOURNAL_DAMAGED. */
  static async open(file: JournalFile, pace: Pick<Pace, 'now'>): Promise<JournalWriter> {
    return new JournalWriter(file, pace, await file.read())
  }

  /** What the journal holds, in its order. */
  get history(): readonly JournalEntry[] {
    return this.entries
  }

  /** Comes back when the record is on the disk. */
  record(record: JournalRecord): Promise<void> {
    const written = this.writing.then(async () => {
      const line = journalLine(record, this.pace.now(), this.last)
      await this.file.append(`${line}\n`)
      this.last = line
      this.entries.push(JSON.parse(line) as JournalEntry)
    })
    this.writing = written.catch(() => {})
    return written
  }

  /** Performs an act that is announced before, and said to be done or to have failed behind it. Throws what stopped it. */
  async around(act: AnnouncedAct, perform: () => Promise<void>): Promise<void> {
    // Durable before the act: when the journal cannot be written, the act does not happen.
    await this.record({ kind: 'intent', ...act })
    try {
      await perform()
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      await this.record({ kind: 'failed', ...act, detail }).catch(() => {})
      throw error
    }
    await this.record({ kind: 'done', ...act })
  }
}
