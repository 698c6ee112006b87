import { dirname, join, resolve } from 'node:path'
import type { Context } from '../../cli/context.ts'
import type { ClusterFlags } from '../../cli/flags.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { OldKeyFiles } from '../../rotation/old-keys.ts'
import { manualRotation, type PhaseTable } from '../../rotation/phase-table.ts'
import type { Executor, JournalFile, Pace } from '../../rotation/ports.ts'
import type { PrepareRunbook } from '../../rotation/runbook.ts'
import type { Settings } from '../../rotation/target-reading.ts'
import type { ClusterGuard } from '../../rotation-io/cluster-guard.ts'
import type { JournalMirror } from '../../rotation-io/journal-file.ts'
import { AppendFile } from '../../system/append-file.ts'
import { trustedPath } from '../../system/trusted-file.ts'
import type { Hook } from './hooks.ts'
import type { RotationPorts } from './session.ts'
import type { GivenCas } from './settings.ts'

export interface RotationPlaceFlags extends ClusterFlags {
  readonly inventory: string
  readonly journal?: string | undefined
}

/** A rotation's cluster as its inventory defines it, open until disposal. */
export interface OpenedRotation extends AsyncDisposable {
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

/** Returns the rotation on the cluster of the inventory. Throws errors of inventory, cluster and journal. */
export async function openRotation(
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
  const [
    { openClusterOf },
    { openSite },
    { withOwnAccess },
    { SiteObserver },
    { SiteExecutor },
    { SiteOldKeyFiles },
    { openJournal },
    { ClusterGuard, mirroredJournal },
  ] = await Promise.all([
    import('../../cli/cluster.ts'),
    import('../../site/site.ts'),
    import('../../rotation-io/own-access.ts'),
    import('../../rotation-io/observer.ts'),
    import('../../rotation-io/executor.ts'),
    import('../../rotation-io/old-key-files.ts'),
    import('../../rotation-io/journal-file.ts'),
    import('../../rotation-io/cluster-guard.ts'),
  ])
  const { clock, random } = context
  const { cas, workloads } = inventory
  // Closed in reverse order of opening: the journal, the Lease, the nodes, the cluster.
  await using opening = new AsyncDisposableStack()
  const cluster = await openClusterOf(context, flags)
  opening.defer(() => cluster.close())
  const { objects: own, through } = cluster
  const site = withOwnAccess(openSite({ inventory, objects: own, clock, through }), random)
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
    prepareRunbook: async (...[runbook, phase]: Parameters<PrepareRunbook>) => {
      const { prepareRunbook } = await import('../../rotation-io/runbook.ts')
      return prepareRunbook({ site, random, table, given }, runbook, phase)
    },
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

/**
 * Returns the named inventory, and prints its path to stderr, because kcert runs its commands. Throws KCERT_FILE_UNTRUSTED, and
 * KCERT_FILE_NOT_FOUND with the command that creates one.
 */
export async function inventoryIn(name: string, context: Context) {
  const [{ descriptorOf, readTrustedText }, { readInventory }] = await Promise.all([
    import('../../cli/input.ts'),
    import('../../rotation/inventory.ts'),
  ])
  try {
    const inventory = await readInventory(await readTrustedText('inventory', name, context), name)
    const shown = descriptorOf(name) === 0 ? 'standard input' : resolve(context.workingFolder, name)
    tellLine(context.stderr, `inventory: ${shown}`)
    return inventory
  } catch (error) {
    if (!(error instanceof KcertError) || error.code !== 'KCERT_FILE_NOT_FOUND') throw error
    throw new KcertError('KCERT_FILE_NOT_FOUND', `inventory ${name} does not exist`, {
      why: 'the inventory tells kcert how to reach each node; create it, or pass --inventory FILE',
      next: 'kcert rotate-ca discover',
      cause: error,
    })
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
