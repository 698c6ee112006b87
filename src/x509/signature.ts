import { constants, type KeyObject, verify } from 'node:crypto'
import { constructedTag, DerReader, tags } from './der.ts'
import { isUsedByGo } from './go-keys.ts'
import { isMlDsa, type MlDsa, mlDsaNames } from './ml-dsa.ts'
import { encodeOid, nameOfOid } from './oids.ts'
import type { PublicKeyInfo } from './public-key.ts'

// node:crypto checks every signature. This file decides which algorithms are accepted.

export type SignatureRefusal =
  /** MD5 or SHA-1, which Go rejects in certificates. */
  | 'algorithm-refused'
  /** An algorithm that Go does not support: RSA-PSS with unusual parameters, DSA, Ed448; up to Go 1.26, ML-DSA. */
  | 'algorithm-unsupported'
  /** For example, an RSA signature and an ECDSA key. */
  | 'key-mismatch'
  /** A key that Go or OpenSSL does not accept: unknown algorithm, RSA below 1024 bits, an even exponent. */
  | 'key-unsupported'
  | 'bad-signature'
  /** An ML-DSA signature with an OpenSSL older than 3.5 in this Node.js: valid or invalid. */
  | 'cannot-be-checked'

export type SignatureVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: SignatureRefusal }

/** The members that a certificate and a request share. */
export interface Signed {
  readonly tbs: Uint8Array
  readonly signature: Uint8Array
  readonly signatureAlgorithmOid: string
  /** Content of the AlgorithmIdentifier. */
  readonly signatureAlgorithmDer: Uint8Array
}

/**
 * The accepted algorithms: those of Go up to 1.26 in certificates, in requests (also SHA-1), those that prove possession of the
 * key (also ML-DSA), or any, to link certificates.
 */
export type SignaturePolicy = 'certificate' | 'request' | 'possession' | 'any'

interface Algorithm {
  readonly key: 'RSA' | 'ECDSA' | 'Ed25519' | MlDsa
  readonly hash?: 'md5' | 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512'
  readonly isPss?: boolean
}

const algorithms = new Map<string, Algorithm>([
  ['md5WithRSAEncryption', { key: 'RSA', hash: 'md5' }],
  ['sha1WithRSAEncryption', { key: 'RSA', hash: 'sha1' }],
  ['sha1WithRSASignature', { key: 'RSA', hash: 'sha1' }],
  ['sha224WithRSAEncryption', { key: 'RSA', hash: 'sha224' }],
  ['sha256WithRSAEncryption', { key: 'RSA', hash: 'sha256' }],
  ['sha384WithRSAEncryption', { key: 'RSA', hash: 'sha384' }],
  ['sha512WithRSAEncryption', { key: 'RSA', hash: 'sha512' }],
  ['ecdsa-with-SHA1', { key: 'ECDSA', hash: 'sha1' }],
  ['ecdsa-with-SHA224', { key: 'ECDSA', hash: 'sha224' }],
  ['ecdsa-with-SHA256', { key: 'ECDSA', hash: 'sha256' }],
  ['ecdsa-with-SHA384', { key: 'ECDSA', hash: 'sha384' }],
  ['ecdsa-with-SHA512', { key: 'ECDSA', hash: 'sha512' }],
  ['Ed25519', { key: 'Ed25519' }],
  ...mlDsaNames.map((key) => [key, { key }] as const),
])

const allowedHashes: Record<SignaturePolicy, ReadonlySet<string>> = {
  certificate: new Set(['sha256', 'sha384', 'sha512']),
  request: new Set(['sha1', 'sha256', 'sha384', 'sha512']),
  possession: new Set(['sha1', 'sha256', 'sha384', 'sha512']),
  any: new Set(['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512']),
}

/** Returns whether this key made the signature, and whether the algorithm is accepted. Never throws. */
export function verifySignature(
  signed: Signed,
  key: PublicKeyInfo,
  policy: SignaturePolicy = 'certificate',
): SignatureVerdict {
  const algorithm = algorithmOf(signed)
  if (algorithm === undefined) return { ok: false, reason: 'algorithm-unsupported' }
  const refusal = algorithmRefusal(algorithm, policy) ?? keyRefusal(algorithm, key, policy)
  if (refusal !== undefined) return { ok: false, reason: refusal }
  let keyObject: KeyObject
  try {
    keyObject = key.keyObject()
  } catch {
    return { ok: false, reason: isMlDsa(key.algorithm) ? 'cannot-be-checked' : 'key-unsupported' }
  }
  return isSignature(algorithm, signed, keyObject) ? { ok: true } : { ok: false, reason: 'bad-signature' }
}

