import { hash } from 'node:crypto'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { kubeadmKeyTypes } from '../x509/new-key.ts'
import type { Action } from './action.ts'
import type { CertificateRecord, Digest } from './certificate-record.ts'
import { type PhaseTable, rowNumbered } from './phase-table.ts'
import type { EvidenceSnapshot, HandshakeRate, IntentSnapshot } from './snapshot.ts'
import { etcdClientChoices, tokenProofs } from './target.ts'
import type { Remembered, Settings } from './target-reading.ts'

// The journal: JSON lines, each with the digest of the previous line, so that a lost, changed or inserted line is detected. The
// journal is evidence, but kcert reads the state of the rotation from the cluster. It contains digests, paths and public keys of
// CAs, but no private keys.

/** The CAs or the key, so that the last phase can continue when kcert's folder is partly deleted. */
interface RotationEntry extends Remembered {
  readonly kind: 'rotation'
  /** Choices for the whole rotation, so that later commands use them without repeating the flags. */
  readonly settings?: Choices
}

/** Choices that do not change in the middle of a rotation. */
export type Choices = Pick<Settings, 'cas' | 'withBridge' | 'reason' | 'newKeys' | 'keyType'> & {
  /** Absent in journals of earlier versions. */
  readonly proof?: Settings['proof']
  /** Absent when they are known. */
  readonly etcdClients?: Settings['etcdClients']
}

export const phaseEvents = ['started', 'completed', 'stopped', 'rolled-back'] as const

interface PhaseEntry {
  readonly kind: 'phase'
  readonly phase: number
  readonly event: (typeof phaseEvents)[number]
  readonly detail?: string
}

export interface IntentEntry {
  readonly kind: 'intent' | 'done' | 'failed'
  readonly phase: number
  /** Digest of the action's JSON. */
  readonly action: Digest
  /** Description: "write cp1:/etc/kubernetes/pki/ca.crt". */
  readonly what: string
  readonly detail?: string
}

interface EvidenceEntry extends EvidenceSnapshot {
  readonly kind: 'evidence'
  readonly phase: number
}

interface WaiverEntry {
  readonly kind: 'waiver'
  readonly id: string
  /** The phase that asked; absent for a flag. */
  readonly phase?: number
}

export type JournalRecord = RotationEntry | PhaseEntry | IntentEntry | EvidenceEntry | WaiverEntry

export type JournalEntry = JournalRecord & {
  readonly time: string
  /** SHA-256 of the previous line without its line end; 64 zeros in the first line. */
  readonly previous: Digest
}

const beginning = '0'.repeat(64)

/** Returns the line, without its line end, that follows `last` (undefined: an empty journal). */
export function journalLine(record: JournalRecord, atMs: number, last: string | undefined): string {
  const previous = last === undefined ? beginning : digestOf(last)
  return JSON.stringify({ time: new Date(atMs).toISOString(), ...record, previous })
}

/**
 * Returns the entries of a journal. An incomplete last line was being written when kcert was killed. It is ignored, because the
 * action that it announces did not run. Throws KCERT_JOURNAL_DAMAGED for any other error.
 */
export function readJournal(text: string): readonly JournalEntry[] {
  const lines = text.split('\n')
  lines.pop()
  let previous = beginning
  return lines.map((line, index) => {
    const entry = entryOf(line, index)
    if (entry.previous !== previous) throw damaged(index, 'its digest of the previous line does not match')
    if (entry.kind === 'rotation') checkCas(entry, index)
    if (entry.kind === 'phase' && !phaseEvents.includes(entry.event))
      throw damaged(index, 'its event is unknown: another version of kcert wrote it')
    previous = digestOf(line)
    return entry
  })
}

function entryOf(line: string, index: number): JournalEntry {
  try {
    const entry = JSON.parse(line) as JournalEntry
    if (typeof entry === 'object' && entry !== null && typeof entry.kind === 'string') return entry
  } catch {
    // Reported below.
  }
  throw damaged(index, 'it is not a JSON object of a journal')
}

