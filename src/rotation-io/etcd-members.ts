import { wordsOf } from '../errors/kcert-error.ts'
import { type Flags, flagsOf } from '../pki/component-flags.ts'
import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import type { EtcdMemberSnapshot } from '../rotation/snapshot.ts'
import { ownProcess } from '../site/definitions.ts'
import { etcdStateIn } from '../site/etcd-metrics.ts'
import { etcdChain } from '../site/handshakes.ts'
import { healthStatus } from '../site/health.ts'
import { readHttp } from '../site/http-call.ts'
import { healthOf } from '../site/listening.ts'
import type { Site } from '../site/site.ts'

const timeoutMs = 5_000

/** Returns the member of etcd on a node, as its process, its metrics and its TLS ports show it. `flags`: those of its manifest. */
export async function etcdMember(site: Site, node: NodeAccess, flags: Flags): Promise<EtcdMemberSnapshot> {
  const { name } = node
  const about = { id: `${name}/etcd`, node: name, flags }
  const running = ownProcess(await node.processes(['etcd'], { timeoutMs: 15_000 }), flags)
  if (running === undefined) return { ...about, served: { client: [], peer: [] } }
  const [startedAtMs, status, state, client, peer] = await Promise.all([
    site.startedAtMs(name, running),
    healthStatus(site, name, running),
    stateOf(site, name, running),
    etcdChain(site, name, running, 'client'),
    etcdChain(site, name, running, 'peer'),
  ])
  const process = { startedAtMs, flags: flagsOf(running.argv), isHealthy: status === 200 }
  return { ...about, process, ...state, served: { client, peer } }
}

async function stateOf(
  site: Site,
  node: string,
  running: ProcessFacts,
): Promise<Pick<EtcdMemberSnapshot, 'state' | 'unread'>> {
  const { host, port, isTls } = healthOf(running)
  if (isTls)
    return {
      unread:
        'serves its metrics only to clients with a certificate; set --listen-metrics-urls=http://127.0.0.1:2381, as kubeadm does',
    }
  try {
    const stream = site.dial(node, host, port)
    const { status, body } = await readHttp({ stream, path: '/metrics', timeoutMs })
    return status === 200 ? { state: etcdStateIn(body) } : { unread: `answers ${status} for /metrics` }
  } catch (error) {
    return { unread: wordsOf(error) }
  }
}
