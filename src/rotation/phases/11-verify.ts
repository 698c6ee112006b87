import type { Task } from '../action.ts'
import { isSignedByCa } from '../certificate-record.ts'
import { convergenceOf, isWaived, podPlace, rereadInstant, rereadMs } from '../convergence.ts'
import { handshakeSubject } from '../handshake-errors.ts'
import { handshakesWith, leafFile, leafIn } from '../leaves.ts'
import { definePhase, type PendingItem } from '../phase.ts'
import { isProven } from '../proof.ts'
import { apiServers, type Observed, servingPathOf } from '../snapshot.ts'
import { storedRemarks } from '../stored.ts'
import { bundleOf, type CaChange, changeOf, type Target } from '../target.ts'
import { inParallel, probe, wait } from '../tasks.ts'

/** Maximum age of the evidence. Phase 12 cannot be undone, and a clean result from yesterday may not be true today. */
const freshMs = 3_600_000

type Sees = 'components' | 'kubelets' | 'files' | 'published' | 'pods' | 'handshakes' | 'evidence'

export const verify = definePhase('verify', {
  sees: ['components', 'kubelets', 'files', 'published', 'pods', 'stored', 'handshakes', 'evidence'],

  *gaps(observed, target) {
    if (target.isDropping) return
    yield* pendingInCluster(observed, target)
    const what =
      'TLS handshake errors not compared with the rate before phase 1, since phase 9 and within the last hour'
    for (const { id } of unquiet(observed, target)) yield { at: id, what }
  },

  plan(observed, target) {
    if (target.isDropping) return []
    const watching = unquiet(observed, target).map(({ id }) => ({
      name: id,
      steps: [probe(handshakeSubject(observed, target, id, target.soakMs), target.soakMs + 60_000)],
    }))
    const waiting = { name: 'pods', steps: podWaits(observed, target) }
    return inParallel(watching.length + 1, [waiting, ...watching])
  },

  remarks: (observed, target) => (target.isDropping ? [] : storedRemarks(observed, target)),

  undo: () => [],
})

function* pendingInCluster(observed: Observed<Sees>, target: Target): Iterable<PendingItem> {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return
  yield* presentersOfOldCa(observed, target)
  yield* silentServers(observed)
  for (const pod of observed.pods)
    if (!isWaived(pod, target) && convergenceOf(observed, change, target, pod) !== 'converged')
      yield { at: podPlace(pod), what: 'may not have read the new CA' }
  if (observed.atMs < rereadInstant(observed.pods, target))
    yield { at: 'pods', what: 'the last volume got both CAs less than 5 minutes ago' }
  if (observed.atMs < keptUntil(observed, change))
    yield {
      at: 'kubelets',
      what: 'API servers may still use the old certificate on open connections (up to 5 minutes)',
    }
}

/** Waits until every volume has contained both CAs for as long as the slowest client takes to read it again. */
function podWaits(observed: Observed<Sees>, target: Target): readonly Task[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const isLate = observed.pods.some(({ volume }) => volume && !volume.trust.includes(change.newCa.digest))
  // A volume that has not changed yet changes now at the earliest.
  const instant = Math.max(rereadInstant(observed.pods, target), isLate ? observed.atMs + rereadMs : 0)
  const volumes = { kind: 'volumes', contains: bundleOf(change), lacks: [] } as const
  return [
    ...(isLate ? [wait(volumes, 'every pod volume has both CAs', 240_000)] : []),
    ...(observed.atMs < instant
      ? [waitUntil(instant, 'clients have read ca.crt again (up to 5 minutes)')]
      : []),
    ...connectionWaits(observed, change, instant),
  ]
}

/** Waits until API servers have closed the connections to kubelets that use the old certificate, if they are open by then. */
export function connectionWaits(
  observed: Observed<'components' | 'kubelets' | 'files'>,
  change: CaChange,
  sinceMs = 0,
): readonly Task[] {
  const kept = keptUntil(observed, change)
  if (Math.max(observed.atMs, sinceMs) >= kept) return []
  const because = 'API servers have closed connections to kubelets that use the old certificate'
  return [waitUntil(kept, because)]
}

function waitUntil(atMs: number, because: string): Task {
  return wait({ kind: 'instant', atMs }, because, rereadMs + 30_000)
}

/**
 * Returns when the last connection from an API server to a kubelet with the old client certificate ends. API servers keep such a
 * connection for `rereadMs`; a restart of the kubelet ends it earlier.
 */
function keptUntil(observed: Observed<'components' | 'kubelets' | 'files'>, { newCa }: CaChange): number {
  const first = observed.kubelets.reduce(
    (least, { process }) => Math.min(least, process?.startedAtMs ?? least),
    observed.atMs,
  )
  return apiServers(observed).reduce((until, api) => {
    const file = leafFile(observed, api, 'kubelet-client')
    const changedAtMs = (isSignedByCa(leafIn(observed, file), newCa) && file?.changedAtMs) || 0
    return changedAtMs > first ? Math.max(until, changedAtMs + rereadMs) : until
  }, 0)
}

/**
 * Returns the servers that still present a leaf certificate of the old CA. kcert reissues its own; the owner reissues any other
 * one, or a waiver names it.
 */
export function presentersOfOldCa(observed: Observed<'handshakes'>, target: Target): readonly PendingItem[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  return handshakesWith(observed, change.oldCa)
    .filter(({ server }) => !target.waivers.has(server))
    .map(({ server }) => ({ at: server, what: 'serves a certificate of the old CA' }))
}

/**
 * Returns API servers, and kubelets with a CA-signed serving certificate, whose certificate was not observed. Whether the old CA
 * issued it is unknown.
 */
export function silentServers(
  observed: Observed<'handshakes' | 'components' | 'kubelets'>,
): readonly PendingItem[] {
  const shown = new Set(observed.handshakes.map(({ server }) => server))
  const kubelets = observed.kubelets.filter((kubelet) => servingPathOf(kubelet) !== undefined)
  return [...apiServers(observed), ...kubelets]
    .filter(({ id }) => !shown.has(id))
    .map(({ id }) => ({ at: id, what: 'no TLS handshake succeeds, so its certificate is unknown' }))
}

/**
 * Returns API servers whose handshake error counter was not watched since their leaf certificate changed, or not recently enough.
 */
function unquiet(observed: Observed<Sees>, target: Target) {
  return apiServers(observed).filter((api) => {
    const changedAtMs = leafFile(observed, api, 'serving')?.changedAtMs
    const since = changedAtMs && Math.max(changedAtMs, observed.atMs - freshMs)
    return !isProven(observed, handshakeSubject(observed, target, api.id, target.soakMs), since)
  })
}
