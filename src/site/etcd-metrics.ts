import type { EtcdState } from '../rotation/snapshot.ts'

// A member's view of its cluster, from the metrics that it serves without a client certificate (kubeadm: --listen-metrics-urls on
// loopback). docs/decisions/etcd-state.md gives the reason and the names.

/** Returns the state of a member. Throws an error that names a metric that is missing or not a number. */
export function etcdStateIn(metrics: string): EtcdState {
  const [id] = labelsOf(metrics, 'etcd_server_id', 'server_id')
  if (id === undefined) throw new Error('its metrics do not contain etcd_server_id')
  const known = labelsOf(metrics, 'etcd_network_known_peers', 'Remote')
  // etcd before 3.6 does not report its members, so a member that is down would not be noticed.
  if (known.length === 0)
    throw new Error('its metrics do not contain etcd_network_known_peers (etcd 3.6 and later)')
  return {
    memberId: id,
    isLeader: numberIn(metrics, 'etcd_server_is_leader') === 1,
    isLearner: numberIn(metrics, 'etcd_server_is_learner') !== 0,
    applied: numberIn(metrics, 'etcd_server_proposals_applied_total'),
    known: [...new Set([id, ...known])],
    active: labelsOf(metrics, 'etcd_network_active_peers', 'Remote'),
  }
}

/** Returns the values of a label of all samples of a gauge that are at least 1. A removed member has 0. */
function labelsOf(metrics: string, name: string, label: string): string[] {
  const found = metrics.matchAll(new RegExp(String.raw`^${name}\{([^}\n]*)\} (\S+)`, 'gm'))
  return Array.from(found).flatMap(([, labels = '', value]) => {
    if (!Number.isFinite(Number(value))) throw new Error(`its metrics do not contain a number for ${name}`)
    const its = new RegExp(`(?:^|,)${label}="([0-9a-f]{1,16})"`).exec(labels)?.[1]
    return its !== undefined && Number(value) >= 1 ? [its] : []
  })
}

/** Returns the value of a metric without labels. Throws an error that names one that is missing or not a number. */
export function numberIn(metrics: string, name: string): number {
  const [value = Number.NaN, ...others] = Array.from(
    metrics.matchAll(new RegExp(String.raw`^${name} (\S+)`, 'gm')),
    ([, text]) => Number(text),
  )
  if (!Number.isFinite(value) || others.length > 0)
    throw new Error(`its metrics do not contain a number for ${name}`)
  return value
}
