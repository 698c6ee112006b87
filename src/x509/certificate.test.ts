import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  craft,
  extension,
  extensions,
  keys,
  notAfter,
  notBefore,
  selfSigned,
  spkiOf,
} from '../../test/fixtures/certificates.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { Certificate, certificateOfBlock, readCertificates } from './certificate.ts'
import { contextTag, tags } from './der.ts'
import {
  bitString,
  boolean,
  element,
  explicit,
  integer,
  nullElement,
  octetString,
  oid,
  sequence,
} from './der-writer.ts'
import { issueCertificate, keyIdentifierOf } from './issuing.ts'
import { oidOf } from './oids.ts'
import { writePem } from './pem.ts'

const full = issueCertificate(
  {
    serialNumber: '0a1b',
    subject: { commonName: 'system:node:n1', organization: ['system:nodes'] },
    issuer: { commonName: 'kubernetes' },
    notBefore,
    notAfter,
    publicKey: keys.p256,
    keyUsage: ['digitalSignature', 'keyEncipherment', 'decipherOnly'],
    extendedKeyUsage: ['serverAuth', 'clientAuth', '1.2.3.4'],
    basicConstraints: { ca: true, pathLength: 3 },
    subjectKeyId: '01020304',
    authorityKeyId: '05060708',
    authorityInfoAccess: { ocsp: ['http://ocsp'], caIssuers: ['http://ca'] },
    subjectAltNames: {
      dns: ['n1', '*.n1'],
      ip: ['10.0.0.1', 'fd00::1'],
      email: ['a@b'],
      uri: ['spiffe://c/d'],
    },
    policies: ['2.5.29.32.0', '1.2.3'],
    nameConstraints: {
      permitted: { dns: ['.a'], ip: ['10.0.0.0/8'] },
      excluded: { email: ['b'], uri: ['.c'] },
    },
    crlDistributionPoints: ['http://crl'],
    extensions: [{ oid: '1.2.3.4.5', value: Uint8Array.of(5, 0) }],
  },
  keys.rsa,
)

test('reads every field of a certificate', () => {
  const c = Certificate.parse(full)
  expect(c).toMatchObject({
    version: 3,
    serialNumber: '0a1b',
    notBefore,
    notAfter,
    signatureAlgorithm: 'sha256WithRSAEncryption',
    signatureAlgorithmOid: '1.2.840.113549.1.1.11',
    keyUsage: ['digitalSignature', 'keyEncipherment', 'decipherOnly'],
    extendedKeyUsage: ['serverAuth', 'clientAuth', '1.2.3.4'],
    basicConstraints: { ca: true, pathLength: 3 },
    isCa: true,
    subjectKeyId: '01020304',
    authorityKeyId: '05060708',
    authorityInfoAccess: { ocsp: ['http://ocsp'], caIssuers: ['http://ca'] },
    subjectAltNames: {
      dns: ['n1', '*.n1'],
      ip: ['10.0.0.1', 'fd00::1'],
      email: ['a@b'],
      uri: ['spiffe://c/d'],
      other: [],
    },
    policies: ['2.5.29.32.0', '1.2.3'],
    crlDistributionPoints: ['http://crl'],
    unhandledCriticalExtensions: [],
    isSelfIssued: false,
  })
  expect(c.subject.text).toBe('CN=system:node:n1,O=system:nodes')
  expect(c.issuer.text).toBe('CN=kubernetes')
  expect(c.nameConstraints?.permitted).toMatchObject({
    dns: ['.a'],
    ip: [{ text: '10.0.0.0/8' }],
    email: [],
    uri: [],
  })
  expect(c.nameConstraints?.excluded).toMatchObject({ dns: [], ip: [], email: ['b'], uri: ['.c'] })
  expect(c.publicKey).toMatchObject({ algorithm: 'ECDSA', curve: 'P-256', bits: undefined })
  expect(c.extensions.map(({ name, critical }) => [name, critical])).toEqual([
    ['keyUsage', true],
    ['extKeyUsage', false],
    ['basicConstraints', true],
    ['subjectKeyIdentifier', false],
    ['authorityKeyIdentifier', false],
    ['authorityInfoAccess', false],
    ['subjectAltName', false],
    ['certificatePolicies', false],
    ['nameConstraints', true],
    ['cRLDistributionPoints', false],
    ['1.2.3.4.5', false],
  ])
  expect([...c.findExtension('1.2.3.4.5')!.value]).toEqual([5, 0])
})

test('returns bytes and digests of the certificate, of its TBSCertificate and of its key', () => {
  const c = Certificate.parse(full)
  const node = new X509Certificate(full)
  expect(Buffer.from(c.der)).toEqual(node.raw)
  expect(c.fingerprintSha256).toBe(node.fingerprint256.replaceAll(':', '').toLowerCase())
  expect(Buffer.from(c.publicKey.spki)).toEqual(Buffer.from(spkiOf(keys.p256)))
  expect(c.publicKey.keyObject().equals(node.publicKey)).toBe(true)
  expect(full.length - c.tbs.length - c.signature.length).toBe(4 + 15 + 5)
})

