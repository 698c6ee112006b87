import { commandLine } from '../../errors/command-line.ts'
import { shortList } from '../../errors/short-list.ts'
import { type FlagChanges, shutdownDelayMs } from '../../pki/component-flags.ts'
import type { Step, Task } from '../action.ts'
import type { Digest } from '../certificate-record.ts'
import { kcertFolderIn } from '../material.ts'
import type { Part, Refusal } from '../phase.ts'
import { differences, restartInPlace, restartOf, restartWith } from '../restart.ts'
import {
  apiServers,
  type ComponentSnapshot,
  type CopySnapshot,
  componentsNamed,
  type FileSnapshot,
  fileAt,
  fileKey,
  hasStartedSince,
  type Observed,
  type SectionName,
} from '../snapshot.ts'
import { type KeyChange, plannedDigest, type Target } from '../target.ts'
import type { Remembered, Settings } from '../target-reading.ts'
import { rewrite, wait, waitUntilReady } from '../tasks.ts'
import { restoreFiles } from '../undo.ts'
import { changedFiles } from '../undo-pass.ts'
import { keyIdFor } from './key-id.ts'

// Which processes verify and sign tokens, with which files, and how they get other ones.

export type KeySections = 'components' | 'files' | 'servedKeys'

const publicFlag = 'service-account-key-file'
const privateFlags = {
  'kube-apiserver': 'service-account-signing-key-file',
  'kube-controller-manager': 'service-account-private-key-file',
} as const

/** Returns the paths of the public keys with which an API server verifies tokens. The flag may be given several times. */
export function publicPaths({
  repeated,
  flags,
}: Pick<ComponentSnapshot, 'repeated' | 'flags'>): readonly string[] {
  const { [publicFlag]: last } = flags
  return [...new Set(repeated?.[publicFlag] ?? (last === undefined ? [] : [last]))]
}

/** Returns the path of the key with which an API server or a controller manager signs tokens; undefined for other components. */
export function privatePath({ name, flags }: Pick<ComponentSnapshot, 'name' | 'flags'>): string | undefined {
  return name === 'kube-apiserver' || name === 'kube-controller-manager'
    ? flags[privateFlags[name]]
    : undefined
}

/** Returns the paths of all key files that a component reads: the private key first. */
export function keyPaths(
  component: Pick<ComponentSnapshot, 'name' | 'repeated' | 'flags'>,
): readonly string[] {
  const publics = component.name === 'kube-apiserver' ? publicPaths(component) : []
  return [privatePath(component), ...publics].filter((path) => path !== undefined)
}

/** Returns every API server and controller manager. */
export function signers(observed: Observed<'components'>): readonly ComponentSnapshot[] {
  return [...apiServers(observed), ...componentsNamed(observed, 'kube-controller-manager')]
}

/** Returns the keys in a file that kcert may rewrite: public keys only, or the private key alone. */
export function keysIn(file: FileSnapshot | undefined): readonly Digest[] {
  if (file?.contains.kind === 'public-keys') return file.contains.keys
  return file?.contains.kind === 'key' ? [file.contains.spki] : []
}

/** Returns kcert's files on the node of an API server. */
export function keyMaterial({ flags }: Pick<ComponentSnapshot, 'flags'>) {
  const folder = kcertFolderIn(flags, 'cluster')
  return { newKey: `${folder}/new/sa.key`, oldPublicKey: `${folder}/old/sa.pub` } as const
}

/** The sections that determine the target. */
export const keyTargetSections = [
  'nodes',
  'components',
  'kubelets',
  'files',
  'intents',
] as const satisfies readonly SectionName[]

/** Returns the target of a run: the key that signs before the rotation, and the one that phase 1 creates. */
export function keyTargetOf(
  observed: Observed<(typeof keyTargetSections)[number]>,
  settings: Settings,
  { key: remembered }: Remembered = { changes: [] },
): Target {
  const { cas: _, withBridge: __, given: ___, ...rest } = settings
  const first = (pathOf: (api: ComponentSnapshot) => string | undefined): Digest | undefined =>
    apiServers(observed).flatMap((api) => keysIn(fileAt(observed, api.node, pathOf(api))))[0]
  const newKey =
    first((api) => keyMaterial(api).newKey) ?? remembered?.newKey ?? plannedDigest('service-account', 'new')
  const oldKey = first((api) => keyMaterial(api).oldPublicKey) ?? remembered?.oldKey ?? first(privatePath)
  return {
    ...rest,
    etcdClients: 'known',
    changes: [],
    ...(oldKey !== undefined && { key: { oldKey, newKey } }),
    isDropping: observed.intents.some(({ drops }) => drops),
  }
}

