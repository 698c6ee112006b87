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
import { extendedKeyUsageName, nameOfOid, type OidName, oidOf } from './oids.ts'
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

/** One extension as it is encoded. */
export class Extension {
  readonly oid: string
  readonly critical: boolean
  private readonly bytes: Buffer
  private readonly start: number
  private readonly stop: number

  /** Reads one Extension (RFC 5280 section 4.2). Its value is in the reader's start…stop. */
  constructor(reader: DerReader) {
    const outer = reader.enter(tags.sequence, 'extension')
    this.oid = reader.oid('extnID')
    this.critical = reader.peek(tags.boolean) ? reader.boolean('critical') : false
    reader.read(tags.octetString, 'extnValue')
    reader.leave(outer)
    this.bytes = reader.bytes
    this.start = reader.start
    this.stop = reader.stop
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

/** The decoded extensions of a certificate or request. Absent ones have their default value. */
export class DecodedExtensions {
  /** If false, everything is checked but rarely used texts are not built. */
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

/**
 * Decodes the extension whose value is in the reader's start…stop, into `decoded`. Returns false for one that Go does not handle,
 * which makes a chain invalid if it is critical.
 */
export function decodeExtension(
  reader: DerReader,
  extension: Extension,
  decoded: DecodedExtensions,
): boolean {
  const known = handled.get(extension.oid)
  if (known === undefined) return false
  const { path, offset } = reader
  reader.path = known.path
  const outer = reader.enterLast('')
  // RFC 5280 requires three extensions to be non-critical. Go rejects certificates where one is critical.
  if (extension.critical && known.isNeverCritical)
    reader.fail('critical', 'marked critical, which RFC 5280 forbids')
  const isHandled = known.decode(reader, decoded) ?? true
  reader.leave(outer)
  reader.offset = offset
  reader.path = path
  return isHandled
}

/** Returns false if the extension contains something that Go does not handle. */
type Decoder = (reader: DerReader, decoded: DecodedExtensions) => boolean | undefined

/** In the order of the sections of RFC 5280. */
const decoders: Partial<Record<OidName, Decoder>> = {
  /** 4.2.1.1; issuer and serial number are ignored. */
  authorityKeyIdentifier(reader, decoded) {
    decoded.authorityKeyId = authorityKeyIds.of(reader)
  },

  /** 4.2.1.2 */
  subjectKeyIdentifier(reader, decoded) {
    reader.read(tags.octetString, 'keyIdentifier')
    if (decoded.hasTexts) decoded.subjectKeyId = reader.bytes.toString('hex', reader.start, reader.stop)
  },

  /** 4.2.1.3 */
  keyUsage(reader, decoded) {
    decoded.keyUsage = keyUsageLists.of(reader)
  },

  /** 4.2.1.4; qualifiers are ignored. */
  certificatePolicies(reader, decoded) {
    const policies = new Set<string>()
    reader.each(tags.sequence, 'CertificatePolicies', () => {
      const policy = reader.within(tags.sequence, 'PolicyInformation', () => {
        const identifier = reader.oidOfAnySize('policyIdentifier')
        if (policies.has(identifier))
          reader.fail('policyIdentifier', `${identifier} for the second time`, reader.start)
        return identifier
      })
      policies.add(policy)
    })
    decoded.policies = [...policies]
  },

  /** 4.2.1.5 */
  policyMappings(reader, decoded) {
    const mappings: PolicyMapping[] = []
    reader.each(tags.sequence, 'PolicyMappings', () => {
      const mapping = reader.within(tags.sequence, 'PolicyMapping', () => ({
        issuerDomainPolicy: readPolicyBytes(reader, 'issuerDomainPolicy'),
        subjectDomainPolicy: readPolicyBytes(reader, 'subjectDomainPolicy'),
      }))
      mappings.push(mapping)
    })
    decoded.policyMappings = mappings
  },

  /** 4.2.1.6 */
  subjectAltName(reader, decoded) {
    if (!decoded.hasTexts) {
      const kinds = checkAltNames(reader)
      decoded.hasHostNames = kinds.hasHostNames
      return kinds.hasHandled
    }
    const names = readAltNames(reader)
    decoded.subjectAltNames = names
    decoded.hasHostNames = names.dns.length + names.ip.length > 0
    return decoded.hasHostNames || names.email.length + names.uri.length > 0
  },

  /** 4.2.1.9 */
  basicConstraints(reader, decoded) {
    decoded.basicConstraints = basicConstraints.of(reader)
  },

  /** 4.2.1.10 */
  nameConstraints(reader, decoded) {
    const constraints = readNameConstraints(reader)
    decoded.nameConstraints = constraints
    return constraints.permitted.other.length + constraints.excluded.other.length === 0
  },

  /** 4.2.1.11 */
  policyConstraints(reader, decoded) {
    reader.within(tags.sequence, 'PolicyConstraints', () => {
      if (reader.peek(contextTag(0)))
        decoded.requireExplicitPolicy = reader.int64('requireExplicitPolicy', contextTag(0))
      if (reader.peek(contextTag(1)))
        decoded.inhibitPolicyMapping = reader.int64('inhibitPolicyMapping', contextTag(1))
    })
  },

  /** 4.2.1.12 */
  extKeyUsage(reader, decoded) {
    decoded.extendedKeyUsage = extendedKeyUsageLists.of(reader)
  },

  /** 4.2.1.13: the URIs at the start of a fullName. */
  cRLDistributionPoints(reader, decoded) {
    const uris: string[] = []
    reader.each(tags.sequence, 'CRLDistributionPoints', () => {
      reader.within(tags.sequence, 'DistributionPoint', () => {
        if (!reader.peek(constructedTag(0))) return
        reader.within(constructedTag(0), 'distributionPoint', () => {
          reader.within(constructedTag(0), 'fullName', () => {
            while (reader.readOptional(contextTag(6), 'uniformResourceIdentifier'))
              uris.push(latin1(reader.bytes, reader.start, reader.stop))
          })
        })
      })
    })
    decoded.crlDistributionPoints = settled(uris)
  },

  /** 4.2.1.14 */
  inhibitAnyPolicy(reader, decoded) {
    decoded.inhibitAnyPolicy = reader.int64('SkipCerts')
  },

  /** 4.2.2.1 */
  authorityInfoAccess(reader, decoded) {
    const ocsp: string[] = []
    const caIssuers: string[] = []
    reader.each(tags.sequence, 'AuthorityInfoAccess', () => {
      reader.within(tags.sequence, 'AccessDescription', () => {
        const method = reader.oidName('accessMethod')
        if (!reader.readOptional(contextTag(6), 'accessLocation')) return
        const uri = latin1(reader.bytes, reader.start, reader.stop)
        if (method === 'ocsp') ocsp.push(uri)
        if (method === 'caIssuers') caIssuers.push(uri)
      })
    })
    decoded.authorityInfoAccess = { ocsp: settled(ocsp), caIssuers: settled(caIssuers) }
  },
}

const neverCritical: ReadonlySet<string> = new Set([
  'subjectKeyIdentifier',
  'authorityKeyIdentifier',
  'authorityInfoAccess',
])

const handled = new Map(
  (Object.entries(decoders) as [OidName, Decoder][]).map(([name, decode]) => [
    oidOf(name),
    { decode, path: `${name}.`, isNeverCritical: neverCritical.has(name) },
  ]),
)

const authorityKeyIds = new Repeated((reader) =>
  reader.within(tags.sequence, 'AuthorityKeyIdentifier', (): string | undefined => {
    const isThere = reader.readOptional(contextTag(0), 'keyIdentifier')
    return isThere ? reader.bytes.toString('hex', reader.start, reader.stop) : undefined
  }),
)

const keyUsageLists = new Repeated((reader): readonly KeyUsage[] => {
  reader.bitString('KeyUsage')
  const { bytes, start, stop } = reader
  const isSet = (_: KeyUsage, bit: number): boolean => {
    const at = start + (bit >> 3)
    return at < stop && (bytes.readUInt8(at) & (0x80 >> (bit & 7))) !== 0
  }
  return settled(keyUsages.filter(isSet))
})

const basicConstraints = new Repeated((reader) =>
  reader.within(tags.sequence, 'BasicConstraints', (): BasicConstraints => {
    const ca = reader.peek(tags.boolean) ? reader.boolean('cA') : false
    if (!reader.peek(tags.integer)) return { ca }
    const pathLength = reader.int64('pathLenConstraint')
    if (pathLength < 0) reader.fail('pathLenConstraint', 'negative', reader.start)
    return { ca, pathLength }
  }),
)

const extendedKeyUsageLists = new Repeated((reader): readonly string[] => {
  const usages: string[] = []
  reader.each(tags.sequence, 'ExtKeyUsageSyntax', () => {
    usages.push(extendedKeyUsageName(reader.oid('KeyPurposeId')))
  })
  return settled(usages)
})

/** Go does not check the identifiers of a mapping: a malformed one is kept as "#" and its bytes. */
function readPolicyBytes(reader: DerReader, field: string): string {
  reader.read(tags.oid, field)
  try {
    return reader.oidOfLast(field, true)
  } catch {
    return `#${reader.bytes.toString('hex', reader.start, reader.stop)}`
  }
}
