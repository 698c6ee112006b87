import { publishing, unsignedTokens } from '../cluster-info.ts'
import { definePhase } from '../phase.ts'
import { changeOf } from '../target.ts'
import { restoreObjects } from '../undo.ts'

export const clusterInfo = definePhase('cluster-info', {
  sees: ['clusterInfo'],

  gaps(seen, target) {
    const change = changeOf(target, 'cluster')
    if (change === undefined || seen.clusterInfo === undefined) return []
    const isFirst = seen.clusterInfo.trust[0] === change.newCa.digest
    return [
      ...(isFirst ? [] : [{ at: 'ConfigMap kube-public/cluster-info', what: 'the new CA is not the first' }]),
      ...unsignedTokens(seen),
    ]
  },

  plan(seen, target) {
    const change = changeOf(target, 'cluster')
    if (change === undefined || seen.clusterInfo === undefined) return []
    const others = seen.clusterInfo.trust.filter((digest) => digest !== change.newCa.digest)
    return publishing(seen, 10, [change.newCa.digest, ...others])
  },

  remarks(seen, target) {
    const change = changeOf(target, 'cluster')
    if (seen.clusterInfo === undefined) return ['holds: no ConfigMap kube-public/cluster-info']
    if (change === undefined || target.isDropping) return []
    if (change.newCa.digest.startsWith('planned:')) return []
    const pins = [change.oldCa, change.newCa].map(({ spki }) => `sha256:${spki}`)
    return [`either --discovery-token-ca-cert-hash lets a node join: ${pins.join(' (old), ')} (new)`]
  },

  undo: (before, now) => ({
    kind: 'steps',
    steps: restoreObjects(before, () => now.clusterInfo?.version),
  }),
})
