import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keys, spkiOf } from '../../test/fixtures/certificates.ts'
import { DerReader } from './der.ts'
import { bitString, explicit, integer, nullElement, oid, sequence } from './der-writer.ts'
import { type OidName, oidOf } from './oids.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { type SignaturePolicy, type Signed, verifySignature } from './signature.ts'

const tbs = Buffer.from('to be signed')
const info = (key: KeyObject): PublicKeyInfo => infoOf(spkiOf(key))
const infoOf = (spki: Uint8Array): PublicKeyInfo => readSubjectPublicKeyInfo(new DerReader(spki, 'key'), '')
const identifier = (name: OidName, ...parameters: Uint8Array[]): Uint8Array =>
  Buffer.concat([oid(oidOf(name)), ...parameters])
const signed = (name: OidName, signature: Uint8Array, algorithm = identifier(name)): Signed => ({
  tbs,
  signature,
  signatureAlgorithmOid: oidOf(name),
  signatureAlgorithmDer: algorithm,
})
const outcome = (what: Signed, key: PublicKeyInfo, policy?: SignaturePolicy): string => {
  const verdict = verifySignature(what, key, policy)
  return verdict.ok ? 'ok' : verdict.reason
}

describe('verifies signatures with each algorithm', () => {
  test.each<[OidName, keyof typeof keys, string | null]>([
    ['sha256WithRSAEncryption', 'rsa', 'sha256'],
    ['sha384WithRSAEncryption', 'rsa', 'sha384'],
    ['sha512WithRSAEncryption', 'rsa', 'sha512'],
    ['ecdsa-with-SHA256', 'p224', 'sha256'],
    ['ecdsa-with-SHA256', 'p256', 'sha256'],
    ['ecdsa-with-SHA384', 'p384', 'sha384'],
    ['ecdsa-with-SHA512', 'p521', 'sha512'],
    ['Ed25519', 'ed25519', null],
  ])('%s with %s', (name, key, hash) => {
    const signature = sign(hash, tbs, keys[key])
    expect(outcome(signed(name, signature), info(keys[key]))).toBe('ok')
    const forged = Buffer.from(signature)
    forged[forged.length - 1]! ^= 1
    expect(outcome(signed(name, forged), info(keys[key]))).toBe('bad-signature')
    expect(outcome(signed(name, new Uint8Array(0)), info(keys[key]))).toBe('bad-signature')
  })
})

describe('MD5 and SHA-1', () => {
  test.each<[OidName, keyof typeof keys, string]>([
    ['md5WithRSAEncryption', 'rsa', 'md5'],
    ['sha1WithRSAEncryption', 'rsa', 'sha1'],
    ['sha1WithRSASignature', 'rsa', 'sha1'],
    ['ecdsa-with-SHA1', 'p256', 'sha1'],
  ])('rejects %s in certificates, valid or not, and accepts it to link certificates', (name, key, hash) => {
    const right = signed(name, sign(hash, tbs, keys[key]))
    expect(outcome(right, info(keys[key]))).toBe('algorithm-refused')
    expect(outcome(signed(name, new Uint8Array(8)), info(keys[key]))).toBe('algorithm-refused')
    expect(outcome(right, info(keys[key]), 'any')).toBe('ok')
    expect(outcome(signed(name, new Uint8Array(8)), info(keys[key]), 'any')).toBe('bad-signature')
  })

  test('accepts SHA-1 in requests, but not MD5', () => {
    const by = (name: OidName, hash: string): Signed => signed(name, sign(hash, tbs, keys.rsa))
    expect(outcome(by('sha1WithRSAEncryption', 'sha1'), info(keys.rsa), 'request')).toBe('ok')
    expect(outcome(by('md5WithRSAEncryption', 'md5'), info(keys.rsa), 'request')).toBe('algorithm-refused')
  })
})

