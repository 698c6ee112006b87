import { describe, expect, test } from 'vitest'
import { serviceAccountKeys } from '../../test/fixtures/service-account-keys.ts'
import { hasOpenSsl, openssl } from '../../test/peers/openssl.ts'
import { readPrivateKeyFile, readPublicKey } from './keys.ts'
import { readPem } from './pem.ts'
import { keyIdOf, readServiceAccountToken, serviceAccountTokensIn } from './service-account-token.ts'

const [rsa, ecdsa] = serviceAccountKeys
const publicKeyIn = (pem: string | Uint8Array) => readPublicKey(readPem(Buffer.from(pem)).blocks[0]!)

describe('key ID', () => {
  test.each(serviceAccountKeys)('is the one that Kubernetes computes: $keyId', ({ publicKey, keyId }) => {
    expect(keyIdOf(publicKeyIn(publicKey))).toBe(keyId)
  })

  test.skipIf(!hasOpenSsl).each([
    ['RSA', ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048']],
    ['P-256', ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256']],
    ['P-384', ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384']],
    ['P-521', ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-521']],
  ])('is the SHA-256 that OpenSSL computes for a key of type %s', (_type, algorithm) => {
    const key = openssl(['genpkey', ...algorithm])
    const der = openssl(['pkey', '-pubout', '-outform', 'DER'], key)
    const keyId = openssl(['dgst', '-sha256', '-binary'], der).toString('base64url')
    expect(keyIdOf(readPrivateKeyFile(key).publicKey!)).toBe(keyId)
    expect(keyIdOf(publicKeyIn(openssl(['pkey', '-pubout'], key)))).toBe(keyId)
  })

  test.skipIf(!hasOpenSsl)('of a PKCS#1 public key is that of its SubjectPublicKeyInfo', () => {
    const pkcs1 = openssl(['rsa', '-pubin', '-RSAPublicKey_out'], rsa.publicKey)
    expect(keyIdOf(publicKeyIn(pkcs1))).toBe(rsa.keyId)
  })
})

describe('tokens that Kubernetes signed', () => {
  test.each(serviceAccountKeys)('of a Secret, with $keyId', ({ legacyToken, keyId }) => {
    expect(readServiceAccountToken(legacyToken)).toEqual({
      keyId,
      issuer: 'kubernetes/serviceaccount',
      namespace: 'shop',
      serviceAccount: 'web',
      audiences: [],
      boundTo: 'secret web-token',
    })
  })

  test.each(serviceAccountKeys)('of a pod, with $keyId', ({ boundToken, keyId }) => {
    expect(readServiceAccountToken(`${boundToken}\n`)).toEqual({
      keyId,
      issuer: 'https://kubernetes.default.svc.cluster.local',
      namespace: 'shop',
      serviceAccount: 'web',
      audiences: ['https://kubernetes.default.svc.cluster.local'],
      id: '5a8d3f0e-4c1b-4c55-9d0a-2f8f6f0b7c11',
      issuedAtMs: 1795000000_000,
      expiresAtMs: 1795003607_000,
      boundTo: 'pod web-0',
    })
  })

  test('are found in text around them', () => {
    const text = `a: Bearer ${rsa.boundToken}, {"b":"${ecdsa.legacyToken}"} eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.AAAA`
    expect(serviceAccountTokensIn(text).map(({ keyId }) => keyId)).toEqual([rsa.keyId, ecdsa.keyId])
  })
})

test.each([
  ['at the end of a sentence', (token: string) => `The token is ${token}.`],
  ['after an escaped line break', (token: string) => JSON.stringify({ config: `token:\n${token}\n` })],
])('a token %s is found', (_where, textOf) => {
  expect(serviceAccountTokensIn(textOf(rsa.boundToken)).map(({ keyId }) => keyId)).toEqual([rsa.keyId])
})

describe('a text that is no service account token', () => {
  const signed = (header: unknown, claims: unknown) =>
    [header, claims, 'signature']
      .map((one) => Buffer.from(JSON.stringify(one)).toString('base64url'))
      .join('.')
  const header = { alg: 'RS256', kid: 'a' }
  const claims = { iss: 'i', sub: 'system:serviceaccount:shop:web' }

  test.each([
    ['of a user', signed(header, { ...claims, sub: 'alice' })],
    [
      'of a name that no ServiceAccount has',
      signed(header, { ...claims, sub: 'system:serviceaccount:a:b\u001b[2J' }),
    ],
    ['of a name with a third colon', signed(header, { ...claims, sub: 'system:serviceaccount:a:b:c' })],
    ['without an issuer', signed(header, { ...claims, iss: undefined })],
    ['with an expiry that is text', signed(header, { ...claims, exp: 'never' })],
    ['with an expiry that is null', signed(header, { ...claims, exp: null })],
    ['whose claims are a list', signed(header, [claims])],
    ['whose header is text', signed('eyJ', claims)],
    ['without a signature', signed(header, claims).replace(/[^.]+$/, '')],
    ['with a fourth part', `${signed(header, claims)}.AAAA`],
    ['with claims that are not JSON', signed(header, claims).replace(/\.[^.]*/, '.eyJhIjoK')],
    ['of more than 64 KiB', `${signed(header, claims)}${'A'.repeat(65_536)}`],
  ])('%s', (_what, text) => {
    expect(readServiceAccountToken(text)).toBeUndefined()
  })

  test('claims of other types or more than 1,024 characters are left out', () => {
    const text = signed(
      { alg: 'RS256', kid: 'k'.repeat(1025) },
      { ...claims, aud: ['a', 7, null], jti: {}, 'kubernetes.io': { pod: [], node: { name: 'n' } } },
    )
    expect(readServiceAccountToken(text)).toEqual({
      issuer: 'i',
      namespace: 'shop',
      serviceAccount: 'web',
      audiences: ['a'],
      boundTo: 'node n',
    })
  })

  test('an expiry far outside of the calendar is in the year 9999, or 1970', () => {
    const endOf = (exp: number) => readServiceAccountToken(signed(header, { ...claims, exp }))?.expiresAtMs
    expect([1e300, -1e300].map(endOf)).toEqual([Date.parse('9999-12-31T23:59:59Z'), 0])
  })
})
