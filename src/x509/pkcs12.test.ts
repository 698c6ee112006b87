import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keys, selfSigned } from '../../test/fixtures/certificates.ts'
import { hasOpenSsl, openssl } from '../../test/peers/openssl.ts'
import { Certificate } from './certificate.ts'
import { contextTag } from './der.ts'
import { element, explicit, integer, nullElement, octetString, oid, sequence, setOf } from './der-writer.ts'
import { readPrivateKey } from './keys.ts'
import { type OidName, oidOf } from './oids.ts'
import { writePem } from './pem.ts'
import { looksLikePkcs12, readPkcs12 } from './pkcs12.ts'

const salt = octetString(Buffer.alloc(8, 1))
const contentInfo = (type: OidName, content: Uint8Array): Uint8Array =>
  sequence(oid(oidOf(type)), explicit(0, content))
const bag = (type: OidName, value: Uint8Array, ...attributes: Uint8Array[]): Uint8Array =>
  sequence(oid(oidOf(type)), explicit(0, value), ...attributes)
const attribute = (type: OidName, value: Uint8Array): Uint8Array => sequence(oid(oidOf(type)), setOf(value))
const certificateBag = (der: Uint8Array, ...attributes: Uint8Array[]): Uint8Array =>
  bag('certBag', sequence(oid(oidOf('x509Certificate')), explicit(0, octetString(der))), ...attributes)
const plain = (...bags: Uint8Array[]): Uint8Array => contentInfo('data', octetString(sequence(...bags)))
const pfx = (contents: readonly Uint8Array[], ...mac: Uint8Array[]): Uint8Array =>
  sequence(integer(3), contentInfo('data', octetString(sequence(...contents))), ...mac)
const mac = (hash: OidName, iterations: number): Uint8Array =>
  sequence(
    sequence(sequence(oid(oidOf(hash)), nullElement), octetString(Buffer.alloc(20))),
    salt,
    integer(iterations),
  )
const pbe = (scheme: OidName, iterations: number): Uint8Array =>
  sequence(oid(oidOf(scheme)), sequence(salt, integer(iterations)))
const shroudedKey = (iterations: number): Uint8Array =>
  bag(
    'pkcs8ShroudedKeyBag',
    sequence(pbe('pbeWithSHAAnd3-KeyTripleDES-CBC', iterations), octetString(Buffer.alloc(48))),
  )

const certificate = selfSigned({}, keys.p256)
const pkcs8 = keys.p256.export({ format: 'der', type: 'pkcs8' })
const refusalOf = (store: Uint8Array, password?: string): Promise<unknown> =>
  readPkcs12(store, password).catch((error) => error)

test('reads a keystore without encryption: keys, certificates, their names and identifiers', async () => {
  const name = attribute('friendlyName', element(0x1e, Buffer.from('00e40062', 'hex')))
  const keyId = attribute('localKeyID', octetString(Uint8Array.of(1, 0xff)))
  const nested = bag('safeContentsBag', sequence(certificateBag(certificate)))
  const others = [bag('crlBag', sequence()), bag('secretBag', sequence())]
  const store = pfx([
    plain(certificateBag(certificate, setOf(name, keyId)), nested, ...others),
    plain(bag('keyBag', pkcs8)),
  ])
  const { certificates, keys: found } = await readPkcs12(store)
  expect(certificates.map(({ friendlyName, localKeyId }) => [friendlyName, localKeyId])).toEqual([
    ['äb', '01ff'],
    [undefined, undefined],
  ])
  expect(Buffer.from(certificates[1]!.der)).toEqual(Buffer.from(certificate))
  expect(readPrivateKey(found[0]!.der).keyObject!.equals(keys.p256)).toBe(true)
  expect(found[0]!.encrypted).toBe(false)
  expect(looksLikePkcs12(store)).toBe(true)
})

test('does not mistake other DER for PKCS#12', () => {
  for (const der of [certificate, pkcs8, sequence(), new Uint8Array(0)])
    expect(looksLikePkcs12(der)).toBe(false)
})

