import type {
  Action,
  Condition,
  Content,
  ObjectChange,
  PatchObject,
  ProbeSubject,
  RestartComponent,
  WriteFile,
} from '../action.ts'
import type { Digest } from '../certificate-record.ts'
import { rereadMs } from '../convergence.ts'
import { type CopyPicture, type FileHolds, fileKey, type ObjectReference, type Trust } from '../picture.ts'
import { wantedOfControllerManager } from '../signing.ts'
import { changeOf } from '../target.ts'
import type { Cell } from './board.ts'
import type { ModelProcess, World } from './world.ts'

// What an action does to the cells. Whoever may read something new from now on has one value more; a value goes only when it is
// certain that it is gone: the process was started anew, a probe or a wait says so, or enough time has passed.

/** Files that are watched are read within 0.3 s (measured); what is read at each handshake, after at most 1 s. */
const hotMs = 1_000

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

/** Lets so much time pass; what was written long enough ago is read by now. */
export function pass(world: World, ms: number): void {
  world.clockMs += ms
  for (const [cell, { sinceMs, value, lagMs }] of world.unread) {
    if (sinceMs + lagMs > world.clockMs) continue
    world.unread.delete(cell)
    world.board.set(cell, [value])
  }
}

/** A hot value that will be the only one after the lag. */
function soon(world: World, cell: Cell, value: number, lagMs = hotMs): void {
  world.board.add(cell, [value])
  world.unread.set(cell, { sinceMs: world.clockMs, value, lagMs })
}

function settled(world: World, cell: Cell, values: readonly number[]): void {
  world.unread.delete(cell)
  world.board.set(cell, values)
}

// --- files

function writeFile(world: World, { node, path, content, phase }: WriteFile): void {
  const key = fileKey(node, path)
  const component = world.byDefinition.get(key)
  if (component !== undefined) {
    const flags = flagsOf(world, component, content, phase)
    if (flags !== undefined) define(world, component, flags)
    return
  }
  const holds = heldBy(world, node, key, content, phase)
  if (holds === undefined) {
    if (content.kind === 'nothing') world.files.delete(key)
    return
  }
  world.files.set(key, holds)
  const holder = world.holders.get(key)
  if (holder !== undefined && holds.kind === 'kubeconfig') {
    world.board.set(holder.caData, [world.board.value(holds.caData)])
    world.board.set(holder.client, holds.client === undefined ? [] : [world.board.chain([holds.client])])
  }
  for (const process of world.readers.get(key) ?? []) offer(world, process)
}

/** Everything that lies on the disk for the process now may be read by it now. */
function offer(world: World, process: ModelProcess): void {
  for (const { role, cell } of process.readings) {
    const value = world.valueOf(process, role, process.flags)
    if (value === undefined || (cell.values.length === 1 && cell.values[0] === value)) continue
    const isNewest = world.unread.get(cell)?.value === value
    process.starting?.get(cell)?.add(value)
    if (role.reload === 'hot') {
      if (!isNewest) soon(world, cell, value)
    } else world.board.add(cell, [value])
    followers(world, process, role.part, role.flag)
  }
}

/** What others make of what a process holds. */
function followers(world: World, process: ModelProcess, part: string, flag: string): void {
  if (part === 'root') publishRoots(world)
  if (part === 'signing' && process.signs !== undefined) followSigning(world, process)
  if (process.name !== 'kube-apiserver') return
  if (flag === 'client-ca-file') publishClientCas(world, 'client', flag)
  if (flag === 'requestheader-client-ca-file') publishClientCas(world, 'requestheader', flag)
  if (flag === 'kubelet-client-certificate') keepConnections(world)
}

function followSigning(world: World, process: ModelProcess): void {
  const signing = process.readings.find(({ role }) => role.part === 'signing')!.cell
  world.board.set(
    process.signs!,
    signing.values.flatMap((value) => world.signedBy(value) ?? []),
  )
}

/** Any of them may lead, now or later. */
function publishRoots(world: World): void {
  for (const { cell } of world.cellsOf('kube-controller-manager', 'root-ca-file')) {
    world.board.add(world.published, cell.values)
  }
  bringToVolumes(world)
}

function bringToVolumes(world: World): void {
  for (const { volume, process, rereads } of world.pods) {
    world.board.add(volume, world.published.values)
    if (rereads) world.board.add(process, volume.values)
  }
}

