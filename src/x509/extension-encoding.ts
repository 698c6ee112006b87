import { KcertError } from '../errors/kcert-error.ts'
import { contextTag } from './der.ts'
import { bitString, boolean, element, explicit, integer, octetString, oid, sequence } from './der-writer.ts'
import { type KeyUsage, keyUsages } from './extensions.ts'
import { isDnsConstraint, isEmailConstraint, isUriConstraint } from './general-names.ts'
import { maskOf, parseIp } from './ip.ts'
import { type OidName, oidOf } from './oids.ts'
import { isAsciiText, quoted } from './strings.ts'
import { uriDefect } from './syntax.ts'

/** Extensions of a certificate or a request; an absent member writes no extension. */
export interface ExtensionsDescription {
  readonly keyUsage?: readonly KeyUsage[]
  /** Names ("serverAuth") or object identifiers. */
  readonly extendedKeyUsage?: readonly string[]
  readonly basicConstraints?: { readonly ca: boolean; readonly pathLength?: number }
  /** Hexadecimal; `keyIdentifierOf` computes the usual one. */
  readonly subjectKeyId?: string
  /** Hexadecimal: the subjectKeyId of the issuer. */
  readonly authorityKeyId?: string
  readonly subjectAltNames?: AltNamesDescription
  readonly authorityInfoAccess?: { readonly ocsp?: readonly string[]; readonly caIssuers?: readonly string[] }
  readonly crlDistributionPoints?: readonly string[]
  /** Object identifiers. */
  readonly policies?: readonly string[]
  readonly nameConstraints?: {
    readonly permitted?: SubtreesDescription
    readonly excluded?: SubtreesDescription
    /** True by default, as RFC 5280 section 4.2.1.10 wants it. */
    readonly critical?: boolean
  }
  /** Written as they are, behind the others; one with the same identifier replaces what the members above would write. */
  readonly extensions?: readonly RawExtension[]
}

export interface AltNamesDescription {
  readonly dns?: readonly string[]
  /** "10.0.0.1" or "fd00::1" */
  readonly ip?: readonly string[]
  readonly email?: readonly string[]
  readonly uri?: readonly string[]
}

export interface SubtreesDescription {
  readonly dns?: readonly string[]
  /** "10.0.0.0/8" or "fd00::/8" */
  readonly ip?: readonly string[]
  readonly email?: readonly string[]
  readonly uri?: readonly string[]
}

export interface RawExtension {
  readonly oid: string
  readonly critical?: boolean
  /** Content of the OCTET STRING. */
  readonly value: Uint8Array
}

/** DER of each extension, in the order in which Go writes them. Throws KCERT_USAGE for what Go would not read. */
export function encodeExtensions(description: ExtensionsDescription, subjectIsEmpty: boolean): Uint8Array[] {
  const raw = description.extensions ?? []
  const replaced = new Set(raw.map(({ oid }) => oid))
  const described: RawExtension[] = []
  const add = (name: OidName, critical: boolean, value: Uint8Array | undefined): void => {
    if (value !== undefined && !replaced.has(oidOf(name)))
      described.push({ oid: oidOf(name), critical, value })
  }
  add('keyUsage', true, encodeKeyUsage(description.keyUsage))
  add('extKeyUsage', false, encodeExtendedKeyUsage(description.extendedKeyUsage))
  add('basicConstraints', true, encodeBasicConstraints(description.basicConstraints))
  add('subjectKeyIdentifier', false, encodeSubjectKeyId(description.subjectKeyId))
  add('authorityKeyIdentifier', false, encodeAuthorityKeyId(description.authorityKeyId))
  add('authorityInfoAccess', false, encodeAuthorityInfoAccess(description.authorityInfoAccess))
  // RFC 5280 section 4.2.1.6: critical where the subject is empty and the names stand alone.
  add('subjectAltName', subjectIsEmpty, encodeAltNames(description.subjectAltNames))
  add('certificatePolicies', false, encodePolicies(description.policies))
  const { nameConstraints } = description
  add('nameConstraints', nameConstraints?.critical ?? true, encodeNameConstraints(nameConstraints))
  add('cRLDistributionPoints', false, encodeCrlDistributionPoints(description.crlDistributionPoints))
  return [...described, ...raw].map(encodeExtension)
}

function encodeExtension({ oid: dotted, critical = false, value }: RawExtension): Uint8Array {
  return sequence(oid(dotted), ...(critical ? [boolean(true)] : []), octetString(value))
}

/** Named bits without trailing zeros (X.690 section 11.2.2). */
function encodeKeyUsage(usages: readonly KeyUsage[] | undefined): Uint8Array | undefined {
  if (usages === undefined) return undefined
  const bits = usages.map((usage) => keyUsages.indexOf(usage))
  const last = Math.max(-1, ...bits)
  const octets = new Uint8Array((last >> 3) + 1)
  for (const bit of bits) octets[bit >> 3]! |= 0x80 >> (bit & 7)
  return bitString(octets, last < 0 ? 0 : 7 - (last & 7))
}

