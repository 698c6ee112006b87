import { isVisible } from '../errors/hidden-text.ts'
import type { Name } from './name.ts'
import { parseMailbox } from './syntax.ts'

// Names that every program reads the same way. Go parses more than these, and what it copies into a certificate another verifier, a
// log or a terminal may read as something else.

/** One label of a DNS name in lower case (RFC 1123). */
export const dnsLabel = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/
export const longestLabel = 63
export const longestSubdomain = 253

/** True for a lower-case DNS name of at most 253 characters (RFC 1123): what the name of a Node or Service may be. */
export function isSubdomain(name: string): boolean {
  return name.length <= longestSubdomain && name.split('.').every((one) => dnsLabel.test(one))
}

/** True for a lower-case name that DNS can hold: a subdomain whose labels have at most 63 bytes (RFC 1035 section 2.3.4). */
export function isDnsName(name: string): boolean {
  return isSubdomain(name) && name.split('.').every((one) => one.length <= longestLabel)
}

/**
 * True for a name that inet_aton and browsers read as an IPv4 address: its last label is a number ("127.1", "0x7f000001",
 * "2130706433"; https://url.spec.whatwg.org/#ends-in-a-number-checker). No top-level domain is one.
 */
export function isNumericName(name: string): boolean {
  return /(?:^|\.)(?:\d+|0x[\da-f]*)$/i.test(name)
}

/** True for a DNS name as certificates have it: upper case too, "*" as the whole first label, and no number for an address. */
export function isPlainDnsName(name: string): boolean {
  const host = name.replace(/^\*\./, '').toLowerCase()
  return isDnsName(host) && !isNumericName(host)
}

/** True for exactly one mailbox, without quotes or escapes, of a DNS name: "a@b" and no "a@b,c@d". */
export function isPlainMailbox(text: string): boolean {
  const mailbox = parseMailbox(text)
  if (mailbox === undefined || `${mailbox.local}@${mailbox.domain}` !== text) return false
  return !mailbox.domain.startsWith('*') && isPlainDnsName(mailbox.domain)
}

// RFC 3986 section 3: an absolute URI, its scheme and host in lower case and without user information.
const uriParts = /^[a-z][a-z0-9+.-]*:(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/
const authority = /^(?:[a-z0-9._~!$&'()*+,;=-]+|\[[0-9a-f:.]+\])(?::\d+)?$/
const uriCharacters = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})*$/

/**
 * True for a URI in the one spelling that all its spellings share (RFC 3986 section 6.2.2): no dot or empty segments, and nothing
 * escaped that need not be or that would read as another path (slash, backslash, percent sign, control characters).
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

/** Returns the types of a subject's attributes besides CN, O and those allowed, and of a CN or O whose value is no text. */
export function moreThanUserAndGroups({ attributes }: Name, allowed: readonly string[] = []): string[] {
  const types = ['CN', 'O', ...allowed]
  return attributes
    .filter(({ type, derHex }) => !types.includes(type) || derHex !== undefined)
    .map(({ type }) => type)
}

/** Returns the values of a subject that have a character which is not seen where the value is shown. */
export function hiddenSubjectValues({ attributes }: Name): string[] {
  return attributes.map(({ value }) => value).filter((value) => !isVisible(value))
}
