// biome-ignore-all lint/style/noNonNullAssertion: the table has a slot for each hash and an identifier for each name; looked up for every field
// Object identifiers and their names in the RFCs. This is the only such table.

/** RFC 4519 and the IANA registry of LDAP descriptors: the short names that RFC 4514 text may use. */
const attributeTypes = {
  '2.5.4.3': 'CN',
  '2.5.4.4': 'SN',
  '2.5.4.5': 'serialNumber',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'STREET',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '2.5.4.12': 'title',
  '2.5.4.17': 'postalCode',
  '2.5.4.42': 'GN',
  '2.5.4.43': 'initials',
  '2.5.4.44': 'generationQualifier',
  '2.5.4.46': 'dnQualifier',
  '2.5.4.65': 'pseudonym',
  '0.9.2342.19200300.100.1.1': 'UID',
  '0.9.2342.19200300.100.1.25': 'DC',
  '1.2.840.113549.1.9.1': 'emailAddress',
} as const

/** RFC 5280 sections 4.2.1 and 4.2.2, and others in use. */
const extensions = {
  '2.5.29.9': 'subjectDirectoryAttributes',
  '2.5.29.14': 'subjectKeyIdentifier',
  '2.5.29.15': 'keyUsage',
  '2.5.29.16': 'privateKeyUsagePeriod',
  '2.5.29.17': 'subjectAltName',
  '2.5.29.18': 'issuerAltName',
  '2.5.29.19': 'basicConstraints',
  '2.5.29.30': 'nameConstraints',
  '2.5.29.31': 'cRLDistributionPoints',
  '2.5.29.32': 'certificatePolicies',
  '2.5.29.33': 'policyMappings',
  '2.5.29.35': 'authorityKeyIdentifier',
  '2.5.29.36': 'policyConstraints',
  '2.5.29.37': 'extKeyUsage',
  '2.5.29.46': 'freshestCRL',
  '2.5.29.54': 'inhibitAnyPolicy',
  '1.3.6.1.5.5.7.1.1': 'authorityInfoAccess',
  '1.3.6.1.5.5.7.1.11': 'subjectInfoAccess',
  '1.3.6.1.5.5.7.1.3': 'qcStatements',
  '1.3.6.1.5.5.7.1.24': 'tlsFeature',
  '1.3.6.1.5.5.7.48.1.5': 'ocspNoCheck',
  '1.3.6.1.4.1.11129.2.4.2': 'signedCertificateTimestampList',
  '1.3.6.1.4.1.11129.2.4.3': 'ctPoison',
  '2.16.840.1.113730.1.1': 'nsCertType',
  '2.16.840.1.113730.1.13': 'nsComment',
} as const

/** RFC 5280 section 4.2.1.12. msSGC and nsSGC mean serverAuth in some old chains. */
const extendedKeyUsages = {
  '2.5.29.37.0': 'anyExtendedKeyUsage',
  '1.3.6.1.5.5.7.3.1': 'serverAuth',
  '1.3.6.1.5.5.7.3.2': 'clientAuth',
  '1.3.6.1.5.5.7.3.3': 'codeSigning',
  '1.3.6.1.5.5.7.3.4': 'emailProtection',
  '1.3.6.1.5.5.7.3.5': 'ipsecEndSystem',
  '1.3.6.1.5.5.7.3.6': 'ipsecTunnel',
  '1.3.6.1.5.5.7.3.7': 'ipsecUser',
  '1.3.6.1.5.5.7.3.8': 'timeStamping',
  '1.3.6.1.5.5.7.3.9': 'OCSPSigning',
  '1.3.6.1.4.1.311.10.3.3': 'msSGC',
  '2.16.840.1.113730.4.1': 'nsSGC',
  '1.3.6.1.4.1.311.2.1.22': 'msCodeCom',
  '1.3.6.1.4.1.311.61.1.1': 'msKernelCode',
} as const

/** RFC 3279, 4055, 5758, 8410 and 9881. */
const signatureAlgorithms = {
  '1.2.840.113549.1.1.2': 'md2WithRSAEncryption',
  '1.2.840.113549.1.1.4': 'md5WithRSAEncryption',
  '1.2.840.113549.1.1.5': 'sha1WithRSAEncryption',
  '1.3.14.3.2.29': 'sha1WithRSASignature',
  '1.2.840.113549.1.1.14': 'sha224WithRSAEncryption',
  '1.2.840.113549.1.1.11': 'sha256WithRSAEncryption',
  '1.2.840.113549.1.1.12': 'sha384WithRSAEncryption',
  '1.2.840.113549.1.1.13': 'sha512WithRSAEncryption',
  '1.2.840.113549.1.1.10': 'id-RSASSA-PSS',
  '1.2.840.10040.4.3': 'dsa-with-sha1',
  '2.16.840.1.101.3.4.3.2': 'dsa-with-sha256',
  '1.2.840.10045.4.1': 'ecdsa-with-SHA1',
  '1.2.840.10045.4.3.1': 'ecdsa-with-SHA224',
  '1.2.840.10045.4.3.2': 'ecdsa-with-SHA256',
  '1.2.840.10045.4.3.3': 'ecdsa-with-SHA384',
  '1.2.840.10045.4.3.4': 'ecdsa-with-SHA512',
  '1.3.101.112': 'Ed25519',
  '1.3.101.113': 'Ed448',
  '2.16.840.1.101.3.4.3.17': 'ML-DSA-44',
  '2.16.840.1.101.3.4.3.18': 'ML-DSA-65',
  '2.16.840.1.101.3.4.3.19': 'ML-DSA-87',
} as const

