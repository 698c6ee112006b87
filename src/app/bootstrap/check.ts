import { bearerOf, joiningRights } from '../../bootstrap/joining-rights.ts'
import { bootstrapProgress, type NodeRequest, type ProgressFacts } from '../../bootstrap/progress.ts'
import type { BootstrapProgress } from '../../bootstrap/progress-report.ts'
import { kubeadmJoiners, type TokenFacts } from '../../bootstrap/token-secret.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { resources } from '../../cluster/kinds.ts'
import { leaseSeconds, longestLeaseSeconds } from '../../cluster/lease.ts'
import { getReadable } from '../../cluster/readable.ts'
import { kubeletClient } from '../../csr/signers.ts'
import type { Clock } from '../../system/clock.ts'
import { listRequests } from '../csr/list.ts'
import { rightsOf } from '../token/check.ts'
import { tokensOf } from './objects.ts'

/** Reads the cluster's facts about a joining node, and evaluates them. */
export async function checkBootstrap(
  cluster: Cluster,
  { node, tokenId }: { readonly node: string; readonly tokenId: string | undefined },
  clock: Clock,
): Promise<BootstrapProgress> {
  const now = clock()
  const [requests, tokens, nodeObject, lease, csiNode] = await Promise.all([
    requestsOf(cluster, node, now),
    tokensOf(cluster, now),
    nodeOf(cluster, node),
    leaseOf(cluster, node),
    csiNodeOf(cluster, node),
  ])
  const facts = tokens?.all.map((one) => one.facts)
  const asked = tokenId ?? idIn(requests, node)
  return bootstrapProgress({
    node,
    tokens: facts,
    tokenId,
    requests,
    rights: await rightsOfJoiningNode(cluster, bearerFor(facts, asked)),
    nodeObject,
    lease,
    csiNode,
    now,
  })
}

function idIn(requests: readonly NodeRequest[], node: string): string | undefined {
  const first = requests.find(({ username }) => username !== `system:node:${node}`)
  return /^system:bootstrap:(.+)$/.exec(first?.username ?? '')?.[1]
}

/** Returns the user to check: the bearer of the known token, or of a valid one, or of one as kubeadm would create it. */
function bearerFor(tokens: readonly TokenFacts[] | undefined, id: string | undefined) {
  const known = tokens?.find((one) => (id === undefined ? one.faults.length === 0 : one.id === id))
  return bearerOf(known?.id ?? id ?? 'xxxxxx', known?.groups ?? [kubeadmJoiners])
}

async function rightsOfJoiningNode(
  cluster: Cluster,
  bearer: ReturnType<typeof bearerOf>,
): Promise<ProgressFacts['rights']> {
  const found = await rightsOf(cluster, joiningRights(bearer))
  const allowed = (id: string) => found.find(({ right }) => right.id === id)?.allowed
  return {
    createsRequests: allowed('create-requests'),
    isAutoApproved: allowed('auto-approval'),
    renewsItself: allowed('renewal'),
  }
}

async function requestsOf(cluster: Cluster, node: string, now: Date): Promise<NodeRequest[]> {
  const { requests } = await listRequests(cluster.requests, { signer: kubeletClient, states: [] }, now)
  return requests
    .filter(({ request }) => request?.subject.commonName === `system:node:${node}`)
    .toSorted((a, b) => (b.creationTimestamp ?? '').localeCompare(a.creationTimestamp ?? ''))
    .map(({ name, username = '', state, conditions }) => {
      const message = conditions.find(({ type }) => type === 'Denied' || type === 'Failed')?.message
      return { name, username, state, ...(message === undefined ? {} : { message }) }
    })
}

async function nodeOf({ objects }: Cluster, name: string): Promise<ProgressFacts['nodeObject']> {
  const found = await getReadable(objects, { ...resources.nodes, name })
  if (found === undefined || found === 'absent') return found
  const ready = found.status?.conditions?.find(({ type }) => type === 'Ready')
  return {
    isReady: ready === undefined ? undefined : ready.status === 'True',
    ...(ready?.message === undefined ? {} : { message: ready.message }),
  }
}

async function leaseOf({ objects }: Cluster, name: string): Promise<ProgressFacts['lease']> {
  const found = await getReadable(objects, { ...resources.leases, namespace: 'kube-node-lease', name })
  if (found === undefined || found === 'absent') return found
  const { renewTime = '', leaseDurationSeconds } = found.spec ?? {}
  const durationSeconds = Math.min(leaseSeconds(leaseDurationSeconds, 40), longestLeaseSeconds)
  const renewedAt = new Date(renewTime)
  return Number.isNaN(renewedAt.getTime()) ? 'absent' : { renewedAt, durationSeconds }
}

async function csiNodeOf({ objects }: Cluster, name: string): Promise<ProgressFacts['csiNode']> {
  const found = await getReadable(objects, {
    group: 'storage.k8s.io',
    version: 'v1',
    resource: 'csinodes',
    name,
  })
  return found === undefined || found === 'absent' ? found : 'there'
}
