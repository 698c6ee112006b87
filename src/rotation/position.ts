import { commandLine } from '../errors/command-line.ts'
import { isSignedByCa } from './certificate-record.ts'
import { type ApiLeaf, apiLeaves, handshakesWith, leafIn } from './leaves.ts'
import type { Refusal } from './phase.ts'
import { phaseRow, rowNumbered } from './phase-table.ts'
import type { Observed } from './snapshot.ts'
import { changeOf, type Target } from './target.ts'
import type { TargetSections } from './target-reading.ts'

// kcert reads the state of a rotation from the cluster, whatever a journal says.

export type Position =
  /** No certificate of the new CA is in use: every phase up to 8 may run. */
  | 'introducing'
  /** Somebody presents a new leaf: 9 or later. */
  | 'presenting'
  /** Some verifier trusts the new CA alone, or phase 12 wrote down that it would see to that. */
  | 'dropping'

/** Returns how far the rotation has come beyond return to earlier phases. */
export function positionOf(observed: Observed<TargetSections>, target: Target): Position {
  if (target.isDropping) return 'dropping'
  return presentsNew(observed, target) ? 'presenting' : 'introducing'
}

/** Kubeconfigs of phase 7 are not meant: API servers and kubelets are. */
function presentsNew(observed: Observed<TargetSections>, target: Target): boolean {
  const isNew = ({ ca, file }: ApiLeaf): boolean => {
    const change = changeOf(target, ca)
    return change !== undefined && isSignedByCa(leafIn(observed, file), change.newCa)
  }
  const change = changeOf(target, 'cluster')
  return (
    apiLeaves(observed).some(isNew) ||
    (change !== undefined && handshakesWith(observed, change.newCa).length > 0)
  )
}

/** Returns why a phase that has gaps is not begun any more: it would take the rotation back, which only a rollback does. */
export function earliestPhase(
  observed: Observed<TargetSections>,
  target: Target,
  number: number,
): readonly Refusal[] {
  if (positionOf(observed, target) !== 'dropping' || rowNumbered(number)?.dropsOld) return []
  return [
    {
      what: `phase ${number} cannot run any more: the old CA is being removed`,
      why: 'it would make components trust the old CA again',
      next: commandLine`kcert rotate-ca --phase ${phaseRow('drop-old').number}`,
    },
  ]
}
