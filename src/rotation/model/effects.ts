import type { Action, RestartComponent } from '../action.ts'
import { writeFile } from './file-effects.ts'
import { followers } from './followers.ts'
import { patchObject } from './object-effects.ts'
import { pass, settled } from './passing.ts'
import { probe, wait } from './settling.ts'
import type { World } from './world.ts'

// What an action does to the cells. A process that may read something new from now on has one value more; a value goes only when it is
// certain that it is gone: the process was restarted, a probe or a wait says so, or enough time has passed.

/** How long an action takes at least. */
const leastMs = { definition: 5_000, kubelet: 1_000 } as const

/** Changes the world as the action does. What breaks by it is found on the board. */
export function perform(world: World, action: Action): void {
  if (action.kind === 'write-file') writeFile(world, action)
  else if (action.kind === 'patch-object') patchObject(world, action)
  else if (action.kind === 'restart') restart(world, action)
  else if (action.kind === 'roll') roll(world, action.workload)
  else if (action.kind === 'wait') wait(world, action.until)
  else if (action.kind === 'probe') probe(world, action.subject)
}

function restart(world: World, { process: id, how, replaces }: RestartComponent): void {
  const who = world.processes.get(id)
  if (who === undefined) return
  pass(world, how === 'definition' ? leastMs.definition : who.name === 'kubelet' ? leastMs.kubelet : 0)
  // A static pod with an unchanged manifest is not restarted.
  if (how === 'definition' && who.starting === undefined && replaces !== undefined) return
  for (const { role, cell } of who.readings) {
    const value = world.valueOf(who, role, who.flags)
    const read = role.reload === 'start' ? who.starting?.get(cell) : undefined
    const values = read && read.size > 0 ? [...read] : value === undefined ? [] : [value]
    if (values.length > 0) settled(world, cell, values)
    followers(world, who, role.part, role.flag)
  }
  delete who.starting
  if (who.kept === undefined) return
  const shown = world.cellsOf('kube-apiserver', 'kubelet-client-certificate')
  settled(world, who.kept, [...new Set(shown.flatMap(({ cell }) => cell.values))])
}

function roll(world: World, workload: string): void {
  for (const { volume, known, frontProxy } of world.podsOf.get(workload) ?? []) {
    world.board.add(volume, world.published.values)
    world.board.add(known, world.published.values)
    if (frontProxy !== undefined) world.board.add(frontProxy, world.extension.requestheader.values)
  }
}
