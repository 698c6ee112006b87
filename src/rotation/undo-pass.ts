import type { Task } from './action.ts'
import { awaitLeader, leaderLast, restartOf, restartWith } from './restart.ts'
import {
  type ComponentSnapshot,
  type CopySnapshot,
  fileAt,
  fileKey,
  hasStartedSince,
  type Observed,
  type ProcessSnapshot,
} from './snapshot.ts'
import { restoreFiles } from './undo.ts'

// An interrupted undo is repeated: restored files are not written again, and processes that have not restarted since then
// restart.

type Sees = 'components' | 'leases' | 'files'

/**
 * Returns the steps that restore the definitions of a phase. Each process restarts before the next definition, standbys first.
 */
export function backToDefinitions(copies: readonly CopySnapshot[], now: Observed<Sees>): readonly Task[] {
  const changed = changedFiles(copies)
  const restored = restoreFiles(copies, now, isDefinition(now))
  const writes = Map.groupBy(restored, ({ node, path }) => fileKey(node, path))
  const back = leaderLast(now, now.components).flatMap((component) => {
    const { node, definition, process } = component
    const key = fileKey(node, definition)
    const its = writes.get(key) ?? []
    const isOpen = its.length > 0 || (changed.has(key) && !hasRead(now, process, node, [definition]))
    return isOpen ? [{ component, its }] : []
  })
  const names = new Set<string>(back.map(({ component }) => component.name))
  const leases = [...names].filter((name) => now.leases.some((lease) => lease.name === name))
  return [
    ...back.flatMap(({ component, its }) => [...its, restartOf(now, component)]),
    ...leases.map(awaitLeader),
  ]
}

function isDefinition({ components }: Observed<'components'>): (node: string, path: string) => boolean {
  const definitions = new Set(components.map(({ node, definition }) => fileKey(node, definition)))
  return (node, path) => definitions.has(fileKey(node, path))
}

/**
 * Returns the writes that restore a phase's files, and the restarts after which processes read them: definitions as above, and
 * the processes that read the restored file of the flag only at startup, unless their definition is restored too.
 */
export function backToFiles(
  copies: readonly CopySnapshot[],
  now: Observed<Sees>,
  components: readonly ComponentSnapshot[],
  flag: string,
): Record<'files', readonly Task<'write-file'>[]> & Record<'restarts', readonly Task[]> {
  const isOne = isDefinition(now)
  const files = restoreFiles(copies, now, (node, path) => !isOne(node, path))
  const manifests = backToDefinitions(copies, now)
  const written = new Set(files.map(({ node, path }) => fileKey(node, path)))
  const changed = changedFiles(copies)
  const restarted = new Set(manifests.flatMap((step) => (step.kind === 'restart' ? [step.process] : [])))
  const readers = components.filter(({ id, node, flags, process }) => {
    const path = flags[flag]
    const key = fileKey(node, path ?? '')
    const isOpen = written.has(key) || (changed.has(key) && !hasRead(now, process, node, [path]))
    return isOpen && !restarted.has(id)
  })
  const again = readers.flatMap((one) => restartWith(now, one, { isAboutToChange: true }))
  return { files, restarts: [...manifests, ...again] }
}

/** Returns the keys of the files that a phase changed. */
export function changedFiles(copies: readonly CopySnapshot[]): ReadonlySet<string> {
  return new Set(copies.flatMap(({ node, of }) => ('path' in of ? [fileKey(node, of.path)] : [])))
}

/** Returns true when a process started after the last change of all these files. */
export function hasRead(
  now: Observed<'files'>,
  process: ProcessSnapshot | undefined,
  node: string,
  paths: readonly (string | undefined)[],
): boolean {
  return paths.every((path) => path === undefined || hasStartedSince(process, fileAt(now, node, path)))
}
