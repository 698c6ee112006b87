import { X509Certificate } from 'node:crypto'
import type { Certificate } from './certificate.ts'
import { asBuffer, DerReader, tags } from './der.ts'
import { oidOf } from './oids.ts'
import { oncePer } from './once-per.ts'
import { areSameName, type CanonicalName, canonicalName, canonicalRdns, isWithin } from './openssl-name.ts'

// A certificate as OpenSSL 3 reads it. node:crypto (which is OpenSSL) provides some facts: whether it reads the certificate, and
// whether a signature verifies. The other facts are derived here as OpenSSL derives them.

const [oidProxyCertInfo, oidNsCertType] = ['1.3.6.1.5.5.7.1.14', oidOf('nsCertType')]

/** OpenSSL rejects a chain with any other critical extension. */
const understood: ReadonlySet<string> = new Set([
  oidOf('keyUsage'),
  oidOf('subjectAltName'),
  oidOf('basicConstraints'),
  oidOf('nameConstraints'),
  oidOf('extKeyUsage'),
  oidOf('cRLDistributionPoints'),
  oidOf('certificatePolicies'),
  oidOf('policyMappings'),
  oidOf('policyConstraints'),
  oidOf('inhibitAnyPolicy'),
  oidOf('ocspNoCheck'),
  oidNsCertType,
  oidProxyCertInfo,
  // IP addresses and autonomous system numbers (RFC 3779).
  '1.3.6.1.5.5.7.1.7',
  '1.3.6.1.5.5.7.1.8',
])

/** A GeneralName by its tag number (RFC 5280 section 4.2.1.6). Its content is decoded once, however often it is compared. */
export class RawName {
  readonly type: number
  readonly content: Buffer
  readonly text: string
  readonly lowerText: string
  private cachedRdns: CanonicalName | undefined

  constructor(type: number, content: Uint8Array) {
    this.type = type
    this.content = asBuffer(content)
    this.text = this.content.toString('latin1')
    this.lowerText = this.text.toLowerCase()
  }

  /** For a directory name. */
  get rdns(): CanonicalName {
    this.cachedRdns ??= canonicalRdns(this.content)
    return this.cachedRdns
  }
}

export interface RawSubtree {
  readonly base: RawName
  /** Minimum 0 and no maximum. OpenSSL rejects any other bounds. */
  readonly hasNoBounds: boolean
}

interface AuthorityKeyId {
  readonly keyId: string | undefined
  readonly issuer: CanonicalName | undefined
  readonly serialNumber: string | undefined
}

export interface OpensslFacts {
  readonly certificate: Certificate
  /** Undefined when OpenSSL does not read the certificate. */
  readonly x509: X509Certificate | undefined
  readonly isSelfIssued: boolean
  /**
   * Self-issued, with key identifiers and algorithms that do not contradict a signature by its own key. The signature is not
   * checked.
   */
  readonly isSelfSigned: boolean
  readonly isInvalid: boolean
  readonly authorityKeyId: AuthorityKeyId | undefined
  readonly hasUnknownCritical: boolean
  readonly isProxy: boolean
  /** First byte of the Netscape certificate type. */
  readonly nsCertType: number | undefined
  readonly altNames: readonly RawName[] | undefined
  readonly permitted: readonly RawSubtree[]
  readonly excluded: readonly RawSubtree[]
  readonly hasConstraints: boolean
}

/** Returns the facts that OpenSSL derives from a certificate. */
export const opensslFacts = oncePer(deriveFacts)

function deriveFacts(certificate: Certificate): OpensslFacts {
  const value = (oid: string): Uint8Array | undefined => certificate.findExtension(oid)?.value
  const authorityKeyId = readAuthorityKeyId(value(oidOf('authorityKeyIdentifier')))
  const isSelfIssued = areSameName(certificate.subject, certificate.issuer)
  const constraints = readConstraints(value(oidOf('nameConstraints')))
  let x509: { readonly read: X509Certificate | undefined } | undefined
  return {
    certificate,
    // In a large bundle of roots, few are ever used.
    get x509() {
      x509 ??= { read: readByOpenssl(certificate) }
      return x509.read
    },
    isSelfIssued,
    isSelfSigned:
      isSelfIssued &&
      matchesAuthority(certificate, authorityKeyId) &&
      signatureFitsKey(certificate, certificate),
    // RFC 5280 section 4.2.1.3 requires at least one bit in a key usage, and OpenSSL enforces it.
    isInvalid: certificate.keyUsage?.length === 0,
    authorityKeyId,
    hasUnknownCritical: certificate.extensions.some(({ oid, critical }) => critical && !understood.has(oid)),
    isProxy: value(oidProxyCertInfo) !== undefined,
    nsCertType: readNsCertType(value(oidNsCertType)),
    altNames: reading(value(oidOf('subjectAltName')), (reader) => readNames(reader, tags.sequence)),
    permitted: constraints?.permitted ?? [],
    excluded: constraints?.excluded ?? [],
    hasConstraints: constraints !== undefined,
  }
}

