import { sleep, until } from './command.ts'
import {
  approveServingRequests,
  isTrue,
  type KubeNode,
  kubectl,
  type Lease,
  list,
  type Pod,
} from './kubectl.ts'
import { onNode } from './node.ts'
import type { ClusterSpec } from './spec.ts'

/** Where a flavour keeps its administrator's kubeconfig on a control plane. */
const adminKubeconfig = {
  kubeadm: '/etc/kubernetes/admin.conf',
  plain: '/etc/kubernetes/admin.kubeconfig',
} as const

/**
 * Waits until every node is Ready and serves with a certificate of its own; nudges a node that is slow to begin. The requests for
 * serving certificates are approved on the way, unless `approve` says that somebody else does.
 */
export async function waitForNodes(
  names: readonly string[],
  limitMs = 240_000,
  approve: () => Promise<void> = approveServingRequests,
): Promise<void> {
  const begun = performance.now()
  const nudged = new Set<string>()
  await until(
    `nodes ${names.join(' ')} are Ready`,
    limitMs,
    async () => {
      await approve()
      const nodes = await list<KubeNode>(['nodes'])
      const ready = new Set(
        nodes.filter(({ status }) => isTrue(status.conditions, 'Ready')).map(({ metadata }) => metadata.name),
      )
      for (const { metadata } of nodes) {
        // A new worker updates its CSINode before its Node exists, and tries again minutes later: a restart cures that.
        const { name } = metadata
        if (ready.has(name) || nudged.has(name) || performance.now() - begun < 8000 || !names.includes(name))
          continue
        nudged.add(name)
        await onNode(name, ['systemctl', 'restart', 'kubelet'], { mayFail: true })
      }
      return names.every((name) => ready.has(name))
    },
    500,
  )
  await until(`the kubelets of ${names.join(' ')} serve`, limitMs, async () => {
    await approve()
    const answers = await Promise.all(
      names.map((name) =>
        kubectl(['get', '--raw', `/api/v1/nodes/${name}/proxy/healthz`, '--request-timeout=3s'], {
          mayFail: true,
        }),
      ),
    )
    return answers.every(({ stdout }) => stdout === 'ok')
  })
}

/** Waits until every pod that should run is Ready; those that were started before `since` do not count. */
export async function waitForPods(since = new Date(0), limitMs = 360_000): Promise<void> {
  let waiting: string[] = []
  await until(
    'every pod is Ready',
    limitMs,
    async () => {
      const pods = (await list<Pod>(['pods', '-A'])).filter(({ status }) => status.phase !== 'Succeeded')
      waiting = pods.filter((pod) => !runsSince(pod, since)).map(({ metadata }) => metadata.name)
      if (waiting.length > 0) throw new Error(`waiting for ${waiting.join(' ')}`)
      return pods.length > 0
    },
    500,
  )
}

function runsSince(pod: Pod, since: Date): boolean {
  const containers = pod.status.containerStatuses ?? []
  return (
    isTrue(pod.status.conditions, 'Ready') &&
    containers.every(({ state }) => state.running !== undefined && new Date(state.running.startedAt) >= since)
  )
}

/**
 * Takes the leases of leaders that ended before `since` off them, as they would have done by themselves on a tidy stop:
 * their successors start at once and not 15 s later. A lease that has been renewed meanwhile is left alone.
 */
export async function releaseLeases(since: Date): Promise<void> {
  const leases = await list<Lease>(['leases', '-n', 'kube-system'])
  for (const { metadata, spec } of leases) {
    if (!['kube-controller-manager', 'kube-scheduler'].includes(metadata.name)) continue
    if (!spec.holderIdentity || new Date(spec.renewTime ?? 0) >= since) continue
    const patch = [
      { op: 'test', path: '/spec/holderIdentity', value: spec.holderIdentity },
      { op: 'replace', path: '/spec/holderIdentity', value: '' },
    ]
    const args = [
      '-n',
      'kube-system',
      'patch',
      'lease',
      metadata.name,
      '--type=json',
      '-p',
      JSON.stringify(patch),
    ]
    await kubectl(args, { mayFail: true })
  }
}

/** Waits until the leader of each control loop and every node has said since then that it is alive. */
export async function waitForLeases(nodes: readonly string[], since: Date, limitMs = 300_000): Promise<void> {
  const wanted = ['kube-controller-manager', 'kube-scheduler', ...nodes]
  await until(
    `${wanted.join(' ')} hold their leases`,
    limitMs,
    async () => {
      const leases = await list<Lease>(['leases', '-A'])
      const fresh = new Set(
        leases
          .filter(({ spec }) => new Date(spec.renewTime ?? 0) > since)
          .map(({ metadata }) => metadata.name),
      )
      return wanted.every((name) => fresh.has(name))
    },
    500,
  )
}

/** Waits until the API server of every control plane is ready; asked directly, not through the load balancer. */
export async function waitForApiServers(
  controlPlanes: readonly string[],
  flavour: ClusterSpec['flavour'],
  limitMs = 300_000,
): Promise<void> {
  for (const name of controlPlanes) {
    await until(`the API server of ${name} is ready`, limitMs, async () => {
      const admin = ['kubectl', '--kubeconfig', adminKubeconfig[flavour], '--server', `https://${name}:6443`]
      const answer = await onNode(name, [...admin, 'get', '--raw', '/readyz', '--request-timeout=2s'], {
        mayFail: true,
      })
      return answer.stdout === 'ok'
    })
  }
  await sleep(600) // the load balancer's next look
}
