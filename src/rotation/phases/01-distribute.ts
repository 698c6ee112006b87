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
    // At the end of phase 12 kcert's own folder goes.
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
    // Alone: here the new CA is made. The others get what lies there.
    yield* layOut(observed, first, target)
    yield* inLanes(target.atOnce, others, (node) => layOut(observed, node, target))
    yield* inLanes(target.atOnce, observed.nodes, ({ name }) => copy(observed, name))
  },

  remarks(observed, { waivers }) {
    const mix = versionMix(observed)
    return mix !== undefined && waivers.has(mix.id) ? [`accepted version mix: ${mix.words}`] : []
  },

  // Nothing is left of the rotation then: the next one copies the files again.
  undo: (copies, now) => [...restoreFiles(copies, now), ...puttingCopiesAside(now)],
})

/**
 * Phase 9 proves it of every node. A certificate that kcert issues has the subject of the one before, so an API server without rights
 * on kubelets stays so, and phase 9 would stop half way: kubeadm 1.33.12 to 1.37 writes no O into its client certificate, and makes the
 * ClusterRoleBinding of its CN in `init` and `upgrade apply` alone.
 */
function reachingKubelet(observed: Observed<Sees>, node: string, target: Target): readonly Task[] {
  const subject = { kind: 'logs', node } as const
  const isOpen = changeOf(target, 'cluster') !== undefined && !isProven(observed, subject, 0)
  return isOpen ? [probe(subject, 10_000)] : []
}

/** Phase 11 compares with it. Nothing is open for want of it: where an older kcert did this phase, it can be measured no more. */
function measureHandshakes(observed: Observed<Sees>, { soakMs }: Target): readonly Step<Task>[] {
  const subject = (at: string) => ({ kind: 'handshake-rate', at, forMs: soakMs }) as const
  const open = apiServers(observed).filter(({ id }) => !isProven(observed, subject(id), 0))
  return inLanes(open.length, open, ({ id }) => [probe(subject(id), soakMs + 60_000)])
}

/** A certificate is backdated by minutes: a clock that is further behind would find it not yet valid. */
function clockGaps({ name, clockSkewMs }: NodeSnapshot, { mostClockSkewMs }: Target): readonly PendingItem[] {
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

/** What was copied once is not copied again: later it is no longer what it was. */
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