test('treats absent extensions as no restriction and no name', () => {
  expect(Certificate.parse(craft())).toMatchObject({
    basicConstraints: undefined,
    isCa: false,
    keyUsage: undefined,
    extendedKeyUsage: [],
    subjectAltNames: { dns: [], ip: [], email: [], uri: [], other: [] },
    subjectKeyId: undefined,
    authorityKeyId: undefined,
    nameConstraints: undefined,
    crlDistributionPoints: [],
    authorityInfoAccess: { ocsp: [], caIssuers: [] },
    policies: [],
    extensions: [],
  })
})

const refusalOf = (der: Uint8Array): string => thrownBy(() => Certificate.parse(der)).message

describe('rejects certificates that Go rejects, with field and offset', () => {
  const nothing = new Uint8Array(0)
  test.each<[string, Uint8Array, string]>([
    [
      'trailing data',
      Buffer.concat([craft(), Uint8Array.of(0)]),
      'after the certificate at offset 206: 1 bytes too many',
    ],
    [
      'version 4',
      craft({ version: explicit(0, integer(3)) }),
      'tbsCertificate.version at offset 9: unknown version 3',
    ],
    ['version −1', craft({ version: explicit(0, integer(-1)) }), 'unknown version -1'],
    [
      'data after the version',
      craft({ version: explicit(0, integer(2), integer(2)) }),
      'tbsCertificate.version at',
    ],
    [
      'a negative serial number',
      craft({ serialNumber: integer(-1) }),
      'tbsCertificate.serialNumber at offset 12: negative',
    ],
    ['no serial number', craft({ serialNumber: nothing }), 'SEQUENCE where INTEGER belongs'],
    [
      'other parameters inside and outside',
      craft({ signatureAlgorithm: sequence(oid(oidOf('Ed25519')), nullElement) }),
      'signatureAlgorithm at offset 132: differs from tbsCertificate.signature',
    ],
    [
      'an algorithm that is not an identifier',
      craft({ signature: sequence(integer(1)) }),
      'tbsCertificate.signature.algorithm',
    ],
    ['an issuer that is a SET', craft({ issuer: element(tags.set) }), 'tbsCertificate.issuer'],
    ['times that are strings', craft({ validity: sequence(octetString(nothing)) }), 'validity.notBefore'],
    [
      'one time',
      craft({ validity: sequence(element(tags.utcTime, Buffer.from('260101000000Z'))) }),
      'notAfter at',
    ],
    ['no signature', craft({ signatureValue: nothing }), 'signatureValue at offset 139: missing'],
    ['extensions in a SET', craft({ tail: explicit(3, element(tags.set)) }), 'extensions at'],
    [
      'a duplicate extension',
      craft({ tail: extensions([extension('nsComment', nothing), extension('nsComment', nothing)]) }),
      'nsComment at offset',
    ],
    [
      'an extension with a BOOLEAN of 01',
      craft({
        tail: extensions([sequence(oid('1.2.3'), element(1, Uint8Array.of(1)), octetString(nothing))]),
      }),
      'critical at offset',
    ],
    [
      'an extension without value',
      craft({ tail: extensions([sequence(oid('1.2.3'))]) }),
      'extnValue at offset',
    ],
  ])('%s', (_, der, reason) => {
    expect(refusalOf(der)).toContain(reason)
  })
})

describe('ignores what Go ignores', () => {
  const more = integer(7)
  test.each<[string, Uint8Array]>([
    [
      'data after the times',
      craft({ validity: sequence(...['260101000000Z', '270101000000Z'].map(utc), more) }),
    ],
    ['data after the extensions', craft({ tail: Buffer.concat([extensions([]), more]) })],
    [
      'data after an extension',
      craft({ tail: extensions([sequence(oid('1.2.3'), octetString(more), more)]) }),
    ],
    ['unique identifiers', craft({ tail: Buffer.concat([element(0x81, Uint8Array.of(0)), element(0x82)]) })],
    ['extensions of a version 1 certificate', craft({ version: new Uint8Array(0), tail: explicit(3, more) })],
    [
      'extensions of a version 2 certificate',
      craft({ version: explicit(0, integer(1)), tail: explicit(3, more) }),
    ],
    ['a version 1 that is written', craft({ version: explicit(0, integer(0)) })],
    ['a serial number of zero', craft({ serialNumber: integer(0) })],
    ['a serial number of 100 bytes', craft({ serialNumber: integer(new Uint8Array(100).fill(1)) })],
    [
      'FALSE written for critical',
      craft({ tail: extensions([sequence(oid('1.2.3'), boolean(false), octetString(more))]) }),
    ],
  ])('%s', (_, der) => {
    expect(Certificate.parse(der)).toBeInstanceOf(Certificate)
  })
})

