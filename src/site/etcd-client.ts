import { clientVerdict } from '../probe/client-verdict.ts'
import type { ClientVerdict } from '../probe/report.ts'
import { type ClientPair, observe, type ProbeTarget } from './dialling.ts'
import type { Listening } from './listening.ts'
import type { Site } from './site.ts'

const timeoutMs = 5_000

/**
 * Returns whether a member of etcd accepts a client certificate, in a new connection from its node. With TLS 1.3 a rejection arrives
 * only after the handshake, as an alert; a closed connection without one proves nothing.
 */
export async function etcdClientVerdict(
  site: Pick<Site, 'dial'>,
  node: string,
  { host, port }: Listening,
  pair: ClientPair,
): Promise<Pick<ClientVerdict, 'verdict' | 'detail'>> {
  const target: ProbeTarget = {
    name: `etcd ${node}`,
    kind: 'etcd',
    host,
    port,
    from: node,
    serverName: host,
    expectedNames: [],
    anchors: [],
    isVerified: false,
    notes: [],
    client: { source: 'kcert', subject: '' },
    pair,
    dial: () => site.dial(node, host, port),
  }
  const observed = await observe(target, { timeoutMs })
  return 'reason' in observed
    ? { verdict: 'unknown', detail: observed.reason }
    : clientVerdict(target, observed)
}
