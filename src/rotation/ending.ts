import type { Task } from './action.ts'
import type { Part, PendingItem } from './phase.ts'
import type { PhaseTable } from './phase-table.ts'
import { type FileSnapshot, fileKey, type Observed } from './snapshot.ts'
import { rewrite } from './tasks.ts'
import { puttingCopiesAside } from './undo.ts'

// The last phase of a rotation: what kcert laid out goes away.

/** Returns the pending items and the steps of the end of a rotation: kcert's own files, and the indexes of the copies. */
export function deletingOwnFiles(
  observed: Observed<'copies'>,
  table: PhaseTable,
  files: readonly FileSnapshot[],
): ReturnType<Part> {
  const copies = puttingCopiesAside(observed, table)
  return {
    gaps: [...files.map(notDeleted), ...copies.map(notArchived)],
    steps: [...copies, ...files.map((file) => rewrite(file, { kind: 'nothing' }))],
  }
}

export function notDeleted({ node, path }: FileSnapshot): PendingItem {
  return { at: fileKey(node, path), what: 'not yet deleted' }
}

export function notArchived({ node }: Task<'write-file'>): PendingItem {
  return { at: node, what: 'copies not yet archived for the next rotation' }
}
