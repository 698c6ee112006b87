import { isLoopback, withoutBrackets } from '../../errors/host-port.ts'
import type { ComponentSnapshot, EtcdMemberSnapshot } from '../snapshot.ts'

// Which etcd an API server uses: kcert changes only the members that it finds, so an API server with another etcd would lose it.

interface Endpoint {
  readonly flag: 'etcd-servers' | 'etcd-servers-overrides'
  /** Null for one that is not a URL. */
  readonly url: URL | null
}

/** Returns the endpoints of an API server that do not belong to one of these members. */
export function otherEndpoints(
  { node, flags }: Pick<ComponentSnapshot, 'node' | 'flags'>,
  members: readonly EtcdMemberSnapshot[],
): readonly Endpoint[] {
  const { 'etcd-servers': servers = '', 'etcd-servers-overrides': overrides = '' } = flags
  // One resource with its own etcd: "/events#https://10.0.0.1:2379;https://10.0.0.2:2379".
  const overriding = overrides.replace(/[^,#]*#/g, '').replaceAll(';', ',')
  const all = [
    ...urlsIn(servers).map((url) => ({ flag: 'etcd-servers', url }) as const),
    ...(overriding === '' ? [] : urlsIn(overriding)).map(
      (url) => ({ flag: 'etcd-servers-overrides', url }) as const,
    ),
  ]
  return all.filter(({ url }) => url === null || !members.some((one) => isOfMember(url, one, node)))
}

/** Returns the key of an endpoint as API servers of a node reach it: a name may have another address on another node. */
export function endpointKey(node: string, url: URL): string {
  return `${node} ${url.host}`
}

/** Returns the URLs in the value of a flag; null for one that is not a URL. */
function urlsIn(list: string): readonly (URL | null)[] {
  return list.split(',').map((url) => URL.parse(url.trim()))
}

/** Returns true when an API server on `node` reaches this member with the URL. */
function isOfMember(url: URL, { node: its, flags, reachedAt }: EtcdMemberSnapshot, node: string): boolean {
  if (reachedAt?.includes(endpointKey(node, url))) return true
  const { 'listen-client-urls': listen = '', 'advertise-client-urls': advertised = '' } = flags
  const host = withoutBrackets(url.hostname)
  return [...urlsIn(listen), ...urlsIn(advertised)].some((one) => {
    if (one?.port !== url.port) return false
    const at = withoutBrackets(one.hostname)
    return isLoopback(host)
      ? its === node && (isLoopback(at) || at === '0.0.0.0' || at === '::')
      : at === host
  })
}
