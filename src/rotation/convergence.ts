import type { PodPicture, Seen } from './picture.ts'
import type { CaChange, Target } from './target.ts'

// Whether a pod's process knows what its service account's ca.crt says: the volume follows the ConfigMap after up to 80 s, and
// the process reads it at its start, or again, or never.

/** client-go 1.36 reads ca.crt again at most this often; the bridge stays in serving chains as long after the last volume. */
export const rereadMs = 300_000

/** Without access to the node: a pod started this long after the ConfigMap changed has the new content. */
const blindDelayMs = 120_000

export type Convergence =
  | 'converged'
  /** Its client will read what lies in the volume, or has read it: only time is missing. */
  | 'rereads'
  /** Its process must be replaced. */
  | 'stale'

/** Returns how far a pod is on the way to knowing the new CA. */
export function convergenceOf(
  seen: Seen<'published'>,
  { newCa }: CaChange,
  target: Target,
  pod: PodPicture,
): Convergence {
  const { volume, startedAtMs } = pod
  if (volume === undefined) return startedAtMs >= lastPublishedMs(seen) + blindDelayMs ? 'converged' : 'stale'
  const holds = volume.trust.includes(newCa.digest)
  if (holds && startedAtMs >= volume.changedAtMs) return 'converged'
  if (!pod.rereads || !target.trustsReloadingClients) return 'stale'
  return holds && seen.atMs >= volume.changedAtMs + rereadMs ? 'converged' : 'rereads'
}

/** True when the operator answers for the pod, by its name or its workload's. */
export function isWaived({ id, workload }: PodPicture, { waivers }: Target): boolean {
  return waivers.has(id) || (workload !== undefined && waivers.has(workload))
}

/** Returns when every volume that can be seen has held the new CA for as long as the slowest reader takes. */
export function rereadInstant(pods: readonly PodPicture[]): number {
  // Not spread into Math.max: 100,000 arguments are more than a stack holds.
  let last = 0
  for (const { volume } of pods) last = Math.max(last, volume?.changedAtMs ?? 0)
  return last + rereadMs
}

function lastPublishedMs({ published }: Seen<'published'>): number {
  let last = 0
  for (const { changedAtMs } of published) last = Math.max(last, changedAtMs)
  return last
}
