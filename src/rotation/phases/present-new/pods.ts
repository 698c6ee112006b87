import { convergenceOf, isWaived } from '../../convergence.ts'
import { clusterPart } from '../../phase.ts'
import { rollOut } from '../../roll-out.ts'

export const pods = clusterPart<'published' | 'pods' | 'workloads'>((observed, target, change) => {
  const stale = observed.pods.filter(
    (pod) => !isWaived(pod, target) && convergenceOf(observed, change, target, pod) === 'stale',
  )
  return { gaps: [], steps: target.isDropping ? [] : rollOut(observed, 9, stale, change, target) }
})