/** No digest follows the last line, so its CAs are checked separately. Throws KCERT_JOURNAL_DAMAGED. */
function checkCas({ changes, key, settings }: Readonly<Partial<RotationEntry>>, index: number): void {
  const cas: unknown = Array.isArray(changes) && changes.flatMap((change) => [change?.oldCa, change?.newCa])
  if (!Array.isArray(cas) || !cas.every(isRecord))
    throw damaged(index, 'its CAs do not have the format that kcert writes')
  if (!cas.every(hasOwnKey)) throw damaged(index, 'a public key in it does not belong to its CA')
  if (
    key !== undefined &&
    ![key?.oldKey, key?.newKey].every((digest) => /^[\da-f]{64}$/.test(String(digest)))
  )
    throw damaged(index, 'its service account keys do not have the format that kcert writes')
  if (settings?.proof !== undefined && !tokenProofs.includes(settings.proof))
    throw damaged(index, 'its proof is unknown: another version of kcert wrote it')
  if (settings?.keyType !== undefined && !kubeadmKeyTypes.includes(settings.keyType))
    throw damaged(index, 'its key type is unknown: another version of kcert wrote it')
  if (settings?.etcdClients !== undefined && !etcdClientChoices.includes(settings.etcdClients))
    throw damaged(index, 'its choice for clients of etcd is unknown: another version of kcert wrote it')
}

function isRecord(value: unknown): value is CertificateRecord {
  return typeof value === 'object' && value !== null && typeof (value as CertificateRecord).spki === 'string'
}

/** Returns true for a missing key too: earlier versions of kcert did not record it. */
function hasOwnKey({ publicKey, spki }: CertificateRecord): boolean {
  if (publicKey === undefined) return true
  return typeof publicKey === 'string' && hash('sha256', Buffer.from(publicKey, 'base64'), 'hex') === spki
}

function damaged(index: number, why: string): KcertError {
  return new KcertError('KCERT_JOURNAL_DAMAGED', `line ${index + 1} of the journal is invalid`, {
    why: `${why}; move the journal away: kcert reads the state from the cluster and repeats the checks`,
    next: 'kcert rotate-ca',
  })
}

function digestOf(text: string): Digest {
  return hash('sha256', text, 'hex')
}

/** Returns the entries of the current rotation. Evidence and waivers from before a complete undo are ignored. */
export function sinceRollback(entries: readonly JournalEntry[], table: PhaseTable): readonly JournalEntry[] {
  const last = entries.findLastIndex((entry) => entry.kind === 'phase' && isTakenBack(entry, table))
  return entries.slice(last + 1)
}

/** Returns true when the rotation in the journal is finished. */
export function isOfFinished(entries: readonly JournalEntry[], table: PhaseTable): boolean {
  const last = entries.findLast((entry) => entry.kind === 'phase')
  if (last?.kind !== 'phase' || last.event !== 'completed') return false
  return rowNumbered(table, last.phase)?.dropsOld === true
}

/** Returns the last result of each probe, by key. */
export function evidenceIn(entries: readonly JournalEntry[]): ReadonlyMap<string, EvidenceSnapshot> {
  const evidence = new Map<string, EvidenceSnapshot>()
  for (const entry of entries) {
    if (entry.kind !== 'evidence') continue
    const { key, ok, atMs, detail, rate } = entry
    evidence.set(key, { key, ok, atMs, detail, ...(isRate(rate) && { rate }) })
  }
  return evidence
}

/**
 * Returns whether the rate is a pair of numbers. Any other rate would allow any number of errors, so it is ignored and 0 is
 * assumed.
 */
function isRate(rate: Readonly<Record<keyof HandshakeRate, unknown>> | undefined): boolean {
  const { errors, overMs } = rate ?? {}
  return Number.isInteger(errors) && Number(errors) >= 0 && Number.isFinite(overMs) && Number(overMs) > 0
}

