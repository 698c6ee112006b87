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

/** Path of the administrator's kubeconfig on a control plane, by flavour. */
const adminKubeconfig = {
  kubeadm: '/etc/kubernetes/admin.conf',
  plain: '/etc/kubernetes/admin.kubeconfig',
} as const

/**
 * Waits until every node is Ready and serves its own certificate. Restarts the kubelet of a slow node. Approves the requests for
 * serving certificates, unless `approve` leaves that to another approver.
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
        // If a new worker updates its CSINode before its Node exists, it retries only minutes later. A restart avoids the wait.
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

/** Waits until every pod that should run is Ready. Pods started before `since` do not count. */
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
 * Releases the Leases of leaders that ended before `since`, as they do in a clean shutdown. Their successors then start at once
 * instead of 15 s later. A Lease renewed in the meantime is skipped.
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

/** Waits until the leader of each control loop and every node has renewed its Lease since then. */
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

/** Waits until the API server of every control plane is ready, checked directly and not through the load balancer. */
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
