import type { Step } from '../action.ts'
import { convergenceOf, isWaived } from '../convergence.ts'
import { definePhase } from '../phase.ts'
import { rollOut } from '../roll-out.ts'
import { bundleOf, changeOf } from '../target.ts'

export const restartPods = definePhase({
  id: 'restart-pods',
  number: 4,
  title: 'pods with in-cluster configuration know both CAs',
  source: 'step 4',
  after: [3],
  risk: 'restarts',
  sees: ['published', 'pods', 'workloads'],

  gaps(seen, target) {
    const change = changeOf(target, 'cluster')
    if (change === undefined || target.isDropping) return []
    return seen.pods.flatMap((pod) => {
      if (isWaived(pod, target)) return []
      const holds = pod.volume?.trust.includes(change.newCa.digest)
      const state = convergenceOf(seen, change, target, pod)
      // One that reads again is served by the bridge until it has; phase 12 waits for it.
      if (state === 'converged' || (state === 'rereads' && holds)) return []
      return [{ at: `Pod ${pod.id}`, what: holds ? 'its process started with the old CA' : 'has the old CA' }]
    })
  },

  plan(seen, target): readonly Step[] {
    const change = changeOf(target, 'cluster')
    if (change === undefined || target.isDropping) return []
    const open = seen.pods.filter((pod) => !isWaived(pod, target))
    const stale = open.filter((pod) => convergenceOf(seen, change, target, pod) === 'stale')
    const waitsForVolume = open.some(({ volume }) => volume && !volume.trust.includes(change.newCa.digest))
    return [
      ...rollOut(seen, 4, stale, change, target),
      ...(waitsForVolume
        ? [
            {
              kind: 'wait',
              phase: 4,
              until: { kind: 'volumes', holds: bundleOf(change), lacks: [] },
              because: "kubelets bring both CAs into pods' volumes, after up to 80 s",
              deadlineMs: 240_000,
            } as const,
          ]
        : []),
    ]
  },

  // A pod that knows both CAs is at home in the cluster before as well.
  undo: () => ({ kind: 'steps', steps: [] }),
})