function utc(text: string): Uint8Array {
  return element(tags.utcTime, Buffer.from(text, 'latin1'))
}

test('returns a serial number in whole bytes, without the sign byte', () => {
  const serialOf = (serialNumber: Uint8Array): string =>
    Certificate.parse(craft({ serialNumber })).serialNumber
  expect(serialOf(integer(0))).toBe('00')
  expect(serialOf(integer(0xff))).toBe('ff')
  expect(serialOf(integer(0xabc))).toBe('0abc')
})

test('shifts a signature with unused bits, as Go does', () => {
  const der = craft({ signatureValue: bitString(Uint8Array.of(0b1010_0000), 4) })
  expect([...Certificate.parse(der).signature]).toEqual([0b1010])
})

describe('lists critical extensions that Go does not handle', () => {
  const unhandled = (...list: Uint8Array[]): readonly string[] =>
    Certificate.parse(craft({ tail: extensions(list) })).unhandledCriticalExtensions

  test('unknown extensions', () => {
    expect(unhandled(extension('nsComment', octetString(new Uint8Array(0)), true))).toEqual([
      oidOf('nsComment'),
    ])
    expect(unhandled(extension('nsComment', octetString(new Uint8Array(0))))).toEqual([])
  })

  test('SANs that have no type that Go compares', () => {
    const directoryName = explicit(4, sequence())
    expect(unhandled(extension('subjectAltName', sequence(directoryName), true))).toEqual(['2.5.29.17'])
    const dns = element(contextTag(2), Buffer.from('a'))
    expect(unhandled(extension('subjectAltName', sequence(directoryName, dns), true))).toEqual([])
  })

  test('name constraints of a type that Go does not compare', () => {
    const constraints = sequence(explicit(0, sequence(explicit(4, sequence()))))
    expect(unhandled(extension('nameConstraints', constraints, true))).toEqual(['2.5.29.30'])
    expect(unhandled(extension('nameConstraints', constraints))).toEqual([])
  })
})

describe('readCertificates', () => {
  const [a, b] = [selfSigned({ serialNumber: '0a' }), selfSigned({ serialNumber: '0b' })]
  const serials = (input: Uint8Array | string): string[] => readCertificates(input).map((c) => c.serialNumber)

  test('reads PEM and ignores other blocks', () => {
    const text = writePem('CERTIFICATE', a) + writePem('PRIVATE KEY', b) + writePem('X509 CERTIFICATE', b)
    expect(serials(text)).toEqual(['0a', '0b'])
  })

  test('reads DER, one or several certificates in a row', () => {
    expect(serials(a)).toEqual(['0a'])
    expect(serials(Buffer.concat([a, b]))).toEqual(['0a', '0b'])
  })

  test("reads OpenSSL's TRUSTED CERTIFICATE without its trust settings", () => {
    const trusted = Buffer.concat([a, sequence(sequence(oid(oidOf('serverAuth'))))])
    expect(serials(writePem('TRUSTED CERTIFICATE', trusted))).toEqual(['0a'])
    const plain = { label: 'CERTIFICATE', der: trusted }
    expect(thrownBy(() => certificateOfBlock(plain)).message).toContain('after the certificate')
  })

  test.each<[string, Uint8Array | string, string]>([
    ['none', '', 'no certificate found'],
    ['only a key', writePem('PRIVATE KEY', a), 'no certificate found'],
    [
      'a damaged block',
      `${writePem('CERTIFICATE', a)}\n-----BEGIN CERTIFICATE-----\n*`,
      'PEM block CERTIFICATE at line',
    ],
    ['DER that is cut off', Buffer.concat([a, b.subarray(0, 50)]), 'certificate: offset 0: truncated'],
  ])('rejects %s', (_, input, reason) => {
    expect(thrownBy(() => readCertificates(input))).toMatchObject({
      code: 'KCERT_X509_MALFORMED',
      message: expect.stringContaining(reason),
    })
  })
})

describe('isSignedBy', () => {
  const issuer = Certificate.parse(
    selfSigned({ basicConstraints: { ca: true }, subjectKeyId: keyIdentifierOf(keys.rsa) }, keys.rsa),
  )

  test('depends on the key, not on the name', () => {
    expect(Certificate.parse(full).isSignedBy(issuer)).toBe(true)
    expect(issuer.isSignedBy(issuer)).toBe(true)
    expect(Certificate.parse(selfSigned({}, keys.p256)).isSignedBy(issuer)).toBe(false)
  })

  test('self-issued depends on the names only', () => {
    expect(issuer.isSelfIssued).toBe(true)
    expect(Certificate.parse(full).isSelfIssued).toBe(false)
  })
})
