import type { ApprovalFacts, NodeFacts } from '../csr/approval/facts.ts'
import { factsOfNodes } from '../csr/approval/node-list.ts'
import type { Clock } from '../system/clock.ts'
import type { Cluster } from './cluster.ts'
import { readClusterAddresses } from './cluster-addresses.ts'
import { statusIn } from './failures.ts'
import { type NodeObject, resources } from './kinds.ts'
import { getOne, listEach } from './readable.ts'

// One list of Nodes serves thousands of requests. A changed kubelet address takes effect a minute later.
const nodesKeptMs = 60_000
// These change when an operator rebuilds the control plane.
const addressesKeptMs = 300_000

/** Returns the certificate that a kubelet presents on its port; see `ApprovalFacts`. */
export type ServedReader = (
  node: NodeFacts,
  port: number,
) => ReturnType<ApprovalFacts['readServedCertificate']>

const kubeletPort = 10_250

/**
 * Returns the facts that approval policies need, read from the cluster. Facts that kcert may not read are undefined. `readServed`
 * connects to kubelets directly, not through the API server.
 */
export function approvalFactsOf(cluster: Cluster, readServed: ServedReader, clock: Clock): ApprovalFacts {
  const ports = new Map<string, number>()
  const known = kept(nodesKeptMs, clock, async () => {
    // All Nodes of a large cluster at once would need hundreds of MB.
    const nodes = new Map<string, NodeFacts>()
    try {
      for await (const node of listEach(cluster.objects, resources.nodes)) {
        nodes.set(node.metadata.name, nodeOf(node))
        ports.set(node.metadata.name, portOf(node))
      }
    } catch (error) {
      if (statusIn(error) === 403) return undefined
      throw error
    }
    return factsOfNodes([...nodes.values()])
  })
  const addresses = kept(addressesKeptMs, clock, () => readClusterAddresses(cluster))
  return {
    isAllowed: (question) => cluster.access.isAllowed(question),
    async findNode(name) {
      const found = await (await known())?.findNode(name)
      if (found !== 'absent') return found
      // The Node may have been created after the list, and its existence decides.
      const node = await getOne(cluster.objects, { ...resources.nodes, name })
      if (node === undefined) return 'absent'
      ports.set(name, portOf(node))
      return nodeOf(node)
    },
    findNodesAt: async (address) => (await known())?.findNodesAt(address),
    readServedCertificate: (node) => readServed(node, ports.get(node.name) ?? kubeletPort),
    readClusterAddresses: addresses,
  }
}

/** Caches the result of `observe` for `keptMs`. Concurrent callers share one lookup. Failures are not cached. */
function kept<Result>(keptMs: number, clock: Clock, observe: () => Promise<Result>): () => Promise<Result> {
  let held: { result: Promise<Result>; until: number } | undefined
  return () => {
    const now = clock().getTime()
    if (held !== undefined && now < held.until) return held.result
    const result = observe()
    const mine = { result, until: now + keptMs }
    held = mine
    result.catch(() => {
      if (held === mine) held = undefined
    })
    return result
  }
}

/** Returns the facts of a Node that approval policies use. */
export function nodeOf({ metadata, status }: NodeObject): NodeFacts {
  return {
    name: metadata.name,
    addresses: status?.addresses ?? [],
    isControlPlane: Object.hasOwn(metadata.labels ?? {}, 'node-role.kubernetes.io/control-plane'),
  }
}

function portOf({ status }: NodeObject): number {
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : kubeletPort
}
