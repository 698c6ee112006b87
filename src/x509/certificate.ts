import { KcertError } from '../errors/kcert-error.ts'
import {
  asBuffer,
  constructedTag,
  contextTag,
  DerReader,
  derLimits,
  sameBytes,
  tags,
  unsignedHex,
} from './der.ts'
import {
  type AuthorityInfoAccess,
  type BasicConstraints,
  DecodedExtensions,
  decodeExtension,
  Extension,
  type KeyUsage,
} from './extensions.ts'
import type { NameConstraints, SubjectAltNames } from './general-names.ts'
import { settled } from './lists.ts'
import { type Name, readName, readRepeatedName } from './name.ts'
import { nameOfOid } from './oids.ts'
import { isCertificateLabel, looksLikePem, type PemBlock, readPem, writePem } from './pem.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { sha256Hex } from './sha256.ts'
import { verifySignature } from './signature.ts'
import { readTime } from './time.ts'

/** An X.509 certificate (RFC 5280 section 4.1), read from DER. Immutable. */
export class Certificate {
  readonly version: 1 | 2 | 3
  readonly subject: Name
  readonly issuer: Name
  /** Milliseconds since 1970, like `notAfterMs`. */
  readonly notBeforeMs: number
  readonly notAfterMs: number
  readonly publicKey: PublicKeyInfo
  readonly signatureAlgorithmOid: string
  /** Object identifiers of critical extensions that Go does not handle. Go rejects a chain that contains one. */
  readonly unhandledCriticalExtensions: readonly string[]
  readonly basicConstraints: BasicConstraints | undefined
  /** Undefined when the extension is absent. An absent extension allows every use. */
  readonly keyUsage: readonly KeyUsage[] | undefined
  /** Names ("serverAuth") or object identifiers; empty when the extension is absent. */
  readonly extendedKeyUsage: readonly string[]
  /** Hexadecimal. */
  readonly authorityKeyId: string | undefined
  /** True when the SANs contain a DNS name or an IP address. */
  readonly hasHostNames: boolean
  // Everything was read and checked once. Rarely used fields are read again from the bytes: for a table of 10,000 certificates,
  // their offsets fit in memory, but the lists and texts do not.
  private readonly bytes: Buffer
  private readonly start: number
  private readonly stop: number
  private readonly tbsStart: number
  private readonly tbsStop: number
  private readonly serialStart: number
  private readonly serialStop: number
  private readonly extensionsStart: number
  private readonly extensionsStop: number
  private readonly algorithmStart: number
  private readonly algorithmStop: number
  private readonly signatureStart: number
  private readonly signatureStop: number
  private readonly shiftedSignature: Uint8Array | undefined
  private cachedNotBefore: Date | undefined
  private cachedNotAfter: Date | undefined
  private cachedExtensions: readonly Extension[] | undefined
  private cachedDecoded: DecodedExtensions | undefined
  private cachedFingerprint: string | undefined

  /**
   * Returns the certificate that fills `der`. Accepts and rejects what Go's crypto/x509 does, so that the result matches what the
   * Kubernetes components do with the file. Throws KCERT_X509_MALFORMED with the field and its offset.
   */
  static parse(der: Uint8Array): Certificate {
    const reader = new DerReader(der, 'certificate')
    const certificate = new Certificate(reader)
    reader.finish('after the certificate')
    return certificate
  }

  /** Returns the certificate at the start of `der` and its `size` in bytes. */
  static parseFirst(der: Uint8Array): { certificate: Certificate; size: number } {
    // More data may follow: the limit applies to the certificate only.
    const reader = new DerReader(der.subarray(0, derLimits.documentBytes), 'certificate')
    const certificate = new Certificate(reader)
    return { certificate, size: reader.offset }
  }

