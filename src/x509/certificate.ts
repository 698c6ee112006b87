import { hash } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import { asBuffer, constructedTag, contextTag, DerReader, derLimits, tags } from './der.ts'
import {
  type AuthorityInfoAccess,
  type BasicConstraints,
  DecodedExtensions,
  decodeExtension,
  type Extension,
  type KeyUsage,
  type PolicyMapping,
  readExtension,
} from './extensions.ts'
import type { NameConstraints, SubjectAltNames } from './general-names.ts'
import { settled } from './lists.ts'
import { type Name, readName } from './name.ts'
import { nameOfOid } from './oids.ts'
import { isCertificateLabel, looksLikePem, readPem } from './pem.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { verifySignature } from './signature.ts'
import { readTime } from './time.ts'

/** An X.509 certificate (RFC 5280 section 4.1), read from DER. Immutable. */
export class Certificate {
  readonly version: 1 | 2 | 3
  /** Hexadecimal, lower case, whole octets. */
  readonly serialNumber: string
  readonly subject: Name
  readonly issuer: Name
  readonly notBefore: Date
  readonly notAfter: Date
  readonly publicKey: PublicKeyInfo
  readonly signatureAlgorithmOid: string
  readonly extensions: readonly Extension[]
  /** Object identifiers of critical extensions that Go does not handle: a chain with one is refused. */
  readonly unhandledCriticalExtensions: readonly string[]
  private readonly decoded: DecodedExtensions
  private readonly bytes: Buffer
  private readonly bounds: CertificateBounds
  private readonly shiftedSignature: Uint8Array | undefined
  private cachedFingerprint: string | undefined

  /**
   * Reads one certificate that fills `der`. Accepts and refuses what Go's crypto/x509 does, so that a verdict here is the one
   * of the components that will read it. Throws KCERT_X509_MALFORMED with the field and its offset.
   */
  static parse(der: Uint8Array): Certificate {
    const reader = new DerReader(der, 'certificate')
    const certificate = new Certificate(reader)
    reader.finish('after the certificate')
    return certificate
  }

  /** Reads the certificate at the start of `der`; `size` octets belong to it. */
  static parseFirst(der: Uint8Array): { certificate: Certificate; size: number } {
    // What follows may be long: the limit is on the certificate.
    const reader = new DerReader(der.subarray(0, derLimits.documentBytes), 'certificate')
    const certificate = new Certificate(reader)
    return { certificate, size: reader.offset }
  }

  private constructor(reader: DerReader) {
    const start = reader.offset
    const outer = reader.enter(tags.sequence, '')
    const stop = reader.end
    reader.path = 'tbsCertificate.'
    const tbsOuter = reader.enter(tags.sequence, '')
    const tbsStart = reader.header
    const tbsStop = reader.end

    this.version = readVersion(reader)
    reader.integer('serialNumber')
    if (reader.isNegative) reader.fail('serialNumber', 'negative', reader.start)
    this.serialNumber = reader.unsignedHex()

    reader.read(tags.sequence, 'signature')
    const algorithmStart = reader.start
    const algorithmStop = reader.stop
    this.signatureAlgorithmOid = readAlgorithm(reader)

    this.issuer = readName(reader, 'issuer')
    const validity = reader.enter(tags.sequence, 'validity')
    this.notBefore = new Date(readTime(reader, 'validity.notBefore'))
    this.notAfter = new Date(readTime(reader, 'validity.notAfter'))
    reader.leave(validity)
    this.subject = readName(reader, 'subject')
    this.publicKey = readSubjectPublicKeyInfo(reader, 'subjectPublicKeyInfo')

    this.decoded = new DecodedExtensions()
    const extensions: Extension[] = []
    const unhandled: string[] = []
    if (this.version > 1) {
      reader.readOptional(contextTag(1), 'issuerUniqueID')
      reader.readOptional(contextTag(2), 'subjectUniqueID')
    }
    if (this.version === 3 && reader.readOptional(constructedTag(3), 'extensions')) {
      readExtensions(reader, this.decoded, extensions, unhandled)
    }
    this.extensions = settled(extensions)
    this.unhandledCriticalExtensions = settled(unhandled)
    reader.leave(tbsOuter)

    reader.path = ''
    reader.read(tags.sequence, 'signatureAlgorithm')
    const { bytes } = reader
    if (bytes.compare(bytes, algorithmStart, algorithmStop, reader.start, reader.stop) !== 0) {
      reader.fail('signatureAlgorithm', 'differs from tbsCertificate.signature', reader.header)
    }
    const unused = reader.bitString('signatureValue')
    this.shiftedSignature = unused === 0 ? undefined : reader.rightAligned(unused)
    this.bytes = bytes
    this.bounds = {
      start,
      stop,
      tbsStart,
      tbsStop,
      algorithmStart,
      algorithmStop,
      signatureStart: reader.start,
      signatureStop: reader.stop,
    }
    reader.leave(outer)
  }

