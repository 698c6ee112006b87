import { resources } from '../cluster/kinds.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import { getOne } from '../cluster/readable.ts'
import { etcdRotation } from '../rotation/etcd/phase-table.ts'
import { isOfFinished, readJournal, sinceRollback } from '../rotation/journal.ts'
import { manualRotation } from '../rotation/phase-table.ts'
import { keyRotation } from '../rotation/service-account-key/phase-table.ts'
import { mirroredJournal } from './cluster-guard.ts'

export const rotations = { ca: manualRotation, 'etcd-ca': etcdRotation, 'service-account-key': keyRotation }

/** A rotation, as its journal in the cluster says. */
export interface MirroredRotation {
  readonly rotation: keyof typeof rotations
  /** unknown: the mirror is incomplete, because the journal is long or was damaged. */
  readonly state: 'not-started' | 'in-progress' | 'finished' | 'unknown'
  /** The last phase, with its last event. */
  readonly phase?: { readonly number: number; readonly event: string }
  /** When the last entry was written: RFC 3339. */
  readonly writtenAt?: string
}

/**
 * Returns the state of each rotation whose journal is mirrored in the cluster. This needs no inventory and no node. Throws as
 * `ObjectsApi.get` does, and KCERT_JOURNAL_DAMAGED.
 */
export async function mirroredRotations(objects: Pick<ObjectsApi, 'get'>): Promise<MirroredRotation[]> {
  const found: MirroredRotation[] = []
  for (const [rotation, table] of Object.entries(rotations) as [
    keyof typeof rotations,
    typeof manualRotation,
  ][]) {
    const text = await mirroredJournal(objects, false, table)
    if (text === undefined) {
      // A mirror without its first lines: of a longer journal, or damaged.
      const place = { ...resources.configMaps, namespace: 'kube-system', name: table.journal } as const
      if ((await getOne(objects, place)) !== undefined) found.push({ rotation, state: 'unknown' })
      continue
    }
    const entries = sinceRollback(readJournal(text), table)
    const phase = entries.findLast((entry) => entry.kind === 'phase')
    const state = isOfFinished(entries, table)
      ? 'finished'
      : phase === undefined
        ? 'not-started'
        : 'in-progress'
    const writtenMs = Date.parse(String(entries.at(-1)?.time))
    found.push({
      rotation,
      state,
      ...(phase?.kind === 'phase' && { phase: { number: numberOf(phase.phase), event: phase.event } }),
      ...(!Number.isNaN(writtenMs) && { writtenAt: new Date(writtenMs).toISOString() }),
    })
  }
  return found
}

type Sample = readonly [
  name: 'rotation_phase' | 'rotation_in_progress' | 'rotation_entry_timestamp_seconds',
  labels: Readonly<Record<string, string>>,
  value: number,
]

/** Returns what the metrics show of a rotation: nothing if its state is unknown. */
export function rotationSamples({ rotation, state, phase, writtenAt }: MirroredRotation): readonly Sample[] {
  if (state === 'unknown') return []
  const labels = { rotation }
  return [
    ...(phase === undefined
      ? []
      : [['rotation_phase', { rotation, event: phase.event }, phase.number] as const]),
    ['rotation_in_progress', labels, Number(state === 'in-progress')],
    ...(writtenAt === undefined
      ? []
      : [['rotation_entry_timestamp_seconds', labels, Math.floor(Date.parse(writtenAt) / 1000)] as const]),
  ]
}

/** Other users may write the mirror. */
function numberOf(phase: unknown): number {
  return typeof phase === 'number' && Number.isInteger(phase) && phase > 0 && phase < 100 ? phase : 0
}
