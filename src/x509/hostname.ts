import type { Certificate } from './certificate.ts'
import { formatIp, parseIp } from './ip.ts'

// RFC 6125 as implemented in Go's crypto/x509: SANs only, never the common name.

const oidSubjectAltName = '2.5.29.17'

/**
 * True when the certificate is valid for this host name or IP address by Go's rules. Addresses match addresses only, a wildcard
 * is a whole leftmost label, and one trailing dot is ignored. A text that is not a host name matches only the same text, ignoring
 * case. An address may be in square brackets.
 */
export function isValidForHost(certificate: Certificate, host: string): boolean {
  const address = parseIp(withoutBrackets(host))
  if (address !== undefined) return certificate.subjectAltNames.ip.includes(formatIp(address))
  const asked = lowerAscii(host)
  const isHostName = isHostname(withoutFinalDot(asked), false)
  return certificate.subjectAltNames.dns.some((name) => {
    if (isHostName && isHostname(name, true)) return matchesPattern(name, asked)
    return name !== '' && name !== '.' && asked !== '' && lowerAscii(name) === asked
  })
}

/** True when only the common name matches. Clients no longer accept it (Go since 1.15, in 2020). */
export function isNamedByCommonNameOnly(certificate: Certificate, host: string): boolean {
  if (certificate.findExtension(oidSubjectAltName) !== undefined) return false
  return matchesPattern(certificate.subject.commonName ?? '', lowerAscii(host))
}

/** Returns the address that Go would parse from this host, in normalized notation; undefined for a name. */
export function hostAddress(host: string): string | undefined {
  const address = parseIp(withoutBrackets(host))
  return address === undefined ? undefined : formatIp(address)
}

export function withoutBrackets(host: string): string {
  return host.length >= 3 && host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
}

export function withoutFinalDot(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host
}

/** Compares label by label. Only the first label of the pattern may be a star. */
function matchesPattern(pattern: string, asked: string): boolean {
  if (pattern === '') return false
  const wanted = withoutFinalDot(asked).split('.')
  const given = lowerAscii(pattern).split('.')
  if (given.length !== wanted.length) return false
  return given.every((label, i) => label === wanted[i] || (i === 0 && label === '*'))
}

// Letters, digits, "_" and inner or final "-". A lone star is not a host name pattern: there is no host name that it could match.
function isHostname(text: string, isPattern: boolean): boolean {
  if (text === '' || text === '*') return false
  return text.split('.').every((label, i) => {
    if (isPattern && i === 0 && label === '*') return true
    return /^[A-Za-z0-9_][A-Za-z0-9_-]*$/.test(label)
  })
}

// Some Unicode letters become ASCII letters in lower case. A certificate must not match because of that.
function lowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
