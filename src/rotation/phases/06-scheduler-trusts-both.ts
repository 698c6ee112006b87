import { definePhase } from '../phase.ts'
import { fileKey, type Observed } from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { addingNew, containsNew, type TrustFile, trustFilesOf } from '../trust-files.ts'
import { rewritten } from '../trust-on-node.ts'
import { restoreFiles } from '../undo.ts'
import { unprovenAt } from '../verifying.ts'

export const schedulerTrustsBoth = definePhase('scheduler-trusts-both', {
  sees: ['components', 'files', 'evidence'],

  *gaps(observed, target) {
    const files = configured(observed, target)
    for (const file of files)
      if (!containsNew(observed, file, target))
        yield { at: file.process, what: `${file.path} without the new CA` }
    if (target.isDropping) return
    for (const { at } of unprovenAt(observed, files, target))
      yield { at, what: 'clients of both CAs not yet accepted in a test' }
  },

  plan(observed, target) {
    const adding = (file: TrustFile) => addingNew(observed, file, target)
    const { writes, probes } = rewritten(observed, configured(observed, target), target, adding)
    return target.isDropping ? writes : [...writes, ...probes]
  },

  remarks: (observed, target) =>
    configured(observed, target).length === 0 ? ['complete: --client-ca-file is not configured'] : [],

  undo: (copies, now) => restoreFiles(copies, now),
})

/** Returns the scheduler's own trust files. Phase 5 writes the files that an API server on the same node also reads. */
function configured(observed: Observed<'components'>, target: Target): readonly TrustFile[] {
  const shared = new Set(
    trustFilesOf(observed, ['kube-apiserver']).map(({ node, path }) => fileKey(node, path)),
  )
  return trustFilesOf(observed, ['kube-scheduler', 'kube-controller-manager']).filter(
    ({ node, path, ca }) => changeOf(target, ca) !== undefined && !shared.has(fileKey(node, path)),
  )
}
