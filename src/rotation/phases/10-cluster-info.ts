import { clusterInfoPlace, publishing, unsignedTokens } from '../cluster-info.ts'
import { clusterPart, definePhase, inParts } from '../phase.ts'
import { changeOf, isPlanned } from '../target.ts'
import { restoreObjects } from '../undo.ts'

const newCaFirst = clusterPart<'clusterInfo'>((observed, _target, { newCa: { digest } }) => {
  if (observed.clusterInfo === undefined) return { gaps: [], steps: [] }
  const { trust } = observed.clusterInfo
  const isFirst = trust[0] === digest
  return {
    gaps: [
      ...(isFirst ? [] : [{ at: clusterInfoPlace, what: 'the new CA is not the first' }]),
      ...unsignedTokens(observed),
    ],
    steps: publishing(observed, [digest, ...trust.filter((other) => other !== digest)]),
  }
})

export const clusterInfo = definePhase('cluster-info', {
  sees: ['clusterInfo'],

  ...inParts(newCaFirst),

  remarks(observed, target) {
    const change = changeOf(target, 'cluster')
    if (observed.clusterInfo === undefined) return [`complete: no ${clusterInfoPlace}`]
    if (change === undefined || target.isDropping || isPlanned(change.newCa)) return []
    const pins = [change.oldCa, change.newCa].map(({ spki }) => `sha256:${spki}`)
    return [`nodes can join with either --discovery-token-ca-cert-hash: ${pins.join(' (old), ')} (new)`]
  },

  undo: (copies, now) => restoreObjects(copies, () => now.clusterInfo?.version),
})
