import { createECDH, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keys, publicKeyOf } from '../../test/fixtures/certificates.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { DerReader, tags } from './der.ts'
import {
  bitString,
  element,
  explicit,
  integer,
  nullElement,
  octetString,
  oid,
  sequence,
} from './der-writer.ts'
import {
  isPrivateKeyLabel,
  isPublicKeyLabel,
  readPrivateKey,
  readPrivateKeyFile,
  readPublicKey,
} from './keys.ts'
import { type OidName, oidOf } from './oids.ts'
import { readPem, writePem } from './pem.ts'

const passphrase = 'geheim'
const der = (key: KeyObject, type: 'pkcs1' | 'sec1' | 'pkcs8'): Buffer => key.export({ format: 'der', type })
const pem = (key: KeyObject, type: 'pkcs1' | 'sec1' | 'pkcs8', cipher?: string): Buffer =>
  Buffer.from(key.export({ format: 'pem', type, ...(cipher === undefined ? {} : { cipher, passphrase }) }))
const spkiHash = (key: KeyObject): string =>
  readPublicKey(publicKeyOf(key).export({ format: 'der', type: 'spki' })).sha256

describe('reads private keys of each kind and format, PEM and DER', () => {
  test.each([
    ['rsa', 'pkcs1', 'PKCS#1'],
    ['rsa', 'pkcs8', 'PKCS#8'],
    ['p224', 'sec1', 'SEC1'],
    ['p256', 'sec1', 'SEC1'],
    ['p256', 'pkcs8', 'PKCS#8'],
    ['p384', 'sec1', 'SEC1'],
    ['p384', 'pkcs8', 'PKCS#8'],
    ['p521', 'sec1', 'SEC1'],
    ['p521', 'pkcs8', 'PKCS#8'],
    ['ed25519', 'pkcs8', 'PKCS#8'],
  ] as const)('%s in %s', (name, type, format) => {
    for (const file of [pem(keys[name], type), der(keys[name], type)]) {
      const key = readPrivateKeyFile(file)
      expect(key).toMatchObject({ format, encrypted: false })
      expect(key.publicKey!.sha256).toBe(spkiHash(keys[name]))
      expect(key.keyObject!.equals(keys[name])).toBe(true)
    }
  })
})