function algorithmRefusal({ key, hash }: Algorithm, policy: SignaturePolicy): SignatureRefusal | undefined {
  if (isMlDsa(key) && !takesMlDsa(policy)) return 'algorithm-unsupported'
  if (hash === undefined || allowedHashes[policy].has(hash)) return undefined
  return hash === 'sha224' ? 'algorithm-unsupported' : 'algorithm-refused'
}

function takesMlDsa(policy: SignaturePolicy): boolean {
  return policy === 'possession' || policy === 'any'
}

function keyRefusal(
  algorithm: Algorithm,
  key: PublicKeyInfo,
  policy: SignaturePolicy,
): SignatureRefusal | undefined {
  if (key.algorithm !== algorithm.key) {
    const isKnown =
      key.algorithm in { RSA: 0, ECDSA: 0, Ed25519: 0 } || (isMlDsa(key.algorithm) && takesMlDsa(policy))
    return isKnown ? 'key-mismatch' : 'key-unsupported'
  }
  if (key.defect !== undefined) return 'key-unsupported'
  return key.algorithm !== 'RSA' || policy === 'any' || isUsedByGo(key) ? undefined : 'key-unsupported'
}

function isSignature({ hash, isPss }: Algorithm, { tbs, signature }: Signed, key: KeyObject): boolean {
  try {
    if (!isPss) return verify(hash ?? null, tbs, key, signature)
    const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
    return verify(hash, tbs, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength }, signature)
  } catch {
    return false
  }
}

function algorithmOf({ signatureAlgorithmOid, signatureAlgorithmDer }: Signed): Algorithm | undefined {
  const name = nameOfOid(signatureAlgorithmOid)
  if (name === 'id-RSASSA-PSS') return pssAlgorithm(signatureAlgorithmDer)
  const algorithm = name === undefined ? undefined : algorithms.get(name)
  // Ed25519 and ML-DSA: no parameters (RFC 8410 section 3, RFC 9881 section 2).
  if (algorithm?.hash !== undefined) return algorithm
  return signatureAlgorithmDer.length === encodeOid(signatureAlgorithmOid).length + 2 ? algorithm : undefined
}

const saltLengths: Readonly<Record<string, number>> = { sha256: 32, sha384: 48, sha512: 64 }

/**
 * RFC 4055 section 3.1, in the three forms that Go accepts: one hash for both uses, a salt of the same length, the default
 * trailer.
 */
function pssAlgorithm(der: Uint8Array): Algorithm | undefined {
  try {
    const reader = new DerReader(der, 'RSASSA-PSS-params')
    reader.oid('algorithm')
    reader.enter(tags.sequence, 'parameters')
    const hash = reader.within(constructedTag(0), 'hashAlgorithm', () => readHash(reader))
    const mgf = reader.within(constructedTag(1), 'maskGenAlgorithm', () =>
      reader.within(tags.sequence, 'maskGenAlgorithm', () => [
        reader.oidName('maskGenAlgorithm'),
        readHash(reader),
      ]),
    )
    const saltLength = reader.within(constructedTag(2), 'saltLength', () => reader.int64('saltLength'))
    const trailer = reader.peek(constructedTag(3))
      ? reader.within(constructedTag(3), 'trailerField', () => reader.int64('trailerField'))
      : 1
    if (hash === undefined || mgf[0] !== 'id-mgf1' || mgf[1] !== hash) return undefined
    if (saltLengths[hash] !== saltLength || trailer !== 1) return undefined
    return { key: 'RSA', hash: hash as 'sha256' | 'sha384' | 'sha512', isPss: true }
  } catch {
    return undefined
  }
}

/** Returns the name of a hash AlgorithmIdentifier with NULL or no parameters. */
function readHash(reader: DerReader): string | undefined {
  return reader.within(tags.sequence, 'hashAlgorithm', () => {
    const name = reader.oidName('algorithm')
    if (reader.atEnd) return name
    reader.read(tags.null, 'parameters')
    return reader.start === reader.stop ? name : undefined
  })
}