  get der(): Uint8Array {
    return this.bytes.subarray(this.bounds.start, this.bounds.stop)
  }

  /** DER of the TBSCertificate: what is signed. */
  get tbs(): Uint8Array {
    return this.bytes.subarray(this.bounds.tbsStart, this.bounds.tbsStop)
  }

  get signature(): Uint8Array {
    const { signatureStart, signatureStop } = this.bounds
    return this.shiftedSignature ?? this.bytes.subarray(signatureStart, signatureStop)
  }

  /** Name in its RFC ("sha256WithRSAEncryption", "ecdsa-with-SHA256", "Ed25519") or the object identifier. */
  get signatureAlgorithm(): string {
    return nameOfOid(this.signatureAlgorithmOid) ?? this.signatureAlgorithmOid
  }

  /** Content of the AlgorithmIdentifier of the signature. */
  get signatureAlgorithmDer(): Uint8Array {
    return this.bytes.subarray(this.bounds.algorithmStart, this.bounds.algorithmStop)
  }

  get basicConstraints(): BasicConstraints | undefined {
    return this.decoded.basicConstraints
  }

  get isCa(): boolean {
    return this.decoded.basicConstraints?.ca === true
  }

  /** Undefined when the extension is absent, which allows every use. */
  get keyUsage(): readonly KeyUsage[] | undefined {
    return this.decoded.keyUsage
  }

  /** Names ("serverAuth") or object identifiers; empty when the extension is absent. */
  get extendedKeyUsage(): readonly string[] {
    return this.decoded.extendedKeyUsage
  }

  get subjectAltNames(): SubjectAltNames {
    return this.decoded.subjectAltNames
  }

  /** Hexadecimal. */
  get subjectKeyId(): string | undefined {
    return this.decoded.subjectKeyId
  }

  /** Hexadecimal. */
  get authorityKeyId(): string | undefined {
    return this.decoded.authorityKeyId
  }

  get nameConstraints(): NameConstraints | undefined {
    return this.decoded.nameConstraints
  }

  get crlDistributionPoints(): readonly string[] {
    return this.decoded.crlDistributionPoints
  }

  get authorityInfoAccess(): AuthorityInfoAccess {
    return this.decoded.authorityInfoAccess
  }

  /** Object identifiers. */
  get policies(): readonly string[] {
    return this.decoded.policies
  }

  get policyMappings(): readonly PolicyMapping[] {
    return this.decoded.policyMappings
  }

  get requireExplicitPolicy(): number | undefined {
    return this.decoded.requireExplicitPolicy
  }

  get inhibitPolicyMapping(): number | undefined {
    return this.decoded.inhibitPolicyMapping
  }

  get inhibitAnyPolicy(): number | undefined {
    return this.decoded.inhibitAnyPolicy
  }

  /** SHA-256 of the whole certificate in hexadecimal. */
  get fingerprintSha256(): string {
    this.cachedFingerprint ??= hash('sha256', this.der, 'hex')
    return this.cachedFingerprint
  }

  /** True when subject and issuer have the same octets; whether the signature is its own is another question. */
  get isSelfIssued(): boolean {
    return this.subject.equals(this.issuer)
  }

