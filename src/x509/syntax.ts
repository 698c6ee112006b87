import { parseIp } from './ip.ts'
import { quoted } from './strings.ts'

// The syntax of names in certificates, as Go's crypto/x509 checks it while parsing. It accepts and rejects the same names as Go.
// These rules decide whether an API server or a kubelet can read a certificate.

/** True for a host name that Go accepts: no empty label, no trailing dot, visible ASCII only. Empty is allowed. */
export function isValidDomain(domain: string, isConstraint: boolean): boolean {
  // A constraint may begin with a dot, for all subdomains (RFC 5280 section 4.2.1.10).
  const labels = isConstraint && domain.startsWith('.') ? domain.slice(1) : domain
  return domain === '' || /^[!-\-/-~]+(?:\.[!-\-/-~]+)*$/.test(labels)
}

/** Returns why Go's net/url would reject this text as a URI SAN, or undefined. The text is ASCII. */
export function uriDefect(text: string): string | undefined {
  const [reference, fragment] = cut(text, '#')
  if (/[\0-\x1f\x7f]/.test(reference)) return 'control character'
  if (reference !== '*') {
    const defect = referenceDefect(reference)
    if (defect !== undefined) return defect
  }
  return escapesDefect(fragment)
}

function referenceDefect(reference: string): string | undefined {
  const scheme = schemeOf(reference)
  if (scheme === undefined) return 'missing scheme before the colon'
  const [rest] = cut(scheme === '' ? reference : reference.slice(scheme.length + 1), '?')
  if (!rest.startsWith('/')) {
    if (scheme !== '') return undefined
    return cut(rest, '/')[0].includes(':') ? 'colon in the first path segment' : escapesDefect(rest)
  }
  if (!hasAuthority(rest, scheme)) return escapesDefect(rest)
  const [authority, path] = cut(rest.slice(2), '/')
  return authorityDefect(scheme.toLowerCase(), authority) ?? escapesDefect(path)
}

// Without a scheme, three slashes are a path.
function hasAuthority(rest: string, scheme: string): boolean {
  return rest.startsWith('//') && (scheme !== '' || !rest.startsWith('///'))
}

/**
 * Returns host and port of a URI (RFC 3986 section 3.2) as Go's net/url does: unescaped, with brackets, without the user. Empty
 * without an authority, as in "urn:x" and "mailto:a@b". The text has passed `uriDefect`.
 */
export function uriHost(text: string): string {
  const [reference] = cut(text, '#')
  const scheme = schemeOf(reference) ?? ''
  const [rest] = cut(scheme === '' ? reference : reference.slice(scheme.length + 1), '?')
  if (!hasAuthority(rest, scheme)) return ''
  const [authority] = cut(rest.slice(2), '/')
  return unescapePercent(authority.slice(authority.lastIndexOf('@') + 1))
}

/** Returns the scheme; empty when there is none, undefined when the text begins with a colon. */
function schemeOf(reference: string): string | undefined {
  if (reference.startsWith(':')) return undefined
  return /^[a-z][a-z0-9+.-]*(?=:)/i.exec(reference)?.[0] ?? ''
}

