import { shortList } from '../../errors/short-list.ts'
import { type Action, actionsOf, type Step, type WriteFile } from '../action.ts'
import type { Digest } from '../certificate-record.ts'
import { changesOf } from '../effects.ts'
import type { Refusal } from '../phase.ts'
import {
  apiServers,
  type ComponentSnapshot,
  fileAt,
  fileKey,
  hasStartedSince,
  nodeOfProcess,
  type Observed,
  type SectionName,
  type Snapshot,
} from '../snapshot.ts'
import type { KeyChange, Target } from '../target.ts'
import { keyIdFor } from './key-id.ts'
import { keysIn, privatePath, publicPaths, signers } from './keys.ts'
import { keyRow } from './phase-table.ts'
import { isOfPod } from './tokens.ts'

// The rule of the rotation: each key with which any process may sign now, or after a restart at any moment, is verified by each API
// server, now and after a restart at any moment. Mounted tokens count as signers of their keys.

/** The sections of the snapshot that the model needs. */
export const keyModelSections = [
  'nodes',
  'components',
  'kubelets',
  'files',
  'servedKeys',
  'tokens',
  'copies',
] as const satisfies readonly SectionName[]

type Sees = Observed<(typeof keyModelSections)[number]>

/** Returns why a token would be rejected after one of the steps, wherever they stop; undefined if none would be. */
export function brokenTokens(
  observed: Snapshot,
  { key, reason }: Target,
  steps: readonly Step[],
): Refusal | undefined {
  const actions = steps.flatMap(actionsOf)
  // After a leak, tokens of the old key must be rejected.
  if (key === undefined || reason === 'compromise') return undefined
  if (actions.every((action) => changesOf(action) === 'nothing')) return undefined
  const world = new KeyWorld(observed, key)
  for (const action of actions) {
    if (changesOf(action) !== 'node') continue
    world.perform(action)
    const broken = world.rejected()
    if (broken !== undefined) return broken
  }
  return undefined
}

/** The keys that a process may have in memory, and those that it would read at its next start. */
interface ModelProcess {
  readonly component: ComponentSnapshot
  /** Each set of keys that it may have. An API server that does not run has none. */
  memory: readonly ReadonlySet<Digest>[]
}

class KeyWorld {
  private readonly key: KeyChange
  private readonly files: Map<string, readonly Digest[]>
  private readonly verifiers: readonly ModelProcess[]
  private readonly signing: readonly ModelProcess[]
  /** Keys of mounted tokens by node. */
  private readonly mounted: Map<string, ReadonlySet<Digest>>

  constructor(observed: Sees, key: KeyChange) {
    this.key = key
    this.files = new Map([...observed.files].map(([at, file]) => [at, keysIn(file)]))
    this.verifiers = apiServers(observed).map((component) => ({
      component,
      memory: this.verifiedIn(observed, component),
    }))
    this.signing = signers(observed).map((component) => ({
      component,
      memory: this.signedIn(observed, component),
    }))
    this.mounted = new Map(
      observed.tokens.nodes.map(({ node, tokens }) => [node, this.keysOf(tokens)] as const),
    )
  }

  perform(action: Action): void {
    if (action.kind === 'write-file') this.write(action)
    else if (action.kind === 'restart') this.restart(action.process)
  }

  /** Returns the first API server that would reject a token. */
  rejected(): Refusal | undefined {
    const signed = this.signing.flatMap(({ component, memory }) => {
      const onDisk = this.onDisk(component.node, [privatePath(component)])
      return [...memory, onDisk].flatMap((keys) => [...keys].map((key) => ({ key, by: component.id })))
    })
    const tokens = [...this.mounted].flatMap(([node, keys]) =>
      [...keys].map((key) => ({ key, by: `the tokens mounted on ${node}` })),
    )
    for (const { component, memory } of this.verifiers) {
      const may = [...memory, this.onDisk(component.node, publicPaths(component))]
      const found = [...signed, ...tokens].filter(({ key }) => may.some((keys) => !keys.has(key)))
      if (found.length === 0) continue
      const by = shortList([...new Set(found.map((one) => one.by))])
      return {
        what: `a step would make ${component.id} reject tokens that are in use: of ${by}`,
        why: 'after each step, and after a restart of any process, each API server must verify every key that signs',
        next: 'kcert rotate-sa-key status',
      }
    }
    return undefined
  }

  private verifiedIn(observed: Sees, component: ComponentSnapshot): readonly ReadonlySet<Digest>[] {
    const { id, process, node } = component
    if (process === undefined) return []
    const served = observed.servedKeys.find((one) => one.process === id)?.keyIds
    if (served !== undefined && 'value' in served) {
      const known = [this.key.oldKey, this.key.newKey]
      return [new Set(known.filter((key) => served.value.includes(keyIdFor(key))))]
    }
    const paths = publicPaths(component)
    const isRead = paths.every((path) => hasStartedSince(process, fileAt(observed, node, path)))
    // One that does not answer may have started before any change.
    return isRead ? [this.onDisk(node, paths)] : [new Set([this.key.oldKey])]
  }

  private signedIn(observed: Sees, component: ComponentSnapshot): readonly ReadonlySet<Digest>[] {
    const { process, node } = component
    const path = privatePath(component)
    if (process === undefined || path === undefined) return []
    if (hasStartedSince(process, fileAt(observed, node, path))) return [this.onDisk(node, [path])]
    return [new Set([this.key.oldKey]), new Set([this.key.newKey])]
  }

  /** Tokens of other keys are not changed by the rotation. Unread ones may be of any key. */
  private keysOf(tokens: Sees['tokens']['nodes'][number]['tokens']): ReadonlySet<Digest> {
    const { oldKey, newKey } = this.key
    if ('unread' in tokens) return new Set([oldKey, newKey])
    const ids = new Set(tokens.value.mounted.filter(isOfPod).map(({ keyId }) => keyId))
    return new Set([oldKey, newKey].filter((key) => ids.has(keyIdFor(key))))
  }

  private onDisk(node: string, paths: readonly (string | undefined)[]): ReadonlySet<Digest> {
    return new Set(paths.flatMap((path) => this.files.get(fileKey(node, path ?? '')) ?? []))
  }

  private write({ node, path, content, phase }: WriteFile): void {
    const at = fileKey(node, path)
    const { oldKey, newKey } = this.key
    if (content.kind === 'public-keys') this.files.set(at, content.keys)
    else if (content.kind === 'service-account-key') this.files.set(at, [newKey])
    else if (content.kind === 'copy' && this.files.has(at)) {
      const isPrivate = this.signing.some(
        ({ component }) => component.node === node && privatePath(component) === path,
      )
      const isVerifiedAlone = phase === keyRow('verify-both').number
      this.files.set(at, isPrivate || isVerifiedAlone ? [oldKey] : [oldKey, newKey])
    }
  }

  private restart(id: string): void {
    for (const one of this.verifiers) {
      const { component } = one
      if (component.id === id) one.memory = [this.onDisk(component.node, publicPaths(component))]
    }
    for (const one of this.signing) {
      const { component } = one
      if (component.id === id) one.memory = [this.onDisk(component.node, [privatePath(component)])]
    }
    if (!id.endsWith('/kubelet')) return
    // Any API server may sign the new tokens.
    const keys = this.signing
      .filter(({ component }) => component.name === 'kube-apiserver')
      .flatMap(({ component, memory }) => [
        ...memory.flatMap((its) => [...its]),
        ...(memory.length === 0 ? this.onDisk(component.node, [privatePath(component)]) : []),
      ])
    this.mounted.set(nodeOfProcess(id), new Set(keys))
  }
}
