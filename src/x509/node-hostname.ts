import { domainToASCII } from 'node:url'
import type { Certificate } from './certificate.ts'
import { withoutFinalDot } from './hostname.ts'
import { parseIp } from './ip.ts'

/**
 * True when Node's tls module accepts the certificate for this host. Node checks the common name when there is no DNS name,
 * matches a star with a part of the leftmost label, and rejects a star right under a top-level domain. Go does none of these.
 */
export function isValidForHostInNode(certificate: Certificate, host: string): boolean {
  const address = parseIp(withoutFinalDot(host))
  const { dns, ipBytes } = certificate.subjectAltNames
  // Here, as in OpenSSL, an IPv4-mapped address in 16 bytes is a different address.
  if (address !== undefined) return ipBytes.some((bytes) => Buffer.compare(bytes, address) === 0)
  const commonNames = certificate.subject.attributes.filter(({ type }) => type === 'CN')
  const names = dns.length > 0 ? dns : commonNames.map(({ value }) => value)
  // Node converts the name to its URL form first. A text that is not a name in that form matches nothing.
  const labels = labelsOf(withoutFinalDot(domainToASCII(host)))
  return names.some((name) => matches(labels, name))
}

function labelsOf(host: string): string[] {
  return withoutFinalDot(host)
    .replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
    .split('.')
}

function matches(asked: readonly string[], name: string): boolean {
  const labels = labelsOf(name)
  if (name === '' || labels.length !== asked.length || labels.includes('')) return false
  if (!/^[\x21-\x7f]*$/.test(labels.join(''))) return false
  const [first = '', ...others] = labels
  const [askedFirst = '', ...askedOthers] = asked
  if (others.some((label, i) => label !== askedOthers[i])) return false
  const parts = first.split('*')
  // A-labels of internationalised names are never matched partially.
  if (parts.length === 1 || first.includes('xn--')) return first === askedFirst
  const [before = '', after = ''] = parts
  if (parts.length > 2 || labels.length < 3) return false
  return (
    askedFirst.length >= before.length + after.length &&
    askedFirst.startsWith(before) &&
    askedFirst.endsWith(after)
  )
}
