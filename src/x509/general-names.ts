import { constructedTag, contextTag, type DerReader, tagName, tags } from './der.ts'
import { formatIp, parseIp, prefixLength } from './ip.ts'
import { readName } from './name.ts'
import { isIa5, latin1, quoted } from './strings.ts'
import { isValidDomain, parseMailbox, uriDefect } from './syntax.ts'

// GeneralName (RFC 5280 section 4.2.1.6): subject SANs and name constraints.

const tagEmail = contextTag(1)
const tagDns = contextTag(2)
const tagUri = contextTag(6)
const tagIp = contextTag(7)

export interface SubjectAltNames {
  readonly dns: string[]
  /** In Go's notation; RFC 5952 for IPv6. */
  readonly ip: string[]
  /** The same addresses in 4 or 16 bytes. */
  readonly ipBytes: Uint8Array[]
  readonly email: string[]
  readonly uri: string[]
  /** Names of other types, for reading only: "dirName:CN=x", "registeredID:1.2.3", "otherName:1.3.6.1.4.1.311.20.2.3". */
  readonly other: string[]
}

export function emptyAltNames(): SubjectAltNames {
  return { dns: [], ip: [], ipBytes: [], email: [], uri: [], other: [] }
}

/** Returns GeneralNames as Go reads SANs. */
export function readAltNames(reader: DerReader): SubjectAltNames {
  const names = emptyAltNames()
  reader.each(tags.sequence, 'names', () => readAltName(reader, names))
  return names
}

/** The kinds of names that are present. */
export interface AltNameKinds {
  /** True when there is a DNS name or an IP address. */
  readonly hasHostNames: boolean
  /** True when there is a name of a kind that Go reads. */
  readonly hasHandled: boolean
}

/** Rejects what `readAltNames` rejects, without building texts. */
export function checkAltNames(reader: DerReader): AltNameKinds {
  let hasHostNames = false
  let hasHandled = false
  const outer = reader.enter(tags.sequence, 'names')
  while (!reader.atEnd) {
    const tag = checkAltName(reader)
    hasHostNames ||= tag === tagDns || tag === tagIp
    hasHandled ||= hasHostNames || tag === tagEmail || tag === tagUri
  }
  reader.leave(outer)
  return { hasHostNames, hasHandled }
}

function readAltName(reader: DerReader, names: SubjectAltNames): void {
  const tag = checkAltName(reader)
  if (tag === tagDns) names.dns.push(textOfLast(reader))
  else if (tag === tagEmail) names.email.push(textOfLast(reader))
  else if (tag === tagUri) names.uri.push(textOfLast(reader))
  else if (tag === tagIp) {
    names.ip.push(formatIp(reader.lastContent))
    names.ipBytes.push(reader.lastContent)
  } else addOther(names.other, reader)
}

/** Reads one name and returns its tag. */
function checkAltName(reader: DerReader): number {
  const tag = reader.next('name')
  const length = reader.stop - reader.start
  if (tag === tagDns) checkIa5(reader, 'dNSName')
  else if (tag === tagEmail) checkIa5(reader, 'rfc822Name')
  else if (tag === tagUri) checkUri(reader)
  else if (tag === tagIp && length !== 4 && length !== 16)
    reader.fail('iPAddress', `address of ${length} bytes`, reader.start)
  return tag
}

function checkUri(reader: DerReader): void {
  const uri = ia5OfLast(reader, 'uniformResourceIdentifier')
  const defect = uriDefect(uri)
  if (defect !== undefined)
    reader.fail('uniformResourceIdentifier', `${quoted(uri)}: ${defect}`, reader.start)
}

function checkIa5(reader: DerReader, field: string): void {
  const { bytes, start, stop } = reader
  if (!isIa5(bytes, start, stop)) reader.fail(field, 'bytes that are not an IA5String', start)
}

function textOfLast({ bytes, start, stop }: DerReader): string {
  return latin1(bytes, start, stop)
}

function ia5OfLast(reader: DerReader, field: string): string {
  checkIa5(reader, field)
  return textOfLast(reader)
}

// These names are only displayed, and a longer list is not useful. A hostile certificate can have 500,000.
const maxOther = 100

function addOther(other: string[], reader: DerReader): void {
  if (other.length < maxOther) other.push(otherNameText(reader.fork()))
  else if (other.length === maxOther) other.push('and more')
}

