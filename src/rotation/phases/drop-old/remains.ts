import type { Step, Task } from '../../action.ts'
import { notArchived, notDeleted } from '../../ending.ts'
import { isOfOldCa } from '../../leaves.ts'
import { folderOn, materialOf } from '../../material.ts'
import type { Part } from '../../phase.ts'
import { type FileSnapshot, fileAt, fileKey } from '../../snapshot.ts'
import { changeOf, type Target } from '../../target.ts'
import { inParallel, patch, rewrite } from '../../tasks.ts'
import { puttingCopiesAside } from '../../undo.ts'

export const kubeadmCerts = { kind: 'Secret', namespace: 'kube-system', name: 'kubeadm-certs' } as const

/** Objects and files that could restore the old CA, and kcert's own files. */
export const remains: Part = (observed, target) => {
  const secret = observed.kubeadm?.certsSecret
  const change = changeOf(target, 'cluster')
  const files = [...observed.files.values()]
  const linked = new Set(files.map(({ node, linksTo }) => fileKey(node, linksTo ?? '')))
  const superseded = files.filter(
    (file) =>
      change !== undefined &&
      file.linksTo === undefined &&
      file.contains.kind === 'pair' &&
      !linked.has(fileKey(file.node, file.path)) &&
      isOfOldCa(observed, file, change),
  )
  const laidOut = observed.nodes.flatMap(({ name }) =>
    materialOf(folderOn(observed, name), target).flatMap(({ path }) => fileAt(observed, name, path) ?? []),
  )
  const copies = puttingCopiesAside(observed)
  return {
    gaps: [
      ...(secret ? [{ at: 'Secret kube-system/kubeadm-certs', what: 'may restore the old CA' }] : []),
      ...[...superseded, ...laidOut].map(notDeleted),
      ...copies.map(notArchived),
    ],
    steps: [
      ...(secret ? [patch(kubeadmCerts, secret, { kind: 'delete' })] : []),
      ...removing(superseded, target),
      ...nodeByNode(copies, target),
      // Remove these last: kcert uses these keys to connect to the cluster when no earlier kubeconfig works.
      ...removing(laidOut, target),
    ],
  }
}

function removing(files: readonly FileSnapshot[], target: Target): readonly Step<Task>[] {
  const removals = files.map((file) => rewrite(file, { kind: 'nothing' }))
  return nodeByNode(removals, target)
}

function nodeByNode(writes: readonly Task<'write-file'>[], { atOnce }: Target): readonly Step<Task>[] {
  const lanes = [...Map.groupBy(writes, ({ node }) => node)].map(([name, steps]) => ({ name, steps }))
  return inParallel(atOnce, lanes)
}