describe('rejects keystores that would keep kcert busy before the computation', () => {
  const pbkdf2 = sequence(oid(oidOf('PBKDF2')), sequence(salt, integer(100_000_000)))
  const pbmac = sequence(oid(oidOf('PBMAC1')), sequence(pbkdf2, sequence(oid(oidOf('hmacWithSHA256')))))
  const encrypted = sequence(
    integer(0),
    sequence(
      oid(oidOf('data')),
      pbe('pbeWithSHAAnd40BitRC2-CBC', 10_000_000),
      element(contextTag(0), Buffer.alloc(8)),
    ),
  )
  test.each<[string, Uint8Array]>([
    ['a MAC of 2^31 iterations', pfx([], mac('sha1', 2 ** 31 - 1))],
    [
      'a MAC by PBMAC1 of 100,000,000 iterations',
      pfx([], sequence(sequence(pbmac, octetString(Buffer.alloc(32))), salt)),
    ],
    ['a key of 10,000,000 iterations', pfx([plain(shroudedKey(10_000_000))])],
    ['content of 10,000,000 iterations', pfx([contentInfo('encryptedData', encrypted)])],
  ])('%s', async (_, store) => {
    expect(await refusalOf(store, 'password')).toMatchObject({
      code: 'KCERT_KEY_UNSUPPORTED',
      message: expect.stringContaining("the password's key derivation costs too much"),
    })
  })

  test('adds up the computation over the whole keystore', async () => {
    // An empty password is tried in two encodings. Each attempt alone is within the limit.
    expect(await refusalOf(pfx([], mac('sha1', 600_000)), '')).toMatchObject({
      code: 'KCERT_KEY_UNSUPPORTED',
    })
  })
})

describe('rejects a keystore with the reason', () => {
  const rc4 = bag(
    'pkcs8ShroudedKeyBag',
    sequence(pbe('pbeWithSHAAnd128BitRC4', 1), octetString(Buffer.alloc(8))),
  )
  test.each<[string, Uint8Array, string, string]>([
    ['version 2', sequence(integer(2)), 'KCERT_X509_MALFORMED', 'unknown version 2'],
    [
      'a signed store',
      sequence(integer(3), contentInfo('signedData', sequence())),
      'KCERT_KEY_UNSUPPORTED',
      'signed instead',
    ],
    [
      'content for a recipient',
      pfx([contentInfo('envelopedData', sequence())]),
      'KCERT_KEY_UNSUPPORTED',
      'envelopedData',
    ],
    ['a MAC by MD5', pfx([], mac('md5', 1)), 'KCERT_KEY_UNSUPPORTED', 'MAC with md5'],
    ['RC4', pfx([plain(rc4)]), 'KCERT_KEY_UNSUPPORTED', 'encryption pbeWithSHAAnd128BitRC4'],
    ['a wrong MAC', pfx([], mac('sha256', 1)), 'KCERT_PASSWORD_WRONG', 'the password does not open'],
    [
      'a wrong password without MAC',
      pfx([plain(shroudedKey(1))]),
      'KCERT_PASSWORD_WRONG',
      'the password does not open',
    ],
  ])('%s', async (_, store, code, reason) => {
    expect(await refusalOf(store, 'x')).toMatchObject({ code, message: expect.stringContaining(reason) })
  })

  test('requires a password for an encrypted keystore', async () => {
    expect(await refusalOf(pfx([plain(shroudedKey(1))]))).toMatchObject({ code: 'KCERT_KEY_ENCRYPTED' })
    expect(await refusalOf(pfx([], mac('sha256', 1)))).toMatchObject({ code: 'KCERT_KEY_ENCRYPTED' })
  })

  test('reports a wrong password that decrypts to random bytes, without a MAC', async () => {
    const scheme = pbe('pbeWithSHAAnd3-KeyTripleDES-CBC', 1)
    const content = sequence(oid(oidOf('data')), scheme, element(contextTag(0), Buffer.alloc(16, 7)))
    const store = pfx([contentInfo('encryptedData', sequence(integer(0), content))])
    // One in 256 has padding that looks right.
    for (let i = 0; i < 1500; i++) {
      expect(await refusalOf(store, `wrong ${i}`)).toMatchObject({ code: 'KCERT_PASSWORD_WRONG' })
    }
  })

  test('rejects contents nested without end', async () => {
    let contents = sequence(certificateBag(certificate))
    for (let i = 0; i < 40; i++) contents = sequence(bag('safeContentsBag', contents))
    const store = pfx([contentInfo('data', octetString(contents))])
    expect(await refusalOf(store)).toMatchObject({
      code: 'KCERT_X509_MALFORMED',
      message: expect.stringContaining('nested deeper than 32'),
    })
  })

  test('rejects a keystore with too many bags', async () => {
    const crl = bag('crlBag', sequence())
    const contents = element(0x30, Buffer.alloc(crl.length * 50_001, crl))
    expect(await refusalOf(pfx([contentInfo('data', octetString(contents))]))).toMatchObject({
      code: 'KCERT_X509_MALFORMED',
      message: expect.stringContaining('more than 50000'),
    })
  })

  test('rejects a keystore cut at any byte', async () => {
    const store = pfx([plain(certificateBag(certificate), bag('keyBag', pkcs8))])
    for (let length = 0; length < store.length; length++) {
      expect(await refusalOf(store.subarray(0, length), '')).toMatchObject({ code: 'KCERT_X509_MALFORMED' })
    }
  })
})

