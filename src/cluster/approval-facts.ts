import type { ApprovalFacts, NodeFacts } from '../csr/approval/facts.ts'
import { factsOfNodes } from '../csr/approval/node-list.ts'
import type { Clock } from '../system/clock.ts'
import type { Cluster } from './cluster.ts'
import { readClusterAddresses } from './cluster-addresses.ts'
import { statusIn } from './failures.ts'
import { type NodeObject, resources } from './kinds.ts'
import { getOne, listEach } from './readable.ts'

// One list of Nodes serves thousands of requests. Within this time, an address that another Node just took counts as free.
const keptMs = 60_000

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
  const ports = new WeakMap<NodeFacts, number>()
  const known = kept(clock, () => listedNodes(cluster).catch(unlessForbidden))
  return {
    isAllowed: (question) => cluster.access.isAllowed(question),
    // The existence of the Node, its role and its addresses decide, so it is read for each request.
    async findNode(name) {
      const node = await getOne(cluster.objects, { ...resources.nodes, name }).catch(unlessForbidden)
      if (node === undefined) return 'absent'
      if (node === 'forbidden') return undefined
      const facts = nodeOf(node)
      ports.set(facts, portOf(node))
      return facts
    },
    async findNodesAt(address) {
      const nodes = await known()
      return nodes === 'forbidden' ? undefined : nodes.findNodesAt(address)
    },
    readServedCertificate: (node) => readServed(node, ports.get(node) ?? kubeletPort),
    readClusterAddresses: kept(clock, () => readClusterAddresses(cluster)),
  }
}

async function listedNodes({ objects }: Cluster): Promise<ApprovalFacts> {
  // All Nodes of a large cluster at once would need hundreds of MB.
  const nodes = new Map<string, NodeFacts>()
  for await (const node of listEach(objects, resources.nodes)) nodes.set(node.metadata.name, nodeOf(node))
  return factsOfNodes([...nodes.values()])
}

function unlessForbidden(error: unknown): 'forbidden' {
  if (statusIn(error) === 403) return 'forbidden'
  throw error
}

/** Caches the result of `observe` for a minute. Concurrent callers share one lookup. Failures are not cached. */
export function kept<Result>(clock: Clock, observe: () => Promise<Result>): () => Promise<Result> {
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
