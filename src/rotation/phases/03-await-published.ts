import { nonePublished } from '../conditions.ts'
import { awaitsBundles, isBundle } from '../convergence.ts'
import { definePhase, type Gap } from '../phase.ts'
import type { Seen } from '../picture.ts'
import { changeOf, type Target, wantedTrust } from '../target.ts'

export const awaitPublished = definePhase('await-published', {
  sees: ['published', 'components', 'pods'],

  gaps: laggards,

  plan(seen, target) {
    if (laggards(seen, target).length === 0) return []
    return [
      {
        kind: 'wait',
        phase: 3,
        until: {
          kind: 'published',
          holds: wantedTrust(target, changeOf(target, 'cluster')!),
          lacks: [],
          bundles: awaitsBundles(seen, target),
        },
        because: 'kube-controller-manager publishes both CAs in every namespace',
        deadlineMs: 300_000,
      },
    ]
  },

  // What the controller-manager publishes follows its flag: undoing phase 2 undoes this.
  undo: () => ({ kind: 'steps', steps: [] }),
})

function laggards(seen: Seen<'published' | 'components' | 'pods'>, target: Target): readonly Gap[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const bundles = awaitsBundles(seen, target)
  const late = seen.published
    .filter((one) => one.isActive && !one.trust?.includes(change.newCa.digest) && (bundles || !isBundle(one)))
    .map(({ kind, name, trust, unread }) => ({
      at: `${kind} ${name}`,
      what: trust === undefined ? (unread ?? 'not there') : 'without the new CA',
    }))
  return [...nonePublished(seen), ...late]
}