/** API servers add what they hold to what is there. */
function publishClientCas(world: World, field: 'client' | 'requestheader', flag: string): void {
  const { board, extension } = world
  const own = world.cellsOf('kube-apiserver', flag).flatMap(({ cell }) => cell.values)
  const unions = extension[field].values.flatMap((before) =>
    own.map((value) => board.value([...new Set([...board.list(before), ...board.list(value)])])),
  )
  board.add(extension[field], unions)
}

/** Kubelets meet the old certificate on connections that are kept for 5 minutes, and the new one on others. */
function keepConnections(world: World): void {
  const shown = world.cellsOf('kube-apiserver', 'kubelet-client-certificate')
  const all = [...new Set(shown.flatMap(({ cell }) => cell.values))]
  const last = new Set(shown.map(({ process, role }) => world.valueOf(process, role, process.flags)))
  const [newest] = last
  for (const { process } of world.cellsOf('kubelet', 'clientCAFile')) {
    const kept = process.kept!
    world.board.add(kept, all)
    if (last.size === 1 && newest !== undefined) soon(world, kept, newest, rereadMs)
  }
}

/** Returns the flags that a definition will say; undefined when that cannot be told or the file goes. */
function flagsOf(
  world: World,
  { node, name, definition, flags }: ModelProcess,
  content: Content,
  phase: number,
): ModelProcess['flags'] | undefined {
  if (content.kind === 'definition') return edited(flags, content.flags)
  if (content.kind !== 'copy') return undefined
  const copies = world.picture.copies.filter(
    (copy) => copy.node === node && 'path' in copy.of && copy.of.path === definition,
  )
  const its = copies.find(({ digest, flags: said }) => digest === content.digest && said !== undefined)
  if (its?.flags !== undefined) return edited(flags, its.flags)
  // A copy of phase 7 is what phase 2 wrote; of every other, what was there first.
  const component = world.picture.components.find((one) => one.node === node && one.name === name)
  if (name === 'kube-controller-manager' && phase === 7 && component !== undefined) {
    return edited(flags, wantedOfControllerManager(world.picture, world.target, component, 'old').flags ?? {})
  }
  const first = copies.find(({ flags: said }) => said !== undefined)
  return first?.flags === undefined ? flags : edited(flags, first.flags)
}

function edited(
  now: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const flags = { ...now }
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete flags[name]
    else flags[name] = value
  }
  return flags
}

