import type { Action, ObjectChange, PatchObject, RestartComponent } from '../action.ts'
import { manualRotation, rowNumbered } from '../phase-table.ts'
import type { ObjectReference, Trust } from '../snapshot.ts'
import type { Cell } from './board.ts'
import { earlierTrust } from './earlier.ts'
import { writeFile } from './file-effects.ts'
import { followers } from './followers.ts'
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
  else if (action.kind === 'rollout') roll(world, action.workload)
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
  settled(world, who.kept, world.valuesOf('kube-apiserver', 'kubelet-client-certificate'))
}

// The effect of a patch. Processes that watch an object read it at once.

function patchObject(world: World, { object, change, phase }: PatchObject): void {
  const name = object.name
  if (object.kind === 'ConfigMap' && name === 'cluster-info') {
    const trust = trustAfter(world, object, change, phase, world.clusterInfo)
    if (trust !== undefined) world.board.set(world.clusterInfo, [world.board.value(trust)])
    return
  }
  if (name === 'extension-apiserver-authentication' && change.kind === 'delete')
    recreateAuthenticationConfig(world)
  for (const bundle of world.snapshot.caBundles) {
    if (bundle.object.kind !== object.kind || bundle.object.name !== name) continue
    if (change.kind === 'ca-bundle' && change.field !== bundle.field) continue
    const cell = world.bundles.get(bundle.id)
    const trust = trustAfter(world, object, change, phase, cell)
    if (cell !== undefined && trust !== undefined) world.board.set(cell, [world.board.value(trust)])
  }
}

function trustAfter(
  world: World,
  object: ObjectReference,
  change: ObjectChange,
  phase: number,
  cell: Cell | undefined,
): Trust | undefined {
  if (change.kind === 'ca-bundle' || change.kind === 'cluster-info') return change.trust
  if (change.kind !== 'copy') return undefined
  const copy = world.snapshot.copies.find(
    ({ of, digest, contains }) =>
      'object' in of &&
      of.object.kind === object.kind &&
      of.object.name === object.name &&
      digest === change.digest &&
      contains !== undefined,
  )
  if (copy?.contains?.kind === 'certificates') return copy.contains.certificates
  const now = cell?.values.at(-1)
  return now === undefined || rowNumbered(manualRotation, phase)?.reorders
    ? undefined
    : earlierTrust(world, world.board.list(now))
}

/** The first API server creates it with its own CAs; the others add theirs. */
function recreateAuthenticationConfig(world: World): void {
  const { board, extension } = world
  for (const [field, flag] of [
    ['client', 'client-ca-file'],
    ['requestheader', 'requestheader-client-ca-file'],
  ] as const) {
    const own = world.valuesOf('kube-apiserver', flag)
    const union = board.value([...new Set(own.flatMap((value) => board.list(value)))])
    board.add(extension[field], [...own, union])
  }
}

function roll(world: World, workload: string): void {
  for (const { volume, known, frontProxy } of world.podsOf.get(workload) ?? []) {
    world.board.add(volume, world.published.values)
    world.board.add(known, world.published.values)
    if (frontProxy !== undefined) world.board.add(frontProxy, world.extension.requestheader.values)
  }
}
