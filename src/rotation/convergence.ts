import { capabilities, whyEarlier } from './capabilities.ts'
import {
  byNode,
  type ComponentSnapshot,
  componentsNamed,
  type Observed,
  type PodSnapshot,
  type PublishedTrust,
} from './snapshot.ts'
import type { CaChange, Target } from './target.ts'

// Whether a pod's process has read its service account's ca.crt. The volume follows the ConfigMap after up to 80 s. The process
// reads it at startup only, or repeatedly, or never.

/**
 * client-go 0.36 reads ca.crt again at most this often. The bridge certificate stays in serving chains this long after the last
 * volume changed.
 */
export const rereadMs = 300_000

/** Without access to the node: a pod that started this long after the ConfigMap changed has the new content. */
const blindDelayMs = 120_000

const clusterTrustBundle = 'ClusterTrustBundle'

export type Convergence =
  | 'converged'
  /** Its client reads the volume again by itself. Only time is missing. */
  | 'rereads'
  /** Its process must be replaced. */
  | 'stale'

/** Returns whether a pod trusts the new CA yet, and if not, what is missing. */
export function convergenceOf(
  observed: Observed<'published'>,
  { newCa }: CaChange,
  target: Target,
  pod: PodSnapshot,
): Convergence {
  const { volume, startedAtMs } = pod
  if (volume === undefined) return startedAtMs >= blindInstant(observed, pod) ? 'converged' : 'stale'
  const hasNew = volume.trust.includes(newCa.digest)
  if (hasNew && startedAtMs >= volume.changedAtMs) return 'converged'
  if (!pod.rereads || !target.trustsReloadingClients) return 'stale'
  return hasNew && observed.atMs >= volume.changedAtMs + rereadMs ? 'converged' : 'rereads'
}

/** Returns true when the operator accepted the risk for the pod, by its name or by its workload's name. */
export function isWaived({ id, workload }: PodSnapshot, { waivers }: Target): boolean {
  return waivers.has(id) || (workload !== undefined && waivers.has(workload))
}

/**
 * Returns when the slowest reader has read the new CA again in every process that started before its volume contained it; 0 when
 * there is no such process. Later processes read it at startup. Waived pods are ignored.
 */
export function rereadInstant(pods: readonly PodSnapshot[], target: Target): number {
  // Not spread into Math.max: 100,000 arguments overflow the stack.
  let last = Number.NEGATIVE_INFINITY
  for (const pod of pods) {
    const { volume, startedAtMs } = pod
    if (volume === undefined || startedAtMs >= volume.changedAtMs || isWaived(pod, target)) continue
    last = Math.max(last, volume.changedAtMs)
  }
  return Math.max(0, last + rereadMs)
}

/**
 * Returns the earliest start of a pod that certainly has the published content although its volume cannot be seen. Infinity when
 * the published content cannot be seen either.
 */
export function blindInstant(observed: Observed<'published'>, pod: PodSnapshot): number {
  const its = publishedFor(observed, pod)
  const isObserved = its.length > 0 && its.every(({ trust }) => trust !== undefined)
  return isObserved
    ? Math.max(...its.map(({ changedAtMs }) => changedAtMs)) + blindDelayMs
    : Number.POSITIVE_INFINITY
}

/**
 * Returns the objects that fill a pod's file. The name of a ClusterTrustBundle depends on its content, so all bundles of the
 * signer count, regardless of name.
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

/** Returns true for a ClusterTrustBundle with known content. */
export function isBundle({ kind, trust }: PublishedTrust): boolean {
  return kind === clusterTrustBundle && trust !== undefined
}

/**
 * Returns true when kcert must wait for ClusterTrustBundles: pods mount them, or any kube-controller-manager that may lead
 * updates them. During an upgrade, one that does not update them may lead. Bundles that no pod mounts then wait for the next
 * leader.
 */
export function awaitsBundles(observed: Observed<'components' | 'pods'>, target: Target): boolean {
  const isMounted = observed.pods.some((pod) => pod.trustBundle !== undefined && !isWaived(pod, target))
  return isMounted || notUpdatingBundles(observed).length === 0
}

/** Returns the kube-controller-managers that do not update ClusterTrustBundles, each with the reason. */
export function notUpdatingBundles(
  observed: Observed<'components'>,
): readonly (ComponentSnapshot & { readonly why: string })[] {
  return componentsNamed(observed, 'kube-controller-manager').flatMap((one) => {
    const { 'emulated-version': emulated, 'feature-gates': gates = '' } = (one.process ?? one).flags
    // An emulated version has other defaults.
    const known = emulated === undefined ? gates : undefined
    const why = whyEarlier(capabilities.managerPublishesTrustBundle, one.version, known)
    return why === undefined ? [] : [{ ...one, why }]
  })
}

/**
 * Returns true for a pod that mounts a ClusterTrustBundle by a name that no longer exists. After a restart it would get no CA.
 */
export function hasLostBundle(observed: Observed<'published'>, pod: PodSnapshot): boolean {
  return pod.trustBundle?.name !== undefined && publishedFor(observed, pod).length === 0
}

/** Returns the name of a pod in messages, with the file if that is not its namespace's kube-root-ca.crt. */
export function podPlace({ id, trustBundle }: PodSnapshot): string {
  return `Pod ${id}${trustBundle === undefined ? '' : ` (${clusterTrustBundle})`}`
}
