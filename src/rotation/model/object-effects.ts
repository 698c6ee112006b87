import type { ObjectChange, PatchObject } from '../action.ts'
import { rowNumbered } from '../phase-table.ts'
import type { ObjectReference, Trust } from '../snapshot.ts'
import type { Cell } from './board.ts'
import { earlierTrust } from './earlier.ts'
import type { World } from './world.ts'

// The effect of a patch. Processes that watch an object read it at once.

export function patchObject(world: World, { object, change, phase }: PatchObject): void {
  const name = object.name
  if (object.kind === 'ConfigMap' && name === 'cluster-info') {
    const trust = trustAfter(world, object, change, phase, () => world.clusterInfo)
    if (trust !== undefined) world.board.set(world.clusterInfo, [world.board.value(trust)])
    return
  }
  if (name === 'extension-apiserver-authentication' && change.kind === 'delete')
    recreateAuthenticationConfig(world)
  for (const bundle of world.snapshot.caBundles) {
    if (bundle.object.kind !== object.kind || bundle.object.name !== name) continue
    if (change.kind === 'ca-bundle' && change.field !== bundle.field) continue
    const cell = world.bundles.get(bundle.id)
    const trust = trustAfter(world, object, change, phase, () => cell)
    if (cell !== undefined && trust !== undefined) world.board.set(cell, [world.board.value(trust)])
  }
}

function trustAfter(
  world: World,
  object: ObjectReference,
  change: ObjectChange,
  phase: number,
  cellOf: () => Cell | undefined,
): Trust | undefined {
  if (change.kind === 'ca-bundle' || change.kind === 'cluster-info') return change.trust
  if (change.kind !== 'copy') return undefined
  const copy = world.snapshot.copies.find(
    ({ of, digest, holds }) =>
      'object' in of &&
      of.object.kind === object.kind &&
      of.object.name === object.name &&
      digest === change.digest &&
      holds !== undefined,
  )
  if (copy?.holds?.kind === 'certificates') return copy.holds.certificates
  const now = cellOf()?.values.at(-1)
  return now === undefined || rowNumbered(phase)?.reorders
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
    const own = [...new Set(world.cellsOf('kube-apiserver', flag).flatMap(({ cell }) => cell.values))]
    const union = board.value([...new Set(own.flatMap((value) => board.list(value)))])
    board.add(extension[field], [...own, union])
  }
}
