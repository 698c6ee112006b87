import type { Condition, ProbeSubject } from '../action.ts'
import type { Digest } from '../certificate-record.ts'
import { rereadMs } from '../convergence.ts'
import type { Trust } from '../snapshot.ts'
import { changeOf } from '../target.ts'
import type { Cell } from './board.ts'
import { publishRoots } from './followers.ts'
import { pass, scheduleValue, settled } from './passing.ts'
import type { World } from './world.ts'

// What is certain after a wait or a successful probe: values that would have delayed it are removed.

export function wait(world: World, until: Condition): void {
  const { board } = world
  switch (until.kind) {
    case 'published':
      board.keep(world.published, containing(until))
      // A controller-manager that has not restarted may lead next, and publish its own content.
      publishRoots(world)
      return
    case 'volumes':
      for (const pods of world.pods) {
        board.keep(pods.volume, containing(until))
        if (pods.rereads) rereadSoon(world, pods.known, pods.volume)
      }
      return
    case 'pods-converged': {
      const its = until.workload === undefined ? world.pods : (world.podsOf.get(until.workload) ?? [])
      for (const { volume, known } of its) {
        board.keep(volume, containing({ contains: until.contains, lacks: [] }))
        settled(world, known, volume.values)
      }
      return
    }
    case 'pods-started':
      for (const { frontProxy } of world.podsOf.get(until.workload) ?? []) {
        if (frontProxy !== undefined) board.set(frontProxy, world.extension.requestheader.values)
      }
      return
    case 'serves':
      keepServing(world, until)
      return
    case 'extension-authentication':
      board.keep(world.extension.client, containing({ contains: until.client, lacks: until.lacks }))
      board.keep(
        world.extension.requestheader,
        containing({ contains: until.requestheader, lacks: until.lacks }),
      )
      return
    case 'instant':
      pass(world, Math.max(0, until.atMs - world.snapshot.atMs - world.clockMs))
      return
    default:
      return
  }
}

function rereadSoon(world: World, known: Cell, volume: Cell): void {
  const [value, ...more] = volume.values
  if (value === undefined || more.length > 0) return
  if (known.values.length > 1 || known.values[0] !== value) scheduleValue(world, known, value, rereadMs)
}

function containing({ contains, lacks }: { contains: Trust; lacks: Trust }) {
  return (list: readonly Digest[]): boolean =>
    contains.every((digest) => list.includes(digest)) && !lacks.some((digest) => list.includes(digest))
}

function keepServing(
  world: World,
  { server, signedBy, bridged }: Extract<Condition, { kind: 'serves' }>,
): void {
  const flag = server.endsWith('/kubelet') ? 'serving' : 'tls-cert-file'
  const cell = world.processes.get(server)?.readings.find(({ role }) => role.flag === flag)?.cell
  world.board.keep(cell, (list) => {
    const isSigned = world.board.record(list[0])?.signedBy === signedBy
    return isSigned && (bridged === undefined || list.length > 1 === bridged)
  })
}

export function probe(world: World, subject: ProbeSubject): void {
  if ('forMs' in subject) pass(world, subject.forMs)
  if (subject.kind !== 'client') return
  const change = changeOf(world.target, subject.ca)
  if (change === undefined) return
  const { spki } = subject.generation === 'old' ? change.oldCa : change.newCa
  const who = world.processes.get(subject.at)
  const flags =
    subject.ca === 'cluster' ? ['client-ca-file', 'clientCAFile'] : ['requestheader-client-ca-file']
  const cell = who?.readings.find(({ role }) => flags.includes(role.flag))?.cell
  const accepts = (list: readonly Digest[]): boolean =>
    list.some((digest) => world.board.record(digest)?.spki === spki)
  world.board.keep(
    cell ?? world.extension.client,
    (list) => accepts(list) === (subject.expects === 'accepted'),
  )
  const [only, ...more] = cell?.values ?? []
  if (cell !== undefined && only !== undefined && more.length === 0) world.unread.delete(cell)
}
