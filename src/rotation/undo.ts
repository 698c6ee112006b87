import type { PatchObject, WriteFile } from './action.ts'
import { copiesIndex } from './material.ts'
import type { Before } from './phase.ts'
import { type CopyPicture, fileAt, type Seen } from './picture.ts'

// What brings files and objects back to their copies. Only what differs is written, so that an undo can be done again.

interface FileCopy extends CopyPicture {
  readonly of: { readonly path: string }
}

/** Returns the writings that restore those copied files that are asked for, in the order of the copies. */
export function restoreFiles(
  { phase, copies }: Before,
  now: Seen<'files'>,
  isAsked: (node: string, path: string) => boolean,
): WriteFile[] {
  return copies
    .filter((copy): copy is FileCopy => 'path' in copy.of && isAsked(copy.node, copy.of.path))
    .flatMap((copy) => restoreFile(phase, copy, now))
}

function restoreFile(phase: number, copy: FileCopy, now: Seen<'files'>): WriteFile[] {
  const { node, digest, mode = 0o600, linksTo } = copy
  const { path } = copy.of
  const file = fileAt(now, node, path)
  if (file?.digest === digest && file?.linksTo === linksTo) return []
  const content: WriteFile['content'] =
    linksTo !== undefined
      ? { kind: 'link', to: linksTo }
      : digest === undefined
        ? { kind: 'nothing' }
        : { kind: 'copy', digest }
  return [{ kind: 'write-file', phase, node, path, replaces: file?.digest ?? 'absent', content, mode }]
}

/** Returns the writings that put the copies of these nodes aside, so that no later rotation takes them for what was before it. */
export function puttingCopiesAside(phase: number, { copies }: Seen<'copies'>): WriteFile[] {
  const nodes = new Set(copies.map(({ node }) => node))
  const content = { kind: 'copies-over' } as const
  return [...nodes].map((node) => ({
    kind: 'write-file',
    phase,
    node,
    path: copiesIndex,
    replaces: 'absent',
    content,
    mode: 0o600,
  }))
}

/** Returns the patches that restore copied objects of these kinds; `versionOf` tells what is there now. */
export function restoreObjects(
  { phase, copies }: Before,
  versionOf: (kind: string, name: string) => string | undefined,
): PatchObject[] {
  return copies.flatMap(({ of, digest }) => {
    if (!('object' in of)) return []
    const version = versionOf(of.object.kind, of.object.name)
    if (version === undefined) return []
    return [{ kind: 'patch-object', phase, object: of.object, version, change: { kind: 'copy', digest } }]
  })
}
