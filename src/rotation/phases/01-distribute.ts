import type { Step, Task } from '../action.ts'
import { distribution } from '../distributing.ts'
import { folderOn, isLaidOut, materialOf } from '../material.ts'
import { definePhase } from '../phase.ts'
import { manualRotation } from '../phase-table.ts'
import { isProven } from '../proof.ts'
import { apiServers, controlPlanes, type Observed } from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { inLanes, probe } from '../tasks.ts'
import { touchedFilesOn } from '../touched-files.ts'
import { puttingCopiesAside, restoreFiles } from '../undo.ts'
import { versionMix } from '../upgrades.ts'

type Sees = 'nodes' | 'components' | 'kubelets' | 'kubeconfigs' | 'files' | 'copies' | 'evidence'

const materialAndCopies = distribution<Sees>({
  table: manualRotation,
  nodes: ({ nodes }) => nodes,
  missing: (observed, node, target) =>
    materialOf(folderOn(observed, node), target).filter(
      (wanted) => !isLaidOut(observed, node, wanted, target),
    ),
  touched: touchedFilesOn,
})

export const distribute = definePhase('distribute', {
  sees: ['nodes', 'components', 'kubelets', 'kubeconfigs', 'files', 'copies', 'evidence', 'kubeadm'],

  // kcert's own folder is deleted at the end of phase 12.
  gaps: (observed, target) => (target.isDropping ? [] : materialAndCopies.gaps(observed, target)),

  *plan(observed, target) {
    const [first] = controlPlanes(observed)
    if (first === undefined) return
    yield* reachingKubelet(observed, first.name, target)
    yield* measureHandshakes(observed, target)
    yield* materialAndCopies.steps(observed, target)
  },

  remarks(observed, { waivers }) {
    const mix = versionMix(observed)
    return mix !== undefined && waivers.has(mix.id) ? [`accepted version mix: ${mix.words}`] : []
  },

  // Undo removes everything from the rotation, so the next rotation copies the files again.
  undo: (copies, now) => [...restoreFiles(copies, now), ...puttingCopiesAside(now)],
})

/**
 * Phase 9 runs this probe on every node. A certificate that kcert issues has the same subject as its predecessor. An API server
 * without permissions on kubelets therefore stays without them, and phase 9 would stop halfway. kubeadm 1.33.12 to 1.37 writes no
 * O into its client certificate. It creates the ClusterRoleBinding for the CN only in `init` and `upgrade apply`.
 */
function reachingKubelet(observed: Observed<Sees>, node: string, target: Target): readonly Task[] {
  const subject = { kind: 'logs', node } as const
  const isOpen = changeOf(target, 'cluster') !== undefined && !isProven(observed, subject, 0)
  return isOpen ? [probe(subject, 10_000)] : []
}

/**
 * Phase 11 compares with this rate. A missing rate does not keep a phase incomplete: an older kcert may have run this phase, and
 * then the rate can no longer be measured.
 */
function measureHandshakes(observed: Observed<Sees>, { soakMs }: Target): readonly Step<Task>[] {
  const subject = (at: string) => ({ kind: 'handshake-rate', at, forMs: soakMs }) as const
  const open = apiServers(observed).filter(({ id }) => !isProven(observed, subject(id), 0))
  return inLanes(open.length, open, ({ id }) => [probe(subject(id), soakMs + 60_000)])
}
