import { asBuffer } from './der.ts'
import type { IpRange } from './general-names.ts'
import { formatIp, isMappedIpv4, prefixLength } from './ip.ts'
import { parseMailbox } from './syntax.ts'

// Subtrees of name constraints (RFC 5280 section 4.2.1.10) by kind. Each returns the constraint that contains a name.

/**
 * Sorted constraints without those inside another one, so that one search finds the only one that can contain a name. A
 * certificate with thousands of names under a CA with thousands of constraints is evaluated quickly.
 */
class Nearest<Constraint> {
  private readonly keys: string[]
  readonly constraints: readonly Constraint[]

  constructor(
    entries: { key: string; order: string; constraint: Constraint }[],
    holds: (a: Constraint, b: Constraint) => boolean,
  ) {
    const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
    entries.sort((a, b) => compare(a.key, b.key) || compare(a.order, b.order))
    const kept: typeof entries = []
    for (const entry of entries) {
      const last = kept.at(-1)
      if (last === undefined || !holds(last.constraint, entry.constraint)) kept.push(entry)
    }
    this.keys = kept.map(({ key }) => key)
    this.constraints = kept.map(({ constraint }) => constraint)
  }

  /** Returns the constraint with this key, or the last one before it, or the first of all. */
  to(key: string): { constraint: Constraint; isExact: boolean } | undefined {
    let low = 0
    let high = this.keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      // biome-ignore lint/style/noNonNullAssertion: middle < high; searched for every name
      if (this.keys[middle]! < key) low = middle + 1
      else high = middle
    }
    const isExact = this.keys[low] === key
    const constraint = this.constraints[isExact ? low : Math.max(0, low - 1)]
    return constraint === undefined ? undefined : { constraint, isExact }
  }
}

/** Domains: "example.com" contains itself and all subdomains, ".example.com" only the subdomains, the empty one everything. */
export class DomainSubtrees {
  private readonly holdsAll: boolean
  private readonly nearest: Nearest<string>
  /** For excluded subtrees, by the part after the first label: "*.example.com" is not allowed if "a.example.com" is excluded. */
  private readonly bySuffix = new Map<string, string>()

  constructor(domains: readonly string[], side: 'permitted' | 'excluded') {
    this.holdsAll = domains.includes('')
    const entries = domains.map((constraint) => ({ key: reversedLabels(constraint), order: '', constraint }))
    this.nearest = new Nearest(entries, isSuffix)
    if (side === 'permitted') return
    for (const domain of this.nearest.constraints) {
      const suffix = behindFirstLabel(domain)
      if (suffix !== '') this.bySuffix.set(suffix, domain.toLowerCase())
    }
  }

  find(name: string): string | undefined {
    if (this.holdsAll) return ''
    const found = this.nearest.to(reversedLabels(name))
    if (found !== undefined && (found.isExact || isSuffix(found.constraint, name))) return found.constraint
    return name.startsWith('*') ? this.bySuffix.get(behindFirstLabel(name)) : undefined
  }
}

// The last character first, and the dot sorted before every other one, so that subdomains follow their domain directly.
function reversedLabels(domain: string): string {
  let reversed = ''
  for (let i = domain.length - 1; i >= 0; i--) reversed += domain[i] === '.' ? '\0' : domain[i]
  return reversed.toLowerCase()
}

function isSuffix(constraint: string, name: string): boolean {
  const rest = name.length - constraint.length
  if (rest < 0 || name.slice(rest).toLowerCase() !== constraint.toLowerCase()) return false
  return rest === 0 || constraint.startsWith('.') || name[rest - 1] === '.'
}

function behindFirstLabel(domain: string): string {
  const dot = domain.indexOf('.')
  return dot < 0 ? '' : domain.slice(dot).toLowerCase()
}

/** Whole mailboxes, and domains as above for the hosts of all others. */
export class MailboxSubtrees {
  private readonly exact = new Set<string>()
  private readonly domains: DomainSubtrees | undefined

  constructor(constraints: readonly string[], side: 'permitted' | 'excluded') {
    const domains: string[] = []
    for (const constraint of constraints) {
      const mailbox = constraint.includes('@') ? parseMailbox(constraint) : undefined
      if (mailbox !== undefined) this.exact.add(`${mailbox.local}@${mailbox.domain.toLowerCase()}`)
      else domains.push(constraint)
    }
    this.domains = domains.length > 0 ? new DomainSubtrees(domains, side) : undefined
  }

  find({ local, domain }: { local: string; domain: string }): string | undefined {
    const text = `${local}@${domain}`
    return this.exact.has(text) ? text : this.domains?.find(domain)
  }
}

/** Ranges of addresses, IPv4 and IPv6 separately. */
export class AddressSubtrees {
  private readonly byLength = new Map<number, Nearest<IpRange>>()

  constructor(ranges: readonly IpRange[]) {
    for (const length of [4, 16]) {
      const entries = ranges
        .filter(({ address }) => address.length === length)
        .map((constraint) => ({
          key: textOf(constraint.address),
          order: textOf(constraint.mask),
          constraint,
        }))
      if (entries.length > 0) this.byLength.set(length, new Nearest(entries, holdsRange))
    }
  }

  find(address: Uint8Array): string | undefined {
    const found = this.byLength.get(address.length)?.to(textOf(address))
    if (found === undefined) return undefined
    return found.isExact || holdsAddress(found.constraint, address) ? rangeText(found.constraint) : undefined
  }
}

function textOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

function holdsRange(outer: IpRange, inner: IpRange): boolean {
  const mask = asBuffer(inner.mask)
  const last = inner.address.map((byte, i) => byte | ~mask.readUInt8(i))
  return holdsAddress(outer, inner.address) && holdsAddress(outer, last)
}

// As in Go, an IPv4-mapped address in 16 bytes is compared as an IPv4 address.
function holdsAddress({ address, mask }: IpRange, asked: Uint8Array): boolean {
  const network = asIpv4(address)
  const inside = asIpv4(asked)
  if (network.length !== inside.length) return false
  const significant = asBuffer(mask.subarray(mask.length - network.length))
  const other = asBuffer(inside)
  return network.every((byte, i) => ((byte ^ other.readUInt8(i)) & significant.readUInt8(i)) === 0)
}

/** "10.0.0.0/8", also when it is encoded in 32 bytes. */
function rangeText({ address, mask }: IpRange): string {
  const network = asIpv4(address)
  return `${formatIp(network)}/${prefixLength(mask.subarray(mask.length - network.length))}`
}

function asIpv4(address: Uint8Array): Uint8Array {
  return isMappedIpv4(address) ? address.subarray(12) : address
}