/** Returns a text for a name of a type that Go ignores. A name that cannot be read is represented by its type alone. */
function otherNameText(reader: DerReader): string {
  const tag = reader.next('')
  try {
    switch (tag) {
      case constructedTag(0):
        reader.enterLast('')
        return `otherName:${reader.oid('type-id')}`
      case constructedTag(3):
        return 'x400Address'
      case constructedTag(4):
        reader.enterLast('')
        return `dirName:${readName(reader, 'directoryName', true).text}`
      case constructedTag(5):
        return 'ediPartyName'
      case contextTag(8):
        return `registeredID:${reader.oidOfLast('registeredID', true)}`
      default:
        return tagName(tag)
    }
  } catch {
    return `${tagName(tag)}, malformed`
  }
}

export interface IpRange {
  /** 4 or 16 bytes, as encoded: bits after the prefix may be set. */
  readonly address: Uint8Array
  readonly mask: Uint8Array
  /** "10.0.0.0/8" */
  readonly text: string
}

export interface GeneralSubtrees {
  /** "example.com", or ".example.com" for subdomains only. */
  readonly dns: string[]
  readonly ip: IpRange[]
  /** A mailbox, a host, or a domain with a leading dot. */
  readonly email: string[]
  /** A host, or a domain with a leading dot. */
  readonly uri: string[]
  /** Subtrees of types that neither Go nor kcert compares. For display only. */
  readonly other: string[]
}

/** RFC 5280 section 4.2.1.10. */
export interface NameConstraints {
  readonly permitted: GeneralSubtrees
  readonly excluded: GeneralSubtrees
}

const emptySubtrees = (): GeneralSubtrees => ({ dns: [], ip: [], email: [], uri: [], other: [] })

/** Reads NameConstraints. Ignores minimum and maximum, as Go does. */
export function readNameConstraints(reader: DerReader): NameConstraints {
  const start = reader.offset
  const constraints = { permitted: emptySubtrees(), excluded: emptySubtrees() }
  let isEmpty = true
  reader.within(tags.sequence, 'NameConstraints', () => {
    for (const [number, field] of (['permitted', 'excluded'] as const).entries()) {
      if (!reader.peek(constructedTag(number))) continue
      reader.each(constructedTag(number), field, () => {
        isEmpty = false
        readSubtree(reader, constraints[field], field)
      })
    }
    reader.finish('NameConstraints')
  })
  reader.finish('NameConstraints')
  if (isEmpty) reader.fail('NameConstraints', 'empty', start)
  return constraints
}

function readSubtree(reader: DerReader, subtrees: GeneralSubtrees, field: 'permitted' | 'excluded'): void {
  const outer = reader.enter(tags.sequence, field)
  const tag = reader.next(field)
  if (tag === tagDns) subtrees.dns.push(readConstraint(reader, 'dNSName', isDnsConstraint))
  else if (tag === tagIp) subtrees.ip.push(readIpRange(reader))
  else if (tag === tagEmail) subtrees.email.push(readConstraint(reader, 'rfc822Name', isEmailConstraint))
  else if (tag === tagUri)
    subtrees.uri.push(readConstraint(reader, 'uniformResourceIdentifier', isUriConstraint))
  else addOther(subtrees.other, reader)
  reader.leave(outer)
}

function readConstraint(reader: DerReader, field: string, isValid: (text: string) => boolean): string {
  const text = ia5OfLast(reader, field)
  if (!isValid(text)) reader.fail(field, `${quoted(text)} is not a name constraint`, reader.start)
  return text
}

/** True for a DNS constraint that Go accepts: a domain, or one with a leading dot for its subdomains. */
export const isDnsConstraint = (text: string): boolean => isValidDomain(text, true)

/** True for an email constraint that Go accepts: one mailbox, or a domain. */
export const isEmailConstraint = (text: string): boolean =>
  text.includes('@') ? parseMailbox(text) !== undefined : isValidDomain(text, true)

/** True for a URI constraint that Go accepts: a host or a domain, but not an address. */
export const isUriConstraint = (text: string): boolean =>
  parseIp(text) === undefined && isValidDomain(text, true)

function readIpRange(reader: DerReader): IpRange {
  const content = reader.lastContent
  const half = content.length / 2
  if (half !== 4 && half !== 16)
    reader.fail('iPAddress', `constraint of ${content.length} bytes`, reader.start)
  const address = content.subarray(0, half)
  const mask = content.subarray(half)
  const prefix = prefixLength(mask)
  if (prefix === undefined) reader.fail('iPAddress', `invalid mask ${formatIp(mask)}`, reader.start)
  return { address, mask, text: `${formatIp(address)}/${prefix}` }
}
