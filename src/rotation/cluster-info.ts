import type { Action } from './action.ts'
import type { Gap } from './phase.ts'
import type { Seen, Trust } from './picture.ts'

// What whoever joins from now on believes: a worker takes its own client CA from there.

export const clusterInfoObject = {
  kind: 'ConfigMap',
  namespace: 'kube-public',
  name: 'cluster-info',
} as const

/** Returns the steps that give cluster-info this trust and wait for the signatures of all tokens; none where it is so. */
export function publishing(seen: Seen<'clusterInfo'>, phase: number, trust: Trust): readonly Action[] {
  const { clusterInfo } = seen
  if (clusterInfo === undefined) return []
  const isWritten = clusterInfo.trust.join() === trust.join()
  const isSigned = clusterInfo.signatures.every(({ holds }) => holds)
  if (isWritten && isSigned) return []
  const patch: Action = {
    kind: 'patch-object',
    phase,
    object: clusterInfoObject,
    version: clusterInfo.version,
    change: { kind: 'cluster-info', trust },
  }
  const wait: Action = {
    kind: 'wait',
    phase,
    until: { kind: 'cluster-info-signed', trust },
    because: 'cluster-info is signed anew for every token',
    deadlineMs: 60_000,
  }
  return isWritten ? [wait] : [patch, wait]
}

/** Returns the tokens whose signature of cluster-info is missing or of other content. */
export function unsignedTokens({ clusterInfo }: Seen<'clusterInfo'>): readonly Gap[] {
  return (clusterInfo?.signatures ?? [])
    .filter(({ holds }) => !holds)
    .map(({ tokenId }) => ({
      at: 'ConfigMap kube-public/cluster-info',
      what: `not signed for token ${tokenId}`,
    }))
}
