import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  keys,
  notAfter,
  notBefore,
  publicKeyOf,
  selfSigned,
  spkiOf,
} from '../../test/fixtures/certificates.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { hasOpenSsl, openssl } from '../../test/peers/openssl.ts'
import { Certificate } from './certificate.ts'
import { keyUsages } from './extensions.ts'
import type { GeneralSubtrees } from './general-names.ts'
import { formatIp, parseIp } from './ip.ts'
import {
  type CertificateDescription,
  createRequest,
  issueCertificate,
  keyIdentifierOf,
  type SubtreesDescription,
} from './issuing.ts'
import { readPem, writePem } from './pem.ts'
import { CertificateRequest } from './request.ts'
import '../../test/seeded.ts'

type KeyName = keyof typeof keys

const hexBytes = (length: number): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => Buffer.from(bytes).toString('hex'))
const ip = fc.oneof(hexBytes(4), hexBytes(16)).map((hex) => formatIp(Buffer.from(hex, 'hex')))
const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$/)
const dns = fc
  .array(label, { minLength: 1, maxLength: 4 })
  .map((labels) => labels.join('.'))
  .filter((text) => parseIp(text) === undefined)
const uri = dns.map((host) => `https://${host}/path`)
const email = fc.tuple(label, dns).map(([local, host]) => `${local}@${host}`)
const list = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 3 })
const range = fc.oneof(
  fc.tuple(hexBytes(4), fc.nat(32)).map(([hex, prefix]) => `${formatIp(Buffer.from(hex, 'hex'))}/${prefix}`),
  fc
    .tuple(hexBytes(14), fc.nat(128))
    .map(([hex, prefix]) => `${formatIp(Buffer.from(`2001${hex}`, 'hex'))}/${prefix}`),
)
const subtrees: fc.Arbitrary<Required<SubtreesDescription>> = fc.record({
  dns: list(dns),
  ip: list(range),
  email: list(email),
  uri: list(dns),
})
const oid = fc
  .array(fc.nat(100_000), { minLength: 1, maxLength: 5 })
  .map((arcs) => `1.3.6.1.4.1.${arcs.join('.')}`)
// OpenSSL and RFC 4514 write only printable text in the same way.
const value = fc
  .string({ unit: fc.constantFrom(...'abcXYZ019 ,+"\\<>;#=äß€-:*&@_'), minLength: 1, maxLength: 12 })
  // OpenSSL treats a lone "#" as the last character and does not escape it as the first one.
  .filter((text) => text !== '#')
const type = fc.constantFrom('CN', 'O', 'OU', 'C', 'L', 'ST', 'serialNumber', 'UID')
const name = fc.array(
  fc.record({ type, value }).map((attribute) => [attribute]),
  { maxLength: 4 },
)
const instant = (from: string, to: string): fc.Arbitrary<Date> =>
  fc
    .integer({ min: Date.parse(from) / 1000, max: Date.parse(to) / 1000 })
    .map((seconds) => new Date(seconds * 1000))

const description = fc.record({
  key: fc.constantFrom<KeyName>('rsa', 'p256', 'p384', 'p521', 'ed25519'),
  hash: fc.constantFrom('sha256', 'sha384', 'sha512'),
  serialNumber: fc.oneof(hexBytes(1), hexBytes(8), hexBytes(19)).filter((hex) => /[1-9a-f]/.test(hex)),
  subject: name,
  issuer: name,
  notBefore: instant('1950-01-01T00:00:00Z', '2060-01-01T00:00:00Z'),
  notAfter: instant('2040-01-01T00:00:00Z', '9999-12-31T23:59:59Z'),
  keyUsage: fc.option(fc.subarray([...keyUsages]), { nil: undefined }),
  extendedKeyUsage: fc.uniqueArray(
    fc.oneof(fc.constantFrom('serverAuth', 'clientAuth', 'anyExtendedKeyUsage'), oid),
    {
      maxLength: 3,
    },
  ),
  basicConstraints: fc.option(
    fc.oneof(
      fc.constant({ ca: false }),
      fc.constant({ ca: true }),
      fc.nat(300).map((pathLength) => ({ ca: true, pathLength })),
    ),
    { nil: undefined },
  ),
  subjectKeyId: fc.option(hexBytes(20), { nil: undefined }),
  authorityKeyId: fc.option(hexBytes(20), { nil: undefined }),
  subjectAltNames: fc.record({ dns: list(dns), ip: list(ip), email: list(email), uri: list(uri) }),
  authorityInfoAccess: fc.record({ ocsp: list(uri), caIssuers: list(uri) }),
  crlDistributionPoints: list(uri),
  policies: fc.uniqueArray(oid, { maxLength: 3 }),
  nameConstraints: fc.record({ permitted: subtrees, excluded: subtrees }),
})