describe.skipIf(!hasOpenSsl)('keystores from OpenSSL', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-pkcs12-'))
  const path = (name: string): string => join(folder, name)
  beforeAll(() => {
    for (const name of ['rsa', 'p256', 'p384', 'p521', 'ed25519'] as const) {
      writeFileSync(path(`${name}.key`), keys[name].export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 })
      writeFileSync(
        path(`${name}.crt`),
        writePem('CERTIFICATE', selfSigned({ serialNumber: 'c0' }, keys[name])),
      )
    }
    writeFileSync(path('ca.crt'), writePem('CERTIFICATE', selfSigned({ serialNumber: 'ca' })))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const exported = (name: keyof typeof keys, password: string, options: readonly string[]): Buffer =>
    openssl([
      ...['pkcs12', '-export', '-inkey', path(`${name}.key`), '-in', path(`${name}.crt`)],
      ...['-certfile', path('ca.crt'), '-name', 'kcert', '-passout', `pass:${password}`, ...options],
    ])

  test.each<[keyof typeof keys, string, readonly string[]]>([
    ['rsa', 'geheim', []],
    ['p256', 'geheim', []],
    ['p384', 'pässwort €', []],
    ['p521', '', []],
    ['ed25519', 'geheim', ['-macalg', 'sha512']],
    ['p256', 'geheim', ['-legacy']],
    ['rsa', 'pässwort €', ['-legacy']],
    [
      'p256',
      'geheim',
      [
        '-keypbe',
        'PBE-SHA1-2DES',
        '-certpbe',
        'PBE-SHA1-RC2-128',
        '-provider',
        'legacy',
        '-provider',
        'default',
      ],
    ],
    ['ed25519', 'geheim', ['-keypbe', 'AES-128-CBC', '-certpbe', 'DES-EDE3-CBC', '-macalg', 'sha384']],
    ['p256', 'geheim', ['-keypbe', 'NONE', '-certpbe', 'NONE']],
    ['rsa', 'geheim', ['-nomac']],
    ['p256', 'geheim', ['-iter', '100000', '-maciter']],
  ])('%s with password "%s" and %j', async (name, password, options) => {
    const store = exported(name, password, options)
    const { certificates, keys: found } = await readPkcs12(store, password)
    expect(certificates.map(({ der }) => Certificate.parse(der).serialNumber).sort()).toEqual(['c0', 'ca'])
    const leaf = certificates.find(({ friendlyName }) => friendlyName === 'kcert')!
    expect(found).toHaveLength(1)
    expect(found[0]).toMatchObject({ friendlyName: 'kcert', localKeyId: leaf.localKeyId })
    const key = readPrivateKey(found[0]!.der)
    expect(key.keyObject!.equals(keys[name])).toBe(true)
    expect(found[0]!.encrypted).toBe(password !== '' && !options.includes('NONE'))
    expect(key.publicKey!.sha256).toBe(Certificate.parse(leaf.der).publicKey.sha256)
  })

  test('do not open with another password', async () => {
    for (const options of [[], ['-legacy'], ['-nomac']]) {
      expect(await refusalOf(exported('p256', 'geheim', options), 'wrong')).toMatchObject({
        code: 'KCERT_PASSWORD_WRONG',
      })
    }
  })
})
