import { constructedTag, DerReader, tags } from './der.ts'
import {
  type BasicConstraints,
  DecodedExtensions,
  decodeExtension,
  type Extension,
  type KeyUsage,
  readExtension,
} from './extensions.ts'
import type { SubjectAltNames } from './general-names.ts'
import { type Name, readName } from './name.ts'
import { nameOfOid } from './oids.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { type SignatureVerdict, verifySignature } from './signature.ts'

const oidSubjectAltName = '2.5.29.17'

/** A certificate signing request, PKCS#10 (RFC 2986), read from DER. Immutable. */
export class CertificateRequest {
  readonly der: Uint8Array
  /** DER of the CertificationRequestInfo: what is signed. */
  readonly tbs: Uint8Array
  /** 0 in every request that follows the RFC. */
  readonly version: number
  readonly subject: Name
  readonly publicKey: PublicKeyInfo
  readonly signatureAlgorithmOid: string
  /** Content of the AlgorithmIdentifier of the signature. */
  readonly signatureAlgorithmDer: Uint8Array
  readonly signature: Uint8Array
  /** Requested extensions, in order. */
  readonly extensions: readonly Extension[]
  /** Object identifiers of requested extensions that cannot be read. Go does not look into them, so the request stands. */
  readonly malformedExtensions: readonly string[]
  private readonly decoded: DecodedExtensions

  /** Reads one request that fills `der`, as strictly as Go's ParseCertificateRequest. Throws KCERT_X509_MALFORMED. */
  static parse(der: Uint8Array): CertificateRequest {
    return new CertificateRequest(new DerReader(der, 'request'))
  }

  private constructor(reader: DerReader) {
    const outer = reader.enter(tags.sequence, '')
    this.der = reader.lastElement
    reader.path = 'certificationRequestInfo.'
    const infoOuter = reader.enter(tags.sequence, '')
    this.tbs = reader.lastElement
    this.version = reader.int64('version')
    this.subject = readName(reader, 'subject', true)
    this.publicKey = readSubjectPublicKeyInfo(reader, 'subjectPKInfo')
    const requested = new RequestedExtensions()
    const attributes = reader.enter(constructedTag(0), 'attributes')
    while (!reader.atEnd) {
      reader.next('attribute')
      requested.readAttribute(reader.fork())
    }
    reader.leave(attributes)
    reader.leave(infoOuter)
    this.extensions = requested.list
    this.malformedExtensions = requested.malformed
    this.decoded = requested.decoded

    reader.path = ''
    const algorithm = reader.enter(tags.sequence, 'signatureAlgorithm')
    this.signatureAlgorithmDer = reader.lastContent
    this.signatureAlgorithmOid = reader.oid('signatureAlgorithm.algorithm')
    if (!reader.atEnd) reader.next('signatureAlgorithm.parameters')
    reader.leave(algorithm)
    this.signature = reader.rightAligned(reader.bitString('signature'))
    reader.leave(outer)
    reader.finish('after the request')
  }

  /** Name in its RFC or the object identifier. */
  get signatureAlgorithm(): string {
    return nameOfOid(this.signatureAlgorithmOid) ?? this.signatureAlgorithmOid
  }

  get subjectAltNames(): SubjectAltNames {
    return this.decoded.subjectAltNames
  }

  get basicConstraints(): BasicConstraints | undefined {
    return this.decoded.basicConstraints
  }

  get keyUsage(): readonly KeyUsage[] | undefined {
    return this.decoded.keyUsage
  }

  /** Names ("serverAuth") or object identifiers; empty when the extension is absent. */
  get extendedKeyUsage(): readonly string[] {
    return this.decoded.extendedKeyUsage
  }

  /** True when the key in the request signed it, by an algorithm that Go takes in requests: SHA-1 still is one, MD5 is not. */
  signatureIsValid(): boolean {
    return this.verifySignature().ok
  }

  verifySignature(): SignatureVerdict {
    return verifySignature(this, this.publicKey, 'request')
  }
}

/** What the extensionRequest attributes (RFC 2985 section 5.4.2) ask for. */
class RequestedExtensions {
  readonly list: Extension[] = []
  readonly malformed: string[] = []
  readonly decoded = new DecodedExtensions()

  /** Reads one attribute; others than extensionRequest, and what is no attribute at all, are passed over as Go does. */
  readAttribute(reader: DerReader): void {
    if (!entersExtensionRequest(reader)) return
    reader.enter(tags.sequence, 'extensionRequest')
    while (!reader.atEnd) {
      const at = reader.offset
      const extension = readExtension(reader)
      if (this.list.some(({ oid }) => oid === extension.oid)) {
        reader.fail(extension.name, 'extension requested for the second time', at)
      }
      this.list.push(extension)
      this.decode(reader, extension)
    }
  }

  private decode(reader: DerReader, extension: Extension): void {
    // Go reads the alternative names of a request and nothing else; a request with other garbage reaches the signer.
    if (extension.oid === oidSubjectAltName) {
      decodeExtension(reader, extension, this.decoded)
      return
    }
    const { offset, end, path } = reader
    try {
      decodeExtension(reader, extension, this.decoded)
    } catch {
      this.malformed.push(extension.oid)
    }
    Object.assign(reader, { offset, end, path })
  }
}

/** Goes into the values of an extensionRequest attribute; false when it is something else. */
function entersExtensionRequest(reader: DerReader): boolean {
  try {
    reader.enter(tags.sequence, 'attribute')
    const isExtensionRequest = nameOfOid(reader.oid('attribute.type')) === 'extensionRequest'
    reader.enter(tags.set, 'attribute.values')
    const values = reader.offset
    if (reader.atEnd) return false
    while (!reader.atEnd) reader.next('attribute.values')
    reader.offset = values
    return isExtensionRequest
  } catch {
    return false
  }
}
