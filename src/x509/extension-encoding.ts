import { KcertError } from '../errors/kcert-error.ts'
import { contextTag, tags } from './der.ts'
import {
  bitString,
  boolean,
  element,
  elementOf,
  explicit,
  integer,
  octetString,
  oid,
  sequence,
} from './der-writer.ts'
import { type KeyUsage, keyUsages } from './extensions.ts'
import { isDnsConstraint, isEmailConstraint, isUriConstraint } from './general-names.ts'
import { maskOf, parseIp } from './ip.ts'
import { isOidName, type OidName, oidOf } from './oids.ts'
import { isAsciiText, quoted } from './strings.ts'
import { uriDefect } from './syntax.ts'

/** Extensions of a certificate or a request. An absent member writes no extension. */
export interface ExtensionsDescription {
  readonly keyUsage?: readonly KeyUsage[]
  /** Names ("serverAuth") or object identifiers. */
  readonly extendedKeyUsage?: readonly string[]
  readonly basicConstraints?: { readonly ca: boolean; readonly pathLength?: number }
  /** Hexadecimal. `keyIdentifierOf` computes the usual one. */
  readonly subjectKeyId?: string
  /** Hexadecimal: the issuer's subjectKeyId. */
  readonly authorityKeyId?: string
  readonly subjectAltNames?: AltNamesDescription
  readonly authorityInfoAccess?: { readonly ocsp?: readonly string[]; readonly caIssuers?: readonly string[] }
  readonly crlDistributionPoints?: readonly string[]
  /** Object identifiers. */
  readonly policies?: readonly string[]
  readonly nameConstraints?: {
    readonly permitted?: SubtreesDescription
    readonly excluded?: SubtreesDescription
    /** True by default, as RFC 5280 section 4.2.1.10 requires. */
    readonly critical?: boolean
  }
  /** Written unchanged after the others. One with the same identifier replaces the extension from the members above. */
  readonly extensions?: readonly RawExtension[]
}

export interface AltNamesDescription {
  readonly dns?: readonly string[]
  /** "10.0.0.1" or "fd00::1" */
  readonly ip?: readonly string[]
  readonly email?: readonly string[]
  readonly uri?: readonly string[]
}

/** The same for name constraints, with "10.0.0.0/8" or "fd00::/8" for `ip`. */
export type SubtreesDescription = AltNamesDescription

export interface RawExtension {
  readonly oid: string
  readonly critical?: boolean
  /** Content of the OCTET STRING. */
  readonly value: Uint8Array
}

/**
 * Returns the DER of each extension, in the order in which Go writes them. Throws KCERT_USAGE for values that Go would not read.
 */
export function encodeExtensions(description: ExtensionsDescription, subjectIsEmpty: boolean): Uint8Array[] {
  const raw = description.extensions ?? []
  const replaced = new Set(raw.map(({ oid }) => oid))
  const described: RawExtension[] = []
  const add = <Value>(
    name: OidName,
    critical: boolean,
    value: Value | undefined,
    encode: (value: Value) => Uint8Array | undefined,
  ): void => {
    const encoded = value === undefined ? undefined : encode(value)
    if (encoded !== undefined && !replaced.has(oidOf(name)))
      described.push({ oid: oidOf(name), critical, value: encoded })
  }
  const { nameConstraints } = description
  add('keyUsage', true, description.keyUsage, encodeKeyUsage)
  add('extKeyUsage', false, description.extendedKeyUsage, (usages) =>
    sequenceOf(usages.map((usage) => oid(isOidName(usage) ? oidOf(usage) : usage))),
  )
  add('basicConstraints', true, description.basicConstraints, ({ ca, pathLength }) =>
    sequence(...(ca ? [boolean(true)] : []), ...(pathLength === undefined ? [] : [integer(pathLength)])),
  )
  add('subjectKeyIdentifier', false, description.subjectKeyId, (hex) => octetString(Buffer.from(hex, 'hex')))
  add('authorityKeyIdentifier', false, description.authorityKeyId, (hex) =>
    sequence(element(contextTag(0), Buffer.from(hex, 'hex'))),
  )
  add('authorityInfoAccess', false, description.authorityInfoAccess, ({ ocsp = [], caIssuers = [] }) => {
    const describe = (method: OidName) => (uri: string) => sequence(oid(oidOf(method)), generalName(6, uri))
    return sequenceOf([...ocsp.map(describe('ocsp')), ...caIssuers.map(describe('caIssuers'))])
  })
  // RFC 5280 section 4.2.1.6: critical if the subject is empty, so that only the SANs identify the certificate.
  add('subjectAltName', subjectIsEmpty, description.subjectAltNames, encodeAltNames)
  add('certificatePolicies', false, description.policies, (policies) =>
    sequenceOf(policies.map((policy) => sequence(oid(policy)))),
  )
  add('nameConstraints', nameConstraints?.critical ?? true, nameConstraints, (constraints) => {
    const permitted = encodeSubtrees(constraints.permitted)
    const excluded = encodeSubtrees(constraints.excluded)
    return sequenceOf([
      ...(permitted.length > 0 ? [explicit(0, ...permitted)] : []),
      ...(excluded.length > 0 ? [explicit(1, ...excluded)] : []),
    ])
  })
  add('cRLDistributionPoints', false, description.crlDistributionPoints, (uris) =>
    sequenceOf(uris.map((uri) => sequence(explicit(0, explicit(0, generalName(6, uri)))))),
  )
  return [...described, ...raw].map(encodeExtension)
}

