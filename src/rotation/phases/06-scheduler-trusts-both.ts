import type { Step } from '../action.ts'
import { definePhase } from '../phase.ts'
import type { Seen } from '../picture.ts'
import { probe } from '../proof.ts'
import { changeOf, type Target } from '../target.ts'
import { addingNew, distinctFiles, holdsNew, type TrustFile, trustFilesOf } from '../trust-files.ts'
import { restoreFiles } from '../undo.ts'
import { provingAll, unprovenAt } from '../verifying.ts'

export const schedulerTrustsBoth = definePhase('scheduler-trusts-both', {
  sees: ['components', 'files', 'evidence'],

  gaps(seen, target) {
    const files = configured(seen, target)
    const without = files.filter((file) => !holdsNew(seen, file, target))
    const unproven = target.isDropping ? [] : unprovenAt(seen, files, target)
    return [
      ...without.map(({ process, path }) => ({ at: process, what: `${path} without the new CA` })),
      ...unproven.map((subject) => ({
        at: 'at' in subject ? subject.at : '',
        what: 'clients of both CAs not proven to be accepted',
      })),
    ]
  },

  plan(seen, target): readonly Step[] {
    const files = configured(seen, target)
    const writes = distinctFiles(files).flatMap((file) => addingNew(seen, 6, file, target))
    const written = new Set(writes.map(({ node, path }) => `${node}:${path}`))
    const isWritten = ({ node, path }: TrustFile): boolean => written.has(`${node}:${path}`)
    if (target.isDropping) return writes
    return [
      ...writes,
      ...provingAll(6, files.filter(isWritten), target),
      ...unprovenAt(
        seen,
        files.filter((file) => !isWritten(file)),
        target,
      ).map((subject) => probe(6, subject)),
    ]
  },

  remarks(seen, target) {
    return configured(seen, target).length === 0 ? ['holds: --client-ca-file is not configured'] : []
  },

  undo: (before, now) => ({ kind: 'steps', steps: restoreFiles(before, now, () => true) }),
})

/** Files of their own: those that an API server on the same node reads too belong to phase 5. */
function configured(seen: Seen<'components'>, target: Target): readonly TrustFile[] {
  const shared = new Set(trustFilesOf(seen, ['kube-apiserver']).map(({ node, path }) => `${node}:${path}`))
  return trustFilesOf(seen, ['kube-scheduler', 'kube-controller-manager']).filter(
    ({ node, path, ca }) => changeOf(target, ca) !== undefined && !shared.has(`${node}:${path}`),
  )
}
