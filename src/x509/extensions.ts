import { constructedTag, contextTag, type DerReader, tags } from './der.ts'
import {
  checkAltNames,
  emptyAltNames,
  type NameConstraints,
  readAltNames,
  readNameConstraints,
  type SubjectAltNames,
} from './general-names.ts'
import { settled } from './lists.ts'
import { extendedKeyUsageName, nameOfOid } from './oids.ts'
import { Repeated } from './repeated.ts'
import { latin1 } from './strings.ts'

/** RFC 5280 section 4.2.1.3, in the order of the bits. */
export const keyUsages = [
  'digitalSignature',
  'nonRepudiation',
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'keyCertSign',
  'cRLSign',
  'encipherOnly',
  'decipherOnly',
] as const

export type KeyUsage = (typeof keyUsages)[number]

/** Which extension it is, without its value. */
interface ExtensionHead {
  readonly oid: string
  readonly critical: boolean
}

/** One extension as it is encoded. */
export class Extension implements ExtensionHead {
  readonly oid: string
  readonly critical: boolean
  private readonly bytes: Buffer
  private readonly start: number
  private readonly stop: number

  constructor(oid: string, critical: boolean, bytes: Buffer, start: number, stop: number) {
    this.oid = oid
    this.critical = critical
    this.bytes = bytes
    this.start = start
    this.stop = stop
  }

  /** Name in its RFC, or the object identifier. */
  get name(): string {
    return nameOfOid(this.oid) ?? this.oid
  }

  /** Content of the OCTET STRING. */
  get value(): Uint8Array {
    return this.bytes.subarray(this.start, this.stop)
  }
}

export interface BasicConstraints {
  readonly ca: boolean
  readonly pathLength?: number
}

export interface PolicyMapping {
  readonly issuerDomainPolicy: string
  readonly subjectDomainPolicy: string
}

/** What the extensions of a certificate or request say, decoded. Absent ones have the value of their absence. */
export class DecodedExtensions {
  /** False: everything is checked, but texts that few ask for are not made. */
  readonly hasTexts: boolean
  hasHostNames = false
  basicConstraints: BasicConstraints | undefined = undefined
  keyUsage: readonly KeyUsage[] | undefined = undefined
  extendedKeyUsage: readonly string[] = none
  subjectAltNames: SubjectAltNames = noAltNames
  subjectKeyId: string | undefined = undefined
  authorityKeyId: string | undefined = undefined
  nameConstraints: NameConstraints | undefined = undefined
  crlDistributionPoints: readonly string[] = none
  authorityInfoAccess: AuthorityInfoAccess = noAccess
  policies: readonly string[] = none
  policyMappings: readonly PolicyMapping[] = []
  requireExplicitPolicy: number | undefined = undefined
  inhibitPolicyMapping: number | undefined = undefined
  inhibitAnyPolicy: number | undefined = undefined

  constructor(hasTexts = true) {
    this.hasTexts = hasTexts
  }
}

export interface AuthorityInfoAccess {
  readonly ocsp: readonly string[]
  readonly caIssuers: readonly string[]
}

const none: readonly string[] = Object.freeze([])
const noAccess: AuthorityInfoAccess = Object.freeze({ ocsp: none, caIssuers: none })
const noAltNames: SubjectAltNames = emptyAltNames()
for (const list of Object.values(noAltNames)) Object.freeze(list)

/** Reads one Extension (RFC 5280 section 4.2), header only; its value is left in the reader's start…stop. */
export function readExtension(reader: DerReader): Extension {
  const head = new ReadHead()
  head.read(reader)
  return new Extension(head.oid, head.critical, reader.bytes, reader.start, reader.stop)
}

/** The head of the extension that was read last: one object for all extensions of a certificate. */
export class ReadHead implements ExtensionHead {
  oid = ''
  critical = false

  /** Reads one Extension; its value is left in the reader's start…stop. */
  read(reader: DerReader): void {
    const outer = reader.enter(tags.sequence, 'extension')
    this.oid = reader.oid('extnID')
    this.critical = reader.peek(tags.boolean) ? reader.boolean('critical') : false
    reader.read(tags.octetString, 'extnValue')
    reader.leave(outer)
  }
}

/**
 * Decodes the extension whose value the reader's start…stop bound, into `decoded`. Returns false for one that Go does not
 * handle, which makes a chain invalid when it is critical.
 */
export function decodeExtension(
  reader: DerReader,
  extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  const known = handled.get(extension.oid)
  if (known === undefined) return false
  const { path, offset } = reader
  reader.path = known.path
  const outer = reader.enterLast('')
  const isHandled = known.decode(reader, extension, decoded)
  reader.leave(outer)
  reader.offset = offset
  reader.path = path
  return isHandled
}

type Decoder = (reader: DerReader, extension: ExtensionHead, decoded: DecodedExtensions) => boolean

