import { createPublicKey, type KeyObject } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import { isCurveName, pointDefect } from './curves.ts'
import { type DerReader, tags } from './der.ts'
import { mlDsaParameters } from './ml-dsa.ts'
import { nameOfOid } from './oids.ts'
import { sha256Hex } from './sha256.ts'

/** A SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7). */
export class PublicKeyInfo {
  /** "RSA", "ECDSA", "Ed25519", "DSA", "ML-DSA-65", or the object identifier of any other algorithm. */
  readonly algorithm: string
  /** Length of an RSA modulus or DSA prime. */
  readonly bits: number | undefined
  /** "P-224", "P-256", "P-384" or "P-521". */
  readonly curve: string | undefined
  /** Public exponent of an RSA key. Above 2^53 the last digits are lost. */
  readonly rsaExponent: number | undefined
  /** Why no program can use this ML-DSA key. Go up to 1.26 still reads the certificate, because it does not check such keys. */
  readonly defect: string | undefined
  private readonly bytes: Buffer
  private readonly start: number
  private readonly stop: number
  /** `bytes`, or a copy with the same offsets in which a key with unused bits is shifted. */
  private readonly keyBytes: Buffer
  private readonly keyStart: number
  private readonly keyStop: number
  private cachedSha256: string | undefined
  private cachedKey: KeyObject | undefined

  constructor(
    bytes: Buffer,
    start: number,
    stop: number,
    keyBytes: Buffer,
    keyStart: number,
    keyStop: number,
    facts: KeyFacts,
  ) {
    this.bytes = bytes
    this.start = start
    this.stop = stop
    this.keyBytes = keyBytes
    this.keyStart = keyStart
    this.keyStop = keyStop
    this.algorithm = facts.algorithm
    this.bits = facts.bits
    this.curve = facts.curve
    this.rsaExponent = facts.rsaExponent
    this.defect = facts.defect
  }

  /** DER of the whole structure. */
  get spki(): Uint8Array {
    return this.bytes.subarray(this.start, this.stop)
  }

  /**
   * Content of the subjectPublicKey BIT STRING, unused bits first: the input of the key identifier in RFC 5280 section 4.2.1.2
   * (1).
   */
  get keyBits(): Uint8Array {
    return this.keyBytes.subarray(this.keyStart, this.keyStop)
  }

  /** SHA-256 of `spki` in hexadecimal: kubeadm's discovery token CA cert hash without its "sha256:". */
  get sha256(): string {
    this.cachedSha256 ??= sha256Hex(this.spki)
    return this.cachedSha256
  }

  /** Returns the key for node:crypto. Throws KCERT_KEY_UNSUPPORTED for keys that OpenSSL does not accept. */
  keyObject(): KeyObject {
    if (this.cachedKey !== undefined) return this.cachedKey
    try {
      this.cachedKey = createPublicKey({
        key: Buffer.from(this.keyBytes.subarray(this.start, this.stop)),
        format: 'der',
        type: 'spki',
      })
      return this.cachedKey
    } catch (cause) {
      const what = `public key of type ${nameOfOid(this.algorithm) ?? this.algorithm} cannot be used`
      throw new KcertError('KCERT_KEY_UNSUPPORTED', what, { why: 'OpenSSL does not accept it', cause })
    }
  }
}

interface KeyFacts {
  readonly algorithm: string
  readonly bits?: number
  readonly curve?: string
  readonly rsaExponent?: number
  readonly defect?: string
}

const oidRsa = '1.2.840.113549.1.1.1'
const oidEc = '1.2.840.10045.2.1'
const oidDsa = '1.2.840.10040.4.1'
const oidEd25519 = '1.3.101.112'

/** Returns a SubjectPublicKeyInfo. Keys with algorithms that Go supports are checked as in Go; others are kept unchecked. */
export function readSubjectPublicKeyInfo(reader: DerReader, field: string): PublicKeyInfo {
  const outer = reader.enter(tags.sequence, field)
  const start = reader.header
  const stop = reader.end
  const path = reader.path
  reader.path = `${path}${field}.`

  const algorithmOuter = reader.enter(tags.sequence, 'algorithm')
  const oid = reader.oid('algorithm')
  const parametersAt = reader.offset
  if (!reader.atEnd) reader.next('parameters')
  const parametersEnd = reader.offset
  reader.leave(algorithmOuter)

  const unused = reader.bitString('subjectPublicKey')
  // Go shifts a key with unused bits to the right and continues.
  const key = unused === 0 ? reader : reader.rightAlignedFork(unused)
  const { bytes: keyBytes, start: keyStart, stop: keyStop } = key
  const facts = readKey(key, oid, parametersAt, parametersEnd)
  reader.path = path
  reader.leave(outer)
  return new PublicKeyInfo(reader.bytes, start, stop, keyBytes, keyStart, keyStop, facts)
}

