import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keys, spkiOf } from '../../test/fixtures/certificates.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { DerReader } from './der.ts'
import { bitString, integer, nullElement, oid, sequence } from './der-writer.ts'
import { type OidName, oidOf } from './oids.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'

const read = (spki: Uint8Array): PublicKeyInfo =>
  readSubjectPublicKeyInfo(new DerReader(spki, 'certificate'), 'key')
const refusalOf = (spki: Uint8Array): string => thrownBy(() => read(spki)).message
const key = (algorithm: OidName, parameters: Uint8Array[], bits: Uint8Array, unused = 0): Uint8Array =>
  sequence(sequence(oid(oidOf(algorithm)), ...parameters), bitString(bits, unused))
const rsa = (modulus: Uint8Array, exponent: Uint8Array, parameters = [nullElement]): Uint8Array =>
  key('rsaEncryption', parameters, sequence(modulus, exponent))
const point = (name: 'p224' | 'p256' | 'p384' | 'p521'): Buffer =>
  Buffer.from(read(spkiOf(keys[name])).keyBits)
const modulus = integer(Buffer.alloc(128, 0xff))

test.each([
  ['rsa', { algorithm: 'RSA', bits: 2048, curve: undefined, rsaExponent: 65537 }],
  ['p224', { algorithm: 'ECDSA', curve: 'P-224', bits: undefined }],
  ['p256', { algorithm: 'ECDSA', curve: 'P-256' }],
  ['p384', { algorithm: 'ECDSA', curve: 'P-384' }],
  ['p521', { algorithm: 'ECDSA', curve: 'P-521' }],
  ['ed25519', { algorithm: 'Ed25519', curve: undefined }],
] as const)('%s', (name, facts) => {
  const info = read(spkiOf(keys[name]))
  expect(info).toMatchObject(facts)
  expect(info.keyObject().export({ format: 'der', type: 'spki' })).toEqual(spkiOf(keys[name]))
})

test("reports the prime's bits for DSA", () => {
  const dsa = generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).publicKey
  expect(read(dsa.export({ format: 'der', type: 'spki' }))).toMatchObject({ algorithm: 'DSA', bits: 1024 })
})

test('returns the identifier of an algorithm that Go does not support, without checking the key', () => {
  expect(read(key('X25519', [nullElement], Uint8Array.of(1, 2), 1)).algorithm).toBe('1.3.101.110')
})

test('shifts a key with unused bits, as Go does, and keeps the pin of the original bytes', () => {
  const shifted = Buffer.from(Array.from({ length: 32 }, (_, i) => 4 * i))
  const spki = key('Ed25519', [], shifted, 2)
  const info = read(spki)
  expect(Buffer.from(info.keyBits)).toEqual(Buffer.from(Array.from({ length: 32 }, (_, i) => i)))
  expect(info.keyObject().export({ format: 'der', type: 'spki' })).toEqual(
    Buffer.from(key('Ed25519', [], info.keyBits)),
  )
  expect(Buffer.from(info.spki)).toEqual(Buffer.from(spki))
})

test('counts bits from the first one that is set', () => {
  expect(read(rsa(integer(Buffer.concat([Uint8Array.of(0x01), Buffer.alloc(127)])), integer(3))).bits).toBe(
    1017,
  )
  expect(read(rsa(integer(1), integer(3))).bits).toBe(1)
})

describe('rejects keys that Go rejects', () => {
  const offCurve = point('p256')
  offCurve[64]! ^= 1
  const beyondP = Buffer.concat([Uint8Array.of(4), Buffer.alloc(64, 0xff)])
  test.each<[string, Uint8Array, string]>([
    [
      'RSA without NULL',
      rsa(modulus, integer(3), []),
      'key.algorithm.parameters at offset 16: NULL is missing for RSA',
    ],
    ['RSA with a negative modulus', rsa(integer(-5), integer(3)), 'key.modulus at'],
    ['RSA with modulus 0', rsa(integer(0), integer(3)), 'not positive'],
    ['RSA with exponent 0', rsa(modulus, integer(0)), 'key.publicExponent at'],
    ['RSA with a negative exponent', rsa(modulus, integer(-3)), 'not positive'],
    [
      'RSA with an exponent above 64 bits',
      rsa(modulus, integer(Buffer.alloc(9, 1))),
      'INTEGER above 64 bits',
    ],
    [
      'RSA that is no SEQUENCE once shifted',
      key('rsaEncryption', [nullElement], Uint8Array.of(0x30, 0), 1),
      'key.subjectPublicKey',
    ],
    ['ECDSA without curve', key('id-ecPublicKey', [], point('p256')), 'missing'],
    [
      'ECDSA with curve parameters',
      key('id-ecPublicKey', [sequence()], point('p256')),
      'OBJECT IDENTIFIER belongs',
    ],
    [
      'ECDSA on secp256k1',
      key('id-ecPublicKey', [oid(oidOf('secp256k1'))], point('p256')),
      'unsupported curve secp256k1',
    ],
    [
      'ECDSA off its curve',
      key('id-ecPublicKey', [oid(oidOf('P-256'))], offCurve),
      'a point that is not on P-256',
    ],
    [
      'ECDSA with coordinates beyond p',
      key('id-ecPublicKey', [oid(oidOf('P-256'))], beyondP),
      'not on P-256',
    ],
    [
      'ECDSA of another length',
      key('id-ecPublicKey', [oid(oidOf('P-384'))], point('p256')),
      'a point of 65 bytes',
    ],
    [
      'ECDSA compressed',
      key('id-ecPublicKey', [oid(oidOf('P-256'))], Buffer.alloc(33, 2)),
      'not an uncompressed point',
    ],
    [
      'ECDSA at infinity',
      key('id-ecPublicKey', [oid(oidOf('P-256'))], Uint8Array.of(0)),
      'not an uncompressed point',
    ],
    ['Ed25519 with parameters', key('Ed25519', [nullElement], Buffer.alloc(32)), 'not absent for Ed25519'],
    ['Ed25519 of 31 bytes', key('Ed25519', [], Buffer.alloc(31)), 'Ed25519 key is not 32 bytes'],
    [
      'DSA with a generator of 0',
      key('id-dsa', [sequence(integer(5), integer(5), integer(0))], integer(1)),
      'key.g at',
    ],
  ])('%s', (_, spki, reason) => {
    expect(refusalOf(spki)).toContain(reason)
  })
})

test('reports a key that OpenSSL does not support when it is used, not when it is read', () => {
  const info = read(key('X448', [], Uint8Array.of(1)))
  expect(thrownBy(() => info.keyObject())).toMatchObject({ code: 'KCERT_KEY_UNSUPPORTED' })
})