const decoders: readonly (readonly [oid: string, decode: Decoder])[] = [
  ['2.5.29.14', decodeSubjectKeyId],
  ['2.5.29.15', decodeKeyUsage],
  ['2.5.29.17', decodeSubjectAltName],
  ['2.5.29.19', decodeBasicConstraints],
  ['2.5.29.30', decodeNameConstraints],
  ['2.5.29.31', decodeCrlDistributionPoints],
  ['2.5.29.32', decodePolicies],
  ['2.5.29.33', decodePolicyMappings],
  ['2.5.29.35', decodeAuthorityKeyId],
  ['2.5.29.36', decodePolicyConstraints],
  ['2.5.29.37', decodeExtendedKeyUsage],
  ['2.5.29.54', decodeInhibitAnyPolicy],
  ['1.3.6.1.5.5.7.1.1', decodeAuthorityInfoAccess],
]

const handled = new Map(
  decoders.map(([oid, decode]) => [oid, { decode, path: `${nameOfOid(oid) ?? oid}.` }] as const),
)

// RFC 5280 says of three extensions that CAs mark them non-critical; Go refuses certificates where one is not.
function refuseCritical(reader: DerReader, extension: ExtensionHead): void {
  if (extension.critical) reader.fail('critical', 'marked critical, which RFC 5280 forbids')
}

/** RFC 5280 section 4.2.1.2. */
function decodeSubjectKeyId(
  reader: DerReader,
  extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  refuseCritical(reader, extension)
  reader.read(tags.octetString, 'keyIdentifier')
  if (decoded.hasTexts) decoded.subjectKeyId = reader.bytes.toString('hex', reader.start, reader.stop)
  return true
}

/** RFC 5280 section 4.2.1.1; issuer and serial number are passed over. */
function decodeAuthorityKeyId(
  reader: DerReader,
  extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  refuseCritical(reader, extension)
  decoded.authorityKeyId = authorityKeyIds.of(reader)
  return true
}

const authorityKeyIds = new Repeated((reader): string | undefined => {
  const outer = reader.enter(tags.sequence, 'AuthorityKeyIdentifier')
  const isThere = reader.readOptional(contextTag(0), 'keyIdentifier')
  const keyId = isThere ? reader.bytes.toString('hex', reader.start, reader.stop) : undefined
  reader.leave(outer)
  return keyId
})

/** RFC 5280 section 4.2.1.3. */
function decodeKeyUsage(reader: DerReader, _extension: ExtensionHead, decoded: DecodedExtensions): boolean {
  decoded.keyUsage = keyUsageLists.of(reader)
  return true
}

const keyUsageLists = new Repeated((reader): readonly KeyUsage[] => {
  reader.bitString('KeyUsage')
  const { bytes, start, stop } = reader
  const usages: KeyUsage[] = []
  for (let bit = 0; bit < keyUsages.length && start + (bit >> 3) < stop; bit++) {
    if ((bytes[start + (bit >> 3)]! & (0x80 >> (bit & 7))) !== 0) usages.push(keyUsages[bit]!)
  }
  return settled(usages)
})

/** RFC 5280 section 4.2.1.6. */
function decodeSubjectAltName(
  reader: DerReader,
  _extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  if (!decoded.hasTexts) {
    const kinds = checkAltNames(reader)
    decoded.hasHostNames = kinds.hasHostNames
    return kinds.hasHandled
  }
  const names = readAltNames(reader)
  decoded.subjectAltNames = names
  decoded.hasHostNames = names.dns.length + names.ip.length > 0
  return decoded.hasHostNames || names.email.length + names.uri.length > 0
}

/** RFC 5280 section 4.2.1.9. */
function decodeBasicConstraints(
  reader: DerReader,
  _extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  decoded.basicConstraints = basicConstraints.of(reader)
  return true
}

const basicConstraints = new Repeated((reader): BasicConstraints => {
  const outer = reader.enter(tags.sequence, 'BasicConstraints')
  const ca = reader.peek(tags.boolean) ? reader.boolean('cA') : false
  const pathLength = reader.peek(tags.integer) ? reader.int64('pathLenConstraint') : undefined
  if (pathLength !== undefined && pathLength < 0) reader.fail('pathLenConstraint', 'negative', reader.start)
  reader.leave(outer)
  return pathLength === undefined ? { ca } : { ca, pathLength }
})

/** RFC 5280 section 4.2.1.10. */
function decodeNameConstraints(
  reader: DerReader,
  _extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  const constraints = readNameConstraints(reader)
  decoded.nameConstraints = constraints
  return constraints.permitted.other.length + constraints.excluded.other.length === 0
}

