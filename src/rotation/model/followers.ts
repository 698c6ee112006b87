import { rereadMs } from '../convergence.ts'
import { scheduleValue } from './passing.ts'
import type { ModelProcess, World } from './world.ts'

// What controllers, API servers and kubelets derive from the files of other processes.

/** Updates the cells that depend on a value of this process. */
export function followers(world: World, who: ModelProcess, part: string, flag: string): void {
  if (part === 'root') publishRoots(world)
  if (part === 'signing' && who.signs !== undefined) {
    const pairs = who.readings
      .filter(({ role }) => role.part === 'signing')
      .flatMap(({ cell }) => cell.values)
    const leaves = pairs.flatMap((pair) => world.signedBy(pair) ?? [])
    world.board.set(who.signs, leaves)
  }
  if (who.name !== 'kube-apiserver') return
  if (flag === 'client-ca-file') publishClientCas(world, 'client', flag)
  if (flag === 'requestheader-client-ca-file') publishClientCas(world, 'requestheader', flag)
  if (flag === 'kubelet-client-certificate') keepConnections(world)
}

/** Any controller-manager may be the leader, now or later. */
export function publishRoots(world: World): void {
  for (const { cell } of world.cellsOf('kube-controller-manager', 'root-ca-file')) {
    world.board.add(world.published, cell.values)
  }
  bringToVolumes(world)
}

function bringToVolumes(world: World): void {
  for (const { volume, known, rereads } of world.pods) {
    world.board.add(volume, world.published.values)
    if (rereads) world.board.add(known, volume.values)
  }
}

/** API servers add their CAs to the published ones. */
function publishClientCas(world: World, field: 'client' | 'requestheader', flag: string): void {
  const { board, extension } = world
  const own = world.valuesOf('kube-apiserver', flag)
  const unions = extension[field].values.flatMap((before) =>
    own.map((value) => board.value([...new Set([...board.list(before), ...board.list(value)])])),
  )
  board.add(extension[field], unions)
}

/** API servers present the old certificate to kubelets on connections that stay open for 5 minutes, and the new one on others. */
function keepConnections(world: World): void {
  const [name, flag] = ['kube-apiserver', 'kubelet-client-certificate'] as const
  const all = world.valuesOf(name, flag)
  const last = new Set(world.cellsOf(name, flag).map(({ who, role }) => world.valueOf(who, role, who.flags)))
  const [newest] = last
  for (const { who } of world.cellsOf('kubelet', 'clientCAFile')) {
    const { kept } = who
    if (kept === undefined) continue
    world.board.add(kept, all)
    if (last.size === 1 && newest !== undefined) scheduleValue(world, kept, newest, rereadMs)
  }
}