/** A manifest that is written starts its pod anew; a unit waits for somebody, or for a crash. */
function define(world: World, process: ModelProcess, flags: ModelProcess['flags']): void {
  process.flags = flags
  world.bind(process)
  if (process.runsAs === 'static-pod') {
    process.starting = new Map(
      process.readings.map(({ role, cell }) => {
        const value = world.valueOf(process, role, flags)
        return [cell, new Set(value === undefined ? [] : [value])]
      }),
    )
  }
  for (const { role, cell } of process.readings) {
    const value = world.valueOf(process, role, flags)
    if (value !== undefined) world.board.add(cell, [value])
    followers(world, process, role.part, role.flag)
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
  return phase === 1 ? undefined : world.earlierHolds(now)
}

// --- objects

function patchObject(world: World, { object, change, phase }: PatchObject): void {
  const name = object.name
  if (object.kind === 'ConfigMap' && name === 'cluster-info') {
    const trust = trustAfter(world, object, change, phase, () => world.clusterInfo)
    if (trust !== undefined) world.board.set(world.clusterInfo, [world.board.value(trust)])
    return
  }
  if (name === 'extension-apiserver-authentication' && change.kind === 'delete') madeAnew(world)
  for (const bundle of world.picture.caBundles) {
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
  const copy = world.picture.copies.find(
    ({ of, digest, holds }) =>
      'object' in of &&
      of.object.kind === object.kind &&
      of.object.name === object.name &&
      digest === change.digest &&
      holds !== undefined,
  )
  if (copy?.holds?.kind === 'certificates') return copy.holds.certificates
  const now = cellOf()?.values.at(-1)
  // Phase 10 changes the order alone.
  return now === undefined || phase === 10 ? undefined : world.earlierTrust(world.board.list(now))
}

/** Whoever comes first makes it of what it holds itself; the others add theirs. */
function madeAnew(world: World): void {
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

// --- processes and pods

function restart(world: World, { process: id, how, replaces }: RestartComponent): void {
  const process = world.processes.get(id)
  if (process === undefined) return
  pass(world, how === 'definition' ? leastMs.definition : process.name === 'kubelet' ? leastMs.kubelet : 0)
  // A static pod whose manifest is as it was is not started anew.
  if (how === 'definition' && process.starting === undefined && replaces !== undefined) return
  for (const { role, cell } of process.readings) {
    const value = world.valueOf(process, role, process.flags)
    const read = role.reload === 'start' ? process.starting?.get(cell) : undefined
    const values = read && read.size > 0 ? [...read] : value === undefined ? [] : [value]
    if (values.length > 0) settled(world, cell, values)
    followers(world, process, role.part, role.flag)
  }
  delete process.starting
  if (process.kept === undefined) return
  const shown = world.cellsOf('kube-apiserver', 'kubelet-client-certificate')
  settled(world, process.kept, [...new Set(shown.flatMap(({ cell }) => cell.values))])
}

function roll(world: World, workload: string): void {
  for (const { volume, process, frontProxy } of world.podsOf.get(workload) ?? []) {
    world.board.add(volume, world.published.values)
    world.board.add(process, world.published.values)
    if (frontProxy !== undefined) world.board.add(frontProxy, world.extension.requestheader.values)
  }
}

// --- what is waited for and proven

function wait(world: World, until: Condition): void {
  const { board } = world
  switch (until.kind) {
    case 'published':
      board.keep(world.published, holding(until))
      // A controller-manager that was not started anew may lead next, and publish what it has.
      publishRoots(world)
      return
    case 'volumes':
      for (const pods of world.pods) {
        board.keep(pods.volume, holding(until))
        if (pods.rereads) rereadSoon(world, pods.process, pods.volume)
      }
      return
    case 'pods-converged': {
      const its = until.workload === undefined ? world.pods : (world.podsOf.get(until.workload) ?? [])
      for (const { volume, process } of its) {
        board.keep(volume, holding({ holds: until.holds, lacks: [] }))
        settled(world, process, volume.values)
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
      board.keep(world.extension.client, (list) => areSame(list, until.client))
      board.keep(world.extension.requestheader, (list) => areSame(list, until.requestheader))
      return
    case 'instant':
      pass(world, Math.max(0, until.atMs - world.picture.atMs - world.clockMs))
      return
    default:
      return
  }
}

function rereadSoon(world: World, process: Cell, volume: Cell): void {
  const [value, ...more] = volume.values
  if (value === undefined || more.length > 0) return
  if (process.values.length > 1 || process.values[0] !== value) soon(world, process, value, rereadMs)
}

function holding({ holds, lacks }: { holds: Trust; lacks: Trust }) {
  return (list: readonly Digest[]): boolean =>
    holds.every((digest) => list.includes(digest)) && !lacks.some((digest) => list.includes(digest))
}

function areSame(a: Trust, b: Trust): boolean {
  return a.length === b.length && a.every((digest) => b.includes(digest))
}

function keepServing(
  world: World,
  { presenter, signedBy, bridged }: Extract<Condition, { kind: 'serves' }>,
): void {
  const flag = presenter.endsWith('/kubelet') ? 'serving' : 'tls-cert-file'
  const cell = world.processes.get(presenter)?.readings.find(({ role }) => role.flag === flag)?.cell
  world.board.keep(cell, (list) => {
    const isSigned = world.board.record(list[0])?.signedBy === signedBy
    return isSigned && (bridged === undefined || list.length > 1 === bridged)
  })
}

function probe(world: World, subject: ProbeSubject): void {
  if (subject.kind === 'handshake-errors') pass(world, subject.forMs)
  if (subject.kind !== 'client') return
  const change = changeOf(world.target, subject.ca)
  if (change === undefined) return
  const { spki } = subject.generation === 'old' ? change.oldCa : change.newCa
  const process = world.processes.get(subject.at)
  const flags =
    subject.ca === 'cluster' ? ['client-ca-file', 'clientCAFile'] : ['requestheader-client-ca-file']
  const cell = process?.readings.find(({ role }) => flags.includes(role.flag))?.cell
  const accepts = (list: readonly Digest[]): boolean =>
    list.some((digest) => world.board.record(digest)?.spki === spki)
  world.board.keep(
    cell ?? world.extension.client,
    (list) => accepts(list) === (subject.expects === 'accepted'),
  )
  const [only, ...more] = cell?.values ?? []
  if (cell !== undefined && only !== undefined && more.length === 0) world.unread.delete(cell)
}
