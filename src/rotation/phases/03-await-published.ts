import { nonePublished } from '../conditions.ts'
import { awaitsBundles, isBundle } from '../convergence.ts'
import { clusterPart, definePhase, inParts } from '../phase.ts'
import { wantedTrust } from '../target.ts'
import { wait } from '../tasks.ts'

const published = clusterPart<'published' | 'components' | 'pods'>((observed, target, change) => {
  const bundles = awaitsBundles(observed, target)
  const late = observed.published
    .filter((one) => one.isActive && !one.trust?.includes(change.newCa.digest) && (bundles || !isBundle(one)))
    .map(({ kind, name, trust, unread }) => ({
      at: `${kind} ${name}`,
      what: trust === undefined ? (unread ?? 'not found') : 'without the new CA',
    }))
  const gaps = [...nonePublished(observed), ...late]
  const until = { kind: 'published', contains: wantedTrust(target, change), lacks: [], bundles } as const
  const because = 'kube-controller-manager has published both CAs to every namespace'
  return { gaps, steps: gaps.length === 0 ? [] : [wait(until, because, 300_000)] }
})

export const awaitPublished = definePhase('await-published', {
  sees: ['published', 'components', 'pods'],
  ...inParts(published),
  // kube-controller-manager publishes what its flag names, so undoing phase 2 undoes this phase too.
  undo: () => [],
})
