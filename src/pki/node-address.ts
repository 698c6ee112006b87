import { parseIp } from '../x509/ip.ts'
import { isNumericName } from '../x509/plain-names.ts'

// A kubelet writes the addresses of its Node, and the API server does not validate their format. An attacker with the credentials
// of one node can therefore choose texts that reach commands and connections on an operator's machine.

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
 * Returns the addresses of these types in a Node's status, in order, if they match their type: IP addresses, and RFC 1123 names
 * only for Hostname, InternalDNS and ExternalDNS. All others are omitted.
 */
export function nodeAddresses(
  addresses: readonly NodeAddress[] | undefined,
  types: readonly string[] = addressTypes,
): string[] {
  return types.flatMap((wanted) =>
    (addresses ?? []).flatMap(({ type, address }) => {
      if (type !== wanted || typeof address !== 'string') return []
      // Resolvers parse `127.1` and `0x7f000001` as IP addresses.
      const isHostName = nameTypes.includes(wanted) && isName(address) && !isNumericName(address)
      return isHostName || parseIp(address) !== undefined ? [address] : []
    }),
  )
}

/** Returns the addresses for commands that reach a node: those that are not this machine's. */
export function remoteAddresses(...given: Parameters<typeof nodeAddresses>): string[] {
  return nodeAddresses(...given).filter((address) => !isThisMachine(address))
}

/** Returns the address to dial a Node: the first valid one of its InternalIP, ExternalIP and Hostname. */
export function nodeHost(addresses: readonly NodeAddress[] | undefined): string | undefined {
  return nodeAddresses(addresses, dialedTypes)[0]
}

/** True for an IP address or a host name, which may replace {node} or {address} in an argument vector. */
export function isHost(text: string): boolean {
  return parseIp(text) !== undefined || isName(text)
}

/**
 * True for a host that is this machine wherever it is dialed: loopback and unspecified addresses, localhost, and names that resolvers
 * parse as one of these addresses (127.1). A kubelet accepts none of these addresses as its node's.
 */
export function isThisMachine(host: string): boolean {
  const bytes = parseIp(host)
  if (bytes === undefined) {
    const parsed = inetAton(host)
    // A Node may have the name "101", which is parsed as 0.0.0.101: not this machine, unlike 0.0.0.0.
    if (parsed !== undefined) return parsed === 0 || Math.floor(parsed / 2 ** 24) === 127
    return /(?:^|\.)localhost(?:\.localdomain)?$/i.test(host)
  }
  const isIpv4 = bytes.length === 4
  const isMapped = bytes.length === 16 && bytes.subarray(0, 10).every((byte) => byte === 0)
  const [first] = isIpv4 ? bytes : bytes.subarray(12)
  return (isIpv4 || isMapped) && (first === 0 || first === 127)
}

/** Returns the IPv4 address that inet_aton(3) parses: 1 to 4 parts, each decimal, octal (0177) or hexadecimal (0x7f). */
function inetAton(text: string): number | undefined {
  const parts = text
    .split('.')
    .map((part) => (/^(?:0x[\da-f]+|\d+)$/i.test(part) ? Number(part.replace(/^0(?=\d)/, '0o')) : Number.NaN))
  // The last part has the rest of the bytes.
  const limitOf = (at: number): number => (at === parts.length - 1 ? 256 ** (5 - parts.length) : 256)
  if (parts.length > 4 || !parts.every((part, at) => part < limitOf(at))) return undefined
  return parts.reduce((sum, part, at) => sum * limitOf(at) + part, 0)
}

function isName(text: string): boolean {
  return text.length <= 253 && text.split('.').every((one) => label.test(one))
}