/** Returns a part that is pending, without steps, while no key of the cluster was found. */
export function keyPart<const Section extends SectionName>(
  part: (observed: Observed<Section>, target: Target, key: KeyChange) => ReturnType<Part>,
): Part<Section> {
  return (observed, target) => {
    if (target.key !== undefined) return part(observed, target, target.key)
    return {
      gaps: [{ at: 'service account key', what: 'was not found on any control-plane node' }],
      steps: [],
    }
  }
}

/** Returns why it is not proven that an API server verifies tokens with exactly these keys; undefined if it is. */
export function whyUnlike(
  { servedKeys }: Observed<'servedKeys'>,
  id: string,
  keys: readonly Digest[],
): string | undefined {
  const keyIds = servedKeys.find(({ process }) => process === id)?.keyIds ?? { unread: 'does not answer' }
  if ('unread' in keyIds) return `/openid/v1/jwks: ${keyIds.unread}`
  const [now, wanted] = [new Set(keyIds.value), new Set(keys.map(keyIdFor))]
  if (now.size === wanted.size && now.isSubsetOf(wanted)) return undefined
  return `verifies tokens of ${shortList(keyIds.value)}`
}

/** Returns true when the API server verifies tokens with this key; false if that is not known. */
export function verifiesWith({ servedKeys }: Observed<'servedKeys'>, id: string, key: Digest): boolean {
  const keyIds = servedKeys.find(({ process }) => process === id)?.keyIds
  return keyIds !== undefined && 'value' in keyIds && keyIds.value.includes(keyIdFor(key))
}

/** Returns the writes after which the files of an API server contain exactly these public keys, in this order. */
export function writingPublicKeys(
  observed: Observed<'files'>,
  api: ComponentSnapshot,
  keys: readonly Digest[],
): readonly Task<'write-file'>[] {
  return publicPaths(api).flatMap((path) => {
    const file = fileAt(observed, api.node, path)
    if (file === undefined || keysIn(file).join() === keys.join()) return []
    return [rewrite(file, { kind: 'public-keys', keys })]
  })
}

/** Returns the keys in all files with public keys of an API server. */
export function publicKeysOf(observed: Observed<'files'>, api: ComponentSnapshot): readonly Digest[] {
  const keys = publicPaths(api).flatMap((path) => keysIn(fileAt(observed, api.node, path)))
  return [...new Set(keys)]
}

/** Returns true when every file with public keys of an API server contains exactly these, in this order. */
export function hasPublicKeys(
  observed: Observed<'files'>,
  api: ComponentSnapshot,
  keys: readonly Digest[],
): boolean {
  return publicPaths(api).every((path) => keysIn(fileAt(observed, api.node, path)).join() === keys.join())
}

/** Returns the last change of a private key of an API server: since then, every process may sign only with this key. */
export function signedSinceMs(observed: Observed<'components' | 'files'>): number | undefined {
  const times = apiServers(observed).map((api) => fileAt(observed, api.node, privatePath(api))?.changedAtMs)
  return times.some((time) => time === undefined) ? undefined : Math.max(0, ...times.map((time) => time ?? 0))
}

/** Returns true for a static pod that its kubelet starts without an action: it reads its files then. */
export function isStarting(
  observed: Observed<'files'>,
  { node, definition, process, runsAs }: ComponentSnapshot,
): boolean {
  return runsAs === 'static-pod' && !hasStartedSince(process, fileAt(observed, node, definition))
}

/** Returns true when the process has read its current key files. */
export function hasReadKeys(observed: Observed<'files'>, component: ComponentSnapshot): boolean {
  const { node, process } = component
  const hasRead = (path: string): boolean => hasStartedSince(process, fileAt(observed, node, path))
  return process !== undefined && keyPaths(component).every(hasRead)
}

/**
 * Returns the restart of a component after its key files changed. Its definition changes only if these flags differ: then the kubelet
 * restarts it, as it does if an earlier run was killed after such a change.
 */
export function restartedWith(
  observed: Observed<'files' | 'leases'>,
  component: ComponentSnapshot,
  flags: FlagChanges = {},
): readonly Task[] {
  const ready = waitUntilReady(component.id)
  if (Object.keys(differences(component.flags, flags)).length > 0)
    return [...restartWith(observed, component, { flags }), ready]
  return isStarting(observed, component)
    ? [restartOf(observed, component), ready]
    : restartInPlace(component, observed)
}

