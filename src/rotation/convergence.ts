import { capabilities, hasByDefault } from './capabilities.ts'
import { byNode, type Observed, type PodSnapshot, type PublishedTrust } from './snapshot.ts'
import type { CaChange, Target } from './target.ts'

// Whether a pod's process knows what its service account's ca.crt says: the volume follows the ConfigMap after up to 80 s, and
// the process reads it at its start, or again, or never.

/** client-go 0.36 reads ca.crt again at most this often; the bridge certificate stays in serving chains as long after the last volume. */
export const rereadMs = 300_000

/** Without access to the node: a pod started this long after the ConfigMap changed has the new content. */
const blindDelayMs = 120_000

const clusterTrustBundle = 'ClusterTrustBundle'

export type Convergence =
  | 'converged'
  /** Its client will read what lies in the volume, or has read it: only time is missing. */
  | 'rereads'
  /** Its process must be replaced. */
  | 'stale'

/** Returns how far a pod is on the way to knowing the new CA. */
export function convergenceOf(
  observed: Observed<'published'>,
  { newCa }: CaChange,
  target: Target,
  pod: PodSnapshot,
): Convergence {
  const { volume, startedAtMs } = pod
  if (volume === undefined) return startedAtMs >= blindInstant(observed, pod) ? 'converged' : 'stale'
  const holds = volume.trust.includes(newCa.digest)
  if (holds && startedAtMs >= volume.changedAtMs) return 'converged'
  if (!pod.rereads || !target.trustsReloadingClients) return 'stale'
  return holds && observed.atMs >= volume.changedAtMs + rereadMs ? 'converged' : 'rereads'
}

/** True when the operator accepted the risk for the pod, by its name or its workload's. */
export function isWaived({ id, workload }: PodSnapshot, { waivers }: Target): boolean {
  return waivers.has(id) || (workload !== undefined && waivers.has(workload))
}

/**
 * Returns when every process that began before its volume held the new CA has had the time to read it again, as the slowest
 * reader does; 0 when there is none. One that began afterwards knows it from its start, and who is waived is somebody else's care.
 */
export function rereadInstant(pods: readonly PodSnapshot[], target: Target): number {
  // Not spread into Math.max: 100,000 arguments are more than a stack holds.
  let last = Number.NEGATIVE_INFINITY
  for (const pod of pods) {
    const { volume, startedAtMs } = pod
    if (volume === undefined || startedAtMs >= volume.changedAtMs || isWaived(pod, target)) continue
    last = Math.max(last, volume.changedAtMs)
  }
  return Math.max(0, last + rereadMs)
}

/**
 * Returns from when on a pod may start and is known to have what is published for it, though its volume is not seen; never where
 * what is published is not seen either.
 */
export function blindInstant(observed: Observed<'published'>, pod: PodSnapshot): number {
  const its = publishedFor(observed, pod)
  const isObserved = its.length > 0 && its.every(({ trust }) => trust !== undefined)
  return isObserved
    ? Math.max(...its.map(({ changedAtMs }) => changedAtMs)) + blindDelayMs
    : Number.POSITIVE_INFINITY
}

/**
 * Returns the objects that fill a pod's file. A ClusterTrustBundle is named after its content: another content is another object, so
 * those of the signer count, whatever their names.
 */
export function publishedFor(
  { published }: Pick<Observed<'published'>, 'published'>,
  { id, trustBundle }: Pick<PodSnapshot, 'id' | 'trustBundle'>,
): readonly PublishedTrust[] {
  const namespace = id.slice(0, id.indexOf('/'))
  const key = trustBundle === undefined ? `${namespace}/kube-root-ca.crt` : clusterTrustBundle
  const found =
    byNode(published, ({ kind, name }) => (kind === clusterTrustBundle ? kind : name)).get(key) ?? []
  return trustBundle?.name === undefined ? found : found.filter(({ name }) => name === trustBundle.name)
}

/** True for a ClusterTrustBundle whose content is known. */
export function isBundle({ kind, trust }: PublishedTrust): boolean {
  return kind === clusterTrustBundle && trust !== undefined
}

/**
 * True where ClusterTrustBundles must follow: pods mount them, or whichever kube-controller-manager leads keeps them up to date. In an
 * upgrade one that does not may lead; bundles that no pod mounts then wait for the next leader.
 */
export function awaitsBundles(observed: Observed<'components' | 'pods'>, target: Target): boolean {
  const isMounted = observed.pods.some((pod) => pod.trustBundle !== undefined && !isWaived(pod, target))
  const managers = observed.components.filter(({ name }) => name === 'kube-controller-manager')
  const { managerPublishesTrustBundle } = capabilities
  return isMounted || managers.every(({ version }) => hasByDefault(managerPublishesTrustBundle, version))
}

/** True for a pod that mounts a ClusterTrustBundle by a name that no object has any more: started again, it would get no CA. */
export function hasLostBundle(observed: Observed<'published'>, pod: PodSnapshot): boolean {
  return pod.trustBundle?.name !== undefined && publishedFor(observed, pod).length === 0
}

/** Returns how messages name a pod, and of its files one that is not its namespace's kube-root-ca.crt. */
export function podPlace({ id, trustBundle }: PodSnapshot): string {
  return `Pod ${id}${trustBundle === undefined ? '' : ` (${clusterTrustBundle})`}`
}