/** Returns the phases that started an action and were not undone: one entry for each. */
export function intentsIn(entries: readonly JournalEntry[], table: PhaseTable): readonly IntentSnapshot[] {
  const intents = new Map<number, IntentSnapshot>()
  for (const entry of entries) {
    if (entry.kind === 'phase' && entry.event === 'rolled-back') intents.delete(entry.phase)
    if (entry.kind !== 'intent' || intents.has(entry.phase)) continue
    intents.set(entry.phase, {
      phase: entry.phase,
      atMs: Date.parse(entry.time),
      drops: rowNumbered(table, entry.phase)?.dropsOld === true,
    })
  }
  return [...intents.values()]
}

/**
 * Returns the IDs for which the operator accepted the risk, with the time of the answer. An answer is about the state in which a phase
 * asked, so a rollback of this phase or of an earlier one takes it back.
 */
export function waiversIn(entries: readonly JournalEntry[]): ReadonlyMap<string, number> {
  const waivers = new Map<string, { readonly atMs: number; readonly phase: number | undefined }>()
  for (const entry of entries) {
    if (entry.kind === 'waiver')
      waivers.set(entry.id, { atMs: Date.parse(entry.time) || 0, phase: entry.phase })
    if (entry.kind !== 'phase' || entry.event !== 'rolled-back') continue
    for (const [id, { phase = 0 }] of waivers) if (phase >= entry.phase) waivers.delete(id)
  }
  return new Map([...waivers].map(([id, { atMs }]) => [id, atMs]))
}

/** Returns the last recorded CAs and service account key, unless phase 1 was undone since then. */
export function rememberedIn(entries: readonly JournalEntry[], table: PhaseTable): Remembered {
  const { changes = [], key } = rotationIn(entries, table) ?? {}
  return { changes, ...(key && { key }) }
}

/** Returns the choices for the rotation in the journal; undefined before phase 1 is complete, or with --algorithm or --etcd-clients, before it starts. */
export function choicesIn(entries: readonly JournalEntry[], table: PhaseTable): Choices | undefined {
  return rotationIn(entries, table)?.settings
}

export function choicesOf(settings: Settings): Choices {
  const { cas, withBridge, reason, newKeys, proof, keyType, etcdClients } = settings
  const others = {
    ...(proof !== 'counters' && { proof }),
    ...given({ keyType }),
    ...(etcdClients === 'unknown' && { etcdClients }),
  }
  return { cas, withBridge, reason, newKeys, ...others }
}

function rotationIn(entries: readonly JournalEntry[], table: PhaseTable): RotationEntry | undefined {
  const last = entries.findLast(
    (entry) => entry.kind === 'rotation' || (entry.kind === 'phase' && isTakenBack(entry, table)),
  )
  return last?.kind === 'rotation' ? last : undefined
}

/** After this undo, the new CA's key is gone from every node, and the next rotation creates another. */
function isTakenBack({ phase, event }: PhaseEntry, table: PhaseTable): boolean {
  return event === 'rolled-back' && rowNumbered(table, phase)?.begins === true
}

/** Marks the start of an undo in the journal. */
export const undoing = 'undo'

/** Returns the descriptions of the actions that the undo of a phase has completed since it started. */
export function undoneIn(entries: readonly JournalEntry[], number: number): ReadonlySet<string> {
  const its = entries.filter((entry) => 'phase' in entry && entry.phase === number)
  const begun = its.findLastIndex(
    (entry) => entry.kind === 'phase' && entry.event !== 'stopped' && entry.detail !== undoing,
  )
  return new Set(its.slice(begun + 1).flatMap((entry) => (entry.kind === 'done' ? [entry.what] : [])))
}

export function actionDigest(action: Action): Digest {
  return digestOf(JSON.stringify(action))
}
