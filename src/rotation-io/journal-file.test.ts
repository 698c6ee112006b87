import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { JournalFile } from '../rotation/ports.ts'
import { type JournalMirror, openJournal } from './journal-file.ts'

async function withJournal<Result>(
  path: string,
  act: (journal: JournalFile) => Promise<Result>,
  mirror?: JournalMirror,
): Promise<Result> {
  using journal = await openJournal(path, mirror)
  return await act(journal)
}

const folder = mkdtempSync(join(tmpdir(), 'kcert-journal-'))
afterAll(() => rmSync(folder, { recursive: true }))
let count = 0
const fresh = (): string => join(folder, `${++count}.jsonl`)

test('writes lines with mode 0600, and the next run reads them', async () => {
  const path = fresh()
  await withJournal(path, async (journal) => {
    expect(await journal.read()).toBe('')
    await journal.append('{"a":1}\n')
    await journal.append('{"a":2}\n')
  })
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(await withJournal(path, (journal) => journal.read())).toBe('{"a":1}\n{"a":2}\n')
})

test('removes an incomplete last line before writing the next one', async () => {
  const path = fresh()
  await withJournal(path, (journal) => journal.append('{"a":1}\n'))
  appendFileSync(path, '{"a":')
  await withJournal(path, (journal) => journal.append('{"a":3}\n'))
  expect(readFileSync(path, 'utf8')).toBe('{"a":1}\n{"a":3}\n')
})

test('refuses a journal in use at once', async () => {
  const path = fresh()
  await withJournal(path, async () => {
    await expect(withJournal(path, async () => {})).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  })
})

test('restores a lost journal from its mirror, and keeps an existing one', async () => {
  const followed: string[] = []
  const mirror = {
    read: async () => '{"of":"the mirror"}\n',
    follow: (text: string) => void followed.push(text),
  }
  const path = fresh()
  const lost = await withJournal(path, (journal) => journal.read(), mirror)
  expect(lost).toBe('{"of":"the mirror"}\n')
  await withJournal(path, (journal) => journal.append('{"b":1}\n'), mirror)
  expect(followed).toEqual(['{"of":"the mirror"}\n{"b":1}\n'])
  const other = fresh()
  await withJournal(other, (journal) => journal.append('{"c":1}\n'))
  expect(await withJournal(other, (journal) => journal.read(), mirror)).toBe('{"c":1}\n')
})