describe('encrypted private keys', () => {
  test.each([
    ['rsa', 'pkcs8', 'aes-256-cbc', 'encrypted PKCS#8'],
    ['p256', 'pkcs8', 'aes-128-cbc', 'encrypted PKCS#8'],
    ['ed25519', 'pkcs8', 'des-ede3-cbc', 'encrypted PKCS#8'],
    ['rsa', 'pkcs1', 'aes-256-cbc', 'encrypted PKCS#1'],
    ['p384', 'sec1', 'aes-192-cbc', 'encrypted SEC1'],
    ['p256', 'sec1', 'des-ede3-cbc', 'encrypted SEC1'],
  ] as const)('%s in %s by %s', (name, type, cipher, format) => {
    const file = pem(keys[name], type, cipher)
    expect(readPrivateKeyFile(file)).toEqual({ format, encrypted: true })
    const opened = readPrivateKeyFile(file, passphrase)
    expect(opened).toMatchObject({ format, encrypted: true })
    expect(opened.publicKey!.sha256).toBe(spkiHash(keys[name]))
    for (const wrong of ['', 'wrong', 'geheim ']) {
      expect(thrownBy(() => readPrivateKeyFile(file, wrong))).toMatchObject({
        code: 'KCERT_PASSWORD_WRONG',
        message: 'the password does not open the private key',
      })
    }
  })

  // Builds an EncryptedPrivateKeyInfo with these parameters and random bytes for a key.
  const encrypted = (scheme: OidName, parameters: Uint8Array): Uint8Array =>
    sequence(sequence(oid(oidOf(scheme)), parameters), octetString(Buffer.alloc(48, 7)))
  const aes = sequence(oid(oidOf('AES-256-CBC')), octetString(Buffer.alloc(16)))
  const salt = octetString(Buffer.alloc(16))
  const pbes2 = (kdf: OidName, parameters: Uint8Array, cipher = aes): Uint8Array =>
    encrypted('PBES2', sequence(sequence(oid(oidOf(kdf)), parameters), cipher))

  describe('rejects parameters that would keep kcert busy', () => {
    test.each<[string, Uint8Array]>([
      ['PBKDF2 with 10,000,000 iterations', pbes2('PBKDF2', sequence(salt, integer(10_000_000)))],
      [
        'PBKDF2 with 2^63 iterations',
        pbes2('PBKDF2', sequence(salt, integer(Buffer.from('7fffffffffffffff', 'hex')))),
      ],
      ['scrypt with N = 2^20', pbes2('scrypt', sequence(salt, integer(2 ** 20), integer(8), integer(1)))],
      ['scrypt with 1 GiB', pbes2('scrypt', sequence(salt, integer(2), integer(2 ** 22), integer(1)))],
      ['scrypt with p = 2^30', pbes2('scrypt', sequence(salt, integer(2), integer(8), integer(2 ** 30)))],
      [
        'triple DES with 2^31 iterations',
        encrypted('pbeWithSHAAnd3-KeyTripleDES-CBC', sequence(salt, integer(2 ** 31 - 1))),
      ],
    ])('before the computation: %s', (_, file) => {
      expect(thrownBy(() => readPrivateKey(file, passphrase))).toMatchObject({
        code: 'KCERT_KEY_UNSUPPORTED',
        message: expect.stringContaining("the password's key derivation costs too much"),
      })
      expect(readPrivateKey(file)).toEqual({ format: 'encrypted PKCS#8', encrypted: true })
    })

    test('computes a count four times the recommended one', () => {
      const file = pbes2('PBKDF2', sequence(salt, integer(1_200_000)))
      expect(thrownBy(() => readPrivateKey(file, passphrase)).code).toBe('KCERT_PASSWORD_WRONG')
    })
  })

  test.each<[string, Uint8Array, string]>([
    [
      'single DES',
      encrypted('pbeWithMD5AndDES-CBC', sequence(salt, integer(2048))),
      'encryption pbeWithMD5AndDES-CBC',
    ],
    [
      'RC4',
      encrypted('pbeWithSHAAnd128BitRC4', sequence(salt, integer(2048))),
      'encryption pbeWithSHAAnd128BitRC4',
    ],
    ['an unknown scheme', encrypted('data', sequence()), 'encryption data'],
    ['another derivation', pbes2('PBMAC1', sequence(salt)), 'key derivation PBMAC1'],
    [
      'another cipher',
      pbes2('PBKDF2', sequence(salt, integer(1)), sequence(oid(oidOf('RC2-CBC')))),
      'cipher rc2-cbc',
    ],
    [
      'another PRF',
      pbes2('PBKDF2', sequence(salt, integer(1), sequence(oid(oidOf('md5')), nullElement))),
      'message authentication md5',
    ],
    [
      "a key length that is not the cipher's",
      pbes2('PBKDF2', sequence(salt, integer(1), integer(16))),
      'a key of 16 bytes',
    ],
  ])('rejects %s as unsupported, by name', (_, file, name) => {
    const error = thrownBy(() => readPrivateKey(file, passphrase))
    expect(error.code).toBe('KCERT_KEY_UNSUPPORTED')
    expect(error.message).toContain(name)
  })

  test.each<[string, Uint8Array]>([
    ['no iterations', pbes2('PBKDF2', sequence(salt, integer(0)))],
    ['a negative count', pbes2('PBKDF2', sequence(salt, integer(-1)))],
    ['a negative key length', pbes2('PBKDF2', sequence(salt, integer(1), integer(-32)))],
    [
      'scrypt with an N that is not a power of two',
      pbes2('scrypt', sequence(salt, integer(3), integer(8), integer(1))),
    ],
    [
      'an initialization vector of 8 bytes',
      pbes2(
        'PBKDF2',
        sequence(salt, integer(1)),
        sequence(oid(oidOf('AES-256-CBC')), octetString(Buffer.alloc(8))),
      ),
    ],
  ])('rejects %s as malformed', (_, file) => {
    expect(thrownBy(() => readPrivateKey(file)).code).toBe('KCERT_X509_MALFORMED')
  })

  test('rejects old PEM encryption with single DES or with mismatched headers', () => {
    const withDekInfo = (dekInfo: string, length = 48): Buffer =>
      Buffer.from(
        writePem('RSA PRIVATE KEY', Buffer.alloc(length)).replace(
          '\n',
          `\nProc-Type: 4,ENCRYPTED\nDEK-Info: ${dekInfo}\n\n`,
        ),
      )
    const codeOf = (file: Buffer): string => thrownBy(() => readPrivateKeyFile(file, passphrase)).code
    expect(codeOf(withDekInfo('DES-CBC,0011223344556677'))).toBe('KCERT_KEY_UNSUPPORTED')
    expect(codeOf(withDekInfo(''))).toBe('KCERT_KEY_UNSUPPORTED')
    expect(codeOf(withDekInfo('AES-256-CBC,0011'))).toBe('KCERT_X509_MALFORMED')
    expect(codeOf(withDekInfo('AES-256-CBC,00112233445566778899aabbccddeeff', 47))).toBe(
      'KCERT_X509_MALFORMED',
    )
  })
})