type Described = typeof description extends fc.Arbitrary<infer Value> ? Value : never

function issue({
  key,
  keyUsage,
  basicConstraints,
  subjectKeyId,
  authorityKeyId,
  ...rest
}: Described): Uint8Array {
  const optional = {
    ...(keyUsage === undefined ? {} : { keyUsage }),
    ...(basicConstraints === undefined ? {} : { basicConstraints }),
    ...(subjectKeyId === undefined ? {} : { subjectKeyId }),
    ...(authorityKeyId === undefined ? {} : { authorityKeyId }),
  }
  return issueCertificate({ ...rest, ...optional, publicKey: keys.p256 } as CertificateDescription, keys[key])
}

const algorithmOf = ({ key, hash }: Described): string =>
  ({
    rsa: `${hash}WithRSAEncryption`,
    p224: 'ecdsa-with-SHA256',
    p256: 'ecdsa-with-SHA256',
    p384: 'ecdsa-with-SHA384',
    p521: 'ecdsa-with-SHA512',
    ed25519: 'Ed25519',
  })[key]

const textsOf = ({ dns, ip, email, uri }: GeneralSubtrees): Required<SubtreesDescription> => ({
  dns,
  ip: ip.map(({ text }) => text),
  email,
  uri,
})

describe('an issued certificate', () => {
  test('has the fields that kcert reads', () => {
    fc.assert(
      fc.property(description, (described) => {
        const der = issue(described)
        const c = Certificate.parse(der)
        expect(c).toMatchObject({
          version: 3,
          serialNumber: described.serialNumber.replace(/^(00)+(?=.)/, ''),
          notBefore: described.notBefore,
          notAfter: described.notAfter,
          signatureAlgorithm: algorithmOf(described),
          extendedKeyUsage: described.extendedKeyUsage,
          authorityInfoAccess: described.authorityInfoAccess,
          crlDistributionPoints: described.crlDistributionPoints,
          policies: described.policies,
          subjectAltNames: { ...described.subjectAltNames, other: [] },
          unhandledCriticalExtensions: [],
        })
        expect(c.keyUsage).toEqual(described.keyUsage)
        expect(c.basicConstraints).toEqual(described.basicConstraints)
        expect(c.subjectKeyId).toBe(described.subjectKeyId)
        expect(c.authorityKeyId).toBe(described.authorityKeyId)
        const plain = (side: readonly (readonly { type: string; value: string }[])[]): unknown =>
          side.map((rdn) => rdn.map((attribute) => [attribute.type, attribute.value]))
        expect(plain(c.subject.rdns)).toEqual(plain(described.subject))
        expect(plain(c.issuer.rdns)).toEqual(plain(described.issuer))
        const { permitted, excluded } = described.nameConstraints
        const isConstrained = [permitted, excluded].some((side) =>
          Object.values(side).some(({ length }) => length > 0),
        )
        expect(c.nameConstraints !== undefined).toBe(isConstrained)
        if (c.nameConstraints !== undefined) {
          expect(textsOf(c.nameConstraints.permitted)).toEqual(permitted)
          expect(textsOf(c.nameConstraints.excluded)).toEqual(excluded)
        }
        // Critical where RFC 5280 requires it.
        const critical = c.extensions
          .filter((extension) => extension.critical)
          .map((extension) => extension.name)
        expect(critical.includes('subjectAltName')).toBe(
          c.subject.isEmpty && critical.includes('subjectAltName'),
        )
        for (const always of ['keyUsage', 'basicConstraints', 'nameConstraints']) {
          expect(critical.includes(always)).toBe(c.extensions.some((extension) => extension.name === always))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('has the fields that node:crypto reads, and a valid signature', () => {
    fc.assert(
      fc.property(description, (described) => {
        const der = issue(described)
        const node = new X509Certificate(der)
        expect(node.verify(publicKeyOf(keys[described.key]))).toBe(true)
        expect(node.serialNumber.toLowerCase()).toBe(Certificate.parse(der).serialNumber)
        expect(node.validFromDate).toEqual(described.notBefore)
        expect(node.validToDate).toEqual(described.notAfter)
        const { basicConstraints, keyUsage = ['keyCertSign'] } = described
        expect(node.ca).toBe(basicConstraints?.ca === true && keyUsage.includes('keyCertSign'))
        expect(node.publicKey.export({ format: 'der', type: 'spki' })).toEqual(spkiOf(keys.p256))
        const { subjectAltNames: names } = described
        const shown = [
          ...names.dns.map((text) => `DNS:${text}`),
          ...names.email.map((text) => `email:${text}`),
          ...names.ip.map((text) => `IP Address:${expanded(text)}`),
          ...names.uri.map((text) => `URI:${text}`),
        ]
        expect(node.subjectAltName).toBe(shown.length === 0 ? undefined : shown.join(', '))
        for (const text of names.ip) expect(node.checkIP(text)).toBe(text)
      }),
      { numRuns: 300 },
    )
  })

  /** As OpenSSL prints an address: IPv6 in capitals, not shortened. */
  function expanded(text: string): string {
    const bytes = parseIp(text)!
    if (bytes.length === 4) return text
    const groups = Array.from({ length: 8 }, (_, i) => (bytes[2 * i]! * 256 + bytes[2 * i + 1]!).toString(16))
    return groups.join(':').toUpperCase()
  }

  test.skipIf(!hasOpenSsl)('has the fields that openssl x509 reads', () => {
    fc.assert(
      fc.property(description, (described) => {
        const der = issue(described)
        const c = Certificate.parse(der)
        const printed = openssl(
          [
            ...[
              'x509',
              '-inform',
              'DER',
              '-noout',
              '-serial',
              '-dates',
              '-dateopt',
              'iso_8601',
              '-subject',
              '-issuer',
            ],
            ...[
              '-nameopt',
              'RFC2253,utf8,-esc_msb',
              '-ext',
              'basicConstraints,subjectKeyIdentifier,extendedKeyUsage',
            ],
          ],
          der,
        ).toString()
        const line = (key: string): string | undefined =>
          printed
            .split('\n')
            .find((text) => text.startsWith(`${key}=`))
            ?.slice(key.length + 1)
        expect(line('serial')!.toLowerCase()).toBe(c.serialNumber)
        const iso = (date: Date): string => date.toISOString().replace('T', ' ').replace('.000', '')
        expect(line('notBefore')).toBe(iso(described.notBefore))
        expect(line('notAfter')).toBe(iso(described.notAfter))
        expect(line('subject')).toBe(c.subject.text)
        expect(line('issuer')).toBe(c.issuer.text)
        const { basicConstraints, subjectKeyId } = described
        if (subjectKeyId !== undefined) {
          expect(printed).toContain(subjectKeyId.toUpperCase().replaceAll(/..(?=.)/g, '$&:'))
        }
        if (basicConstraints !== undefined)
          expect(printed).toContain(`CA:${basicConstraints.ca ? 'TRUE' : 'FALSE'}`)
      }),
      { numRuns: 60 },
    )
  })
})

describe('rejects an invalid description', () => {
  test.each<[string, Partial<CertificateDescription>, string]>([
    ['serial number zero', { serialNumber: '00' }, 'serial number "00"'],
    ['a serial number that is not a number', { serialNumber: '-1' }, 'serial number "-1"'],
    ['no serial number', { serialNumber: '' }, 'serial number ""'],
    ['a serial number of 21 bytes', { serialNumber: `01${'00'.repeat(20)}` }, 'serial number'],
    ['a serial number of 20 bytes with the sign bit', { serialNumber: 'ff'.repeat(20) }, 'serial number'],
    ['an invalid time', { notAfter: new Date(Number.NaN) }, 'time'],
    ['a year of five digits', { notAfter: new Date(Date.UTC(10_000, 0)) }, 'time 10000'],
    ['an invalid IP address', { subjectAltNames: { ip: ['10.0.0.256'] } }, 'IP address "10.0.0.256"'],
    [
      'a range without prefix',
      { nameConstraints: { permitted: { ip: ['10.0.0.0'] } } },
      'IP range "10.0.0.0"',
    ],
    [
      'a prefix too long',
      { nameConstraints: { permitted: { ip: ['10.0.0.0/33'] } } },
      'IP range "10.0.0.0/33"',
    ],
    ['an invalid URI', { subjectAltNames: { uri: ['http://a:b'] } }, 'URI "http://a:b"'],
    [
      'a constraint with a dot at its end',
      { nameConstraints: { permitted: { dns: ['a.'] } } },
      'constraint "a."',
    ],
    [
      'an address as a constraint of URIs',
      { nameConstraints: { excluded: { uri: ['::1'] } } },
      'constraint "::1"',
    ],
    ['an invalid mailbox', { nameConstraints: { excluded: { email: ['a b@c'] } } }, 'constraint "a b@c"'],
    ['a name above ASCII', { subjectAltNames: { dns: ['bücher.example'] } }, 'name "b\\u00fccher.example"'],
  ])('%s', (_, given, what) => {
    expect(thrownBy(() => selfSigned(given))).toMatchObject({
      code: 'KCERT_USAGE',
      message: expect.stringContaining(`${what}`),
    })
  })

  test.each(['secp256k1', 'x25519', 'rsa-pss'] as const)('a key of type %s', (type) => {
    const key =
      type === 'secp256k1'
        ? generateKeyPairSync('ec', { namedCurve: type }).privateKey
        : type === 'x25519'
          ? generateKeyPairSync(type).privateKey
          : generateKeyPairSync(type, { modulusLength: 1024 }).privateKey
    expect(thrownBy(() => selfSigned({ publicKey: keys.p256 }, key)).code).toBe('KCERT_KEY_UNSUPPORTED')
  })
})

test('accepts a serial number of at most 20 bytes without the sign bit', () => {
  const serialNumber = `7f${'ff'.repeat(19)}`
  expect(Certificate.parse(selfSigned({ serialNumber })).serialNumber).toBe(serialNumber)
  expect(Certificate.parse(selfSigned({ serialNumber: 'abc' })).serialNumber).toBe('0abc')
})

test('replaces the extension from the description with a raw extension', () => {
  const value = Uint8Array.of(0x30, 0)
  const der = selfSigned({
    keyUsage: ['cRLSign'],
    extensions: [
      { oid: '2.5.29.15', critical: true, value: Uint8Array.of(3, 1, 0) },
      { oid: '1.2.3', value },
    ],
  })
  const c = Certificate.parse(der)
  expect(c.extensions.map(({ oid, critical }) => [oid, critical])).toEqual([
    ['2.5.29.15', true],
    ['1.2.3', false],
  ])
  expect(c.keyUsage).toEqual([])
})

test('writes no extensions when there are none', () => {
  expect(Certificate.parse(selfSigned({ subjectAltNames: {}, extendedKeyUsage: [] })).extensions).toEqual([])
})

describe('key identifiers', () => {
  test('are the SHA-1 of the key bits, for each form of the key', () => {
    const c = Certificate.parse(selfSigned({}, keys.p256))
    const expected = keyIdentifierOf(keys.p256)
    expect(expected).toMatch(/^[0-9a-f]{40}$/)
    expect([publicKeyOf(keys.p256), spkiOf(keys.p256), c.publicKey].map(keyIdentifierOf)).toEqual(
      Array(3).fill(expected),
    )
  })

  test.skipIf(!hasOpenSsl)("match OpenSSL's", () => {
    const folder = mkdtempSync(join(tmpdir(), 'kcert-key-'))
    const file = join(folder, 'key.pem')
    writeFileSync(file, keys.p384.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 })
    const options = ['-x509', '-new', '-key', file, '-subj', '/CN=a', '-addext', 'subjectKeyIdentifier=hash']
    const [block] = readPem(openssl(['req', ...options])).blocks
    rmSync(folder, { recursive: true })
    expect(Certificate.parse(block!.der).subjectKeyId).toBe(keyIdentifierOf(keys.p384))
  })
})

describe('requests', () => {
  test('are valid for each kind of key', () => {
    for (const key of Object.values(keys)) {
      const request = CertificateRequest.parse(createRequest({ subject: { commonName: 'a' } }, key))
      expect(request.verifySignature('possession').ok).toBe(true)
      expect(Buffer.from(request.publicKey.spki)).toEqual(Buffer.from(spkiOf(key)))
    }
  })

  test.skipIf(!hasOpenSsl)('are read and verified by openssl req', () => {
    const der = createRequest(
      {
        subject: { commonName: 'system:node:n1', organization: ['system:nodes'] },
        subjectAltNames: { dns: ['n1'], ip: ['10.0.0.1', 'fd00::1'] },
        keyUsage: ['digitalSignature'],
        extendedKeyUsage: ['serverAuth'],
      },
      keys.p256,
    )
    const text = openssl(
      ['req', '-noout', '-verify', '-text'],
      writePem('CERTIFICATE REQUEST', der),
    ).toString()
    expect(text).toContain('O = system:nodes, CN = system:node:n1')
    expect(text).toContain('DNS:n1, IP Address:10.0.0.1, IP Address:FD00:0:0:0:0:0:0:1')
    expect(text).toContain('TLS Web Server Authentication')
  })
})

test('writes a parsed name with its original bytes: issuer and CA match for all string types', () => {
  const ca = Certificate.parse(
    selfSigned({ subject: [[{ type: 'emailAddress', value: 'a@b' }], [{ type: 'O', value: 'ä' }]] }),
  )
  const leaf = Certificate.parse(
    issueCertificate(
      {
        serialNumber: '02',
        subject: { commonName: 'leaf' },
        issuer: ca.subject,
        notBefore,
        notAfter,
        publicKey: keys.p256,
      },
      keys.ed25519,
    ),
  )
  expect(leaf.issuer.equals(ca.subject)).toBe(true)
  expect(leaf.isSignedBy(ca)).toBe(true)
})
