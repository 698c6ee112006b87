import type { Certificate } from './certificate.ts'
import type { GeneralSubtrees, IpRange } from './general-names.ts'
import { formatIp, parseIp, prefixLength } from './ip.ts'
import { isValidDomain, parseMailbox } from './syntax.ts'
import { uriHost } from './uri-host.ts'

// RFC 5280 section 4.2.1.10 as Go 1.26 applies it: DNS names, addresses, mailboxes and URIs of every certificate below the
// one that constrains, whether self-issued or not. Directory names are not compared: a critical constraint of theirs makes
// the certificate unusable, any other is passed over.

const oidSubjectAltName = '2.5.29.17'

type NameKind = 'DNS name' | 'IP address' | 'email address' | 'URI'

/** A name that a CA above it does not allow. */
export interface ConstraintViolation {
  /** Whose name it is. */
  readonly certificate: Certificate
  /** Whose constraint it is; absent when the name cannot be compared with any. */
  readonly constrainedBy?: Certificate
  readonly kind: NameKind
  readonly name: string
  /** The excluded subtree that holds the name; absent when no permitted one does. */
  readonly excludedBy?: string
  /** Why the name cannot be compared at all. */
  readonly unusable?: 'not-a-name' | 'no-host' | 'bad-port' | 'address'
}

/** Returns the first name of a chain (leaf first) that a certificate above it forbids, in the order in which Go looks. */
export function findConstraintViolation(chain: readonly Certificate[]): ConstraintViolation | undefined {
  const constraints = chain.map(constraintsOf)
  for (const [depth, certificate] of chain.entries()) {
    if (certificate.findExtension(oidSubjectAltName) === undefined) continue
    const above = constraints.slice(depth + 1).filter((set) => set !== undefined)
    if (above.length === 0) return undefined
    const names = namesOf(certificate)
    if ('unusable' in names) return { certificate, ...names }
    for (const set of above) {
      const violation = violationOf(names, set)
      if (violation !== undefined) return { certificate, constrainedBy: set.of, ...violation }
    }
  }
  return undefined
}

interface ConstraintSet {
  readonly of: Certificate
  readonly permitted: Subtrees
  readonly excluded: Subtrees
}

/** A subtree is found by the octets or labels of the name; absent when there is no constraint of that kind. */
interface Subtrees {
  readonly dns: DomainSubtrees | undefined
  readonly ip: AddressSubtrees | undefined
  readonly email: MailboxSubtrees | undefined
  readonly uri: DomainSubtrees | undefined
}

// The same few CAs stand above every leaf of a cluster: their constraints are sorted once.
const sortedConstraints = new WeakMap<Certificate, ConstraintSet>()

function constraintsOf(certificate: Certificate): ConstraintSet | undefined {
  const { nameConstraints } = certificate
  if (nameConstraints === undefined) return undefined
  const known = sortedConstraints.get(certificate)
  if (known !== undefined) return known
  const set = {
    of: certificate,
    permitted: subtreesOf(nameConstraints.permitted, 'permitted'),
    excluded: subtreesOf(nameConstraints.excluded, 'excluded'),
  }
  sortedConstraints.set(certificate, set)
  return set
}

function subtreesOf({ dns, ip, email, uri }: GeneralSubtrees, side: 'permitted' | 'excluded'): Subtrees {
  return {
    dns: dns.length > 0 ? new DomainSubtrees(dns, side) : undefined,
    ip: ip.length > 0 ? new AddressSubtrees(ip) : undefined,
    email: email.length > 0 ? new MailboxSubtrees(email, side) : undefined,
    uri: uri.length > 0 ? new DomainSubtrees(uri, side) : undefined,
  }
}

/** One kind of name in the form in which subtrees are asked. */
interface Names {
  readonly addresses: readonly Uint8Array[]
  readonly dns: readonly string[]
  readonly uris: readonly { readonly text: string; readonly host: string }[]
  readonly mailboxes: readonly { readonly local: string; readonly domain: string }[]
}

