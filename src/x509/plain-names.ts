import { isVisible } from '../errors/hidden-text.ts'
import type { Name } from './name.ts'
import { parseMailbox } from './syntax.ts'

// Names that every program reads the same way. Go accepts more names than these and copies them into a certificate, where another
// verifier, a log or a terminal may read them differently.

/** One label of a DNS name in lower case (RFC 1123). */
export const dnsLabel = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/
export const longestLabel = 63
export const longestSubdomain = 253

/** True for a lower-case DNS name of at most 253 characters (RFC 1123): a valid name of a Node or Service. */
export function isSubdomain(name: string): boolean {
  return name.length <= longestSubdomain && name.split('.').every((one) => dnsLabel.test(one))
}

/** True for a lower-case name that DNS can store: a subdomain whose labels have at most 63 bytes (RFC 1035 section 2.3.4). */
export function isDnsName(name: string): boolean {
  return isSubdomain(name) && name.split('.').every((one) => one.length <= longestLabel)
}

/**
 * True for a name that inet_aton and browsers read as an IPv4 address: its last label is a number ("127.1", "0x7f000001",
 * "2130706433"; https://url.spec.whatwg.org/#ends-in-a-number-checker). No top-level domain is a number.
 */
export function isNumericName(name: string): boolean {
  return /(?:^|\.)(?:\d+|0x[\da-f]*)$/i.test(name)
}

/**
 * True for a DNS name as in certificates: upper case allowed, "*" only as the whole first label, and not numeric like an address.
 */
export function isPlainDnsName(name: string): boolean {
  const host = name.replace(/^\*\./, '').toLowerCase()
  return isDnsName(host) && !isNumericName(host)
}

/** True for exactly one mailbox at a DNS name, without quotes or escapes: "a@b" but not "a@b,c@d". */
export function isPlainMailbox(text: string): boolean {
  const mailbox = parseMailbox(text)
  if (mailbox === undefined || `${mailbox.local}@${mailbox.domain}` !== text) return false
  return !mailbox.domain.startsWith('*') && isPlainDnsName(mailbox.domain)
}

// RFC 3986 section 3: an absolute URI with a lower-case scheme and host, and without user information.
const uriParts = /^[a-z][a-z0-9+.-]*:(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/
const authority = /^(?:[a-z0-9._~!$&'()*+,;=-]+|\[[0-9a-f:.]+\])(?::\d+)?$/
const uriCharacters = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})*$/

/**
 * True for a URI in its normalized spelling (RFC 3986 section 6.2.2): no dot segments or empty segments, no unnecessary escapes,
 * and no escapes that could be read as another path (slash, backslash, percent sign, control characters).
 */
export function isNormalUri(uri: string): boolean {
  const parts = uriParts.exec(uri)
  if (parts === null) return false
  const [, host, path = '', query = '', fragment = ''] = parts
  if (host !== undefined && !authority.test(host)) return false
  if (![path, query, fragment].every((part) => uriCharacters.test(part) && !hasOddEscape(part))) return false
  const segments = path.split('/').slice(path.startsWith('/') ? 1 : 0)
  return segments.every(
    (one, at) => one !== '.' && one !== '..' && (one !== '' || at === segments.length - 1),
  )
}

function hasOddEscape(text: string): boolean {
  return [...text.matchAll(/%(..)/g)].some(([, digits]) => {
    const character = String.fromCharCode(Number.parseInt(digits!, 16))
    return /[A-Za-z0-9._~/\\%\0-\x1f\x7f-]/.test(character)
  })
}

/**
 * Returns the types of a subject's attributes other than CN, O and the allowed ones, and of a CN or O whose value is not text.
 */
export function moreThanUserAndGroups({ attributes }: Name, allowed: readonly string[] = []): string[] {
  const types = ['CN', 'O', ...allowed]
  return attributes
    .filter(({ type, derHex }) => !types.includes(type) || derHex !== undefined)
    .map(({ type }) => type)
}

/** Returns the values of a subject that contain a character that is invisible when printed. */
export function hiddenSubjectValues({ attributes }: Name): string[] {
  return attributes.map(({ value }) => value).filter((value) => !isVisible(value))
}