function encodeExtension({ oid: dotted, critical = false, value }: RawExtension): Uint8Array {
  return sequence(oid(dotted), ...(critical ? [boolean(true)] : []), octetString(value))
}

/** Named bits without trailing zeros (X.690 section 11.2.2). */
function encodeKeyUsage(usages: readonly KeyUsage[]): Uint8Array {
  const bits = usages.map((usage) => keyUsages.indexOf(usage))
  const last = Math.max(-1, ...bits)
  const ones = (at: number) => bits.reduce((byte, bit) => byte | (bit >> 3 === at ? 0x80 >> (bit & 7) : 0), 0)
  const bytes = Uint8Array.from({ length: (last >> 3) + 1 }, (_, at) => ones(at))
  return bitString(bytes, last < 0 ? 0 : 7 - (last & 7))
}

/** Returns undefined for no parts: an empty extension is not written. */
function sequenceOf(parts: readonly Uint8Array[]): Uint8Array | undefined {
  return parts.length === 0 ? undefined : elementOf(tags.sequence, parts)
}

function encodeAltNames({
  dns = [],
  ip = [],
  email = [],
  uri = [],
}: AltNamesDescription): Uint8Array | undefined {
  return sequenceOf([
    ...dns.map((name) => generalName(2, name)),
    ...email.map((name) => generalName(1, name)),
    ...ip.map((address) => element(contextTag(7), addressBytes(address))),
    ...uri.map(uriName),
  ])
}

function encodeSubtrees({ dns = [], ip = [], email = [], uri = [] }: SubtreesDescription = {}): Uint8Array[] {
  return [
    ...dns.map((name) => constraint(2, name, isDnsConstraint)),
    ...ip.map((range) => element(contextTag(7), rangeBytes(range))),
    ...email.map((name) => constraint(1, name, isEmailConstraint)),
    ...uri.map((name) => constraint(6, name, isUriConstraint)),
  ].map((base) => sequence(base))
}

// Values that Go rejects are not written: no Kubernetes component loads a CA with such a constraint.
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
    refuse(`name ${quoted(text)}`, 'certificates contain only ASCII here; write a domain in its xn-- form')
  return element(contextTag(number), Buffer.from(text, 'latin1'))
}

function addressBytes(text: string): Uint8Array {
  return parseIp(text) ?? refuse(`IP address ${quoted(text)}`, 'neither IPv4 nor IPv6')
}

function rangeBytes(text: string): Uint8Array {
  const [address = '', prefix = ''] = text.split('/')
  const bytes = addressBytes(address)
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bytes.length * 8)
    refuse(`IP range ${quoted(text)}`, 'no prefix length')
  return Buffer.concat([bytes, maskOf(Number(prefix), bytes.length)])
}

/** Throws KCERT_USAGE for a description that cannot be encoded, with the reason. */
export function refuse(what: string, why: string): never {
  throw new KcertError('KCERT_USAGE', `${what} cannot be written into a certificate`, { why })
}