type Unusable = Pick<ConstraintViolation, 'kind' | 'name'> & Required<Pick<ConstraintViolation, 'unusable'>>

function namesOf({ subjectAltNames }: Certificate): Names | Unusable {
  const { dns, ipBytes, email, uri } = subjectAltNames
  const uris = uri.map(hostOfUri)
  const unusableUri = uris.find((one) => 'unusable' in one)
  if (unusableUri !== undefined) return unusableUri
  const mailboxes = email.map((text) => {
    const mailbox = parseMailbox(text)
    return mailbox && { local: mailbox.local, domain: mailbox.domain.toLowerCase() }
  })
  const unusableMailbox = mailboxes.indexOf(undefined)
  if (unusableMailbox >= 0) {
    return { kind: 'email address', name: email[unusableMailbox]!, unusable: 'not-a-name' }
  }
  return {
    addresses: ipBytes,
    dns,
    uris: uris.filter((one) => 'host' in one),
    mailboxes: mailboxes.filter((mailbox) => mailbox !== undefined),
  }
}

function hostOfUri(text: string): { text: string; host: string } | Unusable {
  const unusable = (reason: NonNullable<ConstraintViolation['unusable']>): Unusable => {
    return { kind: 'URI', name: text, unusable: reason }
  }
  const authority = uriHost(text).toLowerCase()
  if (authority === '') return unusable('no-host')
  // A port after an address in brackets, or after a name: what is constrained is the host alone.
  const hasPort = authority.includes(':') && !authority.endsWith(']')
  const host = hasPort ? withoutPort(uriHost(text)) : authority
  if (host === undefined) return unusable('bad-port')
  const isLiteral = host.startsWith('[') && host.endsWith(']')
  return isLiteral || isAddress(host) ? unusable('address') : { text, host }
}

/** Undefined where the colon is not the only one. Keeps the case of its letters, as Go does; subtrees do not mind. */
function withoutPort(host: string): string | undefined {
  const colon = host.lastIndexOf(':')
  if (host.startsWith('[')) return host.indexOf(']') === colon - 1 ? host.slice(1, colon - 1) : undefined
  const name = host.slice(0, colon)
  return name.includes(':') || /[[\]]/.test(host) ? undefined : name
}

/** With or without a zone behind "%". */
function isAddress(host: string): boolean {
  const [address = '', ...zone] = host.split('%')
  const isZoned = zone.length > 0
  return parseIp(address) !== undefined && (!isZoned || (address.includes(':') && zone.join('%') !== ''))
}

function violationOf(
  names: Names,
  { permitted, excluded }: ConstraintSet,
): Omit<ConstraintViolation, 'certificate' | 'constrainedBy'> | undefined {
  const check = <Name>(
    kind: NameKind,
    list: readonly Name[],
    inside: { find(name: Name): string | undefined } | undefined,
    outside: { find(name: Name): string | undefined } | undefined,
    text: (name: Name) => string,
    isWellFormed: (name: Name) => boolean,
  ): Omit<ConstraintViolation, 'certificate'> | undefined => {
    for (const name of list) {
      if (!isWellFormed(name)) return { kind, name: text(name), unusable: 'not-a-name' }
      if (inside !== undefined && inside.find(name) === undefined) return { kind, name: text(name) }
      const excludedBy = outside?.find(name)
      if (excludedBy !== undefined) return { kind, name: text(name), excludedBy }
    }
    return undefined
  }
  return (
    check('IP address', names.addresses, permitted.ip, excluded.ip, formatIp, () => true) ??
    check('DNS name', names.dns, permitted.dns, excluded.dns, String, (name) => isValidDomain(name, false)) ??
    check(
      'URI',
      names.uris,
      findBy(permitted.uri, ({ host }) => host),
      findBy(excluded.uri, ({ host }) => host),
      ({ text }) => text,
      ({ host }) => isValidDomain(host, false),
    ) ??
    check(
      'email address',
      names.mailboxes,
      permitted.email,
      excluded.email,
      ({ local, domain }) => `${local}@${domain}`,
      ({ domain }) => isValidDomain(domain, false),
    )
  )
}