describe('rejects algorithms and keys', () => {
  const rsa = sign('sha256', tbs, keys.rsa)

  test('a key of another type', () => {
    expect(outcome(signed('sha256WithRSAEncryption', rsa), info(keys.p256))).toBe('key-mismatch')
    expect(outcome(signed('ecdsa-with-SHA256', rsa), info(keys.rsa))).toBe('key-mismatch')
  })

  test('an algorithm that Go does not support', () => {
    expect(outcome(signed('sha224WithRSAEncryption', rsa), info(keys.rsa))).toBe('algorithm-unsupported')
    expect(outcome(signed('dsa-with-sha256', rsa), info(keys.rsa))).toBe('algorithm-unsupported')
    expect(outcome(signed('Ed448', rsa), info(keys.ed25519))).toBe('algorithm-unsupported')
  })

  test('Ed25519 with parameters', () => {
    const signature = sign(null, tbs, keys.ed25519)
    const withNull = signed('Ed25519', signature, identifier('Ed25519', nullElement))
    expect(outcome(withNull, info(keys.ed25519))).toBe('algorithm-unsupported')
  })

  test('an unknown key', () => {
    const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'der', type: 'spki' })
    expect(outcome(signed('sha256WithRSAEncryption', rsa), infoOf(x25519))).toBe('key-unsupported')
  })

  test('RSA below 1024 bits, which Go rejects since 1.24', () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 768 })
    const what = signed('sha256WithRSAEncryption', sign('sha256', tbs, weak.privateKey))
    expect(outcome(what, info(weak.privateKey))).toBe('key-unsupported')
    expect(outcome(what, info(weak.privateKey), 'any')).toBe('ok')
  })

  test('RSA with an exponent that is even or too large for Go', () => {
    const withExponent = (exponent: Uint8Array): PublicKeyInfo =>
      infoOf(
        sequence(
          sequence(oid(oidOf('rsaEncryption')), nullElement),
          bitString(sequence(integer(Buffer.alloc(256, 0xff)), exponent)),
        ),
      )
    const what = signed('sha256WithRSAEncryption', rsa)
    expect(outcome(what, withExponent(integer(65536)))).toBe('key-unsupported')
    expect(outcome(what, withExponent(integer(2 ** 31 + 1)))).toBe('key-unsupported')
    expect(outcome(what, withExponent(integer(1)))).toBe('key-unsupported')
    expect(outcome(what, withExponent(integer(2 ** 31 - 1)))).toBe('bad-signature')
  })
})

describe('RSA-PSS', () => {
  const hashOf = (name: OidName): Uint8Array => sequence(oid(oidOf(name)), nullElement)
  const parameters = (hash: OidName, mgfHash: OidName, salt: number, ...rest: Uint8Array[]): Uint8Array =>
    sequence(
      explicit(0, hashOf(hash)),
      explicit(1, sequence(oid(oidOf('id-mgf1')), hashOf(mgfHash))),
      explicit(2, integer(salt)),
      ...rest,
    )
  const signature = (saltLength: number, hash = 'sha256'): Buffer =>
    sign(hash, tbs, { key: keys.rsa, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength })
  const pss = (bytes: Uint8Array, ...algorithm: Uint8Array[]): string =>
    outcome(signed('id-RSASSA-PSS', bytes, identifier('id-RSASSA-PSS', ...algorithm)), info(keys.rsa))

  test('in the forms that Go accepts', () => {
    expect(pss(signature(32), parameters('sha256', 'sha256', 32))).toBe('ok')
    expect(pss(signature(64, 'sha512'), parameters('sha512', 'sha512', 64, explicit(3, integer(1))))).toBe(
      'ok',
    )
    expect(pss(signature(20), parameters('sha256', 'sha256', 32))).toBe('bad-signature')
  })

  test.each<[string, Uint8Array[]]>([
    ['another salt length', [parameters('sha256', 'sha256', 20)]],
    ['two hashes', [parameters('sha256', 'sha384', 32)]],
    ['SHA-1', [parameters('sha1', 'sha1', 20)]],
    ['another trailer', [parameters('sha256', 'sha256', 32, explicit(3, integer(2)))]],
    ['default parameters, which mean SHA-1', [sequence()]],
    ['no parameters', []],
  ])('in other forms: %s', (_, algorithm) => {
    expect(pss(signature(32), ...algorithm)).toBe('algorithm-unsupported')
  })
})
