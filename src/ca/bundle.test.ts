import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createRequest } from '../x509/issuing.ts'
import { writePem } from '../x509/pem.ts'
import { bundle } from './bundle.ts'
import { openCa, readRequest, signRequest } from './certificate-authority.ts'
import { noticesOfBundle } from './notices.ts'
import { kubernetesProfile } from './profile.ts'
import { issueRoot } from './root.ts'

const now = new Date('2026-11-21T09:00:00Z')
const day = 86_400_000
const key = generateKeyPairSync('ed25519').privateKey
const ca = (commonName: string, ttlMs: number, at = now) =>
  issueRoot({ subject: { commonName }, ttlMs }, key, at, '0a')
const pem = (...certificates: readonly { der: Uint8Array }[]) =>
  certificates.map(({ der }) => writePem('CERTIFICATE', der)).join('')

const [one, two] = [ca('one', 9 * day), ca('two', 9 * day)]
const old = ca('old', day, new Date('2020-01-01T00:00:00Z'))
const later = ca('later', 9 * day, new Date('2027-01-01T00:00:00Z'))
const leaf = signRequest(
  openCa([one], key, { ca: '', key: '' }),
  readRequest(createRequest({ subject: { commonName: 'leaf' } }, key), ''),
  kubernetesProfile(['server auth']),
  now,
  '0b',
).certificate

const source = (name: string, text: string | Uint8Array) => ({ name, bytes: Buffer.from(text) })
const subjects = (members: readonly { certificate: { subject: { text: string } } }[]) =>
  members.map(({ certificate }) => certificate.subject.text)

test('contains each certificate once, in the order of its first appearance', () => {
  const made = bundle(
    [source('a', pem(two, one, two)), source('b', one.der), source('c', pem(one))],
    now,
    false,
  )
  expect(subjects(made.members)).toEqual(['CN=two', 'CN=one'])
  expect(made.leftOut.map(({ place, reason }) => [place, reason])).toEqual([
    ['a: certificate 3', 'duplicate'],
    ['b', 'duplicate'],
    ['c', 'duplicate'],
  ])
})

test('leaves out and reports expired certificates, and reports those that are not valid yet', () => {
  const made = bundle([source('a', pem(old, one, later))], now, false)
  expect(subjects(made.members)).toEqual(['CN=one', 'CN=later'])
  expect(noticesOfBundle(made)).toEqual([
    'left out, because it expired at 2020-01-01T23:55:00Z: CN=old (a: certificate 1)',
    'valid only from 2026-12-31T23:55:00Z: CN=later (a: certificate 3)',
  ])
})

test('refuses a certificate that is not a CA, or reports it where it is allowed', () => {
  const sources = [source('a', pem(one, leaf))]
  const refusal = (allowNonCa: false | undefined) => {
    try {
      bundle(sources, now, allowNonCa)
    } catch (error) {
      return error
    }
  }
  expect(refusal(false)).toMatchObject({
    message: 'a: certificate 2 is not a CA: CN=leaf',
    why: expect.stringContaining('use the file of its CA, or add --allow-non-ca'),
  })
  // Only one of the commands that read CAs has that flag.
  expect(refusal(undefined)).toMatchObject({ why: expect.not.stringContaining('--allow-non-ca') })
  expect(noticesOfBundle(bundle(sources, now, true))).toEqual([
    'not a CA, so clients trust this certificate itself: CN=leaf (a: certificate 2)',
  ])
})

test('refuses an empty bundle', () => {
  expect(() => bundle([source('a', pem(old))], now, false)).toThrow('every certificate has expired')
})

test('ignores private keys and text around certificates', () => {
  const keyPem = key.export({ format: 'pem', type: 'pkcs8' }) as string
  const made = bundle([source('a', `subject=CN = one\n${keyPem}${pem(one)}`)], now, false)
  expect(subjects(made.members)).toEqual(['CN=one'])
})

test.each([
  ['no certificate', key.export({ format: 'pem', type: 'pkcs8' }) as string, 'a contains no certificate'],
  ['nothing', '', 'a contains no certificate'],
  ['a certificate that is cut short', pem(one).slice(0, -40), 'a: line 1: '],
  ['a damaged certificate among good ones', `${pem(one)}${pem(two).replace('MI', 'NI')}`, /^a: line 9: /],
  [
    'a BEGIN line that lost its dashes',
    `${pem(one)}${pem(two).replace('-----BEGIN CERTIFICATE-----', '-----BEGIN CERTIFICATE')}`,
    'a: line',
  ],
  ['octets', Buffer.from([0x30, 0x82, 1, 2, 3]), 'a: certificate'],
])('refuses %s, and names its location', (_, content, message) => {
  expect(() => bundle([source('a', content)], now, false)).toThrow(message)
})
