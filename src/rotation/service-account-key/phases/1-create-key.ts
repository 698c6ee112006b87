import type { Content, CopiedFile } from '../../action.ts'
import { distribution, withoutJoinSecret } from '../../distributing.ts'
import { definePhase, inParts } from '../../phase.ts'
import { apiServerOn, type ComponentSnapshot, controlPlanes, fileAt, type Observed } from '../../snapshot.ts'
import type { KeyChange } from '../../target.ts'
import { puttingCopiesAside, restoreFiles } from '../../undo.ts'
import { delayIn, keyMaterial, keyPart, keyPaths, keysIn, signers } from '../keys.ts'
import { keyRotation, keyRow } from '../phase-table.ts'

type Sees = 'nodes' | 'components' | 'files' | 'copies' | 'evidence' | 'kubeadm'

const created = keyPart<Sees>((observed, target, key) => {
  // kcert's own files are deleted in the last phase.
  if (target.isDropping) return { gaps: [], steps: [] }
  const secret = withoutJoinSecret(observed, keyRotation)
  const { gaps, steps } = keysAndCopies(key)
  return {
    gaps: [...secret.gaps, ...gaps(observed, target)],
    steps: [...secret.steps, ...steps(observed, target)],
  }
})

const keysAndCopies = (key: KeyChange) =>
  distribution<Sees>({
    table: keyRotation,
    nodes: controlPlanes,
    missing: (observed, node) => missing(observed, node, key),
    touched,
  })

export const createKey = definePhase<Sees>(keyRow('create-key'), {
  sees: ['nodes', 'components', 'files', 'copies', 'evidence', 'kubeadm'],
  ...inParts(created),

  remarks: (observed) => [
    ...withoutJoinSecret(observed, keyRotation).remarks,
    'until phase 8 is complete, do not join a control-plane node: its keys would not match those of the others',
  ],

  undo: (copies, now) => [...restoreFiles(copies, now), ...puttingCopiesAside(now, keyRotation)],
})

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

/** Returns the files on a node that a later phase may change, by path. */
function touched(observed: Observed<'components' | 'files'>, node: string): readonly CopiedFile[] {
  const files = signers(observed)
    .filter((one) => one.node === node)
    .flatMap((one) => filesOf(one))
  const byPath = new Map(files.map((file) => [file.path, file]))
  return [...byPath.values()]
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .map((one) => {
      const file = fileAt(observed, node, one.path)
      return { ...one, ...(file && { digest: file.digest }) }
    })
}

function filesOf(one: ComponentSnapshot) {
  return [
    ...keyPaths(one).map((path) => ({ path })),
    ...(one.name === 'kube-apiserver' ? [{ path: one.definition, flags: delayIn(one) }] : []),
  ]
}
