import { shortList } from '../errors/short-list.ts'
import type { Condition } from './action.ts'
import { isBundle, podPlace } from './convergence.ts'
import { quorumGaps } from './etcd/quorum.ts'
import type { PendingItem } from './phase.ts'
import { type Observed, onNode, type SectionName, type Snapshot, type Trust } from './snapshot.ts'

// The conditions that waits evaluate on a snapshot. Each one returns the pending items by name, to show progress and to explain a
// timeout.

interface Row<One extends Condition = Condition> {
  /** The sections of the snapshot that the condition needs. */
  readonly sees: readonly SectionName[]
  /** The usual duration as measured in the lab. Plans show it; it is not a deadline. */
  readonly seconds: number
  /** The object or process that the condition concerns, if it is not the whole cluster. */
  place?(condition: One): string | undefined
  /** Returns the pending items; empty when the condition is met. */
  missing(condition: One, observed: Snapshot): readonly PendingItem[]
}

const rows: { readonly [Kind in Condition['kind']]: Row<Extract<Condition, { kind: Kind }>> } = {
  published: {
    sees: ['published'],
    seconds: 2,
    missing(condition, observed) {
      const late = observed.published.filter(
        (one) => one.isActive && !isTrust(one.trust, condition) && (condition.bundles || !isBundle(one)),
      )
      const what = ({ trust, unread }: (typeof late)[number]): string =>
        trust === undefined ? (unread ?? 'not found') : 'unchanged'
      return [
        ...nonePublished(observed),
        ...late.map((one) => pendingItem(`${one.kind} ${one.name}`, what(one))),
      ]
    },
  },
  volumes: {
    sees: ['pods'],
    // A ConfigMap change reaches a pod's volume after 24–79 s.
    seconds: 80,
    missing: (condition, { pods }) =>
      pods
        .filter(({ volume }) => volume !== undefined && !isTrust(volume.trust, condition))
        .map((pod) => pendingItem(podPlace(pod), 'its volume is unchanged')),
  },
  'pods-converged': {
    sees: ['pods'],
    seconds: 10,
    place: ({ workload }) => workload ?? 'pods',
    missing({ workload, contains }, { pods }) {
      const its = pods.filter((pod) => workload === undefined || pod.workload === workload)
      // No pod may exist between the deletion of a pod and the creation of its replacement.
      if (workload !== undefined && its.length === 0) return [pendingItem(workload, 'no pod runs')]
      return its
        .filter(
          ({ volume, startedAtMs }) =>
            volume !== undefined &&
            (!isTrust(volume.trust, { contains, lacks: [] }) || startedAtMs < volume.changedAtMs),
        )
        .map((pod) => pendingItem(podPlace(pod), 'not replaced yet'))
    },
  },
  'pods-started': {
    sees: ['pods'],
    seconds: 10,
    place: ({ workload }) => workload,
    missing({ workload, sinceMs }, { pods }) {
      const its = pods.filter((pod) => pod.workload === workload)
      if (its.length === 0) return [pendingItem(workload, 'no pod runs')]
      const late = its.filter(({ startedAtMs }) => startedAtMs < sinceMs)
      return late.map(({ id }) => pendingItem(`Pod ${id}`, 'not replaced yet'))
    },
  },
  serves: {
    sees: ['handshakes'],
    seconds: 0.3,
    place: ({ server }) => server,
    missing({ server, signedBy, bridged }, { handshakes, certificates }) {
      const shown = handshakes.find((handshake) => handshake.server === server)
      if (shown === undefined) return [pendingItem(server, 'does not answer')]
      const leaf = certificates.get(shown.chain[0] ?? '')
      if (leaf?.signedBy !== signedBy) return [pendingItem(server, 'serves its previous certificate')]
      if (bridged === undefined || shown.chain.length > 1 === bridged) return []
      return [
        pendingItem(
          server,
          bridged ? 'does not serve the bridge certificate' : 'still serves the bridge certificate',
        ),
      ]
    },
  },
  'cluster-info-signed': {
    sees: ['clusterInfo'],
    seconds: 0.2,
    missing({ trust }, { clusterInfo }) {
      const at = 'ConfigMap kube-public/cluster-info'
      if (clusterInfo?.trust.join() !== trust.join()) return [pendingItem(at, 'has other content')]
      const unsigned = clusterInfo.signatures.filter(({ isValid }) => !isValid)
      return unsigned.map(({ tokenId }) => pendingItem(at, `not signed for token ${tokenId}`))
    },
  },
  'extension-authentication': {
    sees: ['extensionAuthentication'],
    seconds: 0.5,
    missing({ client, requestheader, lacks }, { extensionAuthentication: now }) {
      const at = 'ConfigMap kube-system/extension-apiserver-authentication'
      if (now === undefined) return [pendingItem(at, 'not found')]
      const isSo =
        isTrust(now.client, { contains: client, lacks }) &&
        isTrust(now.requestheader, { contains: requestheader, lacks })
      return isSo ? [] : [pendingItem(at, 'has other content')]
    },
  },
  leader: {
    sees: ['leases'],
    seconds: 2,
    missing({ lease }, { leases }) {
      const holder = leases.find(({ name }) => name === lease)?.holder
      return holder === undefined ? [pendingItem(lease, 'no leader')] : []
    },
  },
  available: {
    sees: ['caBundles'],
    seconds: 1,
    missing({ bundle }, { caBundles }) {
      const now = caBundles.find(({ id }) => id === bundle)
      if (now === undefined) return [pendingItem(bundle, 'not found')]
      return now.isAvailable ? [] : [pendingItem(bundle, 'not available')]
    },
  },
  'node-ready': {
    sees: ['nodes'],
    seconds: 2,
    place: ({ node }) => node,
    missing({ node }, { nodes }) {
      return nodes.find(({ name }) => name === node)?.isReady === true ? [] : [pendingItem(node, 'not Ready')]
    },
  },
  'backends-ready': {
    sees: ['backends'],
    seconds: 10,
    place: ({ node }) => node,
    missing: ({ node, sinceMs }, { backends }) =>
      onNode(backends, node)
        .filter(({ isReady, changedAtMs }) => !isReady && changedAtMs >= sinceMs)
        .map(({ pod, services }) =>
          pendingItem(`Pod ${pod}`, `not Ready, selected by Service ${services.join(', ')}`),
        ),
  },
  healthy: {
    sees: ['components'],
    seconds: 2,
    place: ({ process: id }) => id,
    missing({ process: id }, { components }) {
      const running = components.find((one) => one.id === id)?.process
      return running?.isHealthy === true ? [] : [pendingItem(id, 'not healthy')]
    },
  },
  verifies: {
    sees: ['servedKeys'],
    seconds: 1,
    place: ({ process: id }) => id,
    missing({ process: id, keyIds }, { servedKeys }) {
      const served = servedKeys.find((one) => one.process === id)?.keyIds ?? { unread: 'does not answer' }
      if ('unread' in served) return [pendingItem(id, served.unread)]
      const [now, wanted] = [new Set(served.value), new Set(keyIds)]
      const isSame = now.size === wanted.size && now.isSubsetOf(wanted)
      return isSame ? [] : [pendingItem(id, `verifies tokens of ${shortList(served.value)}`)]
    },
  },
  'etcd-quorum': {
    sees: ['etcdMembers'],
    seconds: 6,
    place: () => 'etcd',
    missing: ({ forMs }, observed) => quorumGaps(observed, forMs),
  },
  'etcd-serves': {
    sees: ['etcdMembers'],
    seconds: 1,
    place: ({ member }) => member,
    missing({ member, signedBy, bridged }, { etcdMembers, certificates }) {
      const served = etcdMembers.find(({ id }) => id === member)?.served
      const wrong = ([leaf = '', ...others]: readonly string[]): string | undefined => {
        if (leaf === '') return 'does not answer'
        if (certificates.get(leaf)?.signedBy !== signedBy) return 'serves its previous certificate'
        if (others.length > 0 === bridged) return undefined
        return bridged ? 'does not serve the bridge certificate' : 'still serves the bridge certificate'
      }
      return (['client', 'peer'] as const).flatMap((part) => {
        const what = wrong(served?.[part] ?? [])
        return what === undefined ? [] : [pendingItem(`${member}, ${part} port`, what)]
      })
    },
  },
  instant: {
    sees: [],
    seconds: 0,
    missing({ atMs }, observed) {
      const leftMs = atMs - observed.atMs
      return leftMs <= 0 ? [] : [pendingItem('clock', `${Math.ceil(leftMs / 1000)} s left`)]
    },
  },
}