const keyAlgorithms = {
  '1.2.840.113549.1.1.1': 'rsaEncryption',
  '1.2.840.10045.2.1': 'id-ecPublicKey',
  '1.2.840.10040.4.1': 'id-dsa',
  '1.3.101.110': 'X25519',
  '1.3.101.111': 'X448',
} as const

/** RFC 5480 section 2.1.1.1, by NIST's names. */
const curves = {
  '1.3.132.0.33': 'P-224',
  '1.2.840.10045.3.1.7': 'P-256',
  '1.3.132.0.34': 'P-384',
  '1.3.132.0.35': 'P-521',
  '1.3.132.0.10': 'secp256k1',
  '1.3.36.3.3.2.8.1.1.7': 'brainpoolP256r1',
} as const

const hashes = {
  '1.2.840.113549.2.5': 'md5',
  '1.3.14.3.2.26': 'sha1',
  '2.16.840.1.101.3.4.2.4': 'sha224',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
} as const

/** RFC 8018 (PKCS#5), RFC 7292 (PKCS#12), RFC 2315 (PKCS#7) and RFC 2985. */
const containers = {
  '1.2.840.113549.1.1.8': 'id-mgf1',
  '1.2.840.113549.1.5.3': 'pbeWithMD5AndDES-CBC',
  '1.2.840.113549.1.5.10': 'pbeWithSHA1AndDES-CBC',
  '1.2.840.113549.1.5.12': 'PBKDF2',
  '1.2.840.113549.1.5.13': 'PBES2',
  '1.2.840.113549.1.5.14': 'PBMAC1',
  '1.3.6.1.4.1.11591.4.11': 'scrypt',
  '1.2.840.113549.2.7': 'hmacWithSHA1',
  '1.2.840.113549.2.8': 'hmacWithSHA224',
  '1.2.840.113549.2.9': 'hmacWithSHA256',
  '1.2.840.113549.2.10': 'hmacWithSHA384',
  '1.2.840.113549.2.11': 'hmacWithSHA512',
  '1.2.840.113549.3.2': 'RC2-CBC',
  '1.2.840.113549.3.7': 'DES-EDE3-CBC',
  '1.3.14.3.2.7': 'DES-CBC',
  '2.16.840.1.101.3.4.1.2': 'AES-128-CBC',
  '2.16.840.1.101.3.4.1.22': 'AES-192-CBC',
  '2.16.840.1.101.3.4.1.42': 'AES-256-CBC',
  '1.2.840.113549.1.12.1.1': 'pbeWithSHAAnd128BitRC4',
  '1.2.840.113549.1.12.1.2': 'pbeWithSHAAnd40BitRC4',
  '1.2.840.113549.1.12.1.3': 'pbeWithSHAAnd3-KeyTripleDES-CBC',
  '1.2.840.113549.1.12.1.4': 'pbeWithSHAAnd2-KeyTripleDES-CBC',
  '1.2.840.113549.1.12.1.5': 'pbeWithSHAAnd128BitRC2-CBC',
  '1.2.840.113549.1.12.1.6': 'pbeWithSHAAnd40BitRC2-CBC',
  '1.2.840.113549.1.12.10.1.1': 'keyBag',
  '1.2.840.113549.1.12.10.1.2': 'pkcs8ShroudedKeyBag',
  '1.2.840.113549.1.12.10.1.3': 'certBag',
  '1.2.840.113549.1.12.10.1.4': 'crlBag',
  '1.2.840.113549.1.12.10.1.5': 'secretBag',
  '1.2.840.113549.1.12.10.1.6': 'safeContentsBag',
  '1.2.840.113549.1.7.1': 'data',
  '1.2.840.113549.1.7.2': 'signedData',
  '1.2.840.113549.1.7.3': 'envelopedData',
  '1.2.840.113549.1.7.6': 'encryptedData',
  '1.2.840.113549.1.9.2': 'unstructuredName',
  '1.2.840.113549.1.9.7': 'challengePassword',
  '1.2.840.113549.1.9.14': 'extensionRequest',
  '1.2.840.113549.1.9.20': 'friendlyName',
  '1.2.840.113549.1.9.21': 'localKeyID',
  '1.2.840.113549.1.9.22.1': 'x509Certificate',
  '1.2.840.113549.1.9.22.2': 'sdsiCertificate',
  // The extensionRequest of Microsoft's tools. OpenSSL reads it; Go does not.
  '1.3.6.1.4.1.311.2.1.14': 'msExtensionRequest',
} as const

