import { dirname, join, resolve } from 'node:path'
import { openClusterOf } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import type { ClusterFlags } from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { jobsImage } from '../../rotation/inventory.ts'
import type { OldKeyFiles } from '../../rotation/old-keys.ts'
import type { Playbook } from '../../rotation/phase.ts'
import { manualRotation, type PhaseTable } from '../../rotation/phase-table.ts'
import type { Executor, JournalFile, Pace } from '../../rotation/ports.ts'
import type { RotationOldKeys } from '../../rotation/report.ts'
import type { PrepareRunbook } from '../../rotation/runbook.ts'
import type { Settings } from '../../rotation/target-reading.ts'
import { ClusterGuard, mirroredJournal } from '../../rotation-io/cluster-guard.ts'
import { SiteExecutor } from '../../rotation-io/executor.ts'
import { type JournalMirror, openJournal } from '../../rotation-io/journal-file.ts'
import { SiteObserver } from '../../rotation-io/observer.ts'
import { SiteOldKeyFiles } from '../../rotation-io/old-key-files.ts'
import { withOwnAccess } from '../../rotation-io/own-access.ts'
import { prepareRunbook } from '../../rotation-io/runbook.ts'
import { openSite } from '../../site/site.ts'
import { AppendFile } from '../../system/append-file.ts'
import { trustedPath } from '../../system/trusted-file.ts'
import { type Hook, hookRunner } from './hooks.ts'
import { keyArchive } from './key-archive.ts'
import { inventoryIn } from './node-inventory.ts'
import { openNodeJobs } from './node-jobs.ts'
import { operatorAt } from './operator.ts'
import type { PauseBetween } from './pauses.ts'
import { retireOldKeys } from './retire-old-keys.ts'
import { type RotationPorts, RotationSession } from './session.ts'
import { type GivenCas, givenCas, type RotationSettingsFlags, settingsOf } from './settings.ts'

export interface RotationPlaceFlags extends ClusterFlags {
  readonly inventory: string
  readonly journal?: string | undefined
}

export interface SessionFlags extends RotationPlaceFlags, RotationSettingsFlags {
  readonly yes?: boolean
  readonly 'pause-between'?: PauseBetween | undefined
  readonly 'by-runbook'?: boolean
}

/** A rotation's cluster as its inventory defines it, open until disposal. */
interface OpenedRotation extends AsyncDisposable {
  readonly ports: RotationPorts & { readonly oldKeys: OldKeyFiles }
  /** The rotation settings of the inventory. */
  readonly presets: Partial<Settings>
  readonly rollEveryMs: number
  readonly hooks: readonly Hook[]
}

export interface RotationOpenOptions {
  /** `write` holds the journal's lock and the Lease in the cluster; `read` writes nothing. */
  readonly mode: 'write' | 'read'
  readonly table: PhaseTable
  readonly given: GivenCas
  /** The risks that the operator accepts; default none. */
  readonly waivers?: ReadonlySet<string> | undefined
  /** True if the mirror of a finished rotation may replace a named journal that is lost. */
  readonly takesFinished?: boolean
}

/** Returns the result of `act` with a session on the cluster that the flags select. */
export async function withSession<Result>(
  context: Context,
  flags: SessionFlags,
  mode: RotationOpenOptions['mode'],
  playbook: Playbook,
  act: (session: RotationSession) => Promise<Result>,
): Promise<Result> {
  const given = await givenCas(flags, context)
  const settings = settingsOf(flags, given)
  const { pace, yes = false, 'by-runbook': byRunbook = false, 'pause-between': pauseBetween } = flags
  const paceMs = pace === undefined ? undefined : parseDuration(pace, '--pace')
  using operator = await operatorAt(context)
  await using rotation = await openRotation(context, flags, {
    ...{ mode, table: playbook, given },
    waivers: settings.waivers,
  })
  const { ports, presets, hooks } = rotation
  const rollEveryMs = paceMs ?? rotation.rollEveryMs
  const runHook = hookRunner(context.env, operator.note, playbook)
  const options = { playbook, settings, presets, yes, pauseBetween, byRunbook, rollEveryMs, hooks, runHook }
  return await act(await RotationSession.open(ports, options, operator))
}

/** The flags with which an old key is archived or destroyed. */
export interface RetirementFlags extends RotationPlaceFlags {
  readonly yes: boolean
  readonly 'dry-run': boolean
  readonly ca?: string | undefined
  /** Absent: the key is destroyed. */
  readonly 'archive-old-key'?: string | undefined
}

/** Returns the outcome for the old keys of a finished rotation: archived in a folder, or destroyed if none is given. */
export async function retireKeys(
  context: Context,
  flags: RetirementFlags,
  table: PhaseTable,
  render: (report: RotationOldKeys) => string,
) {
  const { yes, 'dry-run': dryRun, 'archive-old-key': folder } = flags
  const archive = folder === undefined ? {} : { archive: keyArchive(folder, context.workingFolder) }
  const mode = dryRun ? 'read' : 'write'
  using operator = await operatorAt(context)
  await using rotation = await openRotation(context, flags, {
    ...{ mode, table, given: {} },
    takesFinished: true,
  })
  return await retireOldKeys(rotation.ports, { ...archive, table, dryRun, yes, render }, operator)
}