function readByOpenssl({ der }: Certificate): X509Certificate | undefined {
  try {
    return new X509Certificate(der)
  } catch {
    return undefined
  }
}

/** The first checks of a candidate, before any signature: name, identifiers, and whether key and signature have the same type. */
export function isLikelyIssuer(issuer: OpensslFacts, issued: OpensslFacts): boolean {
  return (
    areSameName(issuer.certificate.subject, issued.certificate.issuer) &&
    !issuer.isInvalid &&
    !issued.isInvalid &&
    matchesAuthority(issuer.certificate, issued.authorityKeyId) &&
    signatureFitsKey(issuer.certificate, issued.certificate)
  )
}

/** OpenSSL skips an issuer whose identifier differs from the authority key identifier. Go tries it last. */
function matchesAuthority(issuer: Certificate, asked: AuthorityKeyId | undefined): boolean {
  if (asked === undefined) return true
  const { keyId, serialNumber, issuer: issuerOfIssuer } = asked
  if (keyId !== undefined && issuer.subjectKeyId !== undefined && keyId !== issuer.subjectKeyId) return false
  if (serialNumber !== undefined && serialNumber !== issuer.serialNumber) return false
  if (issuerOfIssuer === undefined) return true
  const own = canonicalName(issuer.issuer)
  return own.length === issuerOfIssuer.length && isWithin(own, issuerOfIssuer)
}

function signatureFitsKey({ publicKey }: Certificate, { signatureAlgorithm }: Certificate): boolean {
  const wanted = signatureAlgorithm.startsWith('ecdsa-')
    ? 'ECDSA'
    : signatureAlgorithm.startsWith('dsa-')
      ? 'DSA'
      : /rsa/i.test(signatureAlgorithm)
        ? 'RSA'
        : signatureAlgorithm
  return publicKey.algorithm === wanted
}

/** An error here was already reported by Certificate.parse, or both OpenSSL and kcert treat the value as absent. */
function reading<T>(value: Uint8Array | undefined, read: (reader: DerReader) => T): T | undefined {
  if (value === undefined) return undefined
  try {
    return read(new DerReader(value, 'extension'))
  } catch {
    return undefined
  }
}

function readAuthorityKeyId(value: Uint8Array | undefined): AuthorityKeyId | undefined {
  return reading(value, (reader) => {
    reader.enter(tags.sequence, '')
    const keyId = reader.readOptional(0x80, '') ? hexOf(reader) : undefined
    const issuer = reader.peek(0xa1)
      ? readNames(reader, 0xa1).find(({ type }) => type === 4)?.rdns
      : undefined
    const serialNumber = reader.readOptional(0x82, '') ? reader.unsignedHex() : undefined
    return { keyId, issuer, serialNumber }
  })
}

function hexOf(reader: DerReader): string {
  return Buffer.from(reader.lastContent).toString('hex')
}

function readNames(reader: DerReader, tag: number): RawName[] {
  const names: RawName[] = []
  reader.each(tag, '', () => {
    names.push(readRawName(reader))
  })
  return names
}

function readRawName(reader: DerReader): RawName {
  const type = reader.next('') & 0x1f
  return new RawName(type, reader.lastContent)
}

function readConstraints(
  value: Uint8Array | undefined,
): { permitted: RawSubtree[]; excluded: RawSubtree[] } | undefined {
  return reading(value, (reader) => {
    reader.enter(tags.sequence, '')
    return { permitted: readSubtrees(reader, 0xa0), excluded: readSubtrees(reader, 0xa1) }
  })
}

function readSubtrees(reader: DerReader, tag: number): RawSubtree[] {
  const subtrees: RawSubtree[] = []
  if (!reader.peek(tag)) return subtrees
  reader.each(tag, '', () => {
    reader.within(tags.sequence, '', () => {
      const base = readRawName(reader)
      const minimum = reader.readOptional(0x80, '') ? hexOf(reader) : '00'
      subtrees.push({ base, hasNoBounds: minimum === '00' && reader.atEnd })
    })
  })
  return subtrees
}

function readNsCertType(value: Uint8Array | undefined): number | undefined {
  return reading(value, (reader) => {
    reader.bitString('')
    return reader.bytes[reader.start] ?? 0
  })
}
