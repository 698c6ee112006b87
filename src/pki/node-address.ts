import { parseIp } from '../x509/ip.ts'
import { isNumericName } from '../x509/plain-names.ts'

// A kubelet writes the addresses of its Node, and the API server does not check their format. Who holds the credentials of one
// node so chooses texts that reach commands and connections on the machine of an operator.

interface NodeAddress {
  readonly type?: string
  readonly address?: string
}

const addressTypes = ['InternalIP', 'ExternalIP']
// As kubeadm orders them for API servers (--kubelet-preferred-address-types).
const dialedTypes = [...addressTypes, 'Hostname']
const nameTypes = ['Hostname', 'InternalDNS', 'ExternalDNS']
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i

/**
 * Returns the addresses of a Node's status of these types, in their order, that are what their type says: IP addresses, and
 * names (RFC 1123) for Hostname, InternalDNS and ExternalDNS alone. All others are left out.
 */
export function nodeAddresses(
  addresses: readonly NodeAddress[] | undefined,
  types: readonly string[] = addressTypes,
): string[] {
  return types.flatMap((wanted) =>
    (addresses ?? []).flatMap(({ type, address }) => {
      if (type !== wanted || typeof address !== 'string') return []
      // Resolvers read `127.1` and `0x7f000001` as addresses.
      const isHostName = nameTypes.includes(wanted) && isName(address) && !isNumericName(address)
      return isHostName || parseIp(address) !== undefined ? [address] : []
    }),
  )
}

/** Returns where a Node is dialed: its InternalIP, ExternalIP or Hostname, the first that is valid. */
export function nodeHost(addresses: readonly NodeAddress[] | undefined): string | undefined {
  return nodeAddresses(addresses, dialedTypes)[0]
}

/** True for an IP address or a host name: what may stand in an argument vector in the place of {node} or {address}. */
export function isHost(text: string): boolean {
  return parseIp(text) !== undefined || isName(text)
}

function isName(text: string): boolean {
  return text.length <= 253 && text.split('.').every((one) => label.test(one))
}
