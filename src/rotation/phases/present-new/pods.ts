import { convergenceOf, isWaived } from '../../convergence.ts'
import { clusterPart } from '../../phase.ts'
import { rollOut } from '../../roll-out.ts'

export const pods = clusterPart<'published' | 'pods' | 'workloads'>((seen, target, change) => {
  const stale = seen.pods.filter(
    (pod) => !isWaived(pod, target) && convergenceOf(seen, change, target, pod) === 'stale',
  )
  return { gaps: [], steps: target.isDropping ? [] : rollOut(seen, 9, stale, change, target) }
})
