import { type KeyObject, sign } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { keys, publicKeyOf, selfSigned, spkiOf } from '../../test/fixtures/certificates.ts'
import {
  mlDsaCertificate,
  mlDsaIdentifier,
  mlDsaKeys,
  mlDsaLeafOfEcdsaCa,
  mlDsaRequest,
} from '../../test/fixtures/ml-dsa.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { Certificate } from './certificate.ts'
import { CertificatePool } from './certificate-pool.ts'
import { verifyChain } from './chain.ts'
import { DerReader } from './der.ts'
import { bitString, element, integer, nullElement, octetString, oid, sequence } from './der-writer.ts'
import { goError } from './go-words.ts'
import { readPrivateKey } from './keys.ts'
import { type MlDsa, mlDsaNames, mlDsaParameters } from './ml-dsa.ts'
import { oidOf } from './oids.ts'
import { askOtherVerifiers } from './other-verifiers.ts'
import { PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { CertificateRequest } from './request.ts'
import { securityBitsOfKey, securityBitsOfSignature } from './security-bits.ts'
import { type SignaturePolicy, verifySignature } from './signature.ts'

const key = mlDsaKeys['ML-DSA-65']
const parsed = (der: Uint8Array): Certificate => Certificate.parse(der)
const publicKeyInfo = (spki: Uint8Array): PublicKeyInfo =>
  readSubjectPublicKeyInfo(new DerReader(spki, 'key'), '')
const infoOf = (one: KeyObject): PublicKeyInfo => publicKeyInfo(spkiOf(one))
const spkiWith = (bytes: number, ...parameters: Uint8Array[]): Uint8Array =>
  sequence(sequence(oid(oidOf('ML-DSA-65')), ...parameters), bitString(Buffer.alloc(bytes, 1)))

/** Runs a function with an OpenSSL before 3.5, which rejects every public key in this file. */
function withOldOpenssl<T>(run: () => T): T {
  const refuse = vi.spyOn(PublicKeyInfo.prototype, 'keyObject').mockImplementation(() => {
    throw new KcertError('KCERT_KEY_UNSUPPORTED', 'public key cannot be used')
  })
  try {
    return run()
  } finally {
    refuse.mockRestore()
  }
}

describe('public keys', () => {
  test.each(mlDsaNames)('reads and uses %s', (name) => {
    const info = infoOf(mlDsaKeys[name])
    expect(info).toMatchObject({ algorithm: name, bits: undefined, curve: undefined, defect: undefined })
    expect(info.keyBits.length).toBe(mlDsaParameters(name)!.keyBytes)
    expect(info.keyObject().equals(publicKeyOf(mlDsaKeys[name]))).toBe(true)
  })

  test.each<[string, Uint8Array, string]>([
    ['too short', spkiWith(1951), 'it has 1951 bytes instead of 1952'],
    ['too long', spkiWith(1953), 'it has 1953 bytes instead of 1952'],
    ['of another parameter set', spkiWith(1312), 'it has 1312 bytes instead of 1952'],
    ['empty', spkiWith(0), 'it has 0 bytes instead of 1952'],
    ['with parameters', spkiWith(1952, nullElement), 'its algorithm has parameters, which must be absent'],
  ])('reads a key %s, as Go 1.26 reads the certificate, and never uses it', (_, spki, defect) => {
    const certificate = parsed(mlDsaLeafOfEcdsaCa(key, { publicKey: spki }))
    expect(certificate.publicKey).toMatchObject({ algorithm: 'ML-DSA-65', defect })
    expect(verifySignature(parsed(mlDsaCertificate(key)), certificate.publicKey, 'any')).toEqual({
      ok: false,
      reason: 'key-unsupported',
    })
  })
})

describe('signatures', () => {
  const reasonOf = (der: Uint8Array, signer: KeyObject, policy?: SignaturePolicy): string => {
    const verdict = verifySignature(parsed(der), infoOf(signer), policy)
    return verdict.ok ? 'ok' : verdict.reason
  }

  test.each(mlDsaNames)(
    'of %s are verified by OpenSSL, but not accepted by components up to 1.37',
    (name) => {
      const der = mlDsaCertificate(mlDsaKeys[name])
      expect(parsed(der)).toMatchObject({ signatureAlgorithm: name })
      expect(reasonOf(der, mlDsaKeys[name], 'any')).toBe('ok')
      expect(reasonOf(der, mlDsaKeys[name])).toBe('algorithm-unsupported')
      expect(reasonOf(der, mlDsaKeys[name], 'request')).toBe('algorithm-unsupported')
      const forged = Buffer.from(der)
      forged[forged.length - 1]! ^= 1
      expect(reasonOf(forged, mlDsaKeys[name], 'any')).toBe('bad-signature')
    },
  )

  test('of another key are invalid, and of another algorithm do not match', () => {
    expect(reasonOf(mlDsaCertificate(key), mlDsaKeys.other, 'any')).toBe('bad-signature')
    expect(reasonOf(mlDsaCertificate(key), mlDsaKeys['ML-DSA-44'], 'any')).toBe('key-mismatch')
    expect(reasonOf(mlDsaCertificate(key), keys.p256, 'any')).toBe('key-mismatch')
    expect(reasonOf(selfSigned({}, keys.p256), key, 'any')).toBe('key-mismatch')
    expect(reasonOf(selfSigned({}, keys.p256), key)).toBe('key-unsupported')
  })

  test.each([0, 1, 3308, 3310, 4627])('of %i bytes are invalid', (length) => {
    const { tbs, signatureAlgorithmOid, signatureAlgorithmDer } = parsed(mlDsaCertificate(key))
    const right = sign(null, tbs, key)
    const signature = Buffer.concat([right, Buffer.alloc(2000)]).subarray(0, length)
    const signed = { tbs, signature, signatureAlgorithmOid, signatureAlgorithmDer }
    expect(verifySignature(signed, infoOf(key), 'any')).toEqual({ ok: false, reason: 'bad-signature' })
  })

  test('with parameters in their AlgorithmIdentifier have an unknown algorithm', () => {
    const identifier = sequence(oid(oidOf('ML-DSA-65')), nullElement)
    expect(reasonOf(mlDsaCertificate(key, {}, identifier), key, 'any')).toBe('algorithm-unsupported')
  })

  test('make a certificate malformed if the algorithm differs inside and outside', () => {
    const der = Buffer.from(mlDsaCertificate(key))
    const outer = der.lastIndexOf(mlDsaIdentifier(key))
    der.set(mlDsaIdentifier(mlDsaKeys['ML-DSA-87']), outer)
    expect(thrownBy(() => parsed(der)).message).toContain('differs from tbsCertificate.signature')
  })

  test('cannot be verified with an older OpenSSL than 3.5', () => {
    withOldOpenssl(() => {
      const verdict = verifySignature(parsed(mlDsaCertificate(key)), infoOf(key), 'any')
      expect(verdict).toEqual({ ok: false, reason: 'cannot-be-checked' })
    })
  })

  test('of requests prove possession of the key, though the API server rejects them', () => {
    const right = CertificateRequest.parse(mlDsaRequest({ commonName: 'u' }, key))
    expect(right.verifySignature('possession').ok).toBe(true)
    expect(right.verifySignature()).toEqual({ ok: false, reason: 'algorithm-unsupported' })
    const stolen = CertificateRequest.parse(mlDsaRequest({ commonName: 'u' }, key, mlDsaKeys.other))
    expect(stolen.verifySignature('possession')).toEqual({ ok: false, reason: 'bad-signature' })
  })
})

describe('private keys in PKCS#8', () => {
  const pkcs8 = (...parts: [content: Uint8Array, ...parameters: Uint8Array[]]): Uint8Array => {
    const [content, ...parameters] = parts
    return sequence(integer(0), sequence(oid(oidOf('ML-DSA-65')), ...parameters), octetString(content))
  }
  // "both" (RFC 9881 section 6), which Node writes: seed and expanded key.
  const both = (one: KeyObject): { seed: Buffer; expanded: Buffer } => {
    const der: Buffer = one.export({ format: 'der', type: 'pkcs8' })
    return { seed: der.subarray(-4032 - 4 - 32, -4032 - 4), expanded: der.subarray(-4032) }
  }
  const { seed, expanded } = both(key)

  test.each<[string, Uint8Array]>([
    ['seed', pkcs8(element(0x80, seed))],
    ['expanded key', pkcs8(octetString(expanded))],
    ['both', pkcs8(sequence(octetString(seed), octetString(expanded)))],
  ])('as %s', (_, der) => {
    const info = readPrivateKey(der)
    expect(info).toMatchObject({ format: 'PKCS#8', publicKey: { algorithm: 'ML-DSA-65' } })
    expect(info.publicKey!.sha256).toBe(infoOf(key).sha256)
  })

  const damaged = Buffer.from(expanded)
  damaged[200]! ^= 1
  test.each<[string, Uint8Array]>([
    ['seed of 31 bytes', pkcs8(element(0x80, seed.subarray(1)))],
    ['expanded key of 4031 bytes', pkcs8(octetString(expanded.subarray(1)))],
    ['damaged expanded key', pkcs8(octetString(damaged))],
    [
      'expanded key that is not of its seed',
      pkcs8(sequence(octetString(both(mlDsaKeys.other).seed), octetString(expanded))),
    ],
    ['seed and parameters', pkcs8(element(0x80, seed), nullElement)],
  ])('rejects a %s', (_, der) => {
    expect(thrownBy(() => readPrivateKey(der))).toMatchObject({ code: 'KCERT_KEY_UNSUPPORTED' })
  })
})

describe('chains', () => {
  const ca = { subject: { commonName: 'ca' }, issuer: { commonName: 'ca' }, basicConstraints: { ca: true } }
  const ofCa = { issuer: { commonName: 'ca' } }
  const root = parsed(mlDsaCertificate(key, ca))
  const verdictOf = (leaf: Certificate, roots: Certificate[]): unknown => {
    const at = new Date('2026-06-01T00:00:00Z')
    const pools = { roots: new CertificatePool(roots), intermediates: new CertificatePool([]) }
    const question = { leaf, ...pools, at, purpose: 'any' } as const
    const verdict = verifyChain(question)
    if (verdict.trusted) return 'trusted'
    const { refusal } = verdict
    const openssl = askOtherVerifiers(question, verdict)[0]
    return [refusal.code, goError(refusal, question), openssl?.accepts, openssl?.difference]
  }
  // Go 1.26 skips CAs with unsupported keys and reports only this error.
  const unknown = 'x509: certificate signed by unknown authority'

  test('of an ML-DSA CA are rejected for its key, as in Go 1.26, and accepted by OpenSSL', () => {
    const accepted = [true, 'it supports ML-DSA since OpenSSL 3.5']
    const leaf = parsed(mlDsaCertificate(key, { ...ofCa, publicKey: mlDsaKeys.other }))
    expect(verdictOf(leaf, [root])).toEqual(['ISSUER_KEY_UNSUPPORTED', unknown, ...accepted])
    const ecdsaLeaf = parsed(mlDsaCertificate(key, { ...ofCa, publicKey: keys.p256 }))
    expect(verdictOf(ecdsaLeaf, [root])).toEqual(['ISSUER_KEY_UNSUPPORTED', unknown, ...accepted])
  })

  test('signed by another key with the same name are rejected for that', () => {
    const leaf = parsed(mlDsaCertificate(mlDsaKeys.other, ofCa))
    expect(verdictOf(leaf, [root])).toEqual(['ISSUER_KEY_OTHER', unknown, false, undefined])
    const ecdsaLeaf = parsed(selfSigned(ofCa, keys.p256))
    expect(verdictOf(ecdsaLeaf, [root])).toEqual(['ISSUER_KEY_OTHER', unknown, false, undefined])
  })

  test("are rejected for the CA's key, and not for another key, with an older OpenSSL than 3.5", () => {
    withOldOpenssl(() => {
      const leaf = parsed(mlDsaCertificate(key, ofCa))
      const fresh = parsed(mlDsaCertificate(key, ca))
      expect(verdictOf(leaf, [fresh])).toEqual(['ISSUER_KEY_UNSUPPORTED', unknown, false, undefined])
    })
  })
})

test.each<[MlDsa, number]>([
  ['ML-DSA-44', 128],
  ['ML-DSA-65', 192],
  ['ML-DSA-87', 256],
])('%s has %i bits of security', (name, bits) => {
  const certificate = parsed(mlDsaCertificate(mlDsaKeys[name]))
  expect([securityBitsOfKey(certificate), securityBitsOfSignature(certificate)]).toEqual([bits, bits])
})
