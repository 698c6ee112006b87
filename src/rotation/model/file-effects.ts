import { withChanges } from '../../pki/component-flags.ts'
import type { Content, WriteFile } from '../action.ts'
import type { Digest } from '../certificate-record.ts'
import { type CopyPicture, type FileHolds, fileKey } from '../picture.ts'
import { wantedOfControllerManager } from '../signing.ts'
import { changeOf } from '../target.ts'
import { earlierHolds } from './earlier.ts'
import { followers } from './followers.ts'
import { soon } from './passing.ts'
import type { ModelProcess, World } from './world.ts'

// What a writing does: whoever may read the file has one value more.

export function writeFile(world: World, { node, path, content, phase }: WriteFile): void {
  const key = fileKey(node, path)
  const component = world.byDefinition.get(key)
  if (component !== undefined) {
    const flags = flagsOf(world, component, content, phase)
    if (flags !== undefined) define(world, component, flags)
    return
  }
  const isOurs = content.kind !== 'copies' && content.kind !== 'copies-over'
  const holds = heldBy(world, node, key, content, phase) ?? (isOurs ? nothing : undefined)
  if (holds === undefined) return
  world.files.set(key, holds)
  const holder = world.holders.get(key)
  if (holder !== undefined && holds.kind === 'kubeconfig') {
    world.board.set(holder.caData, [world.board.value(holds.caData)])
    world.board.set(holder.client, holds.client === undefined ? [] : [world.board.chain([holds.client])])
  }
  for (const who of world.readers.get(key) ?? []) offer(world, who)
}

/** Everything that lies on the disk for the process now may be read by it now. */
function offer(world: World, who: ModelProcess): void {
  for (const { role, cell } of who.readings) {
    const value = world.valueOf(who, role, who.flags)
    if (value === undefined || (cell.values.length === 1 && cell.values[0] === value)) continue
    const isNewest = world.unread.get(cell)?.value === value
    who.starting?.get(cell)?.add(value)
    if (role.reload === 'hot') {
      if (!isNewest) soon(world, cell, value)
    } else world.board.add(cell, [value])
    followers(world, who, role.part, role.flag)
  }
}

/** A file that is gone, or a link that leads nowhere: whoever reads it has no certificate to show and knows no CA. */
const nothing: FileHolds = { kind: 'certificates', certificates: [] }

/** Returns the flags that a definition will say; undefined when that cannot be told or the file goes. */
function flagsOf(
  world: World,
  { node, name, definition, flags }: ModelProcess,
  content: Content,
  phase: number,
): ModelProcess['flags'] | undefined {
  if (content.kind === 'definition') return withChanges(flags, content.flags)
  if (content.kind !== 'copy') return undefined
  const copies = world.picture.copies.filter(
    (copy) => copy.node === node && 'path' in copy.of && copy.of.path === definition,
  )
  const its = copies.find(({ digest, flags: said }) => digest === content.digest && said !== undefined)
  if (its?.flags !== undefined) return withChanges(flags, its.flags)
  // A copy of phase 7 is what phase 2 wrote; of every other, what was there first.
  const component = world.picture.components.find((one) => one.node === node && one.name === name)
  if (name === 'kube-controller-manager' && phase === 7 && component !== undefined) {
    return withChanges(
      flags,
      wantedOfControllerManager(world.picture, world.target, component, 'old').flags ?? {},
    )
  }
  const first = copies.find(({ flags: said }) => said !== undefined)
  return first?.flags === undefined ? flags : withChanges(flags, first.flags)
}

/** A manifest that is written starts its pod anew; a unit waits for somebody, or for a crash. */
function define(world: World, who: ModelProcess, flags: ModelProcess['flags']): void {
  who.flags = flags
  world.bind(who)
  if (who.runsAs === 'static-pod') {
    who.starting = new Map(
      who.readings.map(({ role, cell }) => {
        const value = world.valueOf(who, role, flags)
        return [cell, new Set(value === undefined ? [] : [value])]
      }),
    )
  }
  for (const { role, cell } of who.readings) {
    const value = world.valueOf(who, role, flags)
    if (value !== undefined) world.board.add(cell, [value])
    followers(world, who, role.part, role.flag)
  }
}

/** Returns what a file will hold; undefined when it holds nothing that anybody verifies or presents. */
function heldBy(
  world: World,
  node: string,
  key: string,
  content: Content,
  phase: number,
): FileHolds | undefined {
  const now = world.files.get(key)
  const signed = (ca: 'cluster' | 'front-proxy', leaf: Digest): Digest => {
    const change = changeOf(world.target, ca)
    return change === undefined ? leaf : world.leafOf(change.newCa).digest
  }
  switch (content.kind) {
    case 'certificates':
      return { kind: 'certificates', certificates: content.certificates }
    case 'ca-key': {
      const change = changeOf(world.target, content.ca)
      const ca = content.generation === 'old' ? change?.oldCa : change?.newCa
      return ca && { kind: 'key', spki: ca.spki }
    }
    case 'reissued': {
      const leaf = signed(content.ca, content.leaf)
      return { kind: 'certificates', certificates: [leaf, ...content.chain] }
    }
    case 'kubeconfig': {
      const before = now?.kind === 'kubeconfig' ? now.client : undefined
      const client = content.reissue === undefined ? before : signed('cluster', content.reissue)
      return { kind: 'kubeconfig', caData: content.caData, ...(client === undefined ? {} : { client }) }
    }
    case 'requested': {
      const leaf = issuedNow(world, content.replaces)
      return { kind: 'pair', certificates: [leaf], spki: world.board.record(leaf)?.spki ?? '' }
    }
    case 'link':
      return world.files.get(fileKey(node, content.to))
    case 'copy':
      return copyOf(world, node, content.digest)?.holds ?? (now && earlierBy(world, now, phase))
    default:
      return undefined
  }
}

/** Who leads is not known: when any of them still signs with the old pair, so may this. */
function issuedNow(world: World, replaces: Digest): Digest {
  const cas = world
    .cellsOf('kube-controller-manager', 'cluster-signing-cert-file')
    .flatMap(({ cell }) => cell.values)
    .map((value) => world.board.list(value)[0])
  const change = changeOf(world.target, 'cluster')
  const old = change && cas.find((digest) => world.board.record(digest)?.spki === change.oldCa.spki)
  const ca = world.board.record(old ?? cas[0])
  return ca === undefined ? replaces : world.leafOf(ca).digest
}

function copyOf({ picture }: World, node: string, digest: Digest): CopyPicture | undefined {
  return picture.copies.find(
    (copy) => copy.digest === digest && copy.node === node && copy.holds !== undefined,
  )
}

/** Where nobody looked into the copy. What phase 1 laid out had nothing before it. */
function earlierBy(world: World, now: FileHolds, phase: number): FileHolds | undefined {
  return phase === 1 ? undefined : earlierHolds(world, now)
}
