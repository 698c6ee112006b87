import { evidenceKey, type Step, type Task } from '../action.ts'
import { inBatches, restartedKubelet } from '../kubelet-steps.ts'
import type { KubeletSnapshot, Observed, Snapshot } from '../snapshot.ts'
import type { Target } from '../target.ts'
import { inParallel, probe, wait } from '../tasks.ts'

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

/** Returns when each node was proven to have no mounted token of a key; nothing for a node that is not proven. */
export function renewals(observed: Observed<'kubelets' | 'evidence'>, keyId: string): readonly number[] {
  return observed.kubelets.flatMap(({ node }) => {
    const evidence = observed.evidence.get(evidenceKey(provenOn(node, keyId)))
    return evidence?.ok ? [evidence.atMs] : []
  })
}

/** client-go reads the file of a token once a minute (transport/token_source.go). */
const rereadMs = 70_000

/** Returns the wait until no client has the token in memory that its kubelet replaced at `renewedMs`. */
export function awaitReread({ atMs }: Pick<Snapshot, 'atMs'>, renewedMs: number): readonly Task[] {
  const untilMs = renewedMs + rereadMs
  if (atMs >= untilMs) return []
  const because = 'clients have read their mounted tokens again'
  return [wait({ kind: 'instant', atMs: untilMs }, because, rereadMs + 120_000)]
}

export function provenOn(node: string, lacks: string) {
  return { kind: 'mounted-tokens', node, lacks } as const
}
