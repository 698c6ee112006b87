import type { Task } from './action.ts'
import { type DesiredProcess, restartWith } from './restart.ts'
import { type Observed, onNode } from './snapshot.ts'
import type { Target } from './target.ts'
import { probe } from './tasks.ts'
import { distinctFiles, kubeletCaFileOf, type TrustFile } from './trust-files.ts'
import { unprovenAt } from './verifying.ts'

type Rewriting = (file: TrustFile) => readonly Task<'write-file'>[]

/**
 * Returns the changes to the trust files of one node, the restarts of API servers that read them only at startup, and the proofs.
 */
export function trustOnNode(
  observed: Observed<'components' | 'files' | 'leases' | 'evidence'>,
  node: string,
  files: readonly TrustFile[],
  target: Target,
  rewriting: Rewriting,
  annotations?: DesiredProcess['annotations'],
): Record<'writes' | 'restarts' | 'probes', readonly Task[]> {
  const { writes, probes } = rewritten(observed, onNode(files, node), target, rewriting)
  const written = new Set(writes.map(({ path }) => path))
  const restarts = onNode(observed.components, node).flatMap((component) => {
    const path = kubeletCaFileOf(observed, component, target)
    if (path === undefined) return []
    const wanted = { files: [path], ...(annotations && { annotations }), isAboutToChange: written.has(path) }
    return restartWith(observed, component, wanted)
  })
  return { writes, restarts, probes }
}

/** Returns the changes to trust files, and the probes that prove them and earlier changes. */
export function rewritten(
  observed: Observed<'files' | 'evidence'>,
  files: readonly TrustFile[],
  target: Target,
  rewriting: Rewriting,
) {
  const writes = distinctFiles(files).flatMap(rewriting)
  const isWritten = (file: TrustFile): boolean =>
    writes.some(({ node, path }) => node === file.node && path === file.path)
  const untouched = files.filter((file) => !isWritten(file))
  const probes = [
    // Earlier evidence does not count for files that are about to change.
    ...unprovenAt({ ...observed, evidence: new Map() }, files.filter(isWritten), target),
    ...unprovenAt(observed, untouched, target),
  ].map((subject) => probe(subject))
  return { writes, probes }
}
