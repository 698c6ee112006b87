import type { Action, WriteFile } from './action.ts'
import { onNode, type Seen } from './picture.ts'
import { awaitLeader, leaderLast, restartOf } from './restart.ts'

/** Returns definitions' restored bytes as a pass: each written and restarted before the next, standbys first. */
export function backToDefinitions(
  now: Seen<'components' | 'leases'>,
  phase: number,
  writings: readonly WriteFile[],
): readonly Action[] {
  const written = leaderLast(now, now.components).flatMap((component) => {
    const write = onNode(writings, component.node).find(({ path }) => path === component.definition)
    return write === undefined ? [] : [{ component, write }]
  })
  const leases = [...new Set(written.map(({ component }) => component.name))].filter((name) =>
    now.leases.some((lease) => lease.name === name),
  )
  return [
    ...written.flatMap(({ component, write }) => [write, restartOf(now, phase, component)]),
    ...leases.map((lease) => awaitLeader(phase, lease)),
  ]
}