  findExtension(oid: string): Extension | undefined {
    return this.extensions.find((extension) => extension.oid === oid)
  }

  equals(other: Certificate): boolean {
    return asBuffer(this.der).equals(other.der)
  }

  /** True when the issuer's key made the signature, by whatever algorithm: also SHA-1 and MD5, which `verifySignature` refuses. */
  isSignedBy(issuer: Certificate): boolean {
    return verifySignature(this, issuer.publicKey, 'any').ok
  }
}

interface CertificateBounds {
  readonly start: number
  readonly stop: number
  readonly tbsStart: number
  readonly tbsStop: number
  readonly algorithmStart: number
  readonly algorithmStop: number
  readonly signatureStart: number
  readonly signatureStop: number
}

/** RFC 5280 section 4.1.2.1: absent is version 1. */
function readVersion(reader: DerReader): 1 | 2 | 3 {
  if (!reader.readOptional(constructedTag(0), 'version')) return 1
  const outer = reader.enterLast('version')
  const value = reader.int64('version')
  reader.finish('version')
  if (value !== 0 && value !== 1 && value !== 2)
    reader.fail('version', `unknown version ${value}`, reader.start)
  reader.leave(outer)
  return (value + 1) as 1 | 2 | 3
}

/** Object identifier of the AlgorithmIdentifier that was just read. */
function readAlgorithm(reader: DerReader): string {
  const outer = reader.enterLast('signature')
  const oid = reader.oid('signature.algorithm')
  if (!reader.atEnd) reader.next('signature.parameters')
  reader.leave(outer)
  return oid
}

function readExtensions(
  reader: DerReader,
  decoded: DecodedExtensions,
  extensions: Extension[],
  unhandled: string[],
): void {
  reader.path = ''
  const outer = reader.enterLast('extensions')
  const list = reader.enter(tags.sequence, 'extensions')
  const seen = new Set<string>()
  while (!reader.atEnd) {
    const at = reader.offset
    const extension = readExtension(reader)
    const { oid } = extension
    if (seen.has(oid)) reader.fail(extension.name, 'extension for the second time', at)
    seen.add(oid)
    extensions.push(extension)
    if (!decodeExtension(reader, extension, decoded) && extension.critical) unhandled.push(oid)
  }
  reader.leave(list)
  reader.leave(outer)
}

/**
 * Returns all certificates of a PEM text, or one or several certificates in DER one behind the other.
 * Blocks of other kinds are passed over. Throws KCERT_X509_MALFORMED when one is damaged or there is none.
 */
export function readCertificates(input: Uint8Array | string): Certificate[] {
  const bytes = typeof input === 'string' ? Buffer.from(input, 'utf8') : input
  const certificates = looksLikePem(bytes) ? certificatesOfPem(bytes) : certificatesOfDer(bytes)
  if (certificates.length === 0) throw new KcertError('KCERT_X509_MALFORMED', 'no certificate found')
  return certificates
}

function certificatesOfPem(bytes: Uint8Array): Certificate[] {
  const { blocks, defects } = readPem(bytes)
  const defect = defects.find(({ label }) => isCertificateLabel(label))
  if (defect !== undefined) {
    throw new KcertError(
      'KCERT_X509_MALFORMED',
      `PEM block ${defect.label} at line ${defect.line}: ${defect.reason}`,
    )
  }
  return blocks.filter(({ label }) => isCertificateLabel(label)).map(certificateOfBlock)
}

/** The certificate of a PEM block. What OpenSSL appends in a TRUSTED CERTIFICATE, its trust settings, is passed over. */
export function certificateOfBlock(block: { readonly label: string; readonly der: Uint8Array }): Certificate {
  if (block.label === 'TRUSTED CERTIFICATE') return Certificate.parseFirst(block.der).certificate
  return Certificate.parse(block.der)
}

function certificatesOfDer(bytes: Uint8Array): Certificate[] {
  const certificates: Certificate[] = []
  for (let at = 0; at < bytes.length; ) {
    const { certificate, size } = Certificate.parseFirst(bytes.subarray(at))
    certificates.push(certificate)
    at += size
  }
  return certificates
}
