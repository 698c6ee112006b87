import { createPublicKey, hash, type KeyObject, sign } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import { contextTag, DerReader } from './der.ts'
import {
  bitString,
  boolean,
  element,
  explicit,
  integer,
  nullElement,
  octetString,
  oid,
  sequence,
  setOf,
  time,
} from './der-writer.ts'
import { type KeyUsage, keyUsages } from './extensions.ts'
import { isDnsConstraint, isEmailConstraint, isUriConstraint } from './general-names.ts'
import { maskOf, parseIp } from './ip.ts'
import { encodeName, type NameInput } from './name-encoding.ts'
import { type OidName, oidOf } from './oids.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { isAsciiText, quoted } from './strings.ts'
import { uriDefect } from './syntax.ts'

// Writes certificates and requests. Nothing here is drawn or looked up: serial number, times and keys are the caller's.

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

export interface CertificateDescription extends ExtensionsDescription {
  /** Hexadecimal, above zero, at most 20 octets (RFC 5280 section 4.1.2.2). */
  readonly serialNumber: string
  readonly subject: NameInput
  readonly issuer: NameInput
  readonly notBefore: Date
  readonly notAfter: Date
  /** Of the subject: SubjectPublicKeyInfo in DER, what was read of one, or a key of node:crypto, public or private. */
  readonly publicKey: Uint8Array | PublicKeyInfo | KeyObject
  /** For RSA keys; default sha256. ECDSA takes the hash of its curve, Ed25519 has none. */
  readonly hash?: 'sha256' | 'sha384' | 'sha512'
}

export interface RequestDescription extends ExtensionsDescription {
  readonly subject: NameInput
  readonly hash?: 'sha256' | 'sha384' | 'sha512'
}

/** DER of an X.509 version 3 certificate, signed with the issuer's private key. */
export function issueCertificate(description: CertificateDescription, signer: KeyObject): Uint8Array {
  const algorithm = signatureAlgorithmOf(signer, description.hash)
  const subject = encodeName(description.subject)
  const extensions = encodeExtensions(description, isEmptyName(subject))
  const tbs = sequence(
    explicit(0, integer(2)),
    integer(serialNumberOctets(description.serialNumber)),
    algorithm.identifier,
    encodeName(description.issuer),
    sequence(encodeTime(description.notBefore), encodeTime(description.notAfter)),
    subject,
    spkiOf(description.publicKey),
    ...(extensions.length > 0 ? [explicit(3, sequence(...extensions))] : []),
  )
  return sequence(tbs, algorithm.identifier, bitString(sign(algorithm.hash, tbs, signer)))
}

/** DER of a PKCS#10 request (RFC 2986), signed with the subject's private key. */
export function createRequest(description: RequestDescription, key: KeyObject): Uint8Array {
  const algorithm = signatureAlgorithmOf(key, description.hash)
  const subject = encodeName(description.subject)
  const extensions = encodeExtensions(description, isEmptyName(subject))
  const extensionRequest = sequence(oid(oidOf('extensionRequest')), setOf(sequence(...extensions)))
  const info = sequence(
    integer(0),
    subject,
    spkiOf(key),
    explicit(0, ...(extensions.length > 0 ? [extensionRequest] : [])),
  )
  return sequence(info, algorithm.identifier, bitString(sign(algorithm.hash, info, key)))
}

/** Hexadecimal SHA-1 of the key's bits: RFC 5280 section 4.2.1.2, method (1). It names a key and proves nothing. */
export function keyIdentifierOf(publicKey: Uint8Array | PublicKeyInfo | KeyObject): string {
  const spki = spkiOf(publicKey)
  return hash('sha1', readSubjectPublicKeyInfo(new DerReader(spki, 'public key'), '').keyBits, 'hex')
}

function spkiOf(key: Uint8Array | PublicKeyInfo | KeyObject): Uint8Array {
  if (key instanceof Uint8Array) return key
  if ('spki' in key) return key.spki
  return publicOf(key).export({ format: 'der', type: 'spki' })
}

function publicOf(key: KeyObject): KeyObject {
  return key.type === 'private' ? createPublicKey(key) : key
}

interface SignatureAlgorithm {
  /** AlgorithmIdentifier. */
  readonly identifier: Uint8Array
  readonly hash: string | null
}

const curveHashes: Readonly<Record<string, 'sha256' | 'sha384' | 'sha512'>> = {
  secp224r1: 'sha256',
  prime256v1: 'sha256',
  secp384r1: 'sha384',
  secp521r1: 'sha512',
}

function signatureAlgorithmOf(
  key: KeyObject,
  rsaHash: 'sha256' | 'sha384' | 'sha512' = 'sha256',
): SignatureAlgorithm {
  const type = key.asymmetricKeyType
  if (type === 'rsa') {
    // RFC 4055 section 5: the parameters are NULL.
    return { identifier: sequence(oid(oidOf(`${rsaHash}WithRSAEncryption`)), nullElement), hash: rsaHash }
  }
  if (type === 'ed25519') return { identifier: sequence(oid(oidOf('Ed25519'))), hash: null }
  const curve = key.asymmetricKeyDetails?.namedCurve ?? ''
  const curveHash = type === 'ec' ? curveHashes[curve] : undefined
  if (curveHash === undefined) {
    throw new KcertError('KCERT_KEY_UNSUPPORTED', `cannot sign with a key of type ${curve || type}`, {
      why: 'Kubernetes reads RSA, ECDSA P-256, P-384 and P-521, and Ed25519',
    })
  }
  const name = `ecdsa-with-${curveHash.toUpperCase()}` as OidName
  return { identifier: sequence(oid(oidOf(name))), hash: curveHash }
}

function serialNumberOctets(hex: string): Uint8Array {
  const octets = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  // The first bit is the sign: 20 octets with it set would be written as 21.
  const isValid = /^[0-9a-fA-F]+$/.test(hex) && /[1-9a-fA-F]/.test(hex) && integer(octets).length <= 22
  if (!isValid)
    refuse(`serial number ${quoted(hex)}`, 'not a positive hexadecimal number of at most 20 octets')
  return octets
}

function encodeTime(date: Date): Uint8Array {
  const year = date.getUTCFullYear()
  if (!(year >= 1 && year <= 9999)) refuse(`time ${year}`, 'not between the years 1 and 9999')
  return time(date)
}

function isEmptyName(der: Uint8Array): boolean {
  return der.length === 2
}

/** In the order in which Go writes them. */
function encodeExtensions(description: ExtensionsDescription, subjectIsEmpty: boolean): Uint8Array[] {
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

function refuse(what: string, why: string): never {
  throw new KcertError('KCERT_USAGE', `${what} cannot be written into a certificate`, { why })
}
