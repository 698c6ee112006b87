import { bundlesWithOldCa } from './ca-bundles.ts'
import { handshakesWith, leafIn } from './leaves.ts'
import type { RotationPlan } from './report.ts'
import { apiServers, fileAt, type Snapshot } from './snapshot.ts'
import { storingOld } from './stored.ts'
import { changeOf, type Target } from './target.ts'
import { certificateView, certificateViews } from './views.ts'

/** Returns what a rotation reaches beyond the components themselves, so that nobody is surprised by whom it concerns. */
export function blastRadiusOf(seen: Snapshot, target: Target): RotationPlan['blastRadius'] {
  const change = changeOf(target, 'cluster')
  const ours = new Set([...apiServers(seen), ...seen.kubelets].map(({ id }) => id))
  const bundles = change ? bundlesWithOldCa(seen, change) : []
  const applied = seen.caBundles.filter((one) => change && one.applied?.includes(change.oldCa.digest))
  const foreign = change ? handshakesWith(seen, change.oldCa) : []
  return {
    caBundles: bundles.map(({ id, server }) => ({ id, server })),
    appliedBundles: [...new Set(applied.map(({ object: { kind, name } }) => `${kind} ${name}`))],
    kubeconfigs: seen.kubeconfigs.map(({ id, at, exported }) => {
      const leaf = at
        ? leafIn(seen, fileAt(seen, at.node, at.path))
        : seen.certificates.get(exported?.client ?? '')
      return { id, onNode: at !== undefined, ...(leaf && { client: certificateView(leaf, target) }) }
    }),
    joinTokens: (seen.clusterInfo?.signatures ?? []).map(({ tokenId }) => tokenId),
    foreign: foreign
      .filter(({ presenter }) => !ours.has(presenter))
      .flatMap(({ presenter, chain }) => {
        const [leaf] = certificateViews(chain, seen.certificates, target)
        return leaf ? [{ presenter, leaf }] : []
      }),
    stored: storingOld(seen, target).map(({ at: object, what, stored: { owner } }) => ({
      object,
      what,
      ...(owner !== undefined && { owner }),
    })),
    storedUnread: [...seen.stored.unread],
    barePods: [...new Set(seen.pods.flatMap(({ id, workload }) => (workload === undefined ? [id] : [])))],
    pods: new Set(seen.pods.map(({ uid }) => uid)).size,
  }
}