  private constructor(reader: DerReader) {
    const { bytes } = reader
    this.bytes = bytes
    this.start = reader.offset
    const outer = reader.enter(tags.sequence, '')
    this.stop = reader.end
    reader.path = 'tbsCertificate.'
    const tbsOuter = reader.enter(tags.sequence, '')
    this.tbsStart = reader.header
    this.tbsStop = reader.end

    this.version = readVersion(reader)
    reader.integer('serialNumber')
    if (reader.isNegative)
      reader.fail(
        'serialNumber',
        'negative',
        reader.start,
        'reissue it with a positive serial number: Go, and so Kubernetes, rejects others',
      )
    this.serialStart = reader.start
    this.serialStop = reader.stop

    reader.read(tags.sequence, 'signature')
    this.algorithmStart = reader.start
    this.algorithmStop = reader.stop
    this.signatureAlgorithmOid = readAlgorithm(reader)

    this.issuer = readRepeatedName(reader, 'issuer')
    const validity = reader.enter(tags.sequence, 'validity')
    this.notBeforeMs = readTime(reader, 'validity.notBefore')
    this.notAfterMs = readTime(reader, 'validity.notAfter')
    reader.leave(validity)
    this.subject = readName(reader, 'subject')
    this.publicKey = readSubjectPublicKeyInfo(reader, 'subjectPublicKeyInfo')

    const decoded = new DecodedExtensions(false)
    this.extensionsStart = 0
    this.extensionsStop = 0
    this.unhandledCriticalExtensions = none
    if (this.version > 1) {
      reader.readOptional(contextTag(1), 'issuerUniqueID')
      reader.readOptional(contextTag(2), 'subjectUniqueID')
    }
    if (this.version === 3 && reader.readOptional(constructedTag(3), 'extensions')) {
      reader.path = ''
      const extensionsOuter = reader.enterLast('extensions')
      const list = reader.enter(tags.sequence, 'extensions')
      this.extensionsStart = reader.offset
      this.extensionsStop = reader.end
      this.unhandledCriticalExtensions = readExtensions(reader, decoded)
      reader.leave(list)
      reader.leave(extensionsOuter)
    }
    this.basicConstraints = decoded.basicConstraints
    this.keyUsage = decoded.keyUsage
    this.extendedKeyUsage = decoded.extendedKeyUsage
    this.authorityKeyId = decoded.authorityKeyId
    this.hasHostNames = decoded.hasHostNames
    reader.leave(tbsOuter)

    reader.path = ''
    reader.read(tags.sequence, 'signatureAlgorithm')
    if (!sameBytes(bytes, this.algorithmStart, this.algorithmStop, bytes, reader.start, reader.stop)) {
      reader.fail('signatureAlgorithm', 'differs from tbsCertificate.signature', reader.header)
    }
    const unused = reader.bitString('signatureValue')
    this.shiftedSignature = unused === 0 ? undefined : reader.rightAligned(unused)
    this.signatureStart = reader.start
    this.signatureStop = reader.stop
    reader.leave(outer)
  }

  /** Hexadecimal, lower case, whole bytes. */
  get serialNumber(): string {
    return unsignedHex(this.bytes, this.serialStart, this.serialStop)
  }

  get notBefore(): Date {
    this.cachedNotBefore ??= new Date(this.notBeforeMs)
    return this.cachedNotBefore
  }

  get notAfter(): Date {
    this.cachedNotAfter ??= new Date(this.notAfterMs)
    return this.cachedNotAfter
  }

  get extensions(): readonly Extension[] {
    if (this.cachedExtensions === undefined) {
      const reader = this.readerOfExtensions()
      const extensions: Extension[] = []
      while (!reader.atEnd) extensions.push(new Extension(reader))
      this.cachedExtensions = settled(extensions)
    }
    return this.cachedExtensions
  }

  private readerOfExtensions(): DerReader {
    const reader = new DerReader(this.bytes, 'certificate', this.bytes.length)
    reader.offset = this.extensionsStart
    reader.end = this.extensionsStop
    return reader
  }

  /** All extensions that kcert decodes. */
  get decoded(): DecodedExtensions {
    if (this.cachedDecoded === undefined) {
      this.cachedDecoded = new DecodedExtensions()
      readExtensions(this.readerOfExtensions(), this.cachedDecoded)
    }
    return this.cachedDecoded
  }

  get der(): Uint8Array {
    return this.bytes.subarray(this.start, this.stop)
  }

  /** DER of the TBSCertificate, which the signature covers. */
  get tbs(): Uint8Array {
    return this.bytes.subarray(this.tbsStart, this.tbsStop)
  }

  get signature(): Uint8Array {
    return this.shiftedSignature ?? this.bytes.subarray(this.signatureStart, this.signatureStop)
  }

  /** The last bytes of the signature as a number. It nearly always differs between certificates and needs no digest. */
  get tail(): number {
    const { bytes, signatureStop, signatureStart } = this
    const length = Math.min(4, signatureStop - signatureStart)
    return length === 0 ? 0 : bytes.readUIntBE(signatureStop - length, length)
  }

  /** Name in its RFC ("sha256WithRSAEncryption", "ecdsa-with-SHA256", "Ed25519") or the object identifier. */
  get signatureAlgorithm(): string {
    return nameOfOid(this.signatureAlgorithmOid) ?? this.signatureAlgorithmOid
  }

