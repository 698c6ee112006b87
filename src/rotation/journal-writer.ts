import { messageOf } from '../errors/caught.ts'
import {
  type IntentEntry,
  type JournalEntry,
  type JournalRecord,
  journalLine,
  readJournal,
} from './journal.ts'
import type { JournalFile, Pace } from './ports.ts'

/**
 * The only writer of the journal. It writes one line after another even when actions run in parallel, each with the digest of the
 * previous line.
 */
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

  /** Reads the existing journal. Throws KCERT_JOURNAL_DAMAGED. */
  static async open(file: JournalFile, pace: Pick<Pace, 'now'>): Promise<JournalWriter> {
    return new JournalWriter(file, pace, await file.read())
  }

  /** Returns the entries of the journal, in order. */
  get history(): readonly JournalEntry[] {
    return this.entries
  }

  /** Resolves when the record is on disk. */
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

  /** Performs an action. Records it beforehand, and records success or failure afterwards. Throws the error of the action. */
  async around(act: Omit<IntentEntry, 'kind' | 'detail'>, perform: () => Promise<void>): Promise<void> {
    // Durable before the action: when the journal cannot be written, the action does not run.
    await this.record({ kind: 'intent', ...act })
    try {
      await perform()
    } catch (error) {
      await this.record({ kind: 'failed', ...act, detail: messageOf(error) }).catch(() => {})
      throw error
    }
    await this.record({ kind: 'done', ...act })
  }
}
