import { sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keys, spkiOf } from '../../test/fixtures/certificates.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { constructedTag, contextTag, tags } from './der.ts'
import {
  bitString,
  element,
  elementOf,
  explicit,
  integer,
  nullElement,
  octetString,
  oid,
  sequence,
  setOf,
} from './der-writer.ts'
import { createRequest } from './issuing.ts'
import { encodeName } from './name-encoding.ts'
import { type OidName, oidOf } from './oids.ts'
import { CertificateRequest } from './request.ts'

const subject = encodeName({ commonName: 'system:node:n1', organization: ['system:nodes'] })
const algorithm = sequence(oid(oidOf('Ed25519')))

interface Parts {
  readonly version?: Uint8Array
  readonly attributes?: Uint8Array
  readonly tail?: Uint8Array
}

function craft({
  version = integer(0),
  attributes = explicit(0),
  tail = new Uint8Array(0),
}: Parts): Uint8Array {
  const info = sequence(version, subject, spkiOf(keys.ed25519), attributes)
  return sequence(info, algorithm, bitString(sign(null, info, keys.ed25519)), tail)
}

const attribute = (type: OidName, ...values: Uint8Array[]): Uint8Array =>
  sequence(oid(oidOf(type)), setOf(...values))
const extension = (type: OidName, value: Uint8Array): Uint8Array =>
  sequence(oid(oidOf(type)), octetString(value))
const requesting = (...list: Uint8Array[]): Uint8Array =>
  explicit(0, attribute('extensionRequest', sequence(...list)))
const dns = (name: string): Uint8Array => sequence(element(contextTag(2), Buffer.from(name)))

test('reads every field of a request', () => {
  const der = createRequest(
    {
      subject: { commonName: 'system:node:n1', organization: ['system:nodes'] },
      subjectAltNames: { dns: ['n1'], ip: ['10.0.0.1', 'fd00::1'] },
      keyUsage: ['digitalSignature', 'keyEncipherment'],
      extendedKeyUsage: ['serverAuth'],
      basicConstraints: { ca: false },
    },
    keys.p256,
  )
  const request = CertificateRequest.parse(der)
  expect(request).toMatchObject({
    version: 0,
    signatureAlgorithm: 'ecdsa-with-SHA256',
    subjectAltNames: { dns: ['n1'], ip: ['10.0.0.1', 'fd00::1'] },
    keyUsage: ['digitalSignature', 'keyEncipherment'],
    extendedKeyUsage: ['serverAuth'],
    basicConstraints: { ca: false },
    malformedExtensions: [],
  })
  expect(request.subject.commonName).toBe('system:node:n1')
  expect(request.subject.organization).toEqual(['system:nodes'])
  expect(request.publicKey.curve).toBe('P-256')
  expect(Buffer.from(request.der)).toEqual(Buffer.from(der))
  expect(request.verifySignature('possession').ok).toBe(true)
})

test('reads a request without extensions', () => {
  const request = CertificateRequest.parse(createRequest({ subject: {} }, keys.rsa))
  expect(request.extensions).toEqual([])
  expect(request.subject.isEmpty).toBe(true)
  expect(request.verifySignature('possession').ok).toBe(true)
})

test('reports an invalid signature for a request that another key signed', () => {
  const der = Buffer.from(craft({}))
  der[der.length - 1]! ^= 1
  expect(CertificateRequest.parse(der).verifySignature('possession').ok).toBe(false)
  expect(CertificateRequest.parse(der).verifySignature()).toEqual({ ok: false, reason: 'bad-signature' })
})

describe('attributes', () => {
  test('other than extensionRequest are ignored, even if malformed', () => {
    const password = attribute('challengePassword', element(tags.utf8String, Buffer.from('secret')))
    const attributes = explicit(0, password, integer(7), sequence(octetString(new Uint8Array(2))), sequence())
    expect(CertificateRequest.parse(craft({ attributes })).extensions).toEqual([])
  })

  test('extensionRequest: the first value of each is used', () => {
    const first = attribute('extensionRequest', sequence(extension('subjectAltName', dns('a'))))
    const second = attribute(
      'extensionRequest',
      sequence(extension('keyUsage', bitString(Uint8Array.of(0x80), 7))),
    )
    const request = CertificateRequest.parse(craft({ attributes: explicit(0, first, second) }))
    expect(request.subjectAltNames.dns).toEqual(['a'])
    expect(request.keyUsage).toEqual(['digitalSignature'])
  })

  test('extensionRequest is ignored if a value after the first is damaged', () => {
    const values = Buffer.concat([sequence(extension('subjectAltName', dns('a'))), Uint8Array.of(0x04, 0x05)])
    const damaged = sequence(oid(oidOf('extensionRequest')), element(tags.set, values))
    expect(CertificateRequest.parse(craft({ attributes: explicit(0, damaged) })).extensions).toEqual([])
  })

  test('extensionRequest without a value requests nothing', () => {
    const request = CertificateRequest.parse(
      craft({ attributes: explicit(0, attribute('extensionRequest')) }),
    )
    expect(request.extensions).toEqual([])
  })
})