/** Returns the wait until an API server serves exactly these keys at /openid/v1/jwks. */
export function awaitServed(id: string, keys: readonly Digest[], because: string): Task {
  return wait({ kind: 'verifies', process: id, keyIds: keys.map(keyIdFor) }, `${id} ${because}`, 120_000)
}

const delayFlag = 'shutdown-delay-duration'
/** Requests fail in each restart without a delay (0 to 3 at a load balancer on the lab), and none with this one. */
const ownDelay = '15s'

/** Returns the flag with which an API server still serves for a time after SIGTERM, unless it has such a time already. */
export function delayFor({ flags }: Pick<ComponentSnapshot, 'flags'>): FlagChanges {
  return shutdownDelayMs(flags) > 0 ? {} : { [delayFlag]: ownDelay }
}

/** Returns the flag as it was before kcert set it; nothing if it was not kcert, or if it is not known what was there before. */
export function delayBefore(
  { copies }: Observed<'copies'>,
  { node, definition, flags }: ComponentSnapshot,
): FlagChanges {
  const copy = copies.find(
    (one) => one.node === node && 'path' in one.of && one.of.path === definition && one.flags !== undefined,
  )
  const before = copy?.flags?.[delayFlag]
  return before === undefined || flags[delayFlag] !== ownDelay ? {} : { [delayFlag]: before }
}

/** Returns what the copy of a definition records. */
export function delayIn({ flags }: Pick<ComponentSnapshot, 'flags'>): FlagChanges {
  return { [delayFlag]: flags[delayFlag] ?? null }
}

/**
 * Returns the steps that restore key files and definitions of components, and the restarts with which they read them: one component
 * after the other. The private key is first: a process that restarts in between can then only sign with a key that all verify.
 */
export function backToKeys(
  copies: readonly CopySnapshot[],
  now: Observed<'components' | 'files' | 'leases'>,
  components: readonly ComponentSnapshot[],
  after: (component: ComponentSnapshot) => readonly Task[] = () => [],
): readonly Task[] {
  const changed = changedFiles(copies)
  const restored = new Set<string>()
  return components.flatMap((component) => {
    const { node, definition, process } = component
    const own = [...keyPaths(component), definition]
    const rank = (path: string): number => own.indexOf(path)
    const files = restoreFiles(copies, now, (at, path) => at === node && own.includes(path))
      .filter(({ path }) => !restored.has(fileKey(node, path)))
      .toSorted((a, b) => rank(a.path) - rank(b.path))
    for (const { path } of files) restored.add(fileKey(node, path))
    const isOpen = own.some((path) => {
      const key = fileKey(node, path)
      return restored.has(key) || (changed.has(key) && !hasStartedSince(process, fileAt(now, node, path)))
    })
    if (!isOpen) return []
    const isRedefined =
      component.runsAs === 'static-pod' &&
      (restored.has(fileKey(node, definition)) || !hasStartedSince(process, fileAt(now, node, definition)))
    const restart = isRedefined
      ? [restartOf(now, component), waitUntilReady(component.id)]
      : restartInPlace(component, now)
    return [...files, ...restart, ...after(component)]
  })
}

/** Returns these steps for every API server, each until it serves exactly these keys, if they are known. */
export function apiServersBackTo(
  copies: readonly CopySnapshot[],
  now: Observed<'components' | 'files' | 'leases'>,
  keys: readonly Digest[] | undefined,
  because: string,
): readonly Task[] {
  return backToKeys(copies, now, apiServers(now), ({ id }) =>
    keys === undefined ? [] : [awaitServed(id, keys, because)],
  )
}

/** Returns the refusal of a rollback after which API servers would verify tokens of a leaked key. */
export function notAfterLeak(number: number): Refusal {
  return {
    what: `phase ${number} cannot be rolled back after a leak of the key`,
    why: 'API servers would accept tokens of the leaked key again; finish this rotation, then rotate again',
    next: 'kcert rotate-sa-key status',
  }
}

/** Returns a refusal of a plan that would restart the only API server. */
export function onlyApiServer(
  observed: Observed<'components'>,
  { acceptsOutage }: Target,
  number: number,
  steps: Iterable<Step<Task>>,
): readonly Refusal[] {
  const ids = apiServers(observed).map(({ id }) => id)
  const restarts = [...steps].some((step) => step.kind === 'restart' && ids.includes(step.process))
  if (ids.length > 1 || acceptsOutage || !restarts) return []
  return [
    {
      what: 'the only API server must be restarted',
      why: 'it reads the service account key only at startup; the cluster has no API for about 50 s',
      next: commandLine`kcert rotate-sa-key --phase ${number} --accept-outage`,
    },
  ]
}
