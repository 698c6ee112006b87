import type { Step, Task } from '../action.ts'
import { folderOn, isLaidOut, materialOf } from '../material.ts'
import { definePhase, type PendingItem } from '../phase.ts'
import { isProven } from '../proof.ts'
import { apiServers, type NodeSnapshot, type Observed, onNode } from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { inLanes, probe, write } from '../tasks.ts'
import { touchedFilesOn } from '../touched-files.ts'
import { indexing, puttingCopiesAside, restoreFiles } from '../undo.ts'
import { versionMix } from '../upgrades.ts'

type Sees = 'nodes' | 'components' | 'kubelets' | 'kubeconfigs' | 'files' | 'copies' | 'evidence'

export const distribute = definePhase('distribute', {
  sees: ['nodes', 'components', 'kubelets', 'kubeconfigs', 'files', 'copies', 'evidence', 'kubeadm'],

  *gaps(observed, target) {
    // kcert's own folder is deleted at the end of phase 12.
    if (target.isDropping) return
    for (const node of observed.nodes) {
      const at = node.name
      yield* clockGaps(node, target)
      for (const { path } of missingMaterial(observed, node, target))
        yield { at: `${at}:${path}`, what: 'not yet distributed' }
      if (uncopiedFiles(observed, at).length > 0)
        yield { at, what: 'files that will change are not yet copied' }
      else if (!isProven(observed, { kind: 'copies', node: at }, 0))
        yield { at, what: 'copies not yet tested' }
    }
  },

  *plan(observed, target) {
    const controlPlanes = observed.nodes.filter(({ isControlPlane }) => isControlPlane)
    const [first, ...others] = controlPlanes
    if (first === undefined) return
    yield* reachingKubelet(observed, first.name, target)
    yield* measureHandshakes(observed, target)
    // The first node runs alone because the new CA is created there. The other nodes get copies of it.
    yield* layOut(observed, first, target)
    yield* inLanes(target.atOnce, others, (node) => layOut(observed, node, target))
    yield* inLanes(target.atOnce, observed.nodes, ({ name }) => copy(observed, name))
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

/** kcert backdates a certificate by minutes. A clock that is further behind would find it not yet valid. */
export function clockGaps(
  { name, clockSkewMs }: NodeSnapshot,
  { mostClockSkewMs }: Target,
): readonly PendingItem[] {
  if (clockSkewMs === undefined) return [{ at: name, what: 'clock unknown' }]
  if (Math.abs(clockSkewMs) <= mostClockSkewMs) return []
  const seconds = Math.round(Math.abs(clockSkewMs) / 1000)
  return [{ at: name, what: `clock ${seconds} s ${clockSkewMs < 0 ? 'behind' : 'ahead'}` }]
}

function missingMaterial(observed: Observed<Sees>, { name, isControlPlane }: NodeSnapshot, target: Target) {
  if (!isControlPlane) return []
  return materialOf(folderOn(observed, name), target).filter(
    (wanted) => !isLaidOut(observed, name, wanted, target),
  )
}

function layOut(observed: Observed<Sees>, node: NodeSnapshot, target: Target): readonly Task[] {
  const missing = missingMaterial(observed, node, target)
  return missing.map(({ path, content, mode }) => write(observed, node.name, path, content, mode))
}

/** An existing copy is not replaced: a later copy would no longer contain the original content. */
function uncopiedFiles(observed: Observed<Sees>, node: string) {
  const copied = new Set(onNode(observed.copies, node).flatMap(({ of }) => ('path' in of ? [of.path] : [])))
  return touchedFilesOn(observed, node).filter(({ path }) => !copied.has(path))
}

function copy(observed: Observed<Sees>, node: string): readonly Task[] {
  const files = uncopiedFiles(observed, node)
  const proof = { kind: 'copies', node } as const
  if (files.length > 0) return [indexing(node, { kind: 'copies', of: files }), probe(proof)]
  return isProven(observed, proof, 0) ? [] : [probe(proof)]
}
