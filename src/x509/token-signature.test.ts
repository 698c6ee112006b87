import { generateKeyPairSync, sign } from 'node:crypto'
import { expect, test } from 'vitest'
import { serviceAccountKeys } from '../../test/fixtures/service-account-keys.ts'
import { readPublicKey } from './keys.ts'
import { isTokenSignedBy, publicKeysIn, signedTokensIn } from './token-signature.ts'

const [rsa, ecdsa] = serviceAccountKeys
const [rsaKey, ecdsaKey] = serviceAccountKeys.map(({ publicKey }) => publicKeysIn(Buffer.from(publicKey))[0]!)

test.each([
  ['RS256', rsa, rsaKey!, ecdsaKey!],
  ['ES256', ecdsa, ecdsaKey!, rsaKey!],
])('verifies %s as Kubernetes signs', (_alg, { boundToken, legacyToken }, key, other) => {
  for (const token of [boundToken, legacyToken]) {
    expect(isTokenSignedBy(token, key)).toBe(true)
    expect(isTokenSignedBy(token, other)).toBe(false)
    const [header, , signature] = token.split('.')
    const claims = Buffer.from('{"sub":"system:serviceaccount:kube-system:admin"}').toString('base64url')
    expect(isTokenSignedBy(`${header}.${claims}.${signature}`, key)).toBe(false)
    expect(isTokenSignedBy(token.slice(0, token.lastIndexOf('.') + 1), key)).toBe(false)
    expect(isTokenSignedBy(token.slice(0, -8), key)).toBe(false)
  }
})

test.each([
  ['P-384', 'sha384'],
  ['P-521', 'sha512'],
])('verifies the signature of a key on %s', (namedCurve, hash) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
  const signature = sign(hash, Buffer.from('eyJa.eyJb'), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  const key = readPublicKey(publicKey.export({ format: 'der', type: 'spki' }))
  expect(isTokenSignedBy(`eyJa.eyJb.${signature.toString('base64url')}`, key)).toBe(true)
  expect(isTokenSignedBy(`eyJa.eyJc.${signature.toString('base64url')}`, key)).toBe(false)
})

test('verifies nothing with a key that signs no token', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const signature = sign(null, Buffer.from('eyJa.eyJb'), privateKey)
  const key = readPublicKey(publicKey.export({ format: 'der', type: 'spki' }))
  expect(isTokenSignedBy(`eyJa.eyJb.${signature.toString('base64url')}`, key)).toBe(false)
})

test('finds tokens in a text, after an escaped line break, and in base64 in base64', () => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const inSecret = base64(`token: ${ecdsa.legacyToken}\n`)
  const text = JSON.stringify({ a: `x\n${rsa.boundToken}\n`, b: base64(JSON.stringify({ c: inSecret })) })
  expect(signedTokensIn(text)).toEqual([rsa.boundToken, ecdsa.legacyToken])
})

test('reads no key of damaged PEM', () => {
  expect(publicKeysIn(Buffer.from('-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n'))).toEqual(
    [],
  )
  expect(publicKeysIn(Buffer.from('no key'))).toEqual([])
})