function findBy<Name>(
  subtrees: DomainSubtrees | undefined,
  host: (name: Name) => string,
): { find(name: Name): string | undefined } | undefined {
  return subtrees && { find: (name) => subtrees.find(host(name)) }
}

/**
 * Constraints in order, those inside of another one left out, so that one search finds the only one that can hold a name:
 * a certificate with thousands of names under a CA with thousands of constraints is judged in an instant.
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
    const kept = entries.slice(0, 1)
    for (const entry of entries.slice(1)) {
      if (!holds(kept.at(-1)!.constraint, entry.constraint)) kept.push(entry)
    }
    this.keys = kept.map(({ key }) => key)
    this.constraints = kept.map(({ constraint }) => constraint)
  }

  /** The constraint of this very key, or the last one before it, or the first of all. */
  to(key: string): { constraint: Constraint; isExact: boolean } | undefined {
    let low = 0
    let high = this.keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.keys[middle]! < key) low = middle + 1
      else high = middle
    }
    if (this.keys[low] === key) return { constraint: this.constraints[low]!, isExact: true }
    const constraint = this.constraints[Math.max(0, low - 1)]
    return constraint === undefined ? undefined : { constraint, isExact: false }
  }
}

/** Domains: "example.com" holds itself and all below, ".example.com" all below only, the empty one everything. */
class DomainSubtrees {
  private readonly holdsAll: boolean
  private readonly nearest: Nearest<string>
  /** Of excluded ones, by what follows the first label: "*.example.com" may not be used where "a.example.com" may not. */
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

// The last character first, and the dot before every other one, so that what is below a domain follows it at once.
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

class MailboxSubtrees {
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

class AddressSubtrees {
  private readonly byLength = new Map<number, Nearest<IpRange>>()

  constructor(ranges: readonly IpRange[]) {
    for (const length of [4, 16]) {
      const entries = ranges
        .filter(({ address }) => address.length === length)
        .map((constraint) => ({
          key: octets(constraint.address),
          order: octets(constraint.mask),
          constraint,
        }))
      if (entries.length > 0) this.byLength.set(length, new Nearest(entries, holdsRange))
    }
  }

  find(address: Uint8Array): string | undefined {
    const found = this.byLength.get(address.length)?.to(octets(address))
    if (found === undefined) return undefined
    return found.isExact || holdsAddress(found.constraint, address) ? rangeText(found.constraint) : undefined
  }
}

function octets(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

function holdsRange(outer: IpRange, inner: IpRange): boolean {
  const last = inner.address.map((octet, i) => octet | (~inner.mask[i]! & 0xff))
  return holdsAddress(outer, inner.address) && holdsAddress(outer, last)
}

// As Go does, an IPv4 address written in 16 octets is compared as the IPv4 address that it is.
function holdsAddress({ address, mask }: IpRange, asked: Uint8Array): boolean {
  const network = asIpv4(address)
  const inside = asIpv4(asked)
  if (network.length !== inside.length) return false
  const significant = mask.subarray(mask.length - network.length)
  return network.every((octet, i) => (octet & significant[i]!) === (inside[i]! & significant[i]!))
}

/** "10.0.0.0/8", also where it is written in 32 octets. */
function rangeText({ address, mask }: IpRange): string {
  const network = asIpv4(address)
  return `${formatIp(network)}/${prefixLength(mask.subarray(mask.length - network.length))}`
}

function asIpv4(address: Uint8Array): Uint8Array {
  if (address.length === 4) return address
  const isMapped =
    address.subarray(0, 10).every((octet) => octet === 0) && address[10] === 0xff && address[11] === 0xff
  return isMapped ? address.subarray(12) : address
}
