import { createPrivateKey, type KeyObject } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import { coordinateSize, isCurveName } from './curves.ts'
import { constructedTag, DerReader, tags } from './der.ts'
import { explicit, integer, octetString, oid, sequence } from './der-writer.ts'
import { mlDsaNames } from './ml-dsa.ts'
import { nameOfOid } from './oids.ts'

// Converts unencrypted private keys for node:crypto. The input is checked first: OpenSSL trusts the file too much and computes
// whatever it requires.

/**
 * Returns the key of an RSAPrivateKey (RFC 8017 appendix A.1.2). Its numbers must match, otherwise no program can verify its
 * signatures.
 */
export function rsaKey(reader: DerReader): KeyObject {
  const der = reader.bytes.subarray(reader.offset, reader.end)
  const { n, e, d, p, q } = reader.within(tags.sequence, '', () => {
    if (reader.int64('version') !== 0) throw unsupported('RSA key with more than two primes')
    const numbers = {
      n: positive(reader, 'modulus'),
      e: positive(reader, 'publicExponent'),
      d: positive(reader, 'privateExponent'),
      p: positive(reader, 'prime1'),
      q: positive(reader, 'prime2'),
    }
    for (const field of ['exponent1', 'exponent2', 'coefficient']) positive(reader, field)
    return numbers
  })
  reader.finish('after the key')
  const isConsistent =
    p > 1n && q > 1n && p * q === n && (d * e) % (p - 1n) === 1n && (d * e) % (q - 1n) === 1n
  if (!isConsistent) reader.fail('modulus', 'does not belong to the other numbers of the key', 0)
  return importKey(der, 'pkcs1')
}

function positive(reader: DerReader, field: string): bigint {
  reader.integer(field)
  if (reader.isNegative) reader.fail(field, 'negative', reader.start)
  return BigInt(`0x${reader.unsignedHex()}`)
}

/**
 * Returns the key of an ECPrivateKey (RFC 5915). The embedded public key is dropped, so that node:crypto computes it. A key file
 * with another key's public key must not match that key's certificate.
 */
export function ecKey(reader: DerReader, curveOfAlgorithm: string | undefined): KeyObject {
  const outer = reader.enter(tags.sequence, '')
  if (reader.int64('version') !== 1) reader.fail('version', 'not 1', reader.start)
  reader.read(tags.octetString, 'privateKey')
  const { start } = reader
  const secret = reader.lastContent
  let curve = curveOfAlgorithm
  if (reader.readOptional(constructedTag(0), 'parameters')) {
    const parameters = reader.enterLast('parameters')
    curve ??= namedCurve(reader)
    reader.leave(parameters)
  }
  reader.leave(outer)
  reader.finish('after the key')
  if (curve === undefined) reader.fail('parameters', 'no curve is named', 0)
  const curveName = nameOfOid(curve) ?? curve
  if (!isCurveName(curveName)) throw unsupported(`EC key on curve ${curveName}`)
  const size = coordinateSize(curveName)
  if (secret.length > size)
    reader.fail('privateKey', `${secret.length} bytes, where ${curveName} has ${size}`, start)
  return importKey(sequence(integer(1), octetString(secret), explicit(0, oid(curve))), 'sec1')
}

function namedCurve(reader: DerReader): string {
  if (reader.peek(tags.sequence)) throw unsupported('EC key with explicit curve parameters')
  return reader.oid('parameters')
}

// For an ML-DSA key, OpenSSL computes the public key, and rejects numbers and a seed that do not match.
const plainTypes: ReadonlySet<string> = new Set([
  'Ed25519',
  'Ed448',
  'X25519',
  'X448',
  'id-RSASSA-PSS',
  ...mlDsaNames,
])

/** Returns the key of a PrivateKeyInfo (RFC 5958). */
export function pkcs8Key(reader: DerReader): KeyObject {
  const der = reader.bytes.subarray(reader.offset, reader.end)
  const outer = reader.enter(tags.sequence, '')
  const version = reader.int64('version')
  if (version !== 0 && version !== 1) reader.fail('version', `unknown version ${version}`, reader.start)
  const algorithm = reader.enter(tags.sequence, 'privateKeyAlgorithm')
  const algorithmOid = reader.oid('privateKeyAlgorithm')
  const type = nameOfOid(algorithmOid)
  const curve = type === 'id-ecPublicKey' ? namedCurve(reader) : undefined
  reader.leave(algorithm)
  reader.read(tags.octetString, 'privateKey')
  const secret = reader.lastContent
  reader.leave(outer)
  reader.finish('after the key')
  if (type === 'id-ecPublicKey') return ecKey(new DerReader(secret, 'EC private key'), curve)
  if (type === 'rsaEncryption') return rsaKey(new DerReader(secret, 'RSA private key'))
  // No other types: OpenSSL computes the public key of a DSA or DH key when it reads it, which takes hours for hostile
  // parameters.
  if (type === undefined || !plainTypes.has(type))
    throw unsupported(`private key of type ${type ?? algorithmOid}`)
  return importKey(der, 'pkcs8')
}

function importKey(der: Uint8Array, type: 'pkcs1' | 'sec1' | 'pkcs8'): KeyObject {
  try {
    return createPrivateKey({ key: Buffer.from(der), format: 'der', type })
  } catch (cause) {
    throw new KcertError('KCERT_KEY_UNSUPPORTED', 'private key cannot be used', {
      why: 'OpenSSL does not accept it',
      cause,
    })
  }
}

// Such a key cannot be converted: no Kubernetes program reads it in any form.
function unsupported(what: string): KcertError {
  return new KcertError('KCERT_KEY_UNSUPPORTED', `${what} is not supported`, {
    why: 'Kubernetes supports RSA, ECDSA P-256 to P-521 and Ed25519; generate a new key',
    next: 'kcert key generate --out new.key',
  })
}
