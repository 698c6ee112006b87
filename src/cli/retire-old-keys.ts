import { hash } from 'node:crypto'
import { type ExitCode, exitCodes } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type JournalRecord, journalLine, readJournal } from '../rotation/journal.ts'
import {
  archiveNames,
  checkNotInUse,
  type KeyArchive,
  type OldCa,
  type OldKeyFiles,
  oldCasOf,
} from '../rotation/old-keys.ts'
import type { JournalFile, Observer, Pace } from '../rotation/ports.ts'
import type { RotationOldKeys } from '../rotation/report.ts'
import { timeOf } from '../rotation/views.ts'
import { type FoundFile, findOldKeys, isAway, whyAway } from './find-old-keys.ts'
import { interruption, type Operator } from './rotation-session.ts'

// What `kcert rotate-ca --archive-old-key` and `--destroy-old-key` do, on whatever nodes and journal they are given.

export interface OldKeyPorts {
  readonly observer: Observer
  readonly oldKeys: OldKeyFiles
  readonly journal: JournalFile
  readonly pace: Pace
}

export interface Retirement {
  /** Absent: the key is destroyed. */
  readonly archive?: KeyArchive
  readonly dryRun: boolean
  readonly yes: boolean
  /** As the operator would type it again, without this flag. */
  readonly command: string
  /** Returns the plan in words, shown before it is asked for. */
  readonly render: (report: RotationOldKeys) => string
}

/**
 * Archives or destroys the keys of the rotation's old CAs, node by node, each act announced in the journal before. Run again it
 * goes on. Throws KCERT_ROTATION_REFUSED before the rotation's end and for a key in use, KCERT_ROTATION_UNCONFIRMED.
 */
export async function retireOldKeys(
  { observer, oldKeys, journal, pace }: OldKeyPorts,
  { archive, dryRun, yes, command, render }: Retirement,
  operator: Operator,
): Promise<{ readonly report: RotationOldKeys; readonly exit: ExitCode }> {
  const text = await journal.read()
  const olds = oldCasOf(readJournal(text), command)
  const seen = await observer.observe(['nodes', 'components', 'files'])
  checkNotInUse(seen, olds)
  const names = seen.nodes.map(({ name }) => name)
  const { files, unreachable } = await findOldKeys(oldKeys, seen, names, olds)
  const archived: string[] = []
  const way = archive === undefined ? 'destroy' : 'archive'
  const reportOf = (outcome: RotationOldKeys['outcome']): RotationOldKeys => ({
    apiVersion: 'kcert/v1',
    kind: 'RotationOldKeys',
    generatedAt: timeOf(pace.now()),
    way,
    outcome,
    oldCas: olds.map(({ ca, subject, spki }) => ({ ca, subject, keySha256: spki })),
    files: files.map(({ node, path, digest, ca, isRemoved }) => ({
      node,
      path,
      ...(ca === undefined ? {} : { ca }),
      sha256: digest,
      state: isRemoved ? 'removed' : 'there',
    })),
    archived,
    unreachable,
  })
  const answer = (outcome: RotationOldKeys['outcome'], exit: ExitCode) => ({
    report: reportOf(outcome),
    exit,
  })
  const atEnd = () =>
    unreachable.length > 0
      ? answer('incomplete', exitCodes.unreachable)
      : answer(files.length === 0 ? 'nothing-left' : 'done', exitCodes.done)
  if (dryRun && files.length > 0)
    return answer('planned', unreachable.length > 0 ? exitCodes.unreachable : exitCodes.done)
  if (files.length === 0) return atEnd()
  if (!yes && !(await agrees(operator, way, () => render(reportOf('planned')), command))) {
    return answer('declined', exitCodes.no)
  }
  const record = recorder(journal, text, pace)
  const act = async (what: string, perform: () => Promise<void>): Promise<void> => {
    interruption(operator.interrupted, `${command} --${way}-old-key${archive ? ` ${archive.folder}` : ''}`)
    const entry = { phase: 12, action: hash('sha256', what, 'hex'), what }
    await record({ kind: 'intent', ...entry })
    try {
      await perform()
    } catch (error) {
      await record({ kind: 'failed', ...entry, detail: (error as Error).message }).catch(() => {})
      throw error
    }
    await record({ kind: 'done', ...entry })
    operator.note(`done: ${what}`)
  }
  if (archive !== undefined) {
    for (const old of olds) {
      const source = files.find(({ spki }) => spki === old.spki)
      if (source === undefined) continue
      const { key, certificate } = archiveNames(old)
      await act(`archive the key of the old ${old.ca} CA as ${archive.folder}/${key}`, async () => {
        await archiveOne(oldKeys, archive, old, source)
      })
      archived.push(`${archive.folder}/${key}`)
      if (oldKeys.certificate(old.digest) !== undefined) archived.push(`${archive.folder}/${certificate}`)
    }
  }
  for (const file of files) {
    const away = unreachable.some(({ node }) => node === file.node)
    if (away) continue
    const { node, path, ca } = file
    const what = ca === undefined ? 'overwritten already' : `key of the old ${ca} CA`
    try {
      await act(`destroy ${node}:${path} (${what})`, () => oldKeys.destroy(node, file))
      file.isRemoved = true
    } catch (error) {
      // The others are not to wait for a node that is away.
      if (!isAway(error)) throw error
      unreachable.push({ node, why: whyAway(error) })
    }
  }
  return atEnd()
}

/** Nothing leaves the nodes before the archive was read and holds the very key. */
async function archiveOne(
  oldKeys: OldKeyFiles,
  archive: KeyArchive,
  old: OldCa,
  source: FoundFile,
): Promise<void> {
  const { key, certificate } = archiveNames(old)
  const pem = oldKeys.certificate(old.digest)
  if (pem !== undefined) await archive.keep(certificate, pem, 0o644)
  const kept = await archive.keep(key, await oldKeys.read(source.node, source), 0o600)
  if (oldKeys.spkiOf(kept) === old.spki) return
  throw new KcertError(
    'KCERT_FILE_EXISTS',
    `${archive.folder}/${key} does not hold the old ${old.ca} CA's key`,
    {
      why: 'something else was there, and is not written over; nothing has been removed from a node',
      next: 'name another folder, or move that file away',
    },
  )
}

async function agrees(
  { choose, type, note }: Operator,
  way: RotationOldKeys['way'],
  plan: () => string,
  command: string,
): Promise<boolean> {
  note(plan().trimEnd())
  if (choose === undefined || type === undefined) {
    throw new KcertError('KCERT_ROTATION_UNCONFIRMED', `to ${way} the old CA's key needs a yes`, {
      why: 'there is no terminal to ask on',
      next: `look at ${command} --${way}-old-key${way === 'archive' ? ' DIR' : ''} --dry-run, then add --yes`,
    })
  }
  if (way === 'archive') return choose('Archive the key, and remove it from these nodes?')
  return type('Destroy the key on these nodes? There is no way back. Type "destroy" to go on:', 'destroy')
}

function recorder(journal: JournalFile, text: string, pace: Pace): (record: JournalRecord) => Promise<void> {
  let last = text.split('\n').slice(0, -1).at(-1)
  return async (record) => {
    const line = journalLine(record, pace.now(), last)
    await journal.append(`${line}\n`)
    last = line
  }
}
