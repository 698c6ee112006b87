import type { Action, RestartComponent } from '../action.ts'
import { writeFile } from './file-effects.ts'
import { followers } from './followers.ts'
import { patchObject } from './object-effects.ts'
import { pass, settled } from './passing.ts'
import { probe, wait } from './settling.ts'
import type { World } from './world.ts'

// The effect of an action on the cells. A process that may read something new gets one more value. A value is removed only when
// it is certainly gone: the process restarted, a probe or a wait proves it, or enough time has passed.

/** Minimum duration of an action. */
const leastMs = { definition: 5_000, kubelet: 1_000 } as const

/** Changes the world as the action does. The board finds the connections that break. */
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
  // A static pod with an unchanged manifest does not restart.
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
