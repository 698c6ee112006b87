import { constructedTag, DerReader, tags } from './der.ts'
import {
  type BasicConstraints,
  DecodedExtensions,
  decodeExtension,
  Extension,
  type KeyUsage,
} from './extensions.ts'
import type { SubjectAltNames } from './general-names.ts'
import { type Name, readName } from './name.ts'
import { nameOfOid } from './oids.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { type SignaturePolicy, type SignatureVerdict, verifySignature } from './signature.ts'

const oidSubjectAltName = '2.5.29.17'

/** A certificate signing request, PKCS#10 (RFC 2986), read from DER. Immutable. */
export class CertificateRequest {
  readonly der: Uint8Array
  /** DER of the CertificationRequestInfo, which the signature covers. */
  readonly tbs: Uint8Array
  /** 0 in every request that conforms to the RFC. */
  readonly version: number
  readonly subject: Name
  readonly publicKey: PublicKeyInfo
  readonly signatureAlgorithmOid: string
  /** Content of the AlgorithmIdentifier of the signature. */
  readonly signatureAlgorithmDer: Uint8Array
  readonly signature: Uint8Array
  /** Requested extensions, in order. */
  readonly extensions: readonly Extension[]
  /** Object identifiers of requested extensions that cannot be read. Go does not check them, so the request is valid. */
  readonly malformedExtensions: readonly string[]
  /**
   * Attributes that Go ignores but another signer may read: with an unknown type, repeated, with several values, malformed, or
   * after the list of attributes. For example, OpenSSL issues the extensions in Microsoft's extensionRequest.
   */
  readonly unreadAttributes: readonly string[]
  private readonly decoded: DecodedExtensions

  /** Returns the request that fills `der`, as strictly as Go's ParseCertificateRequest. Throws KCERT_X509_MALFORMED. */
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
      requested.readAttribute(reader)
    }
    reader.leave(attributes)
    this.unreadAttributes = reader.atEnd
      ? requested.unread
      : [...requested.unread, 'data after the attributes']
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

  /** With the policy `possession`, ML-DSA is accepted, and what Go accepts in requests: SHA-1, but not MD5. */
  verifySignature(policy: SignaturePolicy = 'request'): SignatureVerdict {
    return verifySignature(this, this.publicKey, policy)
  }
}

/** The extensions requested in the extensionRequest attributes (RFC 2985 section 5.4.2). */
class RequestedExtensions {
  readonly list: Extension[] = []
  readonly malformed: string[] = []
  readonly decoded = new DecodedExtensions()
  readonly unread: string[] = []
  private readonly seen = new Set<string>()
  private readonly requested = new Set<string>()

  /** Reads the attribute that `info` just read. Ignores malformed ones and all but extensionRequest, as Go does. */
  readAttribute(info: DerReader): void {
    const head = attributeHead(info.fork())
    const isKnown = head?.valueCount === 1 && knownAttributes.has(head.type) && !this.seen.has(head.type)
    if (!isKnown) this.unread.push(attributeText(head))
    if (head !== undefined) this.seen.add(head.type)
    const reader = info.fork()
    if (!entersExtensionRequest(reader)) return
    reader.enter(tags.sequence, 'extensionRequest')
    while (!reader.atEnd) {
      const at = reader.offset
      const extension = new Extension(reader)
      if (this.requested.has(extension.oid))
        reader.fail(extension.name, 'extension requested for the second time', at)
      this.requested.add(extension.oid)
      this.list.push(extension)
      this.decode(reader, extension)
    }
  }

  private decode(reader: DerReader, extension: Extension): void {
    // Go reads only the SANs of a request. A request with other malformed extensions reaches the signer.
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

interface AttributeHead {
  /** Name in its RFC or the object identifier. */
  readonly type: string
  readonly valueCount: number
}

/** Attributes of RFC 2985 that add nothing to a certificate, and extensionRequest. */
const knownAttributes: ReadonlySet<string> = new Set([
  'extensionRequest',
  'challengePassword',
  'unstructuredName',
])

function attributeText(head: AttributeHead | undefined): string {
  if (head === undefined) return 'a malformed attribute'
  return head.valueCount === 1 ? head.type : `${head.type} with ${head.valueCount} values`
}

/** Returns the type of an attribute and its number of values; undefined when it is malformed or has data after its values. */
function attributeHead(reader: DerReader): AttributeHead | undefined {
  try {
    reader.next('attribute')
    reader.enterLast('attribute')
    const oid = reader.oid('attribute.type')
    const outer = reader.enter(tags.set, 'attribute.values')
    let valueCount = 0
    for (; !reader.atEnd; valueCount++) reader.next('attribute.values')
    reader.leave(outer)
    return reader.atEnd ? { type: nameOfOid(oid) ?? oid, valueCount } : undefined
  } catch {
    return undefined
  }
}

/** Enters the values of an extensionRequest attribute. Returns false for any other attribute. */
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