/** Returns the rotation on the cluster of the inventory. Throws errors of inventory, cluster and journal. */
async function openRotation(
  context: Context,
  flags: RotationPlaceFlags,
  { mode, table, given, waivers = new Set(), takesFinished = false }: RotationOpenOptions,
): Promise<OpenedRotation> {
  const inventory = await inventoryIn(flags.inventory, context)
  const journalPath = resolve(
    context.workingFolder,
    flags.journal ?? join(dirname(flags.inventory), `${table.journal}.jsonl`),
  )
  trustedPath('journal', journalPath)
  const isNamed = flags.journal !== undefined && !takesFinished
  const { clock, random } = context
  const { cas, workloads } = inventory
  // Closed in reverse order of opening: the journal, the Lease, the nodes, the cluster.
  await using opening = new AsyncDisposableStack()
  const cluster = await openClusterOf(context, flags)
  opening.defer(() => cluster.close())
  const { objects: own, through } = cluster
  const jobs = await openNodeJobs(context, cluster, jobsImage(inventory))
  opening.defer(() => jobs?.close())
  const site = withOwnAccess(openSite({ inventory, objects: own, clock, through, jobs }), random, (note) =>
    tellLine(context.stderr, `note: ${note}`),
  )
  opening.defer(() => site.close())
  const { objects } = site
  const executor = new SiteExecutor({ site, random, table, given, unreadLogs: { waivers } })
  const keyFiles = new SiteOldKeyFiles(site)
  const reading = async () => {
    const text = journalText(journalPath)
    const journal = readOnly(
      text === '' ? await mirrored(() => mirroredJournal(objects, isNamed, table)) : text,
    )
    return { journal, executor, oldKeys: keyFiles }
  }
  const acting = async () => {
    const guard = await ClusterGuard.acquire({ objects, clock, random, journalPath, isNamed, table })
    opening.defer(() => guard.release())
    const mirror = takesFinished ? await ofSameRotation(guard, journalText(journalPath)) : guard
    const journal = opening.use(await openJournal(journalPath, mirror))
    return { journal, executor: guardedBy(guard, executor), oldKeys: guardedKeys(guard, keyFiles) }
  }
  const ports = {
    ...(await (mode === 'read' ? reading() : acting())),
    observer: new SiteObserver(site, table),
    pace: paceOf(context),
    prepareRunbook: (...[runbook, phase]: Parameters<PrepareRunbook>) =>
      prepareRunbook({ site, random, table, given }, runbook, phase),
  }
  const opened = opening.move()
  return {
    ports,
    presets: {
      ...(cas === undefined ? {} : { cas }),
      ...(workloads?.maxUnavailable === undefined ? {} : { atOnce: workloads.maxUnavailable }),
    },
    rollEveryMs: (workloads?.paceSeconds ?? 0) * 1000,
    hooks: hooksOf(inventory.hooks ?? [], table),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Returns an executor that confirms the Lease before each act: nothing is done after another kcert has taken it. */
export function guardedBy(guard: Pick<ClusterGuard, 'confirm'>, executor: Executor): Executor {
  const held =
    <Action, Result>(perform: (action: Action) => Promise<Result>) =>
    async (action: Action): Promise<Result> => {
      await guard.confirm()
      return perform(action)
    }
  return {
    write: held((action) => executor.write(action)),
    patch: held((action) => executor.patch(action)),
    restart: held((action) => executor.restart(action)),
    roll: held((action) => executor.roll(action)),
    probe: held((action) => executor.probe(action)),
  }
}

export function guardedKeys(guard: Pick<ClusterGuard, 'confirm'>, files: OldKeyFiles): OldKeyFiles {
  return {
    find: (...asked) => files.find(...asked),
    read: (...asked) => files.read(...asked),
    destroy: async (node, file) => {
      await guard.confirm()
      await files.destroy(node, file)
    },
    certificate: (digest) => files.certificate(digest),
    spkiOf: (content) => files.spkiOf(content),
  }
}

/** A write to the journal of an earlier rotation does not replace the mirror of a later one. */
async function ofSameRotation(guard: ClusterGuard, text: string): Promise<JournalMirror | undefined> {
  const mirrored = await guard.read()
  const first = (journal: string): string | undefined => journal.split('\n', 1)[0]
  const isOther = mirrored !== undefined && text !== '' && first(mirrored) !== first(text)
  return isOther ? undefined : guard
}

function journalText(path: string): string {
  return Buffer.from(new AppendFile(path, 'journal').read()).toString('utf8')
}

/** Returns the cluster's mirror of a journal that is not on this machine; empty if it cannot be read. */
async function mirrored(read: () => Promise<string | undefined>): Promise<string> {
  try {
    return (await read()) ?? ''
  } catch (error) {
    if (error instanceof KcertError) return ''
    throw error
  }
}

function readOnly(text: string): JournalFile {
  return {
    read: async () => text,
    append: async () => {
      throw new TypeError('a command that only reads wrote to the journal')
    },
  }
}

function paceOf({ clock }: Context): Pace {
  return {
    now: () => clock().getTime(),
    sleep: (ms) => new Promise((done) => setTimeout(done, ms)),
  }
}

/** Returns the hooks for these phases. The phases that a hook names are those of the Kubernetes documentation. */
export function hooksOf(hooks: readonly Hook[], { rows }: PhaseTable): readonly Hook[] {
  return rows === manualRotation.rows ? hooks : hooks.filter(({ phases }) => phases === undefined)
}
