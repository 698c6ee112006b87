import type { Step } from '../../action.ts'
import { isWaived } from '../../convergence.ts'
import type { Part } from '../../phase.ts'
import type { PodPicture, Seen } from '../../picture.ts'
import { together } from '../../restart.ts'
import { annotationFor } from '../../roll-out.ts'
import { changeOf, type Target } from '../../target.ts'

type Sees = 'extensionAuthentication' | 'workloads' | 'pods'

export const handlers: Part<Sees> = (seen, target) => ({
  gaps: [...new Set(unawareHandlers(seen, target).map(({ id }) => id))].map((id) => ({
    at: `Pod ${id}`,
    what: 'started before API servers published both front-proxy CAs',
  })),
  steps: restartHandlers(seen, target),
})

/** Aggregated API servers and webhook handlers know the front proxy by what API servers publish; many read it once. */
function unawareHandlers(seen: Seen<Sees>, target: Target): readonly PodPicture[] {
  if (changeOf(target, 'front-proxy') === undefined || target.isDropping) return []
  // Where it is not seen, nobody is known to have read it.
  const since = seen.extensionAuthentication?.changedAtMs ?? Number.POSITIVE_INFINITY
  const handlers = new Set(seen.workloads.filter(({ serves }) => serves.length > 0).map(({ id }) => id))
  return seen.pods.filter(
    (pod) => handlers.has(pod.workload ?? '') && pod.startedAtMs < since && !isWaived(pod, target),
  )
}

function restartHandlers(seen: Seen<Sees>, target: Target): readonly Step[] {
  const change = changeOf(target, 'front-proxy')
  const sinceMs = seen.extensionAuthentication?.changedAtMs
  if (change === undefined || sinceMs === undefined) return []
  const workloads = [...new Set(unawareHandlers(seen, target).map(({ workload }) => workload!))]
  const annotation = annotationFor(9, change, sinceMs)
  return together(
    target.atOnce,
    workloads.map((workload) => ({
      name: workload,
      steps: [
        { kind: 'roll', phase: 9, workload, annotation },
        {
          kind: 'wait',
          phase: 9,
          until: { kind: 'pods-started', workload, sinceMs },
          because: `pods of ${workload} have read both front-proxy CAs`,
          deadlineMs: 600_000,
        },
      ],
    })),
  )
}