const accessMethods = {
  '1.3.6.1.5.5.7.48.1': 'ocsp',
  '1.3.6.1.5.5.7.48.2': 'caIssuers',
} as const

const tables = [
  attributeTypes,
  extensions,
  extendedKeyUsages,
  signatureAlgorithms,
  keyAlgorithms,
  curves,
  hashes,
  containers,
  accessMethods,
] as const

type ValueOf<Table> = Table extends unknown ? Table[keyof Table] : never
export type OidName = ValueOf<(typeof tables)[number]>

const attributeTypeByOid = new Map<string, string>(Object.entries(attributeTypes))
const usageByOid = new Map<string, string>(Object.entries(extendedKeyUsages))
const nameByOid = new Map<string, OidName>()
const oidByName = new Map<string, string>()
for (const table of tables) {
  for (const [oid, name] of Object.entries(table) as [string, OidName][]) {
    nameByOid.set(oid, name)
    oidByName.set(name, oid)
  }
}

/** Returns the name of an object identifier in the RFC that defines it; undefined if it is not in the tables. */
export function nameOfOid(oid: string): OidName | undefined {
  return nameByOid.get(oid)
}

/** True for a name in this table. */
export function isOidName(name: string): name is OidName {
  return oidByName.has(name)
}

/** Returns the dotted object identifier for a name in this table. */
export function oidOf(name: OidName): string {
  return oidByName.get(name)!
}

/** Returns the short name of an attribute type ("CN"), or the object identifier itself. */
export function attributeTypeName(oid: string): string {
  return attributeTypeByOid.get(oid) ?? oid
}

/** Returns the name of an extended key usage ("serverAuth"), or the object identifier itself. */
export function extendedKeyUsageName(oid: string): string {
  return usageByOid.get(oid) ?? oid
}

interface EncodedOid {
  readonly oid: string
  readonly content: readonly number[]
}

/** Returns the content bytes of a dotted object identifier with arcs of any size. */
export function encodeOid(oid: string): number[] {
  const [first = '', second = '', ...rest] = oid.split('.')
  const content: number[] = []
  const root = integerOf(first)
  const below = integerOf(second)
  if (typeof root === 'number' && typeof below === 'number') pushArc(content, root * 40 + below)
  else pushArc(content, BigInt(root) * 40n + BigInt(below))
  for (const arc of rest) pushArc(content, integerOf(arc))
  return content
}

/**
 * Returns a number if it fits into 31 bits even as a first arc. The whole table does, and is encoded when the first certificate
 * is read.
 */
function integerOf(digits: string): number | bigint {
  return digits.length < 10 ? Number(digits) : BigInt(digits)
}

function pushArc(content: number[], arc: number | bigint): void {
  if (typeof arc === 'bigint') {
    const groups: number[] = []
    for (let left = arc >> 7n; left > 0n; left >>= 7n) groups.push(Number(left & 0x7fn) | 0x80)
    content.push(...groups.reverse(), Number(arc & 0x7fn))
    return
  }
  for (let shift = 28; shift > 0; shift -= 7)
    if (arc >>> shift > 0) content.push(((arc >>> shift) & 0x7f) | 0x80)
  content.push(arc & 0x7f)
}

const noOids: readonly EncodedOid[] = []
let slots: (readonly EncodedOid[])[] | undefined

/**
 * Known identifiers are found by their length and last bytes. A certificate has about a dozen, and reading them builds no
 * strings.
 */
function slotTable(): (readonly EncodedOid[])[] {
  const table: (readonly EncodedOid[])[] = new Array(1024).fill(noOids)
  for (const oid of nameByOid.keys()) {
    const content = encodeOid(oid)
    const slot = slotOf(content, 0, content.length)
    table[slot] = [...table[slot]!, { oid, content }]
  }
  return table
}

function slotOf(bytes: ArrayLike<number>, start: number, stop: number): number {
  if (stop - start < 2) return 0
  return ((stop - start) * 67 + bytes[stop - 2]! * 31 + bytes[stop - 1]!) & 1023
}

/** Returns the dotted form of the identifier with these content bytes if it is in the table. */
export function knownOid(bytes: Uint8Array, start: number, stop: number): string | undefined {
  slots ??= slotTable()
  const slot = slots[slotOf(bytes, start, stop)]!
  for (let i = 0; i < slot.length; i++) {
    const { oid, content } = slot[i]!
    if (isContentAt(bytes, start, stop, content)) return oid
  }
  return undefined
}

function isContentAt(bytes: Uint8Array, start: number, stop: number, content: readonly number[]): boolean {
  if (content.length !== stop - start) return false
  for (let i = 0; i < content.length; i++) if (content[i] !== bytes[start + i]) return false
  return true
}
