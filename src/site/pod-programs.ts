import type { NodeAccess, PodProcess } from '../pki/node-access.ts'
import { whyReadsOnce } from '../rotation/capabilities.ts'

// Searching a program takes a node one or two seconds. Only programs that would otherwise need a restart are searched, each once.

const call = { timeoutMs: 120_000 }

/** Younger processes may be short-lived children of a container: a probe, or iptables under kube-proxy. */
const lastingMs = 60_000

/** The containers of a pod that have a CA file, as they were started. */
export interface RunningClient {
  readonly uid: string
  readonly startedAtMs: number
  /** Their IDs; undefined if the API server does not report all of them. */
  readonly containers: readonly string[] | undefined
  /** The Kubernetes minor version of the image. */
  readonly minor?: number
}

/** Whether a pod's processes reload a CA file; `why` is the reason to assume that they do not. */
export type Rereading = { readonly why?: string } | 'unread'

export class PodPrograms {
  private readonly known = new Map<string, Rereading>()

  /** Returns the results by `keyOf`. After a failed read, a container is not read again until it restarts. */
  async read(node: NodeAccess, clients: readonly RunningClient[]): Promise<ReadonlyMap<string, Rereading>> {
    const asked = clients.filter((client) => !this.known.has(keyOf(client)))
    if (asked.length > 0) {
      const uids = [...new Set(asked.map(({ uid }) => uid))]
      const found = await node.podProcesses(uids, call).catch(() => [])
      const byPod = Map.groupBy(found, ({ podUid }) => podUid)
      for (const client of asked)
        this.known.set(keyOf(client), rereadingOf(client, byPod.get(client.uid) ?? []))
    }
    return this.known
  }
}

export function keyOf({ uid, startedAtMs, containers = [] }: RunningClient): string {
  return `${uid} ${startedAtMs} ${containers.toSorted().join()}`
}

/** All long-running processes of each container must reload the file. */
function rereadingOf({ containers, minor }: RunningClient, processes: readonly PodProcess[]): Rereading {
  if (containers === undefined || containers.length === 0) return 'unread'
  const lasting = processes.filter(({ isFirst, ageMs }) => isFirst || ageMs >= lastingMs)
  const reasons: string[] = []
  for (const container of containers) {
    const its = lasting.filter((one) => one.container === container)
    if (its.length === 0) return 'unread'
    for (const { build, settings } of its) {
      if (build === undefined || settings === undefined) return 'unread'
      const why = whyReadsOnce({ build, settings }, minor)
      if (why !== undefined) reasons.push(why)
    }
  }
  return reasons[0] === undefined ? {} : { why: reasons[0] }
}