describe('readPrivateKeyFile', () => {
  test('ignores EC PARAMETERS before a key, as Kubernetes does', () => {
    const parameters = writePem('EC PARAMETERS', oid(oidOf('P-256')))
    const file = Buffer.from(parameters + pem(keys.p256, 'sec1').toString())
    expect(readPrivateKeyFile(file).publicKey!.curve).toBe('P-256')
  })

  test('ignores a certificate before a key', () => {
    const file = Buffer.from(writePem('CERTIFICATE', sequence()) + pem(keys.rsa, 'pkcs1').toString())
    expect(readPrivateKeyFile(file).format).toBe('PKCS#1')
  })

  test.each([
    ['no key', writePem('CERTIFICATE', sequence()), 'no private key found'],
    [
      'a damaged key',
      '-----BEGIN PRIVATE KEY-----\n*\n-----END PRIVATE KEY-----',
      'PRIVATE KEY at line 1: "*" at line 2',
    ],
  ])('rejects files with %s', (_, text, reason) => {
    expect(thrownBy(() => readPrivateKeyFile(Buffer.from(text))).message).toContain(reason)
  })

  test('distinguishes the PEM labels of private keys', () => {
    expect(
      ['RSA PRIVATE KEY', 'EC PRIVATE KEY', 'PRIVATE KEY', 'ENCRYPTED PRIVATE KEY'].every(isPrivateKeyLabel),
    ).toBe(true)
    expect(isPrivateKeyLabel('EC PARAMETERS')).toBe(false)
    expect(isPrivateKeyLabel('toString')).toBe(false)
    expect(isPublicKeyLabel('RSA PUBLIC KEY')).toBe(true)
  })

  test('rejects OpenSSH keys and says how to convert them', () => {
    const [block] = readPem(writePem('OPENSSH PRIVATE KEY', Uint8Array.of(1))).blocks
    expect(thrownBy(() => readPrivateKey(block!, undefined, undefined, 'id_rsa'))).toMatchObject({
      code: 'KCERT_KEY_UNSUPPORTED',
      next: 'ssh-keygen -p -m PKCS8 -f id_rsa',
    })
  })
})

