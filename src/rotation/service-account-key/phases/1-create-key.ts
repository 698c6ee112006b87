import type { Content, Task } from '../../action.ts'
import { definePhase, inParts } from '../../phase.ts'
import { clockGaps } from '../../phases/01-distribute.ts'
import { kubeadmCerts } from '../../phases/drop-old/remains.ts'
import { isProven } from '../../proof.ts'
import {
  apiServerOn,
  type ComponentSnapshot,
  fileAt,
  fileKey,
  type Observed,
  onNode,
} from '../../snapshot.ts'
import type { KeyChange, Target } from '../../target.ts'
import { inLanes, patch, probe, write } from '../../tasks.ts'
import { indexing, puttingCopiesAside, restoreFiles } from '../../undo.ts'
import { delayIn, keyMaterial, keyPart, keyPaths, keysIn, signers } from '../keys.ts'
import { keyRotation, keyRow } from '../phase-table.ts'

type Sees = 'nodes' | 'components' | 'files' | 'copies' | 'evidence' | 'kubeadm'

const created = keyPart<Sees>((observed, target, key) => {
  // kcert's own files are deleted in the last phase.
  if (target.isDropping) return { gaps: [], steps: [] }
  const nodes = controlPlanes(observed)
  const [first, ...others] = nodes
  const secret = observed.kubeadm?.certsSecret
  return {
    gaps: [
      ...(secret === undefined
        ? []
        : [
            {
              at: 'Secret kube-system/kubeadm-certs',
              what: 'would give a joining control-plane node the old key',
            },
          ]),
      ...nodes.flatMap((node) => nodeGaps(observed, target, key, node)),
    ],
    steps: [
      ...(secret === undefined ? [] : [patch(kubeadmCerts, secret, { kind: 'delete' })]),
      // The first node runs alone because the new key is created there. The other nodes get copies of it.
      ...(first === undefined ? [] : layOut(observed, first.name, key)),
      ...inLanes(target.atOnce, others, ({ name }) => layOut(observed, name, key)),
      ...inLanes(target.atOnce, nodes, ({ name }) => copy(observed, name)),
    ],
  }
})

export const createKey = definePhase<Sees>(keyRow('create-key'), {
  sees: ['nodes', 'components', 'files', 'copies', 'evidence', 'kubeadm'],
  ...inParts(created),

  remarks: ({ kubeadm }) => [
    ...(kubeadm?.certsSecret === undefined
      ? []
      : [
          'kcert deletes Secret kubeadm-certs; to join a control-plane node after phase 8, run kubeadm init phase upload-certs --upload-certs',
        ]),
    'until phase 8 is complete, do not join a control-plane node: its keys would not match those of the others',
  ],

  undo: (copies, now) => [...restoreFiles(copies, now), ...puttingCopiesAside(now, keyRotation)],
})

function controlPlanes({ nodes }: Observed<'nodes'>) {
  return nodes.filter(({ isControlPlane }) => isControlPlane)
}

function nodeGaps(
  observed: Observed<Sees>,
  target: Target,
  key: KeyChange,
  node: Observed<'nodes'>['nodes'][number],
) {
  const { name } = node
  const isUncopied = uncopied(observed, name).length > 0
  return [
    ...clockGaps(node, target),
    ...missing(observed, name, key).map(({ path }) => ({
      at: fileKey(name, path),
      what: 'not yet distributed',
    })),
    ...(isUncopied ? [{ at: name, what: 'files that will change are not yet copied' }] : []),
    ...(!isUncopied && !isProven(observed, { kind: 'copies', node: name }, 0)
      ? [{ at: name, what: 'copies not yet tested' }]
      : []),
  ]
}

/** Returns kcert's files that a node does not have yet. The public key of the old key shows later which one it was. */
function missing(observed: Observed<'components' | 'files'>, node: string, { oldKey, newKey }: KeyChange) {
  const api = apiServerOn(observed, node)
  if (api === undefined) return []
  const paths = keyMaterial(api)
  const wanted: readonly { path: string; key: string; content: Content; mode: number }[] = [
    { path: paths.newKey, key: newKey, content: { kind: 'service-account-key' }, mode: 0o600 },
    {
      path: paths.oldPublicKey,
      key: oldKey,
      content: { kind: 'public-keys', keys: [oldKey] },
      mode: 0o644,
    },
  ]
  return wanted.filter(({ path, key }) => keysIn(fileAt(observed, node, path)).join() !== key)
}

function layOut(observed: Observed<Sees>, node: string, key: KeyChange): readonly Task[] {
  return missing(observed, node, key).map(({ path, content, mode }) =>
    write(observed, node, path, content, mode),
  )
}

/** Returns the files on a node that a later phase may change and that have no copy. An existing copy is not replaced. */
function uncopied(observed: Observed<Sees>, node: string) {
  const copied = new Set(onNode(observed.copies, node).flatMap(({ of }) => ('path' in of ? [of.path] : [])))
  const files = signers(observed)
    .filter((one) => one.node === node)
    .flatMap((one) => filesOf(one))
  const byPath = new Map(files.map((file) => [file.path, file]))
  return [...byPath.values()]
    .filter(({ path }) => !copied.has(path))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

function filesOf(one: ComponentSnapshot) {
  return [
    ...keyPaths(one).map((path) => ({ path })),
    ...(one.name === 'kube-apiserver' ? [{ path: one.definition, flags: delayIn(one) }] : []),
  ]
}

function copy(observed: Observed<Sees>, node: string): readonly Task[] {
  const proof = { kind: 'copies', node } as const
  const of = uncopied(observed, node).map((one) => {
    const file = fileAt(observed, node, one.path)
    return { ...one, ...(file && { digest: file.digest }) }
  })
  if (of.length > 0) return [indexing(node, { kind: 'copies', of }, keyRotation), probe(proof)]
  return isProven(observed, proof, 0) ? [] : [probe(proof)]
}
