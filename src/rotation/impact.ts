import { assumptionsOf } from './assumptions.ts'
import { bundlesWithOldCa } from './ca-bundles.ts'
import { keyTypePlan } from './key-type.ts'
import { handshakesWith, leafIn } from './leaves.ts'
import { credentialHoldersOf, trustHoldersOf } from './parties.ts'
import type { Impact } from './phase.ts'
import type { RotationPlan } from './report.ts'
import { apiServers, fileAt, type Snapshot } from './snapshot.ts'
import { storedWithOldCa } from './stored.ts'
import { changeOf, type Target } from './target.ts'
import { certificateView, certificateViews } from './views.ts'

/** Returns what the rotation of the cluster's CAs affects: every trust and credential holder, and what others own. */
export function impactOf(observed: Snapshot, target: Target): Impact {
  return {
    trustHolders: [...trustHoldersOf(observed, target)],
    credentialHolders: [...credentialHoldersOf(observed, target)],
    assumptions: assumptionsOf(observed, target),
    blastRadius: blastRadiusOf(observed, target),
    ...keyTypePlan(observed, target),
  }
}

/** Returns what a rotation affects beyond the components themselves, so that their owners can prepare. */
function blastRadiusOf(observed: Snapshot, target: Target): RotationPlan['blastRadius'] {
  const change = changeOf(target, 'cluster')
  const ours = new Set([...apiServers(observed), ...observed.kubelets].map(({ id }) => id))
  const bundles = change ? bundlesWithOldCa(observed, change) : []
  const applied = observed.caBundles.filter((one) => change && one.applied?.includes(change.oldCa.digest))
  const foreign = change ? handshakesWith(observed, change.oldCa) : []
  return {
    caBundles: bundles.map(({ id, server }) => ({ id, server })),
    appliedBundles: [...new Set(applied.map(({ object: { kind, name } }) => `${kind} ${name}`))],
    kubeconfigs: observed.kubeconfigs.map(({ id, at, exported }) => {
      const leaf = at
        ? leafIn(observed, fileAt(observed, at.node, at.path))
        : observed.certificates.get(exported?.client ?? '')
      return { id, onNode: at !== undefined, ...(leaf && { client: certificateView(leaf, target) }) }
    }),
    joinTokens: (observed.clusterInfo?.signatures ?? []).map(({ tokenId }) => tokenId),
    foreign: foreign
      .filter(({ server }) => !ours.has(server))
      .flatMap(({ server, chain }) => {
        const [leaf] = certificateViews(chain, observed.certificates, target)
        return leaf ? [{ server, leaf }] : []
      }),
    stored: storedWithOldCa(observed, target).map(({ at: object, what, stored: { owner } }) => ({
      object,
      what,
      ...(owner !== undefined && { owner }),
    })),
    storedUnchecked: [...observed.stored.unread],
    barePods: [...new Set(observed.pods.flatMap(({ id, workload }) => (workload === undefined ? [id] : [])))],
    pods: new Set(observed.pods.map(({ uid }) => uid)).size,
  }
}

/** For a playbook that affects none of these. */
export const noRadius: Impact['blastRadius'] = {
  caBundles: [],
  appliedBundles: [],
  kubeconfigs: [],
  joinTokens: [],
  foreign: [],
  stored: [],
  storedUnchecked: [],
  barePods: [],
  pods: 0,
}
