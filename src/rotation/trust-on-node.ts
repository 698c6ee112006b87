import type { Action, WriteFile } from './action.ts'
import { onNode, type Seen } from './picture.ts'
import { probe } from './proof.ts'
import { restartWith, type Wanted } from './restart.ts'
import type { Target } from './target.ts'
import { distinctFiles, kubeletCaFileOf, type TrustFile } from './trust-files.ts'
import { provingAll, unprovenAt } from './verifying.ts'

/** Returns how one node's trust files change, which API servers restart because they read one only then, and what proves it. */
export function trustOnNode(
  seen: Seen<'components' | 'files' | 'leases' | 'evidence'>,
  phase: number,
  node: string,
  files: readonly TrustFile[],
  target: Target,
  rewriting: (file: TrustFile) => readonly WriteFile[],
  annotations?: Wanted['annotations'],
): Record<'writes' | 'restarts' | 'probes', readonly Action[]> {
  const here = onNode(files, node)
  const writes = distinctFiles(here).flatMap(rewriting)
  const written = new Set(writes.map(({ path }) => path))
  const restarts = onNode(seen.components, node).flatMap((component) => {
    const path = kubeletCaFileOf(seen, component, target)
    if (path === undefined) return []
    const wanted = { files: [path], ...(annotations && { annotations }), isAboutToChange: written.has(path) }
    return restartWith(seen, phase, component, wanted)
  })
  const isWritten = ({ path }: TrustFile): boolean => written.has(path)
  const untouched = here.filter((file) => !isWritten(file))
  const probes = [
    ...provingAll(phase, here.filter(isWritten), target),
    ...unprovenAt(seen, untouched, target).map((subject) => probe(phase, subject)),
  ]
  return { writes, restarts, probes }
}