function encodeExtendedKeyUsage(usages: readonly string[] | undefined): Uint8Array | undefined {
  if (usages === undefined || usages.length === 0) return undefined
  return sequence(...usages.map((usage) => oid(/^\d/.test(usage) ? usage : oidOf(usage as OidName))))
}

function encodeBasicConstraints(
  constraints: ExtensionsDescription['basicConstraints'],
): Uint8Array | undefined {
  if (constraints === undefined) return undefined
  const { ca, pathLength } = constraints
  return sequence(...(ca ? [boolean(true)] : []), ...(pathLength === undefined ? [] : [integer(pathLength)]))
}

function encodeSubjectKeyId(hex: string | undefined): Uint8Array | undefined {
  return hex === undefined ? undefined : octetString(Buffer.from(hex, 'hex'))
}

function encodeAuthorityKeyId(hex: string | undefined): Uint8Array | undefined {
  return hex === undefined ? undefined : sequence(element(contextTag(0), Buffer.from(hex, 'hex')))
}

function encodeAuthorityInfoAccess(
  access: ExtensionsDescription['authorityInfoAccess'],
): Uint8Array | undefined {
  const { ocsp = [], caIssuers = [] } = access ?? {}
  const describe = (method: OidName) => (uri: string) => sequence(oid(oidOf(method)), generalName(6, uri))
  const descriptions = [...ocsp.map(describe('ocsp')), ...caIssuers.map(describe('caIssuers'))]
  return descriptions.length === 0 ? undefined : sequence(...descriptions)
}

function encodeCrlDistributionPoints(uris: readonly string[] | undefined): Uint8Array | undefined {
  if (uris === undefined || uris.length === 0) return undefined
  return sequence(...uris.map((uri) => sequence(explicit(0, explicit(0, generalName(6, uri))))))
}

function encodePolicies(policies: readonly string[] | undefined): Uint8Array | undefined {
  if (policies === undefined || policies.length === 0) return undefined
  return sequence(...policies.map((policy) => sequence(oid(policy))))
}

function encodeAltNames(names: AltNamesDescription | undefined): Uint8Array | undefined {
  const { dns = [], ip = [], email = [], uri = [] } = names ?? {}
  const encoded = [
    ...dns.map((name) => generalName(2, name)),
    ...email.map((name) => generalName(1, name)),
    ...ip.map((address) => element(contextTag(7), addressOctets(address))),
    ...uri.map(uriName),
  ]
  return encoded.length === 0 ? undefined : sequence(...encoded)
}

function encodeNameConstraints(
  constraints: ExtensionsDescription['nameConstraints'],
): Uint8Array | undefined {
  const permitted = encodeSubtrees(constraints?.permitted)
  const excluded = encodeSubtrees(constraints?.excluded)
  if (permitted.length + excluded.length === 0) return undefined
  return sequence(
    ...(permitted.length > 0 ? [explicit(0, ...permitted)] : []),
    ...(excluded.length > 0 ? [explicit(1, ...excluded)] : []),
  )
}

function encodeSubtrees({ dns = [], ip = [], email = [], uri = [] }: SubtreesDescription = {}): Uint8Array[] {
  return [
    ...dns.map((name) => constraint(2, name, isDnsConstraint)),
    ...ip.map((range) => element(contextTag(7), rangeOctets(range))),
    ...email.map((name) => constraint(1, name, isEmailConstraint)),
    ...uri.map((name) => constraint(6, name, isUriConstraint)),
  ].map((base) => sequence(base))
}

// What Go would not read is not written: a CA with such a constraint is a CA that no component of Kubernetes loads.
function constraint(number: number, text: string, isValid: (text: string) => boolean): Uint8Array {
  if (!isValid(text)) refuse(`constraint ${quoted(text)}`, 'Kubernetes would not read a certificate with it')
  return generalName(number, text)
}

function uriName(text: string): Uint8Array {
  const defect = uriDefect(text)
  if (defect !== undefined) refuse(`URI ${quoted(text)}`, defect)
  return generalName(6, text)
}

/** IMPLICIT IA5String of a GeneralName. */
function generalName(number: number, text: string): Uint8Array {
  if (!isAsciiText(text))
    refuse(`name ${quoted(text)}`, 'certificates hold ASCII here; write a domain in its xn-- form')
  return element(contextTag(number), Buffer.from(text, 'latin1'))
}

function addressOctets(text: string): Uint8Array {
  return parseIp(text) ?? refuse(`IP address ${quoted(text)}`, 'neither IPv4 nor IPv6')
}

function rangeOctets(text: string): Uint8Array {
  const [address = '', prefix = ''] = text.split('/')
  const octets = addressOctets(address)
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > octets.length * 8)
    refuse(`IP range ${quoted(text)}`, 'no prefix length')
  return Buffer.concat([octets, maskOf(Number(prefix), octets.length as 4 | 16)])
}

/** Says what a description asks for in vain, and why. */
export function refuse(what: string, why: string): never {
  throw new KcertError('KCERT_USAGE', `${what} cannot be written into a certificate`, { why })
}
