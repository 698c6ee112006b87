import { shortList } from '../../errors/short-list.ts'
import {
  blindInstant,
  type Convergence,
  convergenceOf,
  isWaived,
  podPlace,
  rereadInstant,
  rereadMs,
} from '../convergence.ts'
import { definePhase } from '../phase.ts'
import { rollOut } from '../roll-out.ts'
import type { Observed, PodSnapshot } from '../snapshot.ts'
import { bundleOf, type CaChange, changeOf, type Target } from '../target.ts'
import { wait } from '../tasks.ts'

export const restartPods = definePhase('restart-pods', {
  sees: ['published', 'pods', 'workloads'],

  *gaps(observed, target) {
    const open = statesOf(observed, target)
    if (open === undefined) return
    const { change, states } = open
    for (const [pod, state] of states) {
      const hasNew = pod.volume?.trust.includes(change.newCa.digest)
      // A client that reads the file again relies on the bridge certificate until it has done so. Phase 12 waits for it.
      const isServed = state === 'rereads' && hasNew && change.bridge !== undefined
      if (state !== 'converged' && !isServed) yield { at: podPlace(pod), what: staleness(hasNew, state) }
    }
  },

  *plan(observed, target) {
    const open = statesOf(observed, target)
    if (open === undefined) return
    const { change, states } = open
    // After a key leak, kcert does not wait 5 minutes for a client that reads the file again.
    const isUrgent = target.reason === 'compromise'
    const stale = states.filter(([, state]) => state === 'stale' || (isUrgent && state === 'rereads'))
    const its = stale.map(([pod]) => pod)
    const blind = its.filter(({ volume }) => volume === undefined).map((pod) => blindInstant(observed, pod))
    const blindUntil = blind.filter(Number.isFinite).reduce((last, atMs) => Math.max(last, atMs), 0)
    // If these pods restarted earlier, kcert could not tell which CAs they have read.
    if (observed.atMs < blindUntil) {
      const because = 'every new pod gets both CAs, even if kcert cannot see its volume on the node'
      yield wait({ kind: 'instant', atMs: blindUntil }, because, blindUntil - observed.atMs + 30_000)
    }
    yield* rollOut(observed, 4, its, change, target)
    if (states.some(([pod]) => hasOldVolume(pod, change))) {
      const until = { kind: 'volumes', contains: bundleOf(change), lacks: [] } as const
      yield wait(until, "kubelets have written both CAs into pods' volumes (up to 80 s)", 240_000)
    } else if (!isUrgent && change.bridge === undefined && states.some(([, state]) => state === 'rereads')) {
      const instant = rereadInstant(observed.pods, target)
      const because =
        'clients have read ca.crt again (up to 5 minutes), because there is no bridge certificate'
      yield wait({ kind: 'instant', atMs: instant }, because, rereadMs + 30_000)
    }
  },

  *remarks(observed, target) {
    const open = statesOf(observed, target)
    if (open === undefined) return
    const { change, states } = open
    for (const [why, { length }] of Map.groupBy(states, ([{ readsOnce }]) => readsOnce))
      if (why !== undefined)
        yield `${length} pod${length === 1 ? '' : 's'} assumed to read the CA file only at startup: ${why}`
    const rereading = states.filter(([, state]) => state === 'rereads')
    const trusted = new Set(rereading.map(([{ id, workload }]) => workload ?? `Pod ${id}`))
    // A program may use client-go and still read the file only once for other connections. Only its owner can tell.
    if (trusted.size > 0)
      yield `not restarted, because they read the CA file again: ${shortList([...trusted].toSorted())}; to restart them too: --no-trust-reloading-clients`
    if (states.some(([pod]) => !pod.rereads && hasOldVolume(pod, change)))
      yield 'kcert checks the programs of pods once both CAs are in their files; until then it assumes that they read the files only once'
  },

  // A pod that trusts both CAs also works in the earlier state of the cluster.
  undo: () => [],
})

/**
 * Returns the state of the pods without a waiver, or undefined if the cluster CA is not being rotated or its old CA is being
 * dropped.
 */
function statesOf(observed: Observed<'published' | 'pods'>, target: Target) {
  const change = changeOf(target, 'cluster')
  if (change === undefined || target.isDropping) return undefined
  const open = observed.pods.filter((pod) => !isWaived(pod, target))
  return { change, states: open.map((pod) => [pod, convergenceOf(observed, change, target, pod)] as const) }
}

function hasOldVolume({ volume }: PodSnapshot, { newCa }: CaChange): boolean {
  return volume !== undefined && !volume.trust.includes(newCa.digest)
}

/** Returns why a pod is stale. `hasNew`: whether its volume contains the new CA; undefined if kcert cannot see the volume. */
function staleness(hasNew: boolean | undefined, state: Convergence): string {
  if (hasNew === undefined)
    return 'started before every volume had both CAs, and kcert cannot see its volume on the node'
  if (!hasNew) return 'has the old CA'
  return state === 'rereads' ? 'has not read ca.crt again' : 'its process started with the old CA only'
}