function authorityDefect(scheme: string, authority: string): string | undefined {
  const at = authority.lastIndexOf('@')
  if (at >= 0) {
    const user = authority.slice(0, at)
    if (!/^[A-Za-z0-9._:~!$&'()*+,;=%@-]*$/.test(user)) return 'invalid user information'
    // Each side of the colon is unescaped separately: an escape does not extend across it.
    const [name, password] = cut(user, ':')
    const defect = escapesDefect(name) ?? escapesDefect(password)
    if (defect !== undefined) return defect
  }
  const host = authority.slice(at + 1)
  const bracket = host.lastIndexOf('[')
  if (bracket > 0) return 'invalid IP literal'
  return bracket === 0 ? ipLiteralDefect(host) : hostDefect(scheme, host)
}

function hostDefect(scheme: string, host: string): string | undefined {
  const first = host.indexOf(':')
  if (first >= 0) {
    // Lists of hosts with ports are accepted for databases, not for http and https.
    const isWeb = scheme === 'http' || scheme === 'https'
    const port = host.slice(isWeb ? first : host.lastIndexOf(':'))
    if (!isOptionalPort(port)) return `invalid port ${quoted(port)}`
  }
  const defect = hostCharactersDefect(host)
  if (defect !== undefined) return defect
  return isValidDomain(unescapePercent(host), false) ? undefined : 'invalid domain'
}

function ipLiteralDefect(host: string): string | undefined {
  const close = host.lastIndexOf(']')
  if (close < 0) return 'missing "]" in the host'
  const port = host.slice(close + 1)
  if (!isOptionalPort(port)) return `invalid port ${quoted(port)}`
  const literal = host.slice(1, close)
  const zoneAt = literal.indexOf('%25')
  const address = zoneAt < 0 ? literal : literal.slice(0, zoneAt)
  const zone = zoneAt < 0 ? '' : literal.slice(zoneAt + 3)
  if (zoneAt >= 0 && !isZone(zone)) return 'invalid zone'
  const isAddress = address.includes(':') && parseIp(address) !== undefined
  if (!isAddress || hostCharactersDefect(address) !== undefined) return 'invalid IP literal'
  return isValidDomain(unescapePercent(host), false) ? undefined : 'invalid domain'
}

const hostCharacter = /^[A-Za-z0-9!$&'()*+,;=:[\]<>"._~-]$/

/** In a host, only bytes above 0x7f may be escaped, and "%" itself, for zones (RFC 6874). */
function hostCharactersDefect(host: string): string | undefined {
  const defect = escapesDefect(host)
  if (defect !== undefined) return defect
  for (const [part] of host.matchAll(/%..|[^%]/gs)) {
    if (part.startsWith('%')) {
      if (part !== '%25' && Number.parseInt(part.slice(1), 16) < 0x80) return `invalid escape ${quoted(part)}`
    } else if (!hostCharacter.test(part)) return `invalid character ${quoted(part)} in the host`
  }
  return undefined
}

/** RFC 6874: a zone may escape "%" and all characters that it could also contain unescaped. */
function isZone(zone: string): boolean {
  if (zone === '' || escapesDefect(zone) !== undefined) return false
  return [...unescapePercent(zone.replaceAll('%25', ''))].every((c) => hostCharacter.test(c))
}

function isOptionalPort(port: string): boolean {
  return /^(:\d*)?$/.test(port)
}

function escapesDefect(text: string): string | undefined {
  const at = text.search(/%(?![0-9a-f]{2})/i)
  return at < 0 ? undefined : `invalid escape ${quoted(text.slice(at, at + 3))}`
}

function unescapePercent(text: string): string {
  return text.replaceAll(/%[0-9a-fA-F]{2}/g, (escaped) =>
    String.fromCharCode(Number.parseInt(escaped.slice(1), 16)),
  )
}

function cut(text: string, separator: string): [before: string, after: string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)]
}

export interface Mailbox {
  /** Local part, unquoted. */
  readonly local: string
  readonly domain: string
}

// RFC 2822's qtext, and the space, which an example in RFC 3696 contains. After a backslash, all but NUL and line ends.
const quotedLocal = /^"((?:[\x01-\x08\x0b\x0c\x0e-!#-[\]-\x7f]|\\[\x01-\t\x0b\x0c\x0e-\x7f])*)"@(.*)$/s
// RFC 3696's examples use escapes outside quotes, so any character may follow a backslash.
const unquotedLocal = /^((?:[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]|\\.)+)@(.*)$/s

/** Returns the parts of a mailbox (RFC 2821 section 4.1.2) as Go reads it; undefined when it is malformed. */
export function parseMailbox(text: string): Mailbox | undefined {
  const isQuoted = text.startsWith('"')
  const [, written, domain = ''] = (isQuoted ? quotedLocal : unquotedLocal).exec(text) ?? []
  if (written === undefined || !isValidDomain(domain, false)) return undefined
  const local = written.replace(/\\(.)/gs, '$1')
  return isQuoted || !/^\.|\.$|\.\./.test(local) ? { local, domain } : undefined
}