describe('misleading keys', () => {
  test('computes the public key of an EC key and ignores the embedded one', () => {
    const stranger = createECDH('prime256v1')
    stranger.generateKeys()
    const secret = Buffer.from(keys.p256.export({ format: 'jwk' }).d!, 'base64url')
    const forged = sequence(
      integer(1),
      octetString(secret),
      explicit(0, oid(oidOf('P-256'))),
      explicit(1, bitString(stranger.getPublicKey())),
    )
    expect(readPrivateKey(forged).publicKey!.sha256).toBe(spkiHash(keys.p256))
    const pkcs8 = sequence(
      integer(0),
      sequence(oid(oidOf('id-ecPublicKey')), oid(oidOf('P-256'))),
      octetString(forged),
    )
    expect(readPrivateKey(pkcs8).publicKey!.sha256).toBe(spkiHash(keys.p256))
  })

  test('rejects an RSA key whose numbers do not match', () => {
    const members = rsaMembers(der(keys.rsa, 'pkcs1'))
    const other = rsaMembers(der(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey, 'pkcs1'))
    for (const swapped of [1, 3, 4, 5]) {
      const forged = sequence(...members.map((member, i) => (i === swapped ? other[i]! : member)))
      expect(thrownBy(() => readPrivateKey(forged)).message).toContain(
        'does not belong to the other numbers of the key',
      )
    }
    expect(readPrivateKey(sequence(...members)).publicKey!.bits).toBe(2048)
  })

  function rsaMembers(key: Uint8Array): Uint8Array[] {
    const reader = new DerReader(key, 'key')
    reader.enter(tags.sequence, '')
    const members: Uint8Array[] = []
    while (!reader.atEnd) {
      reader.next('')
      members.push(Buffer.from(reader.lastElement))
    }
    return members
  }

  test.each<[string, Uint8Array, string]>([
    ['an EC key without curve', sequence(integer(1), octetString(Buffer.alloc(32, 1))), 'no curve is named'],
    [
      'an EC key of version 2',
      sequence(integer(2), octetString(Buffer.alloc(32, 1))),
      'version at offset 4: not 1',
    ],
    [
      'PKCS#8 of version 2',
      sequence(integer(2), sequence(oid(oidOf('Ed25519'))), octetString(nullElement)),
      'unknown version 2',
    ],
    ['an RSA key with a negative number', sequence(integer(0), integer(-1)), 'modulus at offset 7: negative'],
    [
      'a secret of zero',
      sequence(integer(1), octetString(Buffer.alloc(32)), explicit(0, oid(oidOf('P-256')))),
      'not an uncompressed point',
    ],
    [
      'a secret longer than its curve',
      sequence(integer(1), octetString(Buffer.alloc(33, 1)), explicit(0, oid(oidOf('P-256')))),
      'privateKey at offset 7: 33 bytes, where P-256 has 32',
    ],
    ['nothing', new Uint8Array(0), 'missing'],
    ['trailing data', Buffer.concat([der(keys.p256, 'sec1'), Uint8Array.of(0)]), 'after the key'],
  ])('rejects %s as malformed', (_, file, reason) => {
    expect(thrownBy(() => readPrivateKey(file))).toMatchObject({
      code: 'KCERT_X509_MALFORMED',
      message: expect.stringContaining(reason),
    })
  })

  test.each<[string, Uint8Array]>([
    [
      'on a curve that Go does not read',
      der(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey, 'pkcs8'),
    ],
    [
      'with explicit parameters',
      sequence(integer(1), octetString(Buffer.alloc(32, 1)), explicit(0, sequence())),
    ],
    ['with three primes', sequence(integer(1), integer(5))],
    [
      'by DSA',
      der(generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).privateKey, 'pkcs8'),
    ],
    ['of an unknown algorithm', sequence(integer(0), sequence(oid('1.2.3')), octetString(nullElement))],
  ])('rejects a key %s as unsupported', (_, file) => {
    expect(thrownBy(() => readPrivateKey(file)).code).toBe('KCERT_KEY_UNSUPPORTED')
  })

  test('rejects a key cut at any byte as malformed', () => {
    for (const type of ['pkcs8', 'sec1'] as const) {
      const whole = der(keys.p256, type)
      for (let length = 0; length < whole.length; length++) {
        expect(thrownBy(() => readPrivateKey(whole.subarray(0, length))).code).toBe('KCERT_X509_MALFORMED')
      }
    }
  })
})

test('never includes key or password in an error', () => {
  const file = pem(keys.ed25519, 'pkcs8', 'aes-256-cbc')
  const error = thrownBy(() => readPrivateKeyFile(file, 'a password to hide'))
  expect(`${error.message} ${error.why} ${error.next} ${String(error.cause)}`).not.toContain('hide')
})

describe('public keys', () => {
  test('reads SubjectPublicKeyInfo and RSAPublicKey, from PEM or DER', () => {
    const rsa = publicKeyOf(keys.rsa)
    expect(readPublicKey(rsa.export({ format: 'der', type: 'spki' })).bits).toBe(2048)
    expect(readPublicKey(rsa.export({ format: 'der', type: 'pkcs1' })).sha256).toBe(spkiHash(keys.rsa))
    const [block] = readPem(rsa.export({ format: 'pem', type: 'pkcs1' })).blocks
    expect(readPublicKey(block!).sha256).toBe(spkiHash(keys.rsa))
  })

  test('rejects a private key', () => {
    expect(thrownBy(() => readPublicKey(der(keys.ed25519, 'pkcs8'))).code).toBe('KCERT_X509_MALFORMED')
    expect(thrownBy(() => readPublicKey(element(tags.set))).code).toBe('KCERT_X509_MALFORMED')
  })
})