/** RFC 5280 section 4.2.1.13: the URIs that stand first in a fullName. */
function decodeCrlDistributionPoints(
  reader: DerReader,
  _extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  const uris: string[] = []
  const outer = reader.enter(tags.sequence, 'CRLDistributionPoints')
  while (!reader.atEnd) {
    const point = reader.enter(tags.sequence, 'DistributionPoint')
    if (reader.readOptional(constructedTag(0), 'distributionPoint')) {
      const name = reader.enterLast('distributionPoint')
      const fullName = reader.enter(constructedTag(0), 'fullName')
      while (reader.readOptional(contextTag(6), 'uniformResourceIdentifier')) {
        uris.push(latin1(reader.bytes, reader.start, reader.stop))
      }
      reader.leave(fullName)
      reader.leave(name)
    }
    reader.leave(point)
  }
  reader.leave(outer)
  decoded.crlDistributionPoints = settled(uris)
  return true
}

/** RFC 5280 section 4.2.2.1. */
function decodeAuthorityInfoAccess(
  reader: DerReader,
  extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  refuseCritical(reader, extension)
  const ocsp: string[] = []
  const caIssuers: string[] = []
  const outer = reader.enter(tags.sequence, 'AuthorityInfoAccess')
  while (!reader.atEnd) {
    const description = reader.enter(tags.sequence, 'AccessDescription')
    const method = nameOfOid(reader.oid('accessMethod'))
    if (reader.readOptional(contextTag(6), 'accessLocation')) {
      const uri = latin1(reader.bytes, reader.start, reader.stop)
      if (method === 'ocsp') ocsp.push(uri)
      if (method === 'caIssuers') caIssuers.push(uri)
    }
    reader.leave(description)
  }
  reader.leave(outer)
  decoded.authorityInfoAccess = { ocsp: settled(ocsp), caIssuers: settled(caIssuers) }
  return true
}

/** RFC 5280 section 4.2.1.4; qualifiers are passed over. */
function decodePolicies(reader: DerReader, _extension: ExtensionHead, decoded: DecodedExtensions): boolean {
  const policies = new Set<string>()
  const outer = reader.enter(tags.sequence, 'CertificatePolicies')
  while (!reader.atEnd) {
    const information = reader.enter(tags.sequence, 'PolicyInformation')
    const policy = reader.oidOfAnySize('policyIdentifier')
    if (policies.has(policy)) reader.fail('policyIdentifier', `${policy} for the second time`, reader.start)
    policies.add(policy)
    reader.leave(information)
  }
  reader.leave(outer)
  decoded.policies = [...policies]
  return true
}

/** RFC 5280 section 4.2.1.5. */
function decodePolicyMappings(
  reader: DerReader,
  _extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  const mappings: PolicyMapping[] = []
  const outer = reader.enter(tags.sequence, 'PolicyMappings')
  while (!reader.atEnd) {
    const mapping = reader.enter(tags.sequence, 'PolicyMapping')
    const issuerDomainPolicy = readPolicyOctets(reader, 'issuerDomainPolicy')
    const subjectDomainPolicy = readPolicyOctets(reader, 'subjectDomainPolicy')
    mappings.push({ issuerDomainPolicy, subjectDomainPolicy })
    reader.leave(mapping)
  }
  reader.leave(outer)
  decoded.policyMappings = mappings
  return true
}

/** Go does not look into the identifiers of a mapping: one that is malformed is kept as "#" and its octets. */
function readPolicyOctets(reader: DerReader, field: string): string {
  reader.read(tags.oid, field)
  try {
    return reader.oidOfLast(field, true)
  } catch {
    return `#${reader.bytes.toString('hex', reader.start, reader.stop)}`
  }
}

/** RFC 5280 section 4.2.1.11. */
function decodePolicyConstraints(
  reader: DerReader,
  _extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  const outer = reader.enter(tags.sequence, 'PolicyConstraints')
  if (reader.peek(contextTag(0)))
    decoded.requireExplicitPolicy = reader.int64('requireExplicitPolicy', contextTag(0))
  if (reader.peek(contextTag(1)))
    decoded.inhibitPolicyMapping = reader.int64('inhibitPolicyMapping', contextTag(1))
  reader.leave(outer)
  return true
}

/** RFC 5280 section 4.2.1.14. */
function decodeInhibitAnyPolicy(
  reader: DerReader,
  _extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  decoded.inhibitAnyPolicy = reader.int64('SkipCerts')
  return true
}

/** RFC 5280 section 4.2.1.12. */
function decodeExtendedKeyUsage(
  reader: DerReader,
  _extension: ExtensionHead,
  decoded: DecodedExtensions,
): boolean {
  decoded.extendedKeyUsage = extendedKeyUsageLists.of(reader)
  return true
}

const extendedKeyUsageLists = new Repeated((reader): readonly string[] => {
  const usages: string[] = []
  const outer = reader.enter(tags.sequence, 'ExtKeyUsageSyntax')
  while (!reader.atEnd) usages.push(extendedKeyUsageName(reader.oid('KeyPurposeId')))
  reader.leave(outer)
  return settled(usages)
})
