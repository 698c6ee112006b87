import { apiLeaves, handshakesWith, isLeafOf } from './leaves.ts'
import type { Refusal } from './phase.ts'
import { type PhaseTable, phaseCommand } from './phase-table.ts'
import type { Observed } from './snapshot.ts'
import { changeOf, type Target } from './target.ts'
import type { TargetSections } from './target-reading.ts'

// kcert reads the position of a rotation from the cluster, regardless of the journal.

export type Position =
  /** No certificate of the new CA is in use: phases up to 8 may run. */
  | 'preparing'
  /** A server or client presents a leaf certificate of the new CA: phases from 9 on may run. */
  | 'reissuing'
  /** A verifier trusts only the new CA, or phase 12 recorded that it will make this change. */
  | 'removing'

/** Returns the position, which determines the earliest phase that may still run. */
export function positionOf(observed: Observed<TargetSections>, target: Target): Position {
  if (target.isDropping) return 'removing'
  return presentsNew(observed, target) ? 'reissuing' : 'preparing'
}

/** Only API servers and kubelets count, not the kubeconfigs of phase 7. */
function presentsNew(observed: Observed<TargetSections>, target: Target): boolean {
  const change = changeOf(target, 'cluster')
  return (
    apiLeaves(observed).some((leaf) => isLeafOf('newCa', observed, leaf, target)) ||
    (change !== undefined && handshakesWith(observed, change.newCa).length > 0)
  )
}

/** Returns why a phase with pending items can no longer start: it would revert the rotation, which only a rollback may do. */
export function earliestPhase(
  table: PhaseTable,
  { isDropping }: Pick<Target, 'isDropping'>,
  number: number,
): readonly Refusal[] {
  const last = table.rows.find(({ dropsOld }) => dropsOld)?.number
  if (!isDropping || last === undefined || number === last) return []
  return [
    {
      what: `phase ${number} cannot run any more: the old ${table.replaces} is being removed`,
      why: `it would make components trust the old ${table.replaces} again`,
      next: phaseCommand(table, last),
    },
  ]
}
