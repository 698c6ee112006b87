import { isWaived } from '../../convergence.ts'
import type { Part } from '../../phase.ts'
import { annotationFor } from '../../roll-out.ts'
import type { Observed, PodSnapshot } from '../../snapshot.ts'
import { changeOf, type Target } from '../../target.ts'
import { inLanes, wait } from '../../tasks.ts'

type Sees = 'extensionAuthentication' | 'workloads' | 'pods'

export const handlers: Part<Sees> = (observed, target) => {
  const change = changeOf(target, 'front-proxy')
  const unaware = change === undefined || target.isDropping ? [] : unawareHandlers(observed, target)
  const gaps = Array.from(new Set(unaware.map(({ id }) => id)), (id) => ({
    at: `Pod ${id}`,
    what: 'not restarted since API servers published both front-proxy CAs',
  }))
  const sinceMs = observed.extensionAuthentication?.changedAtMs
  if (change === undefined || sinceMs === undefined) return { gaps, steps: [] }
  const workloads = new Set(unaware.flatMap(({ workload }) => workload ?? []))
  const annotation = annotationFor(9, change, sinceMs)
  const steps = inLanes(
    target.atOnce,
    Array.from(workloads, (id) => ({ id })),
    ({ id: workload }) => [
      { kind: 'rollout', workload, annotation },
      wait(
        { kind: 'pods-started', workload, sinceMs },
        `pods of ${workload} have read both front-proxy CAs`,
        600_000,
      ),
    ],
  )
  return { gaps, steps }
}

/**
 * Returns handlers that may trust only one front-proxy CA. They authenticate the front proxy with the CAs that API servers
 * publish, and many read these only once.
 */
function unawareHandlers(observed: Observed<Sees>, target: Target): readonly PodSnapshot[] {
  // If the object was not observed, no handler is certain to have read it.
  const since = observed.extensionAuthentication?.changedAtMs ?? Number.POSITIVE_INFINITY
  const ids = new Set(observed.workloads.filter(({ serves }) => serves.length > 0).map(({ id }) => id))
  return observed.pods.filter(
    (pod) => ids.has(pod.workload ?? '') && pod.startedAtMs < since && !isWaived(pod, target),
  )
}
