import type { Certificate } from './certificate.ts'
import type { GeneralSubtrees } from './general-names.ts'
import { formatIp, parseIp } from './ip.ts'
import { oncePer } from './once-per.ts'
import { AddressSubtrees, DomainSubtrees, MailboxSubtrees } from './subtrees.ts'
import { isValidDomain, parseMailbox, uriHost } from './syntax.ts'

// RFC 5280 section 4.2.1.10 as Go 1.26 applies it: to DNS names, IP addresses, mailboxes and URIs of every certificate below the
// constraining one, self-issued or not. Directory names are not compared. A critical constraint on them makes the certificate
// unusable; a non-critical one is ignored.

const oidSubjectAltName = '2.5.29.17'

type NameKind = 'DNS name' | 'IP address' | 'email address' | 'URI'

/** A name that a CA above it does not permit. */
export interface ConstraintViolation {
  /** The certificate that contains the name. */
  readonly certificate: Certificate
  /** The certificate that contains the constraint. Absent when the name cannot be compared with any. */
  readonly constrainedBy?: Certificate
  readonly kind: NameKind
  readonly name: string
  /** The excluded subtree that contains the name. Absent when no permitted subtree contains it. */
  readonly excludedBy?: string
  /** Why the name cannot be compared. */
  readonly unusable?: 'not-a-name' | 'no-host' | 'bad-port' | 'address'
}

/** Returns the first name of a chain (leaf first) that a certificate above it forbids, in Go's order. */
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

/** Finds a subtree by the bytes or labels of the name. A member is absent when there is no constraint of that kind. */
interface Subtrees {
  readonly dns: DomainSubtrees | undefined
  readonly ip: AddressSubtrees | undefined
  readonly email: MailboxSubtrees | undefined
  readonly uri: DomainSubtrees | undefined
}

// The same few CAs issue every leaf of a cluster, so their constraints are sorted once.
const constraintsOf = oncePer((certificate: Certificate): ConstraintSet | undefined => {
  const { nameConstraints } = certificate
  return (
    nameConstraints && {
      of: certificate,
      permitted: subtreesOf(nameConstraints.permitted, 'permitted'),
      excluded: subtreesOf(nameConstraints.excluded, 'excluded'),
    }
  )
})

function subtreesOf({ dns, ip, email, uri }: GeneralSubtrees, side: 'permitted' | 'excluded'): Subtrees {
  return {
    dns: dns.length > 0 ? new DomainSubtrees(dns, side) : undefined,
    ip: ip.length > 0 ? new AddressSubtrees(ip) : undefined,
    email: email.length > 0 ? new MailboxSubtrees(email, side) : undefined,
    uri: uri.length > 0 ? new DomainSubtrees(uri, side) : undefined,
  }
}

/** Names of one kind, in the form in which subtrees match them. */
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
  const mailboxes: Names['mailboxes'][number][] = []
  for (const text of email) {
    const mailbox = parseMailbox(text)
    if (mailbox === undefined) return { kind: 'email address', name: text, unusable: 'not-a-name' }
    mailboxes.push({ local: mailbox.local, domain: mailbox.domain.toLowerCase() })
  }
  return { addresses: ipBytes, dns, uris: uris.filter((one) => 'host' in one), mailboxes }
}

function hostOfUri(text: string): { text: string; host: string } | Unusable {
  const unusable = (reason: NonNullable<ConstraintViolation['unusable']>): Unusable => {
    return { kind: 'URI', name: text, unusable: reason }
  }
  const authority = uriHost(text).toLowerCase()
  if (authority === '') return unusable('no-host')
  // A port may follow an address in brackets, or a name. Only the host is constrained.
  const hasPort = authority.includes(':') && !authority.endsWith(']')
  const host = hasPort ? withoutPort(uriHost(text)) : authority
  if (host === undefined) return unusable('bad-port')
  const isLiteral = host.startsWith('[') && host.endsWith(']')
  return isLiteral || isAddress(host) ? unusable('address') : { text, host }
}

/** Returns undefined unless there is exactly one colon. Keeps the case of the letters, as Go does: subtrees ignore case. */
function withoutPort(host: string): string | undefined {
  const colon = host.lastIndexOf(':')
  if (host.startsWith('[')) return host.indexOf(']') === colon - 1 ? host.slice(1, colon - 1) : undefined
  const name = host.slice(0, colon)
  return name.includes(':') || /[[\]]/.test(host) ? undefined : name
}

/** True for an IP address with or without a zone after "%". */
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
