import { hash } from 'node:crypto'
import { noTerminal } from '../../cli/consent.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { commandLine, fixed } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { rememberedIn } from '../../rotation/journal.ts'
import { JournalWriter } from '../../rotation/journal-writer.ts'
import {
  archiveNames,
  checkNotForRollback,
  checkNotInUse,
  type KeyArchive,
  nameOfKey,
  type OldKey,
  type OldKeyFiles,
  retirableKeys,
  whyEncrypted,
} from '../../rotation/old-keys.ts'
import type { PhaseTable } from '../../rotation/phase-table.ts'
import type { JournalFile, Observer, Pace } from '../../rotation/ports.ts'
import type { RotationOldKeys } from '../../rotation/report.ts'
import { keyView, timeOf } from '../../rotation/views.ts'
import { type FoundFile, findOldKeys, keyFileView, type OldKeys, skipReason } from './find-old-keys.ts'
import { interruption, type Operator } from './session.ts'

// The work of `--archive-old-key` and `--destroy-old-key` of both rotate commands, on any nodes and journal.

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
 * Archives or destroys the keys that the rotation replaced, node by node, each act with a journal entry before it, and searches the nodes
 * again at the end. A repeated run continues. Throws KCERT_ROTATION_REFUSED before the rotation is complete, for a key in use and for one
 * that a rollback needs, KCERT_ROTATION_UNCONFIRMED.
 */
export async function retireOldKeys(
  { observer, oldKeys, journal: file, pace }: OldKeyPorts,
  { archive, table, dryRun, yes, render }: Retirement,
  operator: Operator,
): Promise<{ readonly report: RotationOldKeys; readonly exit: ExitCode }> {
  const journal = await JournalWriter.open(file, pace)
  const olds = retirableKeys(journal.history, table)
  const observed = await observer.observe(['nodes', 'components', 'kubelets', 'files', 'copies'])
  checkNotInUse(observed, olds, table)
  const names = observed.nodes.map(({ name }) => name)
  const found = await findOldKeys(oldKeys, observed, names, olds)
  const { files, encrypted, unreachable } = found
  checkNotForRollback(observed, files, table)
  const archived: string[] = []
  let isLeft = false
  const action = archive === undefined ? 'destroy' : 'archive'
  const reportOf = (outcome: RotationOldKeys['outcome']): RotationOldKeys => ({
    apiVersion: 'kcert/v1',
    kind: 'RotationOldKeys',
    generatedAt: timeOf(pace.now()),
    action,
    outcome,
    oldCas: olds.flatMap(({ ca, spki }) => {
      return ca === undefined ? [] : [{ ca: ca.name, subject: ca.subject, keySha256: spki }]
    }),
    ...keyView(rememberedIn(journal.history, table)),
    files: files.map(({ digest, isRemoved, ...file }) => ({
      ...keyFileView(file),
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
      encrypted.length > 0 || isLeft ? exitCodes.no : exitCodes.done,
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
    const again = commandLine`${fixed(table.command)} --${action}-old-key ${archive?.folder}`
    interruption(operator.interrupted, again)
    await journal.around({ phase: table.rows.length, action: hash('sha256', what, 'hex'), what }, perform)
    operator.note(`done: ${what}`)
  }
  if (archive !== undefined) archived.push(...(await archiveAll(oldKeys, archive, olds, files, act)))
  await destroyAll(oldKeys, found, act)
  const after = await findOldKeys(oldKeys, observed, names, olds)
  isLeft = addWhatIsLeft(found, after)
  return atEnd()
}

/** Adds what a second search found, and returns true if a file with a key is on a node that was reached. */
function addWhatIsLeft({ files, unreachable }: OldKeys, after: OldKeys): boolean {
  const away = new Set(unreachable.map(({ node }) => node))
  unreachable.push(...after.unreachable.filter(({ node }) => !away.has(node)))
  const left = after.files.filter(({ node }) => !away.has(node))
  for (const file of left) {
    const known = files.find(({ node, path }) => node === file.node && path === file.path)
    if (known === undefined) files.push(file)
    else known.isRemoved = false
  }
  return left.length > 0
}

/** Archives each key, with its CA's certificate if that was found. Returns the content of the archive. */
async function archiveAll(
  oldKeys: OldKeyFiles,
  archive: KeyArchive,
  olds: readonly OldKey[],
  files: readonly FoundFile[],
  act: Act,
): Promise<readonly string[]> {
  const archived: string[] = []
  for (const old of olds) {
    const source = files.find(({ spki }) => spki === old.spki)
    if (source === undefined) continue
    const { key, certificate } = archiveNames(old)
    await act(`archive the ${nameOfKey(old)} as ${archive.folder}/${key}`, () =>
      archiveOne(oldKeys, archive, old, source),
    )
    archived.push(`${archive.folder}/${key}`)
    if (certificateOf(oldKeys, old) !== undefined) archived.push(`${archive.folder}/${certificate}`)
  }
  return archived
}

/**
 * Destroys the found keys, and marks them as removed. A node that becomes unreachable meanwhile is recorded, and the others
 * continue.
 */
async function destroyAll(oldKeys: OldKeyFiles, { files, unreachable }: OldKeys, act: Act): Promise<void> {
  for (const file of files) {
    const { node, path, old } = file
    if (unreachable.some((away) => away.node === node)) continue
    const what = old === undefined ? 'already overwritten' : nameOfKey(old)
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
  old: OldKey,
  source: FoundFile,
): Promise<void> {
  const { key, certificate } = archiveNames(old)
  const pem = certificateOf(oldKeys, old)
  if (pem !== undefined) await archive.keep(certificate, pem, 0o644)
  const kept = await archive.keep(key, await oldKeys.read(source.node, source), 0o600)
  if (oldKeys.spkiOf(kept) === old.spki) return
  throw new KcertError('KCERT_FILE_EXISTS', `${archive.folder}/${key} is not the ${nameOfKey(old)}`, {
    why: 'kcert does not overwrite existing files; nothing was removed from any node; choose another folder or move the file',
    next: commandLine`ls -l ${archive.folder}`,
  })
}

function certificateOf(oldKeys: OldKeyFiles, { ca }: OldKey): string | undefined {
  return ca && oldKeys.certificate(ca.digest)
}

async function agrees(
  { choose, type, note }: Operator,
  action: RotationOldKeys['action'],
  plan: () => string,
): Promise<boolean> {
  note(plan().trimEnd())
  if (choose === undefined || type === undefined) {
    throw new KcertError('KCERT_ROTATION_UNCONFIRMED', `to ${action} the old key requires confirmation`, {
      why: noTerminal,
      next: '--dry-run',
    })
  }
  if (action === 'archive') return choose('Archive the key and remove it from these nodes?')
  return type('Destroy the key on these nodes? This cannot be undone. Type "destroy" to continue:', 'destroy')
}
