import type { Step } from '../action.ts'
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
import { bundleOf, changeOf } from '../target.ts'
import { shortList } from '../tested-versions.ts'

/** `holds`: whether its volume has the new CA; undefined where no volume is seen. */
function staleness(holds: boolean | undefined, state: Convergence): string {
  if (holds === undefined)
    return 'started before every volume had both CAs, and its own is not seen on its node'
  if (!holds) return 'has the old CA'
  return state === 'rereads' ? 'has not read ca.crt again' : 'its process started with the old CA'
}

export const restartPods = definePhase('restart-pods', {
  sees: ['published', 'pods', 'workloads'],

  gaps(seen, target) {
    const change = changeOf(target, 'cluster')
    if (change === undefined || target.isDropping) return []
    return seen.pods.flatMap((pod) => {
      if (isWaived(pod, target)) return []
      const holds = pod.volume?.trust.includes(change.newCa.digest)
      const state = convergenceOf(seen, change, target, pod)
      // One that reads again is served by the bridge until it has; phase 12 waits for it. Without a bridge nobody serves it.
      if (state === 'converged' || (state === 'rereads' && holds && change.bridge !== undefined)) return []
      return [{ at: podPlace(pod), what: staleness(holds, state) }]
    })
  },

  plan(seen, target): readonly Step[] {
    const change = changeOf(target, 'cluster')
    if (change === undefined || target.isDropping) return []
    const open = seen.pods.filter((pod) => !isWaived(pod, target))
    // With a leaked key nobody waits 5 minutes for a client that reads again.
    const isUrgent = target.reason === 'compromise'
    const states = open.map((pod) => [pod, convergenceOf(seen, change, target, pod)] as const)
    const stale = states.filter(([, state]) => state === 'stale' || (isUrgent && state === 'rereads'))
    const rereads =
      !isUrgent && change.bridge === undefined && states.some(([, state]) => state === 'rereads')
    const instant = rereadInstant(open, target)
    const waitsForVolume = open.some(({ volume }) => volume && !volume.trust.includes(change.newCa.digest))
    const blind = stale.filter(
      ([pod]) => pod.volume === undefined && Number.isFinite(blindInstant(seen, pod)),
    )
    const blindUntil = blind.reduce((last, [pod]) => Math.max(last, blindInstant(seen, pod)), 0)
    return [
      // Restarted earlier, nobody could tell what they have read.
      ...(seen.atMs < blindUntil
        ? [
            {
              kind: 'wait',
              phase: 4,
              until: { kind: 'instant', atMs: blindUntil },
              because: 'whatever starts has both CAs, also where its volume is not seen on its node',
              deadlineMs: blindUntil - seen.atMs + 30_000,
            } as const,
          ]
        : []),
      ...rollOut(
        seen,
        4,
        stale.map(([pod]) => pod),
        change,
        target,
      ),
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
        : rereads
          ? [
              {
                kind: 'wait',
                phase: 4,
                until: { kind: 'instant', atMs: instant },
                because:
                  'clients have read ca.crt again: at most every 5 minutes they do, and no bridge serves them',
                deadlineMs: rereadMs + 30_000,
              } as const,
            ]
          : []),
    ]
  },

  remarks(seen, target) {
    const change = changeOf(target, 'cluster')
    if (change === undefined || target.isDropping) return []
    const open = seen.pods.filter((pod) => !isWaived(pod, target))
    const reasons = Map.groupBy(open, ({ readsOnce }) => readsOnce)
    const trusted = new Set(
      open.flatMap((pod) =>
        convergenceOf(seen, change, target, pod) === 'rereads' ? [pod.workload ?? `Pod ${pod.id}`] : [],
      ),
    )
    const isEarly = open.some(
      ({ volume, rereads }) => !rereads && volume && !volume.trust.includes(change.newCa.digest),
    )
    return [
      ...[...reasons].flatMap(([why, { length }]) =>
        why === undefined
          ? []
          : [
              `${length} pod${length === 1 ? '' : 's'} assumed to read the CA file at the start alone: ${why}`,
            ],
      ),
      // A program may have client-go and read the file once for other connections: only its owner knows.
      ...(trusted.size === 0
        ? []
        : [
            `not restarted, for they read the CA file again: ${shortList([...trusted].toSorted())}; to restart them too: --no-trust-reloading-clients`,
          ]),
      ...(isEarly
        ? [
            'programs of pods are examined once both CAs are in their files; until then they are assumed to read them once',
          ]
        : []),
    ]
  },

  // A pod that knows both CAs is at home in the cluster before as well.
  undo: () => ({ kind: 'steps', steps: [] }),
})
