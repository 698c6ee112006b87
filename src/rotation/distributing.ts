import type { Content, CopiedFile, Step, Task } from './action.ts'
import type { PendingItem } from './phase.ts'
import type { PhaseTable } from './phase-table.ts'
import { kubeadmCerts } from './phases/drop-old/remains.ts'
import { isProven } from './proof.ts'
import {
  controlPlanes,
  fileKey,
  type NodeSnapshot,
  type Observed,
  onNode,
  type SectionName,
} from './snapshot.ts'
import type { Target } from './target.ts'
import { inLanes, patch, probe, write } from './tasks.ts'
import { indexing } from './undo.ts'

// Phase 1 of every rotation: what is new is created on the first control-plane node and copied to the others, and every file that
// will change is copied before the first change.

type OwnSections = 'nodes' | 'files' | 'copies' | 'evidence'

/** The parts of phase 1 that differ between rotations. */
interface Distribution<Section extends SectionName> {
  readonly table: PhaseTable
  /** Returns the nodes whose files change. */
  nodes(observed: Observed<Section | OwnSections>): readonly NodeSnapshot[]
  /** Returns kcert's own files that a control-plane node does not have yet. */
  missing(
    observed: Observed<Section | OwnSections>,
    node: string,
    target: Target,
  ): readonly { readonly path: string; readonly content: Content; readonly mode: number }[]
  /** Returns the files on a node that later phases may change, each with its current state. */
  touched(observed: Observed<Section | OwnSections>, node: string): readonly CopiedFile[]
}

/** Returns the pending items of the nodes, and the steps that complete them. */
export function distribution<Section extends SectionName>(rotation: Distribution<Section>) {
  const { table, nodes, touched } = rotation
  type Seen = Observed<Section | OwnSections>
  const missing = (observed: Seen, { name, isControlPlane }: NodeSnapshot, target: Target) =>
    isControlPlane ? rotation.missing(observed, name, target) : []
  /** An existing copy is not replaced: a later copy would no longer contain the original content. */
  const uncopied = (observed: Seen, node: string) => {
    const copied = new Set(onNode(observed.copies, node).flatMap(({ of }) => ('path' in of ? [of.path] : [])))
    return touched(observed, node).filter(({ path }) => !copied.has(path))
  }
  const layOut = (observed: Seen, node: NodeSnapshot, target: Target): readonly Task[] =>
    missing(observed, node, target).map(({ path, content, mode }) =>
      write(observed, node.name, path, content, mode),
    )
  const copy = (observed: Seen, node: string): readonly Task[] => {
    const of = uncopied(observed, node)
    const proof = { kind: 'copies', node } as const
    if (of.length > 0) return [indexing(node, { kind: 'copies', of }, table), probe(proof)]
    return isProven(observed, proof, 0) ? [] : [probe(proof)]
  }
  return {
    *gaps(observed: Seen, target: Target): Generator<PendingItem> {
      for (const node of nodes(observed)) {
        const { name } = node
        yield* clockGaps(node, target)
        for (const { path } of missing(observed, node, target))
          yield { at: fileKey(name, path), what: 'not yet distributed' }
        if (uncopied(observed, name).length > 0)
          yield { at: name, what: 'files that will change are not yet copied' }
        else if (!isProven(observed, { kind: 'copies', node: name }, 0))
          yield { at: name, what: 'copies not yet tested' }
      }
    },
    *steps(observed: Seen, target: Target): Generator<Step<Task>> {
      const [first, ...others] = controlPlanes(observed)
      if (first === undefined) return
      // The first node runs alone because the new CA or key is created there. The other nodes get copies of it.
      yield* layOut(observed, first, target)
      yield* inLanes(target.atOnce, others, (node) => layOut(observed, node, target))
      yield* inLanes(target.atOnce, nodes(observed), ({ name }) => copy(observed, name))
    },
  }
}

/** kcert backdates a certificate by minutes. A clock that is further behind would find it not yet valid. */
function clockGaps({ name, clockSkewMs }: NodeSnapshot, { mostClockSkewMs }: Target): readonly PendingItem[] {
  if (clockSkewMs === undefined) return [{ at: name, what: 'clock unknown' }]
  if (Math.abs(clockSkewMs) <= mostClockSkewMs) return []
  const seconds = Math.round(Math.abs(clockSkewMs) / 1000)
  return [{ at: name, what: `clock ${seconds} s ${clockSkewMs < 0 ? 'behind' : 'ahead'}` }]
}

/**
 * Returns the deletion of Secret kubeadm-certs, with which a control-plane node would join with what the rotation replaces, and a
 * remark about it; nothing if there is no such Secret.
 */
export function withoutJoinSecret({ kubeadm }: Observed<'kubeadm'>, { replaces, rows }: PhaseTable) {
  const secret = kubeadm?.certsSecret
  if (secret === undefined) return { gaps: [], steps: [], remarks: [] }
  return {
    gaps: [
      {
        at: 'Secret kube-system/kubeadm-certs',
        what: `would give a joining control-plane node the old ${replaces}`,
      },
    ],
    steps: [patch(kubeadmCerts, secret, { kind: 'delete' })],
    remarks: [
      `kcert deletes Secret kubeadm-certs; to join a control-plane node after phase ${rows.length}, run kubeadm init phase upload-certs --upload-certs`,
    ],
  }
}
