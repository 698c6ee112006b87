import { isWaived, podPlace } from '../../convergence.ts'
import { clusterPart } from '../../phase.ts'
import { rollOut } from '../../roll-out.ts'

/** After a key leak, an attacker could still present a leaf certificate that running pods trust. */
export const pods = clusterPart((observed, target, change) => {
  if (target.reason !== 'compromise') return { gaps: [], steps: [] }
  const believers = observed.pods.filter((pod) => {
    const { volume, startedAtMs } = pod
    if (isWaived(pod, target)) return false
    return !volume || volume.trust.includes(change.oldCa.digest) || startedAtMs < volume.changedAtMs
  })
  return {
    gaps: believers.map((pod) => ({ at: podPlace(pod), what: 'still trusts the old CA' })),
    steps: rollOut(observed, 12, believers, change, target),
  }
})
