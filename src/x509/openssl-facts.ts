import { X509Certificate } from 'node:crypto'
import type { Certificate } from './certificate.ts'
import { asBuffer, DerReader, tags } from './der.ts'
import { oidOf } from './oids.ts'
import { oncePer } from './once-per.ts'
import { areSameName, type CanonicalName, canonicalName, canonicalRdns, isWithin } from './openssl-name.ts'

// A certificate as OpenSSL 3 sees it. What node:crypto (which is OpenSSL) answers itself comes from there: whether it reads the
// certificate at all, whether a signature verifies. The rest it does not tell, and it is derived here as OpenSSL derives it.

const [oidProxyCertInfo, oidNsCertType] = ['1.3.6.1.5.5.7.1.14', oidOf('nsCertType')]

/** Critical extensions with any other identifier make OpenSSL refuse a chain. */
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
  // Addresses and numbers of autonomous systems (RFC 3779).
  '1.3.6.1.5.5.7.1.7',
  '1.3.6.1.5.5.7.1.8',
])

/** A GeneralName by its tag number (RFC 5280 section 4.2.1.6). What it says is decoded once, however often it is compared. */
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

  /** Of a directory name. */
  get rdns(): CanonicalName {
    this.cachedRdns ??= canonicalRdns(this.content)
    return this.cachedRdns
  }
}

export interface RawSubtree {
  readonly base: RawName
  /** Minimum 0 and no maximum: OpenSSL refuses what it would have to count. */
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
  /** Self-issued, and its key identifiers and algorithms do not contradict that its key signed it. Not checked any further. */
  readonly isSelfSigned: boolean
  readonly isInvalid: boolean
  readonly authorityKeyId: AuthorityKeyId | undefined
  readonly hasUnknownCritical: boolean
  readonly isProxy: boolean
  /** First byte of Netscape's certificate type. */
  readonly nsCertType: number | undefined
  readonly altNames: readonly RawName[] | undefined
  readonly permitted: readonly RawSubtree[]
  readonly excluded: readonly RawSubtree[]
  readonly hasConstraints: boolean
}

/** Returns what OpenSSL makes of a certificate. */
export const opensslFacts = oncePer(deriveFacts)

function deriveFacts(certificate: Certificate): OpensslFacts {
  const value = (oid: string): Uint8Array | undefined => certificate.findExtension(oid)?.value
  const authorityKeyId = readAuthorityKeyId(value(oidOf('authorityKeyIdentifier')))
  const isSelfIssued = areSameName(certificate.subject, certificate.issuer)
  const constraints = readConstraints(value(oidOf('nameConstraints')))
  let x509: { readonly read: X509Certificate | undefined } | undefined
  return {
    certificate,
    // Of a large bundle of roots few are ever asked for.
    get x509() {
      x509 ??= { read: readByOpenssl(certificate) }
      return x509.read
    },
    isSelfIssued,
    isSelfSigned:
      isSelfIssued &&
      matchesAuthority(certificate, authorityKeyId) &&
      signatureFitsKey(certificate, certificate),
    // RFC 5280 section 4.2.1.3 wants at least one bit in a key usage, and OpenSSL insists.
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

/** The first checks on a candidate, before any signature: name, identifiers, and that key and signature are of one kind. */
export function isLikelyIssuer(issuer: OpensslFacts, issued: OpensslFacts): boolean {
  return (
    areSameName(issuer.certificate.subject, issued.certificate.issuer) &&
    !issuer.isInvalid &&
    !issued.isInvalid &&
    matchesAuthority(issuer.certificate, issued.authorityKeyId) &&
    signatureFitsKey(issuer.certificate, issued.certificate)
  )
}

/** OpenSSL passes over an issuer whose identifier differs from the one asked for, where Go only tries it last. */
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

/** What goes wrong here went wrong in Certificate.parse before, or OpenSSL and kcert read alike that nothing is there. */
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