function readKey(reader: DerReader, oid: string, parametersAt: number, parametersEnd: number): KeyFacts {
  switch (oid) {
    case oidRsa:
      return readRsaKey(reader, parametersAt, parametersEnd)
    case oidEc:
      return readEcKey(reader, parametersAt, parametersEnd)
    case oidEd25519:
      if (parametersEnd > parametersAt)
        reader.fail('algorithm.parameters', 'not absent for Ed25519', parametersAt)
      if (reader.stop - reader.start !== 32)
        reader.fail('subjectPublicKey', 'Ed25519 key is not 32 bytes', reader.start)
      return { algorithm: 'Ed25519' }
    case oidDsa:
      return readDsaKey(reader, parametersAt, parametersEnd)
    default:
      return readOtherKey(reader, oid, parametersEnd > parametersAt)
  }
}

/** Returns a key that Go up to 1.26 does not check. */
function readOtherKey({ start, stop }: DerReader, oid: string, hasParameters: boolean): KeyFacts {
  const algorithm = nameOfOid(oid) ?? oid
  const parameters = mlDsaParameters(algorithm)
  if (parameters === undefined) return { algorithm: oid }
  const { keyBytes } = parameters
  // RFC 9881 sections 2 and 4.
  if (hasParameters) return { algorithm, defect: 'its algorithm has parameters, which must be absent' }
  if (stop - start !== keyBytes)
    return { algorithm, defect: `it has ${stop - start} bytes instead of ${keyBytes}` }
  return { algorithm }
}

/** RFC 3279 section 2.3.1. */
function readRsaKey(reader: DerReader, parametersAt: number, parametersEnd: number): KeyFacts {
  const isNull =
    parametersEnd - parametersAt === 2 &&
    reader.bytes[parametersAt] === tags.null &&
    reader.bytes[parametersAt + 1] === 0
  if (!isNull) reader.fail('algorithm.parameters', 'NULL is missing for RSA', parametersAt)
  const key = reader.enterLast('subjectPublicKey')
  const sequence = reader.enter(tags.sequence, 'subjectPublicKey')
  const bits = positiveBits(reader, 'modulus')
  const rsaExponent = reader.int64('publicExponent')
  if (rsaExponent <= 0) reader.fail('publicExponent', 'not positive', reader.start)
  reader.leave(sequence)
  reader.leave(key)
  return { algorithm: 'RSA', bits, rsaExponent }
}

/** RFC 5480 section 2.1.1: named curves only, uncompressed points only. */
function readEcKey(reader: DerReader, parametersAt: number, parametersEnd: number): KeyFacts {
  const { bytes, start, stop } = reader
  const curve = reader.between(parametersAt, parametersEnd, () => reader.oidName('algorithm.parameters'))
  if (!isCurveName(curve))
    reader.fail(
      'algorithm.parameters',
      `unsupported curve ${curve}`,
      parametersAt,
      'reissue it with a key on P-256, P-384 or P-521: Go, and so Kubernetes, supports no other curve',
    )
  const defect = pointDefect(curve, bytes, start, stop)
  if (defect !== undefined) reader.fail('subjectPublicKey', defect, start)
  return { algorithm: 'ECDSA', curve }
}

/** RFC 3279 section 2.3.2. */
function readDsaKey(reader: DerReader, parametersAt: number, parametersEnd: number): KeyFacts {
  const bits = reader.enterLast('subjectPublicKey')
  positiveBits(reader, 'subjectPublicKey')
  reader.leave(bits)
  return reader.between(parametersAt, parametersEnd, () =>
    reader.within(tags.sequence, 'algorithm.parameters', () => {
      const bits = positiveBits(reader, 'p')
      for (const field of ['q', 'g']) positiveBits(reader, field)
      return { algorithm: 'DSA', bits }
    }),
  )
}

/** Reads an INTEGER above zero. Returns its number of bits. */
function positiveBits(reader: DerReader, field: string): number {
  reader.integer(field)
  const { bytes, start, stop } = reader
  const from = bytes[start] === 0 ? start + 1 : start
  if (reader.isNegative || from === stop) reader.fail(field, 'not positive', start)
  return (stop - from - 1) * 8 + (32 - Math.clz32(bytes.readUInt8(from)))
}
