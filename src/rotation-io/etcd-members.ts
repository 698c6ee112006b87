import { withoutBrackets } from '../errors/host-port.ts'
import { wordsOf } from '../errors/kcert-error.ts'
import { flagsOf } from '../pki/component-flags.ts'
import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import type { ComponentSnapshot, EtcdMemberSnapshot } from '../rotation/snapshot.ts'
import { ownProcess, withOwnSettings } from '../site/definitions.ts'
import { etcdStateIn } from '../site/etcd-metrics.ts'
import { etcdChain } from '../site/handshakes.ts'
import { healthStatus } from '../site/health.ts'
import { callHttps, readHttp } from '../site/http-call.ts'
import { healthOf } from '../site/listening.ts'
import { textOf } from '../site/node-files.ts'
import { nodeNamed, type Site } from '../site/site.ts'
import type { EtcdDefinition } from './node-watch.ts'

const timeoutMs = 5_000

/** Returns the member of etcd on a node, as its process, its metrics and its TLS ports show it. */
export async function etcdMember(
  site: Site,
  node: NodeAccess,
  { runsAs, flags }: EtcdDefinition,
): Promise<EtcdMemberSnapshot> {
  const { name } = node
  const about = { id: `${name}/etcd`, node: name, runsAs, flags }
  const processes = await node.processes(['etcd'], { timeoutMs: 15_000 })
  const isUnit = runsAs === 'unit'
  // Restarts and probes find the process of a unit only if it is the single one.
  const found = ownProcess(processes, isUnit ? undefined : flags)
  const running = found && isUnit ? await withOwnSettings(node, found) : found
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

/**
 * Returns the ID of the member that an API server reaches at an endpoint, such as a load balancer; undefined if none answers. The
 * certificate of the server does not identify the member: another etcd on its node may use the same one.
 */
export async function memberIdAt(
  site: Pick<Site, 'node' | 'dial'>,
  { node, flags }: Pick<ComponentSnapshot, 'node' | 'flags'>,
  { protocol, hostname, port }: URL,
): Promise<string | undefined> {
  const paths = ['etcd-cafile', 'etcd-certfile', 'etcd-keyfile'].flatMap((flag) => flags[flag] ?? [])
  if (protocol !== 'https:' || paths.length < 3) return undefined
  try {
    const files = await nodeNamed(site, node).readFiles(paths, { timeoutMs: 15_000 })
    const [ca, certificate, key] = files.map((file) => (file.found === 'file' ? textOf(file) : undefined))
    if (ca === undefined || certificate === undefined || key === undefined) return undefined
    const name = withoutBrackets(hostname)
    const stream = site.dial(node, name, Number(port || 443))
    const trust = { ca, name }
    const call = { stream, path: '/metrics', client: { certificate, key }, trust, timeoutMs }
    const { status, body } = await callHttps(call)
    return status === 200 ? etcdStateIn(body).memberId : undefined
  } catch {
    return undefined
  }
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
