import { createPublicKey, hash, type KeyObject, sign } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import { DerReader } from './der.ts'
import { bitString, explicit, integer, nullElement, oid, sequence, setOf, time } from './der-writer.ts'
import { type ExtensionsDescription, encodeExtensions, refuse } from './extension-encoding.ts'
import { encodeName, type NameInput } from './name-encoding.ts'
import { type OidName, oidOf } from './oids.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { quoted } from './strings.ts'

export type {
  AltNamesDescription,
  ExtensionsDescription,
  RawExtension,
  SubtreesDescription,
} from './extension-encoding.ts'

// Writes certificates and requests. The caller provides serial number, times and keys.

export interface CertificateDescription extends ExtensionsDescription {
  /** Hexadecimal, above zero, at most 20 bytes (RFC 5280 section 4.1.2.2). */
  readonly serialNumber: string
  readonly subject: NameInput
  readonly issuer: NameInput
  readonly notBefore: Date
  readonly notAfter: Date
  /** The subject's key: SubjectPublicKeyInfo in DER, a parsed one, or a public or private key of node:crypto. */
  readonly publicKey: Uint8Array | PublicKeyInfo | KeyObject
  /** For RSA keys; default sha256. ECDSA uses the hash of its curve, Ed25519 has none. */
  readonly hash?: 'sha256' | 'sha384' | 'sha512'
}

export interface RequestDescription extends ExtensionsDescription {
  readonly subject: NameInput
  readonly hash?: 'sha256' | 'sha384' | 'sha512'
}

/** Returns the DER of an X.509 version 3 certificate, signed with the issuer's private key. */
export function issueCertificate(description: CertificateDescription, signer: KeyObject): Uint8Array {
  const algorithm = signatureAlgorithmOf(signer, description.hash)
  const subject = encodeName(description.subject)
  const extensions = encodeExtensions(description, isEmptyName(subject))
  const tbs = sequence(
    explicit(0, integer(2)),
    integer(serialNumberBytes(description.serialNumber)),
    algorithm.identifier,
    encodeName(description.issuer),
    sequence(encodeTime(description.notBefore), encodeTime(description.notAfter)),
    subject,
    spkiOf(description.publicKey),
    ...(extensions.length > 0 ? [explicit(3, sequence(...extensions))] : []),
  )
  return sequence(tbs, algorithm.identifier, bitString(sign(algorithm.hash, tbs, signer)))
}

/** Returns the DER of a PKCS#10 request (RFC 2986), signed with the subject's private key. */
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

/**
 * Returns the hexadecimal SHA-1 of the key's bits: RFC 5280 section 4.2.1.2, method (1). It identifies a key and proves nothing.
 */
export function keyIdentifierOf(publicKey: Uint8Array | PublicKeyInfo | KeyObject): string {
  const spki = spkiOf(publicKey)
  return hash('sha1', readSubjectPublicKeyInfo(new DerReader(spki, 'public key'), '').keyBits, 'hex')
}

function spkiOf(key: Uint8Array | PublicKeyInfo | KeyObject): Uint8Array {
  if (key instanceof Uint8Array) return key
  if ('spki' in key) return key.spki
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  return publicKey.export({ format: 'der', type: 'spki' })
}

interface SignatureAlgorithm {
  /** AlgorithmIdentifier. */
  readonly identifier: Uint8Array
  readonly hash: string | null
}

const ofCurves: Readonly<Record<string, readonly [hash: string, name: OidName]>> = {
  secp224r1: ['sha256', 'ecdsa-with-SHA256'],
  prime256v1: ['sha256', 'ecdsa-with-SHA256'],
  secp384r1: ['sha384', 'ecdsa-with-SHA384'],
  secp521r1: ['sha512', 'ecdsa-with-SHA512'],
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
  const [curveHash, name] = (type === 'ec' && ofCurves[curve]) || []
  if (curveHash === undefined || name === undefined) {
    throw new KcertError('KCERT_KEY_UNSUPPORTED', `cannot sign with a key of type ${curve || type}`, {
      why: 'kcert signs with RSA, ECDSA P-256, P-384 and P-521, and Ed25519 keys',
    })
  }
  return { identifier: sequence(oid(oidOf(name))), hash: curveHash }
}

function serialNumberBytes(hex: string): Uint8Array {
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  // The first bit is the sign: 20 bytes with it set would be written as 21.
  const isValid = /^[0-9a-fA-F]+$/.test(hex) && /[1-9a-fA-F]/.test(hex) && integer(bytes).length <= 22
  if (!isValid)
    refuse(`serial number ${quoted(hex)}`, 'not a positive hexadecimal number of at most 20 bytes')
  return bytes
}

function encodeTime(date: Date): Uint8Array {
  const year = date.getUTCFullYear()
  if (!(year >= 1 && year <= 9999)) refuse(`time ${year}`, 'not between the years 1 and 9999')
  return time(date)
}

function isEmptyName(der: Uint8Array): boolean {
  return der.length === 2
}
