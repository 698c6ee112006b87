import type { Task } from './action.ts'
import type { PendingItem } from './phase.ts'
import type { Observed, Trust } from './snapshot.ts'
import { patch, wait } from './tasks.ts'

// The CAs that joining nodes trust. A worker takes its own client CA from cluster-info.

export const clusterInfoObject = {
  kind: 'ConfigMap',
  namespace: 'kube-public',
  name: 'cluster-info',
} as const

/** Name of cluster-info in pending items. */
export const clusterInfoPlace = 'ConfigMap kube-public/cluster-info'

/**
 * Returns the steps that write this trust to cluster-info and wait for the signatures of all tokens; empty when both are done.
 */
export function publishing({ clusterInfo }: Observed<'clusterInfo'>, trust: Trust): readonly Task[] {
  if (clusterInfo === undefined) return []
  const isWritten = clusterInfo.trust.join() === trust.join()
  if (isWritten && clusterInfo.signatures.every(({ isValid }) => isValid)) return []
  const until = { kind: 'cluster-info-signed', trust } as const
  const signed = wait(until, 'cluster-info is signed for every token', 60_000)
  return isWritten
    ? [signed]
    : [patch(clusterInfoObject, clusterInfo.version, { kind: 'cluster-info', trust }), signed]
}

/** Returns the tokens whose signature of cluster-info is missing or belongs to other content. */
export function unsignedTokens({ clusterInfo }: Observed<'clusterInfo'>): readonly PendingItem[] {
  return (clusterInfo?.signatures ?? [])
    .filter(({ isValid }) => !isValid)
    .map(({ tokenId }) => ({ at: clusterInfoPlace, what: `not signed for token ${tokenId}` }))
}
