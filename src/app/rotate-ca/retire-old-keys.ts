import { hash } from 'node:crypto'
import { noTerminal } from '../../cli/consent.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { JournalWriter } from '../../rotation/journal-writer.ts'
import {
  archiveNames,
  checkNotInUse,
  type KeyArchive,
  type OldCa,
  type OldKeyFiles,
  oldCasOf,
  whyEncrypted,
} from '../../rotation/old-keys.ts'
import type { PhaseTable } from '../../rotation/phase-table.ts'
import type { JournalFile, Observer, Pace } from '../../rotation/ports.ts'
import type { RotationOldKeys } from '../../rotation/report.ts'
import { timeOf } from '../../rotation/views.ts'
import { type FoundFile, findOldKeys, type OldKeys, skipReason } from './find-old-keys.ts'
import { interruption, type Operator } from './session.ts'

// The work of `kcert rotate-ca --archive-old-key` and `--destroy-old-key`, on any nodes and journal.

export interface OldKeyPorts {
  readonly observer: Observer
  readonly oldKeys: OldKeyFiles
  readonly journal: JournalFile
  readonly pace: Pace
}

export interface Retirement {
  /** Absent: the key is destroyed. */
  readonly archive?: KeyArchive
  /** The playbook of the finished rotation. */
  readonly table: PhaseTable
  readonly dryRun: boolean
  readonly yes: boolean
  /** Returns the plan as text, shown before the question. */
  readonly render: (report: RotationOldKeys) => string
}

/** Performs one act. The journal has an entry before it and one after it. */
type Act = (what: string, perform: () => Promise<void>) => Promise<void>

/**
 * Archives or destroys the keys of the rotation's old CAs, node by node, each act with a journal entry before it. A repeated run
 * continues. Throws KCERT_ROTATION_REFUSED before the rotation is complete and for a key in use, KCERT_ROTATION_UNCONFIRMED.
 */
export async function retireOldKeys(
  { observer, oldKeys, journal: file, pace }: OldKeyPorts,
  { archive, table, dryRun, yes, render }: Retirement,
  operator: Operator,
): Promise<{ readonly report: RotationOldKeys; readonly exit: ExitCode }> {
  const journal = await JournalWriter.open(file, pace)
  const olds = oldCasOf(journal.history, table)
  const observed = await observer.observe(['nodes', 'components', 'kubelets', 'files'])
  checkNotInUse(observed, olds)
  const names = observed.nodes.map(({ name }) => name)
  const found = await findOldKeys(oldKeys, observed, names, olds)
  const { files, encrypted, unreachable } = found
  const archived: string[] = []
  const action = archive === undefined ? 'destroy' : 'archive'
  const reportOf = (outcome: RotationOldKeys['outcome']): RotationOldKeys => ({
    apiVersion: 'kcert/v1',
    kind: 'RotationOldKeys',
    generatedAt: timeOf(pace.now()),
    action,
    outcome,
    oldCas: olds.map(({ ca, subject, spki }) => ({ ca, subject, keySha256: spki })),
    files: files.map(({ node, path, digest, ca, isRemoved }) => ({
      node,
      path,
      ...(ca === undefined ? {} : { ca }),
      sha256: digest,
      state: isRemoved ? 'removed' : 'present',
    })),
    archived,
    encrypted: encrypted.map(({ node, path }) => ({ node, path, ...whyEncrypted(path, olds) })),
    unreachable,
  })
  const answer = (outcome: RotationOldKeys['outcome'], exit: ExitCode) => ({
    report: reportOf(outcome),
    exit,
  })
  const exitOf = () =>
    worstExit([
      unreachable.length > 0 ? exitCodes.unreachable : exitCodes.done,
      encrypted.length > 0 ? exitCodes.no : exitCodes.done,
    ])
  const atEnd = () => {
    const exit = exitOf()
    if (exit !== exitCodes.done) return answer('incomplete', exit)
    return answer(files.length === 0 ? 'nothing-left' : 'done', exit)
  }
  if (dryRun && files.length > 0) return answer('planned', exitOf())
  if (files.length === 0) return atEnd()
  if (!yes && !(await agrees(operator, action, () => render(reportOf('planned'))))) {
    return answer('declined', exitCodes.no)
  }
  const act: Act = async (what, perform) => {
    interruption(operator.interrupted, commandLine`kcert rotate-ca --${action}-old-key ${archive?.folder}`)
    await journal.around({ phase: table.rows.length, action: hash('sha256', what, 'hex'), what }, perform)
    operator.note(`done: ${what}`)
  }
  if (archive !== undefined) archived.push(...(await archiveAll(oldKeys, archive, olds, files, act)))
  await destroyAll(oldKeys, found, act)
  return atEnd()
}

/** Archives each old CA's key, with its certificate if that was found. Returns the content of the archive. */
async function archiveAll(
  oldKeys: OldKeyFiles,
  archive: KeyArchive,
  olds: readonly OldCa[],
  files: readonly FoundFile[],
  act: Act,
): Promise<readonly string[]> {
  const archived: string[] = []
  for (const old of olds) {
    const source = files.find(({ spki }) => spki === old.spki)
    if (source === undefined) continue
    const { key, certificate } = archiveNames(old)
    await act(`archive the key of the old ${old.ca} CA as ${archive.folder}/${key}`, () =>
      archiveOne(oldKeys, archive, old, source),
    )
    archived.push(`${archive.folder}/${key}`)
    if (oldKeys.certificate(old.digest) !== undefined) archived.push(`${archive.folder}/${certificate}`)
  }
  return archived
}

/**
 * Destroys the found keys, and marks them as removed. A node that becomes unreachable meanwhile is recorded, and the others
 * continue.
 */
async function destroyAll(oldKeys: OldKeyFiles, { files, unreachable }: OldKeys, act: Act): Promise<void> {
  for (const file of files) {
    const { node, path, ca } = file
    if (unreachable.some((away) => away.node === node)) continue
    const what = ca === undefined ? 'already overwritten' : `key of the old ${ca} CA`
    try {
      await act(`destroy ${node}:${path} (${what})`, () => oldKeys.destroy(node, file))
      file.isRemoved = true
    } catch (error) {
      unreachable.push({ node, why: skipReason(error) })
    }
  }
}

/** Deletes no key from a node before the archive was read back and contains that key. */
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
  throw new KcertError('KCERT_FILE_EXISTS', `${archive.folder}/${key} is not the old ${old.ca} CA's key`, {
    why: 'kcert does not overwrite existing files; nothing was removed from any node; choose another folder or move the file',
    next: commandLine`ls -l ${archive.folder}`,
  })
}

async function agrees(
  { choose, type, note }: Operator,
  action: RotationOldKeys['action'],
  plan: () => string,
): Promise<boolean> {
  note(plan().trimEnd())
  if (choose === undefined || type === undefined) {
    throw new KcertError(
      'KCERT_ROTATION_UNCONFIRMED',
      `to ${action} the old CA's key requires confirmation`,
      {
        why: noTerminal,
        next: '--dry-run',
      },
    )
  }
  if (action === 'archive') return choose('Archive the key and remove it from these nodes?')
  return type('Destroy the key on these nodes? This cannot be undone. Type "destroy" to continue:', 'destroy')
}
