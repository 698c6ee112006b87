import type { Step, Task } from '../action.ts'
import { inBatches, restartedKubelet } from '../kubelet-steps.ts'
import type { KubeletSnapshot, Observed } from '../snapshot.ts'
import type { Target } from '../target.ts'
import { inParallel, probe } from '../tasks.ts'

/**
 * Returns the restarts of these kubelets, each followed by the proof that no token which it mounted has the key. A kubelet keeps tokens
 * only in memory, so a restart renews all of them (pkg/kubelet/token/token_manager.go). After a leak, all restart at once.
 */
export function restartingKubelets(
  observed: Observed<'kubelets' | 'nodes'>,
  target: Target,
  mustRestart: (kubelet: KubeletSnapshot) => boolean,
  lacks: string,
  mustProve: (kubelet: KubeletSnapshot) => boolean = mustRestart,
): readonly Step<Task>[] {
  const stepsOf = (kubelet: KubeletSnapshot): readonly Task[] => [
    ...(mustRestart(kubelet) ? restartedKubelet(observed, kubelet, target) : []),
    ...(mustRestart(kubelet) || mustProve(kubelet) ? [probe(provenOn(kubelet.node, lacks), 180_000)] : []),
  ]
  if (target.reason !== 'compromise') return inBatches(observed, target, stepsOf)
  const lanes = observed.kubelets.map((kubelet) => ({ name: kubelet.node, steps: stepsOf(kubelet) }))
  return inParallel(lanes.length, lanes)
}

export function provenOn(node: string, lacks: string) {
  return { kind: 'mounted-tokens', node, lacks } as const
}
