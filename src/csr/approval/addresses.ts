import { formatIp, parseIp } from '../../x509/ip.ts'

/** An IP address range such as "10.0.0.0/16" or "fd00::/64". */
export interface Cidr {
  readonly text: string
  readonly bytes: Uint8Array
  readonly prefix: number
}

/** Returns the range; undefined when the text is not a range. A single address is a range of one. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = '', prefixText, ...more] = text.split('/')
  const bytes = parseIp(address)
  if (bytes === undefined || more.length > 0) return undefined
  const longest = bytes.length * 8
  if (prefixText !== undefined && !/^(?:0|[1-9]\d{0,2})$/.test(prefixText)) return undefined
  const prefix = prefixText === undefined ? longest : Number(prefixText)
  return prefix <= longest ? { text, bytes, prefix } : undefined
}

/** Returns the range of a text that must be a valid range. */
export function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text)
  if (cidr === undefined) throw new TypeError(`${text} is not a range of addresses`)
  return cidr
}

/** True when the address is in the range. An IPv4 address is never in an IPv6 range, nor the reverse. */
export function isInCidr(address: Uint8Array, { bytes, prefix }: Cidr): boolean {
  const networkOf = (of: Uint8Array): Uint8Array => of.map((byte, at) => byte & maskAt(prefix, at))
  return Buffer.compare(networkOf(address), networkOf(bytes)) === 0
}

/** Returns the network bits of the prefix in the byte at this index. */
export function maskAt(prefix: number, at: number): number {
  return (0xff00 >> Math.min(8, Math.max(0, prefix - at * 8))) & 0xff
}

/** Returns the canonical spelling of an address, with IPv4-mapped IPv6 as IPv4; undefined when the text is not an address. */
export function canonicalIp(text: string): string | undefined {
  const bytes = parseIp(text)
  return bytes && formatIp(bytes)
}

// Addresses that do not identify a single node: RFC 1122 section 3.2.1.3 and RFC 4291 section 2.4; link-local addresses (the
// metadata services of clouds use them); and IPv6 addresses that embed an IPv4 address, which may be a Service's: IPv4-compatible
// (RFC 4291), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056) and Teredo (RFC 4380).
const specialRanges = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '255.255.255.255',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2001::/32',
  '2002::/16',
  'fe80::/10',
  'ff00::/8',
].map(cidrOf)

/**
 * True for loopback, unspecified, link-local, broadcast and multicast addresses, and for IPv6 addresses that embed an IPv4
 * address.
 */
export function isSpecialAddress(text: string): boolean {
  return isInRanges(text, specialRanges)
}

/** True when the address, in any spelling, is in one of the ranges. */
export function isInRanges(text: string, ranges: readonly Cidr[]): boolean {
  const canonical = canonicalIp(text)
  const bytes = canonical === undefined ? undefined : parseIp(canonical)
  return bytes !== undefined && ranges.some((range) => isInCidr(bytes, range))
}
