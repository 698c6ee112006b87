import { execFileSync } from 'node:child_process'
import { sign, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { readPrivateKeyFile } from './keys.ts'
import { generatePrivateKey, keyTypeName, keyTypeNames, parseKeyType, writePrivateKey } from './new-key.ts'

const keys = new Map(keyTypeNames.map((name) => [name, generatePrivateKey(parseKeyType(name))]))

test.each(keyTypeNames)('generates a key of type %s that signs', (name) => {
  const key = keys.get(name)!
  const { publicKey } = readPrivateKeyFile(Buffer.from(writePrivateKey(key, 'pkcs8')))
  const { algorithm, bits, curve } = publicKey!
  expect([algorithm, bits ?? curve?.replace('-', '')].filter(Boolean).join('-')).toBe(name)
  const hash = algorithm === 'Ed25519' ? null : 'sha256'
  expect(verify(hash, Buffer.from('x'), publicKey!.keyObject(), sign(hash, Buffer.from('x'), key))).toBe(true)
})

test('reads key types in any case and keeps their names', () => {
  expect(parseKeyType('rsa-3072')).toEqual({ algorithm: 'RSA', bits: 3072 })
  expect(parseKeyType('rsa2560')).toEqual({ algorithm: 'RSA', bits: 2560 })
  expect(parseKeyType('ecdsa-p-384')).toEqual({ algorithm: 'ECDSA', curve: 'P-384' })
  expect(parseKeyType('ED25519')).toEqual({ algorithm: 'Ed25519' })
  expect(keyTypeNames.map((name) => keyTypeName(parseKeyType(name)))).toEqual(keyTypeNames)
})

test.each(['RSA-1024', 'RSA-2047', 'RSA-8192', 'ECDSA-P224', 'DSA', '', 'RSA', 'constructor'])(
  'rejects key type "%s"',
  (name) => {
    expect(() => parseKeyType(name)).toThrow(/unsupported key type/)
  },
)

test.each([
  ['RSA-2048', 'pkcs8', 'PRIVATE KEY'],
  ['RSA-2048', 'pkcs1', 'RSA PRIVATE KEY'],
  ['RSA-2048', 'kubernetes', 'RSA PRIVATE KEY'],
  ['ECDSA-P256', 'pkcs8', 'PRIVATE KEY'],
  ['ECDSA-P256', 'sec1', 'EC PRIVATE KEY'],
  ['ECDSA-P521', 'kubernetes', 'EC PRIVATE KEY'],
  ['Ed25519', 'pkcs8', 'PRIVATE KEY'],
  ['Ed25519', 'kubernetes', 'PRIVATE KEY'],
] as const)('%s in format %s is a PEM block %s that openssl reads', (name, format, label) => {
  const pem = writePrivateKey(keys.get(name)!, format)
  expect(pem.split('\n')[0]).toBe(`-----BEGIN ${label}-----`)
  execFileSync('openssl', ['pkey', '-noout', '-check'], { input: pem, stdio: ['pipe', 'ignore', 'pipe'] })
})

test('rejects a format of another key type', () => {
  expect(() => writePrivateKey(keys.get('Ed25519')!, 'sec1')).toThrow(
    /format sec1 does not support ed25519 keys/,
  )
  expect(() => writePrivateKey(keys.get('ECDSA-P256')!, 'pkcs1')).toThrow(
    /format pkcs1 does not support ec keys/,
  )
})

test('encrypts a key so that kcert and openssl open it with its password only', () => {
  const pem = writePrivateKey(keys.get('ECDSA-P256')!, 'pkcs8', 'käse')
  expect(pem).toMatch(/^-----BEGIN ENCRYPTED PRIVATE KEY-----\n/)
  const opened = readPrivateKeyFile(Buffer.from(pem), 'käse')
  expect(opened.keyObject!.equals(keys.get('ECDSA-P256')!)).toBe(true)
  expect(() => readPrivateKeyFile(Buffer.from(pem), 'kase')).toThrow(/does not open/)
  const byOpenssl = execFileSync('openssl', ['pkey', '-passin', 'pass:käse'], {
    input: pem,
    encoding: 'utf8',
  })
  expect(readPrivateKeyFile(Buffer.from(byOpenssl)).keyObject!.equals(keys.get('ECDSA-P256')!)).toBe(true)
})

test('encrypts only PKCS#8, and rejects an empty password', () => {
  expect(() => writePrivateKey(keys.get('RSA-2048')!, 'pkcs1', 'x')).toThrow(
    /format pkcs1 cannot be encrypted/,
  )
  expect(() => writePrivateKey(keys.get('RSA-2048')!, 'pkcs8', '')).toThrow(/password is empty/)
})
