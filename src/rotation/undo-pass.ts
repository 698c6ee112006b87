import type { Action, WriteFile } from './action.ts'
import type { Before } from './phase.ts'
import {
  type ComponentPicture,
  fileAt,
  fileKey,
  hasStartedSince,
  type ProcessPicture,
  type Seen,
} from './picture.ts'
import { awaitLeader, leaderLast, restartOf } from './restart.ts'
import { restoreFiles } from './undo.ts'

// An undo that was stopped is done again: what is restored already is not written twice, and who was not started anew since is.

/**
 * Returns the definitions that a phase changed as a pass back: each restored and its process started anew before the next, standbys
 * first.
 */
export function backToDefinitions(
  before: Before,
  now: Seen<'components' | 'leases' | 'files'>,
): readonly Action[] {
  const { phase } = before
  const changed = changedFiles(before)
  const definitions = new Set(now.components.map(({ node, definition }) => fileKey(node, definition)))
  const writes = new Map(
    restoreFiles(before, now, (node, path) => definitions.has(fileKey(node, path))).map((write) => [
      fileKey(write.node, write.path),
      write,
    ]),
  )
  const back = leaderLast(now, now.components).flatMap((component) => {
    const { node, definition, process } = component
    const key = fileKey(node, definition)
    const write = writes.get(key)
    const isOpen = write !== undefined || (changed.has(key) && !hasRead(now, process, node, [definition]))
    return isOpen ? [{ component, writes: write === undefined ? [] : [write] }] : []
  })
  const leases = [...new Set(back.map(({ component }) => component.name))].filter((name) =>
    now.leases.some((lease) => lease.name === name),
  )
  return [
    ...back.flatMap(({ component, writes: its }) => [...its, restartOf(now, phase, component)]),
    ...leases.map((lease) => awaitLeader(phase, lease)),
  ]
}

/**
 * Returns those of these components that must still read again the restored file that this flag names. Those whose definition is
 * restored too are restarted by that.
 */
export function readersToRestart(
  before: Before,
  now: Seen<'files'>,
  components: readonly ComponentPicture[],
  restored: readonly WriteFile[],
  manifests: readonly Action[],
  flag: string,
): readonly ComponentPicture[] {
  const written = new Set(restored.map(({ node, path }) => fileKey(node, path)))
  const changed = changedFiles(before)
  const restarted = new Set(manifests.flatMap((step) => (step.kind === 'restart' ? [step.process] : [])))
  return components.filter(({ id, node, flags, process }) => {
    const path = flags[flag]
    const key = fileKey(node, path ?? '')
    const isOpen = written.has(key) || (changed.has(key) && !hasRead(now, process, node, [path]))
    return isOpen && !restarted.has(id)
  })
}

/** Returns the keys of the files that a phase changed. */
export function changedFiles({ copies }: Before): ReadonlySet<string> {
  return new Set(copies.flatMap(({ node, of }) => ('path' in of ? [fileKey(node, of.path)] : [])))
}

/** True when a process was started after all of these became what they are. */
export function hasRead(
  now: Seen<'files'>,
  process: ProcessPicture | undefined,
  node: string,
  paths: readonly (string | undefined)[],
): boolean {
  return paths.every((path) => path === undefined || hasStartedSince(process, fileAt(now, node, path)))
}
