import type { Step, WriteFile } from '../../action.ts'
import { isOfOldCa } from '../../leaves.ts'
import { folderOn, materialOf } from '../../material.ts'
import type { Part } from '../../phase.ts'
import { type FilePicture, fileAt, fileKey } from '../../picture.ts'
import { together } from '../../restart.ts'
import { changeOf, type Target } from '../../target.ts'
import { puttingCopiesAside } from '../../undo.ts'

/** What would bring the old CA back, and what kcert laid out for itself. */
export const remains: Part = (seen, target) => {
  const secret = seen.kubeadm?.certsSecret
  const change = changeOf(target, 'cluster')
  const linked = new Set([...seen.files.values()].map(({ node, linksTo }) => fileKey(node, linksTo ?? '')))
  const superseded = [...seen.files.values()].filter(
    (file) =>
      change !== undefined &&
      file.linksTo === undefined &&
      file.holds.kind === 'pair' &&
      !linked.has(fileKey(file.node, file.path)) &&
      isOfOldCa(seen, file, change),
  )
  const laidOut = seen.nodes.flatMap(({ name }) =>
    materialOf(folderOn(seen, name), target).flatMap(({ path }) => fileAt(seen, name, path) ?? []),
  )
  const files = [...superseded, ...laidOut]
  const copies = puttingCopiesAside(12, seen)
  return {
    gaps: [
      ...(secret === undefined
        ? []
        : [{ at: 'Secret kube-system/kubeadm-certs', what: 'may bring the old CA back' }]),
      ...files.map(({ node, path }) => ({ at: fileKey(node, path), what: 'left over' })),
      ...copies.map(({ node }) => ({ at: node, what: 'copies not put aside for the next rotation' })),
    ],
    steps: [
      ...(secret === undefined
        ? []
        : [
            {
              kind: 'patch-object',
              phase: 12,
              object: { kind: 'Secret', namespace: 'kube-system', name: 'kubeadm-certs' },
              version: secret,
              change: { kind: 'delete' },
            } as const,
          ]),
      ...removing(superseded, target),
      ...together(
        target.atOnce,
        copies.map((write) => ({ name: write.node, steps: [write] })),
      ),
      // Last: with the keys in there kcert reaches the cluster when nobody's kubeconfig of before does.
      ...removing(laidOut, target),
    ],
  }
}

function removing(files: readonly FilePicture[], target: Target): readonly Step[] {
  return together(
    target.atOnce,
    [...Map.groupBy(files, ({ node }) => node)].map(([name, own]) => ({
      name,
      steps: own.map(
        ({ node, path, digest, mode }): WriteFile => ({
          kind: 'write-file',
          phase: 12,
          node,
          path,
          replaces: digest,
          content: { kind: 'nothing' },
          mode,
        }),
      ),
    })),
  )
}
