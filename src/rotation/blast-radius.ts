import { bundlesWithOldCa } from './ca-bundles.ts'
import { isSignedByCa } from './certificate-record.ts'
import { leafIn } from './leaves.ts'
import { apiServers, fileAt, type Picture } from './picture.ts'
import type { RotationPlan } from './report.ts'
import { storingOld } from './stored.ts'
import { changeOf, type Target } from './target.ts'
import { certificateView, certificateViews } from './views.ts'

/** Returns what a rotation reaches beyond the components themselves, so that nobody is surprised by whom it concerns. */
export function blastRadiusOf(seen: Picture, target: Target): RotationPlan['blastRadius'] {
  const change = changeOf(target, 'cluster')
  const ours = new Set([...apiServers(seen).map(({ id }) => id), ...seen.kubelets.map(({ id }) => id)])
  return {
    caBundles:
      change === undefined ? [] : bundlesWithOldCa(seen, change).map(({ id, server }) => ({ id, server })),
    appliedBundles:
      change === undefined
        ? []
        : [
            ...new Set(
              seen.caBundles.flatMap(({ object: { kind, name }, applied }) =>
                applied?.includes(change.oldCa.digest) ? [`${kind} ${name}`] : [],
              ),
            ),
          ],
    kubeconfigs: seen.kubeconfigs.map(({ id, at, exported }) => {
      const leaf =
        at === undefined
          ? seen.certificates.get(exported?.client ?? '')
          : leafIn(seen, fileAt(seen, at.node, at.path))
      return { id, onNode: at !== undefined, ...(leaf && { client: certificateView(leaf, target) }) }
    }),
    joinTokens: (seen.clusterInfo?.signatures ?? []).map(({ tokenId }) => tokenId),
    foreign: seen.handshakes.flatMap(({ presenter, chain }) => {
      const leaf = seen.certificates.get(chain[0] ?? '')
      const isOld = change !== undefined && isSignedByCa(leaf, change.oldCa)
      if (!isOld || ours.has(presenter)) return []
      return [{ presenter, leaf: certificateViews(chain.slice(0, 1), seen.certificates, target)[0]! }]
    }),
    stored: storingOld(seen, target).map(({ at, what, stored: { owner } }) => ({
      object: at,
      what,
      ...(owner === undefined ? {} : { owner }),
    })),
    storedUnread: [...seen.stored.unread],
    barePods: [...new Set(seen.pods.flatMap(({ id, workload }) => (workload === undefined ? [id] : [])))],
    pods: new Set(seen.pods.map(({ uid }) => uid)).size,
  }
}
