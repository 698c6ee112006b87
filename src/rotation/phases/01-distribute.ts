import type { Action, Step } from '../action.ts'
import { copiesIndex, folderOn, isLaidOut, materialOf } from '../material.ts'
import { definePhase, type Gap } from '../phase.ts'
import { fileAt, type NodePicture, onNode, type Seen } from '../picture.ts'
import { isProven, probe } from '../proof.ts'
import { componentsNamed, together } from '../restart.ts'
import { changeOf, type Target } from '../target.ts'
import { touchedFilesOn } from '../touched-files.ts'
import { puttingCopiesAside, restoreFiles } from '../undo.ts'
import { versionMix } from '../upgrades.ts'

type Sees = 'nodes' | 'components' | 'kubelets' | 'kubeconfigs' | 'files' | 'copies' | 'evidence'

export const distribute = definePhase('distribute', {
  sees: ['nodes', 'components', 'kubelets', 'kubeconfigs', 'files', 'copies', 'evidence', 'kubeadm'],

  gaps(seen, target) {
    // At the end of phase 12 kcert's own folder goes.
    if (target.isDropping) return []
    return seen.nodes.flatMap((node) => [
      ...clockGaps(node, target),
      ...missingMaterial(seen, node, target).map(({ path }) => ({
        at: `${node.name}:${path}`,
        what: 'not laid out',
      })),
      ...(uncopiedFiles(seen, node.name).length > 0
        ? [{ at: node.name, what: 'files that will change are not copied' }]
        : isProven(seen, { kind: 'copies', node: node.name }, 0)
          ? []
          : [{ at: node.name, what: 'copies not proven to restore' }]),
    ])
  },

  plan(seen, target): readonly Step[] {
    const [first, ...others] = seen.nodes.filter((node) => node.isControlPlane)
    if (first === undefined) return []
    const layingOut = (node: NodePicture) => ({ name: node.name, steps: layOut(seen, node, target) })
    return [
      ...reachingKubelet(seen, first, target),
      ...measureHandshakes(seen, target),
      // Alone: here the new CA is made. The others get what lies there.
      ...layingOut(first).steps,
      ...together(target.atOnce, others.map(layingOut)),
      ...together(
        target.atOnce,
        seen.nodes.map((node) => ({ name: node.name, steps: copy(seen, node.name) })),
      ),
    ]
  },

  remarks(seen, { waivers }) {
    const mix = versionMix(seen)
    return mix !== undefined && waivers.has(mix.id) ? [`versions that stay different: ${mix.words}`] : []
  },

  undo(before, now) {
    // Nothing is left of the rotation then: the next one copies anew what is there by that time.
    return {
      kind: 'steps',
      steps: [...restoreFiles(before, now, () => true), ...puttingCopiesAside(1, now)],
    }
  },
})

/**
 * Phase 9 proves it of every node. A certificate that kcert issues has the subject of the one before, so an API server without rights
 * on kubelets stays so, and phase 9 would stop half way: kubeadm 1.33.12 to 1.37 writes no O into its client certificate, and makes the
 * ClusterRoleBinding of its CN in `init` and `upgrade apply` alone.
 */
function reachingKubelet(seen: Seen<Sees>, { name }: NodePicture, target: Target): readonly Step[] {
  const subject = { kind: 'logs', node: name } as const
  return changeOf(target, 'cluster') === undefined || isProven(seen, subject, 0)
    ? []
    : [probe(1, subject, 10_000)]
}

/** Phase 11 compares with it. Nothing is open for want of it: where an older kcert did this phase, it can be measured no more. */
function measureHandshakes(seen: Seen<Sees>, { soakMs }: Target): readonly Step[] {
  const lanes = componentsNamed(seen, 'kube-apiserver').flatMap(({ id }) => {
    const subject = { kind: 'handshake-rate', at: id, forMs: soakMs } as const
    const steps = [probe(1, subject, soakMs + 60_000)]
    return isProven(seen, subject, 0) ? [] : [{ name: id, steps }]
  })
  return together(lanes.length, lanes)
}

/** A certificate is backdated by minutes: a clock that is further behind would find it not yet valid. */
function clockGaps({ name, clockSkewMs }: NodePicture, { mostClockSkewMs }: Target): Gap[] {
  if (clockSkewMs === undefined) return [{ at: name, what: 'clock not known' }]
  if (Math.abs(clockSkewMs) <= mostClockSkewMs) return []
  const seconds = Math.round(Math.abs(clockSkewMs) / 1000)
  return [{ at: name, what: `clock ${seconds} s ${clockSkewMs < 0 ? 'behind' : 'ahead'}` }]
}

function missingMaterial(seen: Seen<Sees>, node: NodePicture, target: Target) {
  if (!node.isControlPlane) return []
  return materialOf(folderOn(seen, node.name), target).filter(
    (wanted) => !isLaidOut(seen, node.name, wanted, target),
  )
}

function layOut(seen: Seen<Sees>, node: NodePicture, target: Target): Action[] {
  return missingMaterial(seen, node, target).map(({ path, content, mode }) => ({
    kind: 'write-file',
    phase: 1,
    node: node.name,
    path,
    replaces: fileAt(seen, node.name, path)?.digest ?? 'absent',
    content,
    mode,
  }))
}

/** What was copied once is not copied again: later it is no longer what it was. */
function uncopiedFiles(seen: Seen<Sees>, node: string) {
  const copied = new Set(onNode(seen.copies, node).flatMap(({ of }) => ('path' in of ? [of.path] : [])))
  return touchedFilesOn(seen, node).filter(({ path }) => !copied.has(path))
}

function copy(seen: Seen<Sees>, node: string): Action[] {
  const files = uncopiedFiles(seen, node)
  const proof = { kind: 'copies', node } as const
  if (files.length === 0) return isProven(seen, proof, 0) ? [] : [probe(1, proof)]
  const path = copiesIndex
  const replaces = 'absent'
  const content = { kind: 'copies', of: files } as const
  return [{ kind: 'write-file', phase: 1, node, path, replaces, content, mode: 0o600 }, probe(1, proof)]
}