test('malformed extensions that Go does not check are accepted and listed', () => {
  const attributes = requesting(extension('keyUsage', nullElement), extension('subjectAltName', dns('a')))
  const request = CertificateRequest.parse(craft({ attributes }))
  expect(request.malformedExtensions).toEqual([oidOf('keyUsage')])
  expect(request.keyUsage).toBeUndefined()
  expect(request.subjectAltNames.dns).toEqual(['a'])
  expect(request.verifySignature('possession').ok).toBe(true)
})

describe('rejects requests that Go rejects', () => {
  const twice = requesting(extension('subjectAltName', dns('a')), extension('subjectAltName', dns('b')))
  test.each<[string, Uint8Array, string]>([
    ['trailing data', Buffer.concat([craft({}), Uint8Array.of(0)]), 'after the request at offset'],
    ['no attributes', craft({ attributes: new Uint8Array(0) }), 'certificationRequestInfo.attributes at'],
    ['a version that is not an INTEGER', craft({ version: nullElement }), 'NULL where INTEGER belongs'],
    [
      'an extension that is requested twice',
      craft({ attributes: twice }),
      'extension requested for the second time',
    ],
    ['malformed SANs', craft({ attributes: requesting(extension('subjectAltName', dns('ä'))) }), 'dNSName'],
    [
      'extensions that are not a SEQUENCE',
      craft({ attributes: explicit(0, attribute('extensionRequest', integer(1))) }),
      'INTEGER where SEQUENCE',
    ],
  ])('%s', (_, der, reason) => {
    expect(thrownBy(() => CertificateRequest.parse(der))).toMatchObject({
      code: 'KCERT_X509_MALFORMED',
      message: expect.stringContaining(reason),
    })
  })

  test('rejects an extension that is requested again in a later attribute', () => {
    const one = attribute('extensionRequest', sequence(extension('subjectAltName', dns('a'))))
    const der = craft({ attributes: explicit(0, one, one) })
    const { message } = thrownBy(() => CertificateRequest.parse(der))
    expect(message).toContain('extension requested for the second time')
  })

  test('rejects a request cut at any byte', () => {
    const der = createRequest({ subject: { commonName: 'a' }, subjectAltNames: { dns: ['b'] } }, keys.ed25519)
    for (let length = 0; length < der.length; length++) {
      expect(thrownBy(() => CertificateRequest.parse(der.subarray(0, length))).code).toBe(
        'KCERT_X509_MALFORMED',
      )
    }
  })
})

test('ignores what Go ignores: members after the signature, other versions', () => {
  expect(CertificateRequest.parse(craft({ tail: nullElement })).verifySignature('possession').ok).toBe(true)
  expect(CertificateRequest.parse(craft({ version: integer(5) })).version).toBe(5)
})

const flood = (each: (index: number) => Uint8Array): Uint8Array[] =>
  Array.from({ length: 100_000 }, (_, index) => each(index))
/** An identifier of 1.2: four bytes, another one for each index. */
const arbitraryOid = (index: number): Uint8Array => {
  const arc = index + 0x4000
  return element(tags.oid, Uint8Array.of(0x2a, 0x80 | (arc >> 14), 0x80 | ((arc >> 7) & 0x7f), arc & 0x7f))
}

/** The encoded extensionRequest of an extension whose value is a SEQUENCE of these elements. */
const requestingMany = (type: OidName, elements: readonly Uint8Array[]): Uint8Array =>
  requesting(extension(type, elementOf(tags.sequence, elements)))

const floods: Readonly<Record<string, () => Uint8Array>> = {
  extensions() {
    const list = flood((index) => sequence(arbitraryOid(index), octetString(new Uint8Array(0))))
    return explicit(0, attribute('extensionRequest', elementOf(tags.sequence, list)))
  },
  attributes: () =>
    elementOf(
      constructedTag(0),
      flood((index) => sequence(arbitraryOid(index), setOf())),
    ),
  SANs: () =>
    requestingMany(
      'subjectAltName',
      flood((index) => element(contextTag(2), Buffer.from(`n${index}`))),
    ),
  'extended key usages': () => requestingMany('extKeyUsage', flood(arbitraryOid)),
}

test.each(Object.entries(floods))('reads 100,000 %s in linear time', (_, attributes) => {
  const der = craft({ attributes: attributes() })
  const before = process.threadCpuUsage()
  CertificateRequest.parse(der)
  expect(process.threadCpuUsage(before).user).toBeLessThan(3_000_000)
})
