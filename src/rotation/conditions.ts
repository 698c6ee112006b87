import type { Condition } from './action.ts'
import { isBundle, podPlace } from './convergence.ts'
import type { Gap } from './phase.ts'
import { onNode, type Picture, type SectionName, type Seen, type Trust } from './picture.ts'

// What a wait is for, judged on a picture: what is still missing, by name, so that progress can be shown and a deadline explained.

/** The sections that must be observed to judge a condition. */
export function sectionsOf({ kind }: Condition): readonly SectionName[] {
  return sections[kind]
}

const sections = {
  published: ['published'],
  volumes: ['pods'],
  'pods-converged': ['pods'],
  'pods-started': ['pods'],
  serves: ['handshakes'],
  'cluster-info-signed': ['clusterInfo'],
  'extension-authentication': ['extensionAuthentication'],
  leader: ['leases'],
  available: ['caBundles'],
  'node-ready': ['nodes'],
  'backends-ready': ['backends'],
  instant: [],
} as const satisfies Record<Condition['kind'], readonly SectionName[]>

/** Returns what a condition still waits for; empty when it holds. */
export function missingFor(condition: Condition, seen: Picture): readonly Gap[] {
  switch (condition.kind) {
    case 'published':
      return [
        ...nonePublished(seen),
        ...seen.published
          .filter(
            (one) => one.isActive && !isTrust(one.trust, condition) && (condition.bundles || !isBundle(one)),
          )
          .map(({ kind, name, trust, unread }) =>
            gap(`${kind} ${name}`, trust === undefined ? (unread ?? 'not there') : 'as before'),
          ),
      ]
    case 'volumes':
      return seen.pods
        .filter(({ volume }) => volume !== undefined && !isTrust(volume.trust, condition))
        .map((pod) => gap(podPlace(pod), 'its volume is as before'))
    case 'pods-converged': {
      const { workload, holds } = condition
      const its = seen.pods.filter((pod) => workload === undefined || pod.workload === workload)
      const late = its.filter(
        ({ volume, startedAtMs }) =>
          volume !== undefined &&
          (!isTrust(volume.trust, { holds, lacks: [] }) || startedAtMs < volume.changedAtMs),
      )
      // Between the pod that went and the one that comes there may be none to look at.
      const none = workload !== undefined && its.length === 0 ? [gap(workload, 'no pod runs')] : []
      return [...none, ...late.map((pod) => gap(podPlace(pod), 'not replaced yet'))]
    }
    case 'pods-started': {
      const { workload, sinceMs } = condition
      const its = seen.pods.filter((pod) => pod.workload === workload)
      if (its.length === 0) return [gap(workload, 'no pod runs')]
      return its
        .filter(({ startedAtMs }) => startedAtMs < sinceMs)
        .map(({ id }) => gap(`Pod ${id}`, 'not replaced yet'))
    }
    case 'serves': {
      const { presenter, signedBy, bridged } = condition
      const shown = seen.handshakes.find((handshake) => handshake.presenter === presenter)
      if (shown === undefined) return [gap(presenter, 'does not answer')]
      const leaf = seen.certificates.get(shown.chain[0] ?? '')
      if (leaf?.signedBy !== signedBy) return [gap(presenter, 'shows its earlier certificate')]
      if (bridged === undefined || shown.chain.length > 1 === bridged) return []
      return [gap(presenter, bridged ? 'shows no bridge' : 'still shows the bridge')]
    }
    case 'cluster-info-signed': {
      const info = seen.clusterInfo
      const at = 'ConfigMap kube-public/cluster-info'
      if (info === undefined || info.trust.join() !== condition.trust.join())
        return [gap(at, 'of other content')]
      return info.signatures
        .filter(({ holds }) => !holds)
        .map(({ tokenId }) => gap(at, `not signed for token ${tokenId}`))
    }
    case 'extension-authentication': {
      const now = seen.extensionAuthentication
      const at = 'ConfigMap kube-system/extension-apiserver-authentication'
      if (now === undefined) return [gap(at, 'not there')]
      const { client, requestheader, lacks } = condition
      const isSo =
        isTrust(now.client, { holds: client, lacks }) &&
        isTrust(now.requestheader, { holds: requestheader, lacks })
      return isSo ? [] : [gap(at, 'of other content')]
    }
    case 'leader': {
      const lease = seen.leases.find(({ name }) => name === condition.lease)
      return lease?.holder === undefined ? [gap(condition.lease, 'no leader')] : []
    }
    case 'available': {
      const bundle = seen.caBundles.find(({ id }) => id === condition.bundle)
      if (bundle === undefined) return [gap(condition.bundle, 'not there')]
      return bundle.isAvailable ? [] : [gap(condition.bundle, 'not available')]
    }
    case 'node-ready': {
      const node = seen.nodes.find(({ name }) => name === condition.node)
      return node?.isReady === true ? [] : [gap(condition.node, 'not Ready')]
    }
    case 'backends-ready':
      return onNode(seen.backends, condition.node)
        .filter(({ isReady, changedAtMs }) => !isReady && changedAtMs >= condition.sinceMs)
        .map(({ pod, services }) => gap(`Pod ${pod}`, `not Ready, of Service ${services.join(', ')}`))
    case 'instant':
      return seen.atMs >= condition.atMs
        ? []
        : [gap('clock', `${Math.ceil((condition.atMs - seen.atMs) / 1000)} s to go`)]
  }
}

function gap(at: string, what: string): Gap {
  return { at, what }
}

/** Every cluster has namespaces: where none is seen, nothing is known of what is published. */
export function nonePublished({ published }: Seen<'published'>): readonly Gap[] {
  return published.some(({ isActive }) => isActive)
    ? []
    : [{ at: 'ConfigMap kube-root-ca.crt', what: 'seen in no namespace' }]
}

function isTrust(trust: Trust | undefined, { holds, lacks }: { holds: Trust; lacks: Trust }): boolean {
  return (
    trust !== undefined &&
    holds.every((digest) => trust.includes(digest)) &&
    !lacks.some((digest) => trust.includes(digest))
  )
}
