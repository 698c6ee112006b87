import type { CopiedFile } from '../../action.ts'
import { distribution, withoutJoinSecret } from '../../distributing.ts'
import { folderOn, isLaidOut, materialOf } from '../../material.ts'
import { definePhase } from '../../phase.ts'
import { fileAt, type Observed, onNode } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { puttingCopiesAside, restoreFiles } from '../../undo.ts'
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

const materialAndCopies = distribution<Sees>({
  table: etcdRotation,
  nodes: etcdNodes,
  missing: (observed, node, target) =>
    materialOf(folderOn(observed, node, 'etcd'), target).filter(
      (wanted) => !isLaidOut(observed, node, wanted, target),
    ),
  touched,
})

export const createCa = definePhase<Sees>(etcdRow('create-ca'), {
  sees: ['nodes', 'components', 'etcdMembers', 'files', 'copies', 'evidence', 'kubeadm'],

  *gaps(observed, target) {
    // kcert's own folder is deleted in the last phase.
    if (target.isDropping) return
    for (const { id } of open(observed, target)) yield { at: id, what: 'its clients are not yet watched' }
    yield* withoutJoinSecret(observed, etcdRotation).gaps
    yield* materialAndCopies.gaps(observed, target)
  },

  *plan(observed, target) {
    // A client that Kubernetes does not know (backup, monitoring, the datastore of a CNI plugin) shows only by its connections.
    yield* watching(open(observed, target), target)
    yield* withoutJoinSecret(observed, etcdRotation).steps
    yield* materialAndCopies.steps(observed, target)
  },

  remarks: (observed, { soakMs, etcdClients }) => [
    ...withoutJoinSecret(observed, etcdRotation).remarks,
    ...(etcdClients === 'unknown'
      ? []
      : [
          `kcert watches the connections to etcd for ${soakMs / 1000} s; --soak 2h also notices clients that connect rarely; if you cannot find all of them, use --etcd-clients unknown`,
        ]),
    'until phase 6 is complete, do not join a control-plane node and do not run kubeadm certs renew: both would use a CA without the bridge certificate',
  ],

  undo: (copies, now) => [...restoreFiles(copies, now), ...puttingCopiesAside(now, etcdRotation)],
})

/** Returns the members to watch now. Unknown clients are watched at the end of phase 2, when they can have new certificates. */
function open(observed: Observed<'etcdMembers' | 'evidence'>, { etcdClients }: Target) {
  return etcdClients === 'unknown' ? [] : unwatched(observed)
}

/** Returns the files on a node that a later phase may change, by path. */
function touched(observed: Observed<EtcdSections>, node: string): readonly CopiedFile[] {
  const trust = onNode(trustFiles(observed), node)
  const files = [...onNode(etcdLeafFiles(observed), node), ...caKeyFiles(observed, trust)]
  const paths = new Set([...trust, ...files].map(({ path }) => path))
  return [...paths].sort().map((path) => {
    const file = fileAt(observed, node, path)
    return { path, ...(file && { digest: file.digest }) }
  })
}
