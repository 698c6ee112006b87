import { withChanges } from '../../pki/component-flags.ts'
import type { Content, WriteFile } from '../action.ts'
import type { CertificateRecord, Digest } from '../certificate-record.ts'
import { manualRotation, rowNumbered } from '../phase-table.ts'
import { wantedOfControllerManager } from '../signing.ts'
import { fileKey, onNode, type ParsedContent } from '../snapshot.ts'
import { type CaName, changeOf, type Target } from '../target.ts'
import { earlierContent } from './earlier.ts'
import { followers } from './followers.ts'
import { scheduleValue } from './passing.ts'
import type { ModelProcess, World } from './world.ts'

// The effect of a write: a process that may read the file gets one more value.

export function writeFile(world: World, write: WriteFile): void {
  const { node, path, content, phase } = write
  if (content.kind === 'copy' && content.key !== undefined)
    writeFile(world, { ...write, ...content.key, content: { kind: 'copy', digest: content.key.digest } })
  const key = fileKey(node, path)
  const component = world.byDefinition.get(key)
  if (component !== undefined) {
    const flags = flagsOf(world, component, content, phase)
    if (flags !== undefined) define(world, component, flags)
    return
  }
  const isOurs = content.kind !== 'copies' && content.kind !== 'copies-over'
  const contains = contentAfter(world, node, key, content, phase) ?? (isOurs ? nothing : undefined)
  if (contains === undefined) return
  world.files.set(key, contains)
  const holder = world.holders.get(key)
  if (holder !== undefined && contains.kind === 'kubeconfig') {
    world.board.set(holder.caData, [world.board.value(contains.caData)])
    world.board.set(
      holder.client,
      contains.client === undefined ? [] : [world.board.chain([contains.client])],
    )
  }
  for (const who of world.readers.get(key) ?? []) offer(world, who)
}

/** The process may now read any of its files on disk. */
function offer(world: World, who: ModelProcess): void {
  for (const { role, cell } of who.readings) {
    const value = world.valueOf(who, role, who.flags)
    if (value === undefined || (cell.values.length === 1 && cell.values[0] === value)) continue
    const isNewest = world.unread.get(cell)?.value === value
    who.starting?.get(cell)?.add(value)
    if (role.reload === 'hot') {
      if (!isNewest) scheduleValue(world, cell, value)
    } else world.board.add(cell, [value])
    followers(world, who, role.part, role.flag)
  }
}

/** A missing file or a dangling link: a process that reads it has no certificate and trusts no CA. */
const nothing: ParsedContent = { kind: 'certificates', certificates: [] }

/** Returns the flags in a definition after a write; undefined when they are unknown or the file is removed. */
function flagsOf(
  world: World,
  { node, name, definition, flags }: ModelProcess,
  content: Content,
  phase: number,
): ModelProcess['flags'] | undefined {
  if (content.kind === 'definition') return withChanges(flags, content.flags)
  if (content.kind !== 'copy') return undefined
  const copies = onNode(world.snapshot.copies, node).filter(
    ({ of }) => 'path' in of && of.path === definition,
  )
  const its = copies.find(({ digest, flags: said }) => digest === content.digest && said !== undefined)
  if (its?.flags !== undefined) return withChanges(flags, its.flags)
  // For the phase that changes the signer, the copy contains what phase 2 wrote. For any other phase, it contains the original.
  const component = world.snapshot.components.find((one) => one.node === node && one.name === name)
  if (
    name === 'kube-controller-manager' &&
    rowNumbered(manualRotation, phase)?.changesSigner &&
    component !== undefined
  ) {
    return withChanges(
      flags,
      wantedOfControllerManager(world.snapshot, world.target, component, 'old').flags ?? {},
    )
  }
  const first = copies.find(({ flags: said }) => said !== undefined)
  return first?.flags === undefined ? flags : withChanges(flags, first.flags)
}

/** A changed manifest restarts its pod. A changed unit takes effect at a restart or after a crash. */
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

/** Returns undefined when the content has no CA certificates and no leaf certificate. */
function contentAfter(
  world: World,
  node: string,
  key: string,
  content: Content,
  phase: number,
): ParsedContent | undefined {
  const now = world.files.get(key)
  if (content.kind === 'link') return world.files.get(fileKey(node, content.to))
  if (content.kind === 'copy') {
    const copies = onNode(world.snapshot.copies, node).filter(({ digest }) => digest === content.digest)
    const read = copies.find(({ contains }) => contains !== undefined)?.contains
    // Files of the first phase did not exist earlier.
    return (
      read ?? (now && !rowNumbered(manualRotation, phase)?.begins ? earlierContent(world, now) : undefined)
    )
  }
  const issuing: Issuing = {
    target: world.target,
    record: (digest) => world.board.record(digest),
    signed: (leaf, by) => (by === undefined ? leaf : world.leafOf(by).digest),
    signer: () => signer(world),
  }
  return contentBy(issuing, now, content)
}

/** How a model signs certificates, and its data about them. */
export interface Issuing {
  readonly target: Target
  record(digest: Digest): CertificateRecord | undefined
  /** Returns the leaf certificate signed by this CA, or the same leaf if the CA is unknown. */
  signed(leaf: Digest, by: CertificateRecord | undefined): Digest
  /** Returns the CA with which controller-managers sign now. */
  signer(): CertificateRecord | undefined
}

/**
 * Returns the content of a file with the content `now` after a write; undefined when this content alone does not determine it.
 */
export function contentBy(
  issuing: Issuing,
  now: ParsedContent | undefined,
  content: Content,
): ParsedContent | undefined {
  const newCa = (ca: CaName) => changeOf(issuing.target, ca)?.newCa
  switch (content.kind) {
    case 'certificates':
      return { kind: 'certificates', certificates: content.certificates }
    case 'ca-key': {
      const change = changeOf(issuing.target, content.ca)
      const ca = content.generation === 'old' ? change?.oldCa : change?.newCa
      return ca && { kind: 'key', spki: ca.spki }
    }
    case 'service-account-key':
      return issuing.target.key && { kind: 'key', spki: issuing.target.key.newKey }
    case 'public-keys':
      return { kind: 'public-keys', keys: content.keys }
    case 'reissued': {
      const leaf = issuing.signed(content.leaf, newCa(content.ca))
      return { kind: 'certificates', certificates: [leaf, ...content.chain] }
    }
    case 'kubeconfig': {
      const before = now?.kind === 'kubeconfig' ? now.client : undefined
      const client =
        content.reissue === undefined ? before : issuing.signed(content.reissue, newCa('cluster'))
      return { kind: 'kubeconfig', caData: content.caData, ...(client === undefined ? {} : { client }) }
    }
    case 'requested': {
      const leaf = issuing.signed(content.replaces, issuing.signer())
      return { kind: 'pair', certificates: [leaf], spki: issuing.record(leaf)?.spki ?? '' }
    }
    default:
      return undefined
  }
}

/** The leader is unknown, so the result is the old CA while any controller-manager still signs with the old pair. */
function signer(world: World): CertificateRecord | undefined {
  const pairs = world.valuesOf('kube-controller-manager', 'cluster-signing-cert-file')
  const cas = pairs.map((value) => world.board.list(value)[0])
  const change = changeOf(world.target, 'cluster')
  const old = change && cas.find((digest) => world.board.record(digest)?.spki === change.oldCa.spki)
  return world.board.record(old ?? cas[0])
}