  /** Content of the AlgorithmIdentifier of the signature. */
  get signatureAlgorithmDer(): Uint8Array {
    return this.bytes.subarray(this.algorithmStart, this.algorithmStop)
  }

  get isCa(): boolean {
    return this.basicConstraints?.ca === true
  }

  get subjectAltNames(): SubjectAltNames {
    return this.decoded.subjectAltNames
  }

  /** Hexadecimal. */
  get subjectKeyId(): string | undefined {
    return this.decoded.subjectKeyId
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

  /** SHA-256 of the whole certificate in hexadecimal. */
  get fingerprintSha256(): string {
    this.cachedFingerprint ??= sha256Hex(this.der)
    return this.cachedFingerprint
  }

  /** True when subject and issuer have the same bytes. This does not mean that the certificate's own key signed it. */
  get isSelfIssued(): boolean {
    return this.subject.equals(this.issuer)
  }

  findExtension(oid: string): Extension | undefined {
    return this.extensions.find((extension) => extension.oid === oid)
  }

  equals(other: Certificate): boolean {
    return asBuffer(this.der).equals(other.der)
  }

  /**
   * True when the issuer's key made the signature, with any algorithm, including SHA-1 and MD5, which `verifySignature` rejects.
   */
  isSignedBy(issuer: Certificate): boolean {
    return verifySignature(this, issuer.publicKey, 'any').ok
  }

  /** True when the OpenSSL in this Node.js cannot verify the issuer's signature: ML-DSA before OpenSSL 3.5. */
  isUncheckableFor(issuer: Certificate): boolean {
    const verdict = verifySignature(this, issuer.publicKey, 'any')
    return !verdict.ok && verdict.reason === 'cannot-be-checked'
  }
}

const none: readonly string[] = Object.freeze([])

/** RFC 5280 section 4.1.2.1: version 1 when absent. */
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

/** Returns the object identifier of the AlgorithmIdentifier that was just read. */
function readAlgorithm(reader: DerReader): string {
  const outer = reader.enterLast('signature')
  const oid = reader.oid('signature.algorithm')
  if (!reader.atEnd) reader.next('signature.parameters')
  reader.leave(outer)
  return oid
}

/** Decodes the extensions that the reader is in. Returns the critical ones that Go does not handle. */
function readExtensions(reader: DerReader, decoded: DecodedExtensions): readonly string[] {
  const seen = new Set<string>()
  let unhandled: string[] | undefined
  while (!reader.atEnd) {
    const at = reader.offset
    const extension = new Extension(reader)
    const { oid } = extension
    if (seen.has(oid))
      reader.fail(
        nameOfOid(oid) ?? oid,
        'extension for the second time',
        at,
        'reissue it with each extension once: Go, and so Kubernetes, rejects others',
      )
    seen.add(oid)
    if (decodeExtension(reader, extension, decoded) || !extension.critical) continue
    unhandled ??= []
    unhandled.push(oid)
  }
  return unhandled === undefined ? none : settled(unhandled)
}

/**
 * Returns all certificates of a PEM text, or one or several consecutive certificates in DER. Ignores blocks of other kinds.
 * Throws KCERT_X509_MALFORMED when a certificate is damaged or there is none.
 */
export function readCertificates(input: Uint8Array | string): Certificate[] {
  const bytes = typeof input === 'string' ? Buffer.from(input, 'utf8') : input
  const certificates = looksLikePem(bytes)
    ? certificateBlocks(bytes).map(certificateOfBlock)
    : certificatesOfDer(bytes)
  if (certificates.length === 0) throw new KcertError('KCERT_X509_MALFORMED', 'no certificate found')
  return certificates
}

/**
 * Returns the certificate blocks of a PEM text. Throws KCERT_X509_MALFORMED when one is damaged: otherwise the next block would
 * become the leaf.
 */
export function certificateBlocks(text: Uint8Array | string): PemBlock[] {
  const { blocks, defects } = readPem(text)
  const defect = defects.find(({ label }) => isCertificateLabel(label))
  if (defect !== undefined) {
    const what = `PEM block ${defect.label} at line ${defect.line}: ${defect.reason}`
    throw new KcertError('KCERT_X509_MALFORMED', what)
  }
  return blocks.filter(({ label }) => isCertificateLabel(label))
}

/** Returns the certificates in PEM, one after the other. */
export function writeCertificates(certificates: Iterable<Pick<Certificate, 'der'>>): string {
  return Array.from(certificates, ({ der }) => writePem('CERTIFICATE', der)).join('')
}

/** Returns the certificate of a PEM block. Ignores the trust settings that OpenSSL appends in a TRUSTED CERTIFICATE. */
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