function rowOf({ kind }: Condition): Row {
  return rows[kind]
}

/** Returns the sections of the snapshot that a condition needs. */
export function sectionsOf(condition: Condition): readonly SectionName[] {
  return rowOf(condition).sees
}

/** Returns the pending items of a condition; empty when the condition is met. */
export function missingFor(condition: Condition, observed: Snapshot): readonly PendingItem[] {
  return rowOf(condition).missing(condition, observed)
}

/** Returns the object or process that a condition concerns, as plans name it. */
export function locationOfCondition(condition: Condition): string {
  return rowOf(condition).place?.(condition) ?? 'cluster'
}

/** Returns the usual time until a condition is met, in seconds. */
export function secondsUntil(condition: Condition, nowMs: number): number {
  if (condition.kind === 'instant') return Math.max(0, (condition.atMs - nowMs) / 1000)
  return rowOf(condition).seconds
}

function pendingItem(at: string, what: string): PendingItem {
  return { at, what }
}

/** Returns a pending item when no namespace was observed. Every cluster has namespaces, so the published CAs are unknown then. */
export function nonePublished({ published }: Observed<'published'>): readonly PendingItem[] {
  return published.some(({ isActive }) => isActive)
    ? []
    : [pendingItem('ConfigMap kube-root-ca.crt', 'not found in any namespace')]
}

function isTrust(trust: Trust | undefined, { contains, lacks }: { contains: Trust; lacks: Trust }): boolean {
  return (
    trust !== undefined &&
    contains.every((digest) => trust.includes(digest)) &&
    !lacks.some((digest) => trust.includes(digest))
  )
}
