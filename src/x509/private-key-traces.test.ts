import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createRequest } from './issuing.ts'
import { writePem } from './pem.ts'
import { holdsPrivateKey } from './private-key-traces.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const request = createRequest({ subject: { commonName: 'x' } }, privateKey)
const encrypted = { type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' } as const
const base64 = (text: string) => Buffer.from(text).toString('base64')
const pem = (type: 'pkcs8' | 'sec1') => privateKey.export({ format: 'pem', type }) as string

test.each<[string, string | Uint8Array]>([
  ['PKCS#8', pem('pkcs8')],
  ['SEC1', pem('sec1')],
  ['PKCS#1', rsa.export({ format: 'pem', type: 'pkcs1' })],
  ['encrypted PKCS#8', privateKey.export({ format: 'pem', ...encrypted })],
  ['a key after a request', writePem('CERTIFICATE REQUEST', request) + pem('sec1')],
  ['a kubeconfig', `users:\n- user:\n    client-key-data: ${base64(pem('sec1'))}\n`],
  ['a Secret', `data:\n  tls.key: ${base64(rsa.export({ format: 'pem', type: 'pkcs1' }) as string)}\n`],
  ['a Secret with PKCS#8', `data: {tls.key: ${base64(pem('pkcs8'))}}`],
  ["cfssl's JSON", JSON.stringify({ csr: 'x', key: pem('sec1') })],
  ['DER PKCS#8', privateKey.export({ format: 'der', type: 'pkcs8' })],
  ['DER SEC1', privateKey.export({ format: 'der', type: 'sec1' })],
  ['DER PKCS#1', rsa.export({ format: 'der', type: 'pkcs1' })],
  ['DER encrypted', privateKey.export({ format: 'der', ...encrypted })],
  ['PKCS#12', Uint8Array.of(0x30, 0x82, 9, 9, 0x02, 1, 3)],
  ['PKCS#12 of indefinite length', Uint8Array.of(0x30, 0x80, 0x02, 1, 3)],
  ['JKS', Uint8Array.of(0xfe, 0xed, 0xfe, 0xed, 0, 0)],
])('returns true for %s', (_name, content) => {
  expect(holdsPrivateKey(typeof content === 'string' ? Buffer.from(content) : content)).toBe(true)
})

test.each<[string, string | Uint8Array]>([
  ['nothing', ''],
  ['a request', request],
  ['a request in PEM', writePem('CERTIFICATE REQUEST', request)],
  ['a public key', publicKey.export({ format: 'pem', type: 'spki' })],
  ['a certificate in a kubeconfig', base64(writePem('CERTIFICATE', request))],
  ['PKCS#7', Uint8Array.of(0x30, 0x82, 9, 9, 0x06, 9)],
  ['text', 'about a PRIVATE KEY'],
])('returns false for %s', (_name, content) => {
  expect(holdsPrivateKey(typeof content === 'string' ? Buffer.from(content) : content)).toBe(false)
})
