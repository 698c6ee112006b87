import { commandLine } from '../../errors/command-line.ts'
import { shortList } from '../../errors/short-list.ts'
import { awaitsBundles, convergenceOf, isBundle, isWaived, notUpdatingBundles } from '../convergence.ts'
import { interruptions, kubeletPart } from '../kubelet-steps.ts'
import { definePhase, inParts } from '../phase.ts'
import { apiServers, type Snapshot, sectionNames } from '../snapshot.ts'
import { storedRefusals, storedRemarks, unreadRemarks } from '../stored.ts'
import { changeOf, type Target, withoutOld } from '../target.ts'
import { presentersOfOldCa } from './11-verify.ts'
import { definitions } from './drop-old/definitions.ts'
import { holders } from './drop-old/holders.ts'
import { pods } from './drop-old/pods.ts'
import { publishedClientCas } from './drop-old/published-client-cas.ts'
import { reissued } from './drop-old/reissued.ts'
import { remains } from './drop-old/remains.ts'
import { servers } from './drop-old/servers.ts'
import { trustHolders } from './drop-old/trust-holders.ts'

const parts = inParts(
  // API servers, controller-managers, schedulers and kubelets drop the old CA: one control-plane node first, then the others,
  // then the workers.
  trustHolders,
  // extension-apiserver-authentication is deleted and published again, because API servers only ever add to it.
  publishedClientCas,
  // caBundles drop the old CA. API servers drop their bridge certificate, one API server at a time.
  servers,
  // cluster-info and kubeconfigs drop the old CA. Processes read them at the restart in the next part.
  holders,
  // Components restart with the flags from before the rotation, and publish only the new CA.
  definitions,
  // The kubelets' own kubeconfigs drop the old CA. Each kubelet restarts once.
  kubeletPart(withoutOld),
  // After a compromise, pods that still trust the old CA restart.
  pods,
  // The kubeadm-certs Secret, superseded certificates and kcert's own files are deleted.
  remains,
)

export const dropOld = definePhase('drop-old', {
  sees: sectionNames,

  gaps: (observed, given) => [
    ...reissued(observed, given).gaps,
    ...parts.gaps(observed, whileDropping(given)),
  ],

  plan(observed, given) {
    const first = [...reissued(observed, given).steps]
    // The other parts may write the same files, so they are planned on what these steps leave.
    return first.length > 0 ? first : parts.plan(observed, whileDropping(given))
  },

  *refusals(observed, target) {
    const change = changeOf(target, 'cluster')
    const reissuing = new Set(Array.from(reissued(observed, target).gaps, ({ at }) => at))
    const own = new Set(apiServers(observed).flatMap(({ id }) => (reissuing.has(id) ? [id] : [])))
    for (const { at } of presentersOfOldCa(observed, target)) {
      if (own.has(at)) continue
      yield {
        what: `${at} still serves a certificate of the old CA`,
        why: commandLine`no client would trust it any more; reissue it, or accept the risk with --waive ${at}`,
        next: 'kcert rotate-ca verify',
      }
    }
    // Once verifiers have dropped the old CA, stopping does not help the users of such an object.
    if (target.isDropping) return
    yield* storedRefusals(observed, target)
    if (change === undefined) return
    const stale = observed.pods.filter(
      (pod) => !isWaived(pod, target) && convergenceOf(observed, change, target, pod) !== 'converged',
    )
    for (const id of [...new Set(stale.map((pod) => pod.id))].slice(0, 20))
      yield {
        what: `pod ${id} may not trust the new CA`,
        why: commandLine`it needs the bridge certificate, which this phase removes, to trust API servers; restart it, or accept the risk with --waive ${id}`,
        next: 'kcert rotate-ca --phase 4',
      }
  },

  *remarks(observed, target) {
    const change = changeOf(target, 'cluster')
    if (change !== undefined && target.reason !== 'compromise') {
      const holding = observed.pods.filter(({ volume }) => volume?.trust.includes(change.newCa.digest))
      const count = new Set(holding.map(({ uid }) => uid)).size
      yield `${count} ${count === 1 ? 'pod keeps' : 'pods keep'} both CAs until the next restart; no server uses a certificate of the old CA`
    }
    if (change !== undefined)
      yield 'kubeconfigs with a certificate of the old CA stop working, yours too unless you have replaced it since phase 7'
    // Before that, phase 12 is refused because of such objects.
    yield* target.isDropping ? storedRemarks(observed, target) : unreadRemarks(observed)
    yield* interruptions(observed, change, withoutOld)
    yield* leftBundles(observed, target)
  },

  undo: () => ({
    what: 'phase 12 cannot be rolled back',
    why: 'certificates of the old CA are already rejected, and some are deleted. To use the old CA again, finish phase 12 and rotate to it with --ca-cert and --ca-key',
    next: 'kcert rotate-ca --phase 12',
  }),
})

/** Returns remarks on bundles that still contain the old CA and that no phase waits for. */
function leftBundles(observed: Snapshot, target: Target): readonly string[] {
  const oldCa = changeOf(target, 'cluster')?.oldCa.digest
  if (oldCa === undefined || awaitsBundles(observed, target)) return []
  const managers = shortList(notUpdatingBundles(observed).map(({ id, why }) => `${id} (${why})`))
  return observed.published
    .filter((one) => isBundle(one) && one.trust?.includes(oldCa))
    .map(
      ({ name }) =>
        `ClusterTrustBundle ${name}, which no pod mounts, contains the old CA until a kube-controller-manager that updates it is the leader; these do not: ${managers}`,
    )
}

function whileDropping(target: Target): Target {
  return target.isDropping ? target : { ...target, isDropping: true }
}
