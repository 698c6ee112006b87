import { shortList } from '../errors/short-list.ts'
import { capabilities, isAssumption, whyEarlier } from './capabilities.ts'
import { convergenceOf, isWaived, notUpdatingBundles } from './convergence.ts'
import { nodeNamed, whyUnready } from './kubelet-steps.ts'
import { apiServers, type Snapshot } from './snapshot.ts'
import { changeOf, type Target } from './target.ts'
import { minorOf } from './tested-versions.ts'
import { kubeletCaFileOf } from './trust-files.ts'

/** A process, and why it counts as an earlier version. */
interface Process {
  readonly node: string
  readonly version?: string | undefined
  readonly why?: string | undefined
}

/** Returns what kcert assumes because it cannot detect it, and what it therefore does: a few lines for the plan. */
export function assumptionsOf(observed: Snapshot, target: Target): string[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  // Nothing shows before a write whether an API server of a later version rereads this file.
  const apis = apiServers(observed).flatMap((api): Process[] => {
    const why = whyEarlier(
      capabilities.apiServerRereadsKubeletCa,
      api.version,
      api.flags['feature-gates'] ?? '',
    )
    const isKnown = why !== undefined && !isAssumption(why)
    return isKnown || kubeletCaFileOf(observed, api, target) === undefined ? [] : [{ ...api, why }]
  })
  const kubelets = observed.kubelets.map((kubelet): Process => {
    const { node } = kubelet
    return { node, version: nodeNamed(observed, node)?.kubeletVersion, why: whyUnready(observed, kubelet) }
  })
  const hasBundles = observed.published.some(({ kind }) => kind === 'ClusterTrustBundle')
  const pods = observed.pods.filter(
    (pod) => !isWaived(pod, target) && convergenceOf(observed, change, target, pod) === 'stale',
  )
  const unchecked = pods.filter(
    ({ rereads, readsOnce }) => !rereads && (readsOnce === undefined || isAssumption(readsOnce)),
  )
  const count = new Set(unchecked.map(({ uid }) => uid)).size
  return [
    ...lines('kube-apiserver', apis, 'not to reread --kubelet-certificate-authority: kcert restarts it'),
    ...lines(
      'kubelet',
      kubelets.filter(({ why }) => isAssumption(why)),
      'to report its pods as not Ready after a restart: kcert restarts such kubelets one at a time',
    ),
    ...lines(
      'kube-controller-manager',
      (hasBundles ? notUpdatingBundles(observed) : []).filter(({ why }) => isAssumption(why)),
      'not to update ClusterTrustBundles: kcert waits for those that pods mount',
    ),
    ...(count > 0
      ? [
          `${count} ${count === 1 ? 'pod' : 'pods'}: assumed to read the CA file only at startup, unless phase 4 detects otherwise`,
        ]
      : []),
  ]
}

/** Returns a line for each minor version and reason. */
function lines(name: string, processes: readonly Process[], behavior: string): string[] {
  const groups = Map.groupBy(processes, ({ version, why }) => `${minorOf(version) ?? ''}/${why ?? ''}`)
  return Array.from(groups, ([key, its]) => {
    const [minor, why] = key.split('/')
    const who = `${name}${minor && ` ${minor}`} on ${shortList(its.map(({ node }) => node))}`
    return `${who}: assumed ${behavior}${why && ` (${why})`}`
  })
}
