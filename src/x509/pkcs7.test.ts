import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { selfSigned } from '../../test/fixtures/certificates.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { hasOpenSsl, openssl } from '../../test/peers/openssl.ts'
import { element, explicit, integer, octetString, oid, sequence, setOf } from './der-writer.ts'
import { oidOf } from './oids.ts'
import { readPem, writePem } from './pem.ts'
import { looksLikePkcs7, readPkcs7 } from './pkcs7.ts'

const certificates = [selfSigned({ serialNumber: '01' }), selfSigned({ serialNumber: '02' })]
const signedData = (...members: Uint8Array[]): Uint8Array =>
  sequence(integer(1), setOf(), sequence(oid(oidOf('data'))), ...members, setOf())
const bundle = (content: Uint8Array, type: 'signedData' | 'envelopedData' = 'signedData'): Uint8Array =>
  sequence(oid(oidOf(type)), explicit(0, content))
const bytes = (list: readonly Uint8Array[]): Buffer[] => list.map((der) => Buffer.from(der))

test('returns certificates in the order of the bundle, with their bytes', () => {
  const der = bundle(signedData(explicit(0, ...certificates)))
  expect(bytes(readPkcs7(der))).toEqual(bytes(certificates))
  expect(looksLikePkcs7(der)).toBe(true)
})

test('returns no certificates for a bundle of revocation lists or an empty one', () => {
  expect(readPkcs7(bundle(signedData()))).toEqual([])
  expect(readPkcs7(bundle(signedData(explicit(1, sequence()))))).toEqual([])
})

test('ignores attribute certificates', () => {
  const der = bundle(signedData(explicit(0, explicit(1, sequence()), certificates[0]!)))
  expect(bytes(readPkcs7(der))).toEqual(bytes([certificates[0]!]))
})

test('reads BER, which some programs write', () => {
  const [outer, inner] = [
    explicit(0, ...certificates),
    sequence(integer(1), setOf(), sequence(oid(oidOf('data')))),
  ]
  const end = Uint8Array.of(0, 0)
  const ber = Buffer.concat([
    Uint8Array.of(0x30, 0x80),
    oid(oidOf('signedData')),
    Uint8Array.of(0xa0, 0x80, 0x30, 0x80),
    inner.subarray(2),
    outer,
    setOf(),
    end,
    end,
    end,
  ])
  expect(bytes(readPkcs7(ber))).toEqual(bytes(certificates))
  expect(looksLikePkcs7(ber)).toBe(true)
})

test.each<[string, Uint8Array, string]>([
  [
    'another content',
    bundle(signedData(), 'envelopedData'),
    'envelopedData, where signedData contains certificates',
  ],
  ['a certificate', certificates[0]!, 'PKCS#7: contentType at'],
  ['data after the bundle', Buffer.concat([bundle(signedData()), Uint8Array.of(5, 0)]), 'bytes too many'],
  [
    'a bundle that is cut off',
    bundle(signedData(explicit(0, certificates[0]!))).subarray(0, 100),
    'truncated',
  ],
  ['text', octetString(Buffer.from('hello')), 'OCTET STRING where SEQUENCE belongs'],
])('rejects %s', (_, der, reason) => {
  expect(thrownBy(() => readPkcs7(der))).toMatchObject({
    code: 'KCERT_X509_MALFORMED',
    message: expect.stringContaining(reason),
  })
})

test('rejects hostile numbers of certificates', () => {
  const many = Buffer.alloc(200_000, Uint8Array.of(0x30, 0))
  const der = bundle(signedData(element(0xa0, many)))
  expect(thrownBy(() => readPkcs7(der)).message).toContain('more than 50000')
})

test('does not mistake other DER for PKCS#7', () => {
  for (const der of [certificates[0]!, sequence(), new Uint8Array(0), sequence(oid('1.2.3'))]) {
    expect(looksLikePkcs7(der)).toBe(false)
  }
})

describe.skipIf(!hasOpenSsl)('bundles from OpenSSL', () => {
  test('are read, PEM and DER', () => {
    const folder = mkdtempSync(join(tmpdir(), 'kcert-pkcs7-'))
    const file = join(folder, 'bundle.pem')
    writeFileSync(file, certificates.map((der) => writePem('CERTIFICATE', der)).join(''))
    const run = (form: string): Buffer =>
      openssl(['crl2pkcs7', '-nocrl', '-certfile', file, '-outform', form])
    expect(bytes(readPkcs7(run('DER')))).toEqual(bytes(certificates))
    const [block] = readPem(run('PEM')).blocks
    expect(block!.label).toBe('PKCS7')
    expect(bytes(readPkcs7(block!.der))).toEqual(bytes(certificates))
    rmSync(folder, { recursive: true })
  })
})
