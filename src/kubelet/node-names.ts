import { formatIp, parseIp } from '../x509/ip.ts'

/** An address of a Node's status. */
export interface NodeAddress {
  readonly type: string
  readonly address: string
}

/**
 * Returns the names that a kubelet requests for its serving certificate: its Node's addresses, sorted. Undefined while the Node
 * has no IP address, because the kubelet then waits (k8s.io/kubernetes pkg/kubelet/certificate/kubelet.go).
 */
export function servingNames(
  addresses: readonly NodeAddress[],
): { readonly dns: readonly string[]; readonly ip: readonly string[] } | undefined {
  const dns = new Set<string>()
  const ip = new Set<string>()
  for (const { type, address } of addresses) {
    const bytes = parseIp(address)
    const isName = ['Hostname', 'InternalDNS', 'ExternalDNS'].includes(type)
    const isAddress = ['Hostname', 'InternalIP', 'ExternalIP'].includes(type)
    if (bytes !== undefined && isAddress) ip.add(formatIp(bytes))
    else if (isName && address !== '') dns.add(address)
  }
  return ip.size === 0 ? undefined : { dns: [...dns].sort(), ip: [...ip].sort() }
}
