import type { Content, Task } from './action.ts'
import { keyPathFor } from './material.ts'
import { manualRotation, type PhaseTable } from './phase-table.ts'
import { type CopySnapshot, fileAt, fileKey, type Observed } from './snapshot.ts'
import { patch, write } from './tasks.ts'

// Restores files and objects from their copies. Only differences are written, so an undo can be repeated.

/**
 * Returns the writes that restore the selected copied files, in the order of the copies. A certificate and the key next to it are
 * one write.
 */
export function restoreFiles(
  copies: readonly CopySnapshot[],
  now: Observed<'files'>,
  isAsked: (node: string, path: string) => boolean = () => true,
): readonly Task<'write-file'>[] {
  const writes = copies.flatMap(({ node, of, digest, mode, linksTo }) => {
    if (!('path' in of) || !isAsked(node, of.path)) return []
    const file = fileAt(now, node, of.path)
    if (file?.digest === digest && file?.linksTo === linksTo) return []
    return [write(now, node, of.path, contentOf(digest, linksTo), mode)]
  })
  const byPlace = new Map(writes.map((one) => [fileKey(one.node, one.path), one]))
  const withKeys = writes.map((one): Task<'write-file'> => {
    const path = keyPathFor(one.path)
    const isCertificate = fileAt(now, one.node, one.path)?.contains.kind === 'certificates'
    const of = isCertificate ? byPlace.get(fileKey(one.node, path)) : undefined
    if (one.content.kind !== 'copy' || of?.content.kind !== 'copy') return one
    return {
      ...one,
      content: { ...one.content, key: { path, replaces: of.replaces, digest: of.content.digest } },
    }
  })
  const keys = new Set(
    withKeys.flatMap(({ node, content }) =>
      content.kind === 'copy' && content.key !== undefined ? [fileKey(node, content.key.path)] : [],
    ),
  )
  return withKeys.filter(({ node, path }) => !keys.has(fileKey(node, path)))
}

function contentOf(digest: string | undefined, linksTo: string | undefined): Content {
  if (linksTo !== undefined) return { kind: 'link', to: linksTo }
  return digest === undefined ? { kind: 'nothing' } : { kind: 'copy', digest }
}

/** Returns the actions that rename the indexes of the copies on these nodes, so that no later rotation treats them as its own. */
export function puttingCopiesAside(
  { copies }: Observed<'copies'>,
  table: PhaseTable = manualRotation,
): readonly Task<'write-file'>[] {
  const nodes = new Set(copies.map(({ node }) => node))
  return Array.from(nodes, (node) => indexing(node, { kind: 'copies-over' }, table))
}

/** Returns an action that writes to the index of the copies on a node. */
export function indexing(
  node: string,
  content: Content,
  { copiesIndex: path }: PhaseTable = manualRotation,
): Task<'write-file'> {
  return { kind: 'write-file', node, path, replaces: 'absent', content, mode: 0o600 }
}

/** Returns the patches that restore copied objects of these kinds. `versionOf` returns the current resourceVersion. */
export function restoreObjects(
  copies: readonly CopySnapshot[],
  versionOf: (kind: string, name: string) => string | undefined,
): readonly Task[] {
  return copies.flatMap(({ of, digest }) => {
    if (!('object' in of)) return []
    const version = versionOf(of.object.kind, of.object.name)
    return version === undefined ? [] : [patch(of.object, version, { kind: 'copy', digest })]
  })
}
