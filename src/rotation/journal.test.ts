import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { CertificateRecord } from './certificate-record.ts'
import {
  choicesIn,
  type JournalRecord,
  journalLine,
  readJournal,
  rememberedIn,
  waiversIn,
} from './journal.ts'
import { manualRotation } from './phase-table.ts'

// CAs in a journal.

const key = Buffer.from('a public key')
const ca: CertificateRecord = {
  digest: 'a'.repeat(64),
  subject: 'CN=kubernetes',
  issuer: 'CN=kubernetes',
  spki: hash('sha256', key, 'hex'),
  isCa: true,
  notBeforeMs: 0,
  notAfterMs: 1,
}
const journalWith = (oldCa: unknown): string => {
  const record = { kind: 'rotation', changes: [{ ca: 'cluster', oldCa, newCa: ca }] } as JournalRecord
  return `${journalLine(record, 0, undefined)}\n`
}

test('reads a CA with its public key, and one without it as earlier versions wrote it', () => {
  const whole = { ...ca, publicKey: key.toString('base64') }
  for (const oldCa of [whole, ca])
    expect(rememberedIn(readJournal(journalWith(oldCa)), manualRotation).changes[0]!.oldCa).toEqual(oldCa)
})

test.each([
  ['of another key', Buffer.from('another').toString('base64')],
  ['that was cut', key.subarray(1).toString('base64')],
  ['that is empty', ''],
  ['that is no text', 5],
  ['that is null', null],
])('reports a public key %s as damage, with the next step', (_, publicKey) => {
  expect(() => readJournal(journalWith({ ...ca, publicKey }))).toThrow(
    expect.objectContaining({
      code: 'KCERT_JOURNAL_DAMAGED',
      message: 'line 1 of the journal is invalid',
      why: expect.stringMatching(/^a public key in it does not belong to its CA; move the journal away: /),
      next: 'kcert rotate-ca',
    }),
  )
})

test.each([
  ['no list', 'both'],
  ['nothing', undefined],
  ['a list of nothing', [null]],
  ['without a new CA', [{ ca: 'cluster', oldCa: ca }]],
  ['with a CA that is text', [{ ca: 'cluster', oldCa: ca, newCa: 'CN=kubernetes' }]],
])('reports CAs that are %s as damage', (_, changes) => {
  const line = journalLine({ kind: 'rotation', changes } as unknown as JournalRecord, 0, undefined)
  expect(() => readJournal(`${line}\n`)).toThrow(
    expect.objectContaining({
      code: 'KCERT_JOURNAL_DAMAGED',
      why: expect.stringMatching(/^its CAs do not have the format that kcert writes; /),
    }),
  )
})

test('refuses a journal with the phase events of another version', () => {
  const record = { kind: 'phase', phase: 12, event: 'held' } as unknown as JournalRecord
  expect(() => readJournal(`${journalLine(record, 0, undefined)}\n`)).toThrow(
    expect.objectContaining({
      code: 'KCERT_JOURNAL_DAMAGED',
      why: expect.stringMatching(
        /^its event is unknown: another version of kcert wrote it; move the journal/,
      ),
      next: 'kcert rotate-ca',
    }),
  )
})

test.each([
  ['null', null],
  ['text', 'kid'],
  ['without the new key', { oldKey: 'a'.repeat(64) }],
  ['with a planned key', { oldKey: 'a'.repeat(64), newKey: 'planned:service-account/new' }],
  ['with a PEM key', { oldKey: 'a'.repeat(64), newKey: '-----BEGIN PRIVATE KEY-----' }],
])('reports service account keys that are %s as damage', (_, its) => {
  const record = { kind: 'rotation', changes: [], key: its } as unknown as JournalRecord
  expect(() => readJournal(`${journalLine(record, 0, undefined)}\n`)).toThrow(
    expect.objectContaining({
      code: 'KCERT_JOURNAL_DAMAGED',
      why: expect.stringMatching(/^its service account keys do not have the format/),
    }),
  )
})

test('remembers a service account key, and refuses a proof that it does not know', () => {
  const its = { oldKey: 'a'.repeat(64), newKey: 'b'.repeat(64) }
  const text = (settings?: object) => {
    const record = { kind: 'rotation', changes: [], key: its, settings } as unknown as JournalRecord
    return `${journalLine(record, 0, undefined)}\n`
  }
  expect(rememberedIn(readJournal(text()), manualRotation)).toEqual({ changes: [], key: its })
  expect(() => readJournal(text({ proof: '__proto__' }))).toThrow(
    expect.objectContaining({ code: 'KCERT_JOURNAL_DAMAGED' }),
  )
})

test.each([
  ...['__proto__', 'ECDSA-P521', 'ecdsa-p256', '', null, 3, ['ECDSA-P256'], { a: 1 }].map(
    (value) => ['keyType', value, 'its key type', 'ECDSA-P384'] as const,
  ),
  ...['__proto__', 'Unknown', '', null, ['unknown'], { a: 1 }].map(
    (value) => ['etcdClients', value, 'its choice for clients of etcd', 'unknown'] as const,
  ),
])('reports the %s %j as damage, and remembers a valid one', (name, value, what, valid) => {
  const text = (settings: object) => {
    const record = { kind: 'rotation', changes: [], settings } as unknown as JournalRecord
    return `${journalLine(record, 0, undefined)}\n`
  }
  expect(() => readJournal(text({ [name]: value }))).toThrow(
    expect.objectContaining({
      code: 'KCERT_JOURNAL_DAMAGED',
      why: expect.stringMatching(new RegExp(`^${what} is unknown: another version of kcert wrote it`)),
    }),
  )
  const known = readJournal(text({ [name]: valid }))
  expect(choicesIn(known, manualRotation)?.[name]).toBe(valid)
})

test('a rollback of a phase takes back what was confirmed in it and later', () => {
  const records: readonly JournalRecord[] = [
    { kind: 'waiver', id: 'asked', phase: 6 },
    { kind: 'waiver', id: 'asked before', phase: 4 },
    { kind: 'waiver', id: 'flag' },
    { kind: 'phase', phase: 5, event: 'rolled-back' },
    { kind: 'waiver', id: 'again', phase: 6 },
  ]
  const lines: string[] = []
  for (const record of records) lines.push(journalLine(record, 1_000 * lines.length, lines.at(-1)))
  expect([...waiversIn(readJournal(`${lines.join('\n')}\n`))]).toEqual([
    ['asked before', 1_000],
    ['flag', 2_000],
    ['again', 4_000],
  ])
})
