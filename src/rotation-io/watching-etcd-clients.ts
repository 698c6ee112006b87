import { setTimeout as pause } from 'node:timers/promises'
import { resources } from '../cluster/kinds.ts'
import { listAll } from '../cluster/readable.ts'
import { commandLine } from '../errors/command-line.ts'
import { isLoopback } from '../errors/host-port.ts'
import { wordsOf } from '../errors/kcert-error.ts'
import type { ProbeSubject } from '../rotation/action.ts'
import type { ProbeAnswer } from '../rotation/ports.ts'
import { nodeOfProcess } from '../rotation/snapshot.ts'
import type { ControlPlanes } from '../site/control-planes.ts'
import { listeningOf } from '../site/listening.ts'
import { textOf } from '../site/node-files.ts'
import type { Site } from '../site/site.ts'
import { remoteAddresses } from '../site/tcp-connections.ts'

const pollMs = 2_000

/** A connection has about 150 bytes. */
const largestBytes = 8 * 1024 * 1024

interface WatchingOptions {
  readonly site: Pick<Site, 'clock' | 'objects' | 'inventory'>
  readonly planes: Pick<ControlPlanes, 'node' | 'names' | 'runningEtcd'>
  /** Waits for this number of milliseconds (default real time). */
  readonly sleep?: (ms: number) => Promise<unknown>
}

/**
 * Watches the connections to a member of etcd for `forMs`. Connections from control-plane nodes and from the machines of external etcd
 * are expected; programs there use the files that kcert reissues. Others are clients that Kubernetes does not know. A table that cannot be read fails the probe.
 */
export async function watchEtcdClients(
  { at, forMs, waived }: Extract<ProbeSubject, { kind: 'etcd-clients' }>,
  { site, planes, sleep = pause }: WatchingOptions,
): Promise<ProbeAnswer> {
  try {
    const name = nodeOfProcess(at)
    const node = planes.node(name)
    const expected = await knownAddresses(site, planes)
    const found = new Set<string>()
    const endMs = site.clock().getTime() + forMs
    for (;;) {
      const running = await planes.runningEtcd(name)
      if (running === undefined) return { ok: false, detail: `${at} is not running` }
      const { port } = listeningOf(running.argv)
      const paths = ['tcp', 'tcp6'].map((name) => `/proc/${running.pid}/net/${name}`)
      const [ipv4, ipv6] = await node.readFiles(paths, { largestBytes })
      // Without IPv6 there is no second table.
      if (ipv4?.found !== 'file') return { ok: false, detail: `${at}: ${paths[0]} cannot be read` }
      const tables = [ipv4, ipv6].flatMap((file) => (file?.found === 'file' ? [textOf(file)] : []))
      for (const table of tables) for (const address of remoteAddresses(table, port)) found.add(address)
      if (site.clock().getTime() >= endMs) break
      await sleep(pollMs)
    }
    return verdictOf(at, [...found], expected, waived)
  } catch (error) {
    return { ok: false, detail: wordsOf(error) }
  }
}

function verdictOf(
  at: string,
  found: readonly string[],
  expected: ReadonlySet<string>,
  waived: readonly string[],
): ProbeAnswer {
  const others = found.filter((address) => !isLoopback(address) && !expected.has(address))
  const unknown = others.filter((address) => !waived.includes(address))
  if (unknown.length === 0)
    return { ok: true, detail: `${at} has ${found.length} clients, ${others.length} of them accepted` }
  const waive = unknown.map((address) => commandLine`--waive ${address}`).join(' ')
  return {
    ok: false,
    detail: `${at} has clients that are not control-plane nodes: ${unknown.join(', ')}. In phase 3, members refuse their certificates of the old CA. Give them certificates of the new CA after phase 1 and before phase 3, or stop them. Without --etcd-clients unknown, they must also present the cross-signed CA certificate; then accept them with ${waive}`,
  }
}

async function knownAddresses(
  { objects, inventory: { etcd = [] } }: Pick<Site, 'objects' | 'inventory'>,
  planes: Pick<ControlPlanes, 'names'>,
): Promise<ReadonlySet<string>> {
  const [nodes, names] = await Promise.all([listAll(objects, resources.nodes), planes.names()])
  return new Set([
    ...nodes
      .filter(({ metadata }) => names.includes(metadata.name))
      .flatMap(({ status }) => status?.addresses?.map(({ address }) => address) ?? []),
    ...etcd.flatMap(({ addresses }) => addresses),
  ])
}
