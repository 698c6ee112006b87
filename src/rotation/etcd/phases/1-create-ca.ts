import type { Task } from '../../action.ts'
import { folderOn, isLaidOut, materialOf } from '../../material.ts'
import { definePhase } from '../../phase.ts'
import { clockGaps } from '../../phases/01-distribute.ts'
import { kubeadmCerts } from '../../phases/drop-old/remains.ts'
import { isProven } from '../../proof.ts'
import { fileAt, fileKey, type Observed, onNode } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { inLanes, patch, probe, write } from '../../tasks.ts'
import { indexing, puttingCopiesAside, restoreFiles } from '../../undo.ts'
import {
  caKeyFiles,
  type EtcdSections,
  etcdLeafFiles,
  etcdNodes,
  trustFiles,
  unwatched,
  watching,
} from '../members.ts'
import { etcdRotation, etcdRow } from '../phase-table.ts'

type Sees = EtcdSections | 'nodes' | 'copies' | 'evidence' | 'kubeadm'

export const createCa = definePhase<Sees>(etcdRow('create-ca'), {
  sees: ['nodes', 'components', 'etcdMembers', 'files', 'copies', 'evidence', 'kubeadm'],

  *gaps(observed, target) {
    // kcert's own folder is deleted in the last phase.
    if (target.isDropping) return
    for (const { id } of open(observed, target)) yield { at: id, what: 'its clients are not yet watched' }
    if (observed.kubeadm?.certsSecret !== undefined)
      yield {
        at: 'Secret kube-system/kubeadm-certs',
        what: 'would give a joining control-plane node the old CA',
      }
    for (const node of etcdNodes(observed)) {
      const { name } = node
      yield* clockGaps(node, target)
      for (const { path } of node.isControlPlane ? missingMaterial(observed, name, target) : [])
        yield { at: fileKey(name, path), what: 'not yet distributed' }
      if (uncopiedPaths(observed, name).length > 0)
        yield { at: name, what: 'files that will change are not yet copied' }
      else if (!isProven(observed, { kind: 'copies', node: name }, 0))
        yield { at: name, what: 'copies not yet tested' }
    }
  },

  *plan(observed, target) {
    // A client that Kubernetes does not know (backup, monitoring, the datastore of a CNI plugin) shows only by its connections.
    yield* watching(open(observed, target), target)
    const secret = observed.kubeadm?.certsSecret
    if (secret !== undefined) yield patch(kubeadmCerts, secret, { kind: 'delete' })
    const [first, ...others] = controlPlanes(observed)
    if (first === undefined) return
    // The first node runs alone because the new CA is created there. The other nodes get copies of it.
    yield* layOut(observed, first.name, target)
    yield* inLanes(target.atOnce, others, ({ name }) => layOut(observed, name, target))
    yield* inLanes(target.atOnce, etcdNodes(observed), ({ name }) => copy(observed, name))
  },

  remarks: ({ kubeadm }, { soakMs, etcdClients }) => [
    ...(kubeadm?.certsSecret === undefined
      ? []
      : [
          'kcert deletes Secret kubeadm-certs; to join a control-plane node after phase 6, run kubeadm init phase upload-certs --upload-certs',
        ]),
    ...(etcdClients === 'unknown'
      ? []
      : [
          `kcert watches the connections to etcd for ${soakMs / 1000} s; --soak 2h also notices clients that connect rarely; if you cannot find all of them, use --etcd-clients unknown`,
        ]),
    'until phase 6 is complete, do not join a control-plane node and do not run kubeadm certs renew: both would use a CA without the bridge certificate',
  ],

  undo: (copies, now) => [...restoreFiles(copies, now), ...puttingCopiesAside(now, etcdRotation)],
})

function controlPlanes({ nodes }: Observed<'nodes'>) {
  return nodes.filter(({ isControlPlane }) => isControlPlane)
}

/** Returns the members to watch now. Unknown clients are watched at the end of phase 2, when they can have new certificates. */
function open(observed: Observed<'etcdMembers' | 'evidence'>, { etcdClients }: Target) {
  return etcdClients === 'unknown' ? [] : unwatched(observed)
}

function missingMaterial(observed: Observed<Sees>, node: string, target: Target) {
  return materialOf(folderOn(observed, node, 'etcd'), target).filter(
    (wanted) => !isLaidOut(observed, node, wanted, target),
  )
}

function layOut(observed: Observed<Sees>, node: string, target: Target): readonly Task[] {
  return missingMaterial(observed, node, target).map(({ path, content, mode }) =>
    write(observed, node, path, content, mode),
  )
}

/** Returns the files on a node that a later phase may change and that have no copy. An existing copy is not replaced. */
function uncopiedPaths(observed: Observed<Sees>, node: string): readonly string[] {
  const copied = new Set(onNode(observed.copies, node).flatMap(({ of }) => ('path' in of ? [of.path] : [])))
  const trust = onNode(trustFiles(observed), node)
  const files = [...onNode(etcdLeafFiles(observed), node), ...caKeyFiles(observed, trust)]
  const paths = new Set([...trust, ...files].map(({ path }) => path))
  return [...paths].filter((path) => !copied.has(path)).sort()
}

function copy(observed: Observed<Sees>, node: string): readonly Task[] {
  const proof = { kind: 'copies', node } as const
  const of = uncopiedPaths(observed, node).map((path) => {
    const file = fileAt(observed, node, path)
    return { path, ...(file && { digest: file.digest }) }
  })
  if (of.length > 0) return [indexing(node, { kind: 'copies', of }, etcdRotation), probe(proof)]
  return isProven(observed, proof, 0) ? [] : [probe(proof)]
}
