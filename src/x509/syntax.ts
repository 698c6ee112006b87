import { parseIp } from './ip.ts'
import { quoted } from './strings.ts'

// The syntax of names inside certificates, as far as Go's crypto/x509 checks it while parsing. What it lets through is let
// through here, what it refuses is refused: these rules decide whether an API server or a kubelet reads a certificate at all.

/** True when a host name is one that Go takes: no empty label, no dot at the end, visible ASCII only. Empty is allowed. */
export function isValidDomain(domain: string, isConstraint: boolean): boolean {
  if (domain === '') return true
  // A constraint may begin with a dot, for all hosts below (RFC 5280 section 4.2.1.10).
  const from = isConstraint && domain.startsWith('.') ? 1 : 0
  let labelLength = 0
  for (let i = from; i < domain.length; i++) {
    const c = domain.charCodeAt(i)
    if (c < 0x21 || c > 0x7e) return false
    if (c !== 0x2e) labelLength++
    else if (labelLength === 0) return false
    else labelLength = 0
  }
  return labelLength > 0
}

/** Why Go's net/url would refuse this text as a URI of a subject alternative name, or undefined. The text is ASCII. */
export function uriDefect(text: string): string | undefined {
  const [reference, fragment] = cut(text, '#')
  if (hasControl(reference)) return 'control character'
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
 * Returns host and port of a URI (RFC 3986 section 3.2) as Go's net/url hands them on: escapes undone, brackets kept, no user.
 * Empty where there is no authority, as in "urn:x" and "mailto:a@b". The text has passed `uriDefect`.
 */
export function uriHost(text: string): string {
  const [reference] = cut(text, '#')
  const scheme = schemeOf(reference) ?? ''
  const [rest] = cut(scheme === '' ? reference : reference.slice(scheme.length + 1), '?')
  if (!hasAuthority(rest, scheme)) return ''
  const [authority] = cut(rest.slice(2), '/')
  return unescapePercent(authority.slice(authority.lastIndexOf('@') + 1))
}

/** The scheme; empty when there is none, undefined when the text begins with its colon. */
function schemeOf(reference: string): string | undefined {
  for (let i = 0; i < reference.length; i++) {
    const c = reference[i]!
    if (c === ':') return i === 0 ? undefined : reference.slice(0, i)
    if (!/[a-z]/i.test(c) && (i === 0 || !/[0-9+.-]/.test(c))) return ''
  }
  return ''
}

function authorityDefect(scheme: string, authority: string): string | undefined {
  const at = authority.lastIndexOf('@')
  if (at >= 0) {
    const user = authority.slice(0, at)
    if (!/^[A-Za-z0-9._:~!$&'()*+,;=%@-]*$/.test(user)) return 'invalid user information'
    // Each side of the colon is unescaped alone: an escape does not reach over it.
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
    // Lists of hosts with ports are let through for databases, not for the web.
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
  if (
    hostCharactersDefect(address) !== undefined ||
    !address.includes(':') ||
    parseIp(address) === undefined
  ) {
    return 'invalid IP literal'
  }
  return isValidDomain(unescapePercent(host), false) ? undefined : 'invalid domain'
}

const hostCharacter = /^[A-Za-z0-9!$&'()*+,;=:[\]<>"._~-]$/

/** In a host, only octets above 0x7f may be escaped, and "%" itself, for zones (RFC 6874). */
function hostCharactersDefect(host: string): string | undefined {
  const defect = escapesDefect(host)
  if (defect !== undefined) return defect
  for (let i = 0; i < host.length; i++) {
    const c = host[i]!
    if (c === '%') {
      const escaped = host.slice(i, i + 3)
      if (escaped !== '%25' && Number.parseInt(escaped.slice(1), 16) < 0x80)
        return `invalid escape ${quoted(escaped)}`
      i += 2
    } else if (!hostCharacter.test(c)) return `invalid character ${quoted(c)} in the host`
  }
  return undefined
}

/** RFC 6874: a zone may escape "%" and what it could also write plainly. */
function isZone(zone: string): boolean {
  if (zone === '' || escapesDefect(zone) !== undefined) return false
  return [...unescapePercent(zone.replaceAll('%25', ''))].every((c) => hostCharacter.test(c))
}

function isOptionalPort(port: string): boolean {
  return /^(:\d*)?$/.test(port)
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 0x20 || c === 0x7f) return true
  }
  return false
}

function escapesDefect(text: string): string | undefined {
  for (let i = text.indexOf('%'); i >= 0; i = text.indexOf('%', i + 3)) {
    const escaped = text.slice(i, i + 3)
    if (!/^%[0-9a-fA-F]{2}$/.test(escaped)) return `invalid escape ${quoted(escaped)}`
  }
  return undefined
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

const atext = /^[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]$/
// RFC 2822's qtext, and the space, which RFC 3696 shows in an example.
const quotedCharacter = (c: number): boolean =>
  c === 0x7f || (c > 0 && c !== 9 && c !== 10 && c !== 13 && c < 0x7f && c !== 0x22 && c !== 0x5c)
const quotablePair = (c: number): boolean => c > 0 && c <= 0x7f && c !== 10 && c !== 13

/** The parts of a mailbox (RFC 2821 section 4.1.2) as Go reads it; undefined when it is none. */
export function parseMailbox(text: string): Mailbox | undefined {
  const read = text.startsWith('"') ? quotedLocal(text) : unquotedLocal(text)
  if (read === undefined || text[read.end] !== '@') return undefined
  const domain = text.slice(read.end + 1)
  const isDomain = isValidDomain(domain, false)
  return isDomain ? { local: read.local, domain } : undefined
}

interface ReadLocal {
  readonly local: string
  /** Index behind it. */
  readonly end: number
}

function quotedLocal(text: string): ReadLocal | undefined {
  let local = ''
  for (let i = 1; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x22) return { local, end: i + 1 }
    if (c === 0x5c) {
      i++
      if (i >= text.length || !quotablePair(text.charCodeAt(i))) return undefined
    } else if (!quotedCharacter(c)) return undefined
    local += text[i]
  }
  return undefined
}

function unquotedLocal(text: string): ReadLocal | undefined {
  let local = ''
  let end = 0
  for (; end < text.length; end++) {
    // RFC 3696's examples escape outside of quotes, so any character may follow a backslash.
    if (text[end] === '\\') {
      end++
      if (end >= text.length) return undefined
    } else if (!atext.test(text[end]!)) break
    local += text[end]
  }
  if (local === '' || local.startsWith('.') || local.endsWith('.') || local.includes('..')) return undefined
  return { local, end }
}
