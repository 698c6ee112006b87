import { describe, expect, test } from 'vitest'
import { craft, extension, extensions } from '../../test/fixtures/certificates.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { Certificate } from './certificate.ts'
import { constructedTag, contextTag, tags } from './der.ts'
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
import type { OidName } from './oids.ts'

const withExtension = (name: OidName, value: Uint8Array, critical = false): Certificate =>
  Certificate.parse(craft({ tail: extensions([extension(name, value, critical)]) }))
const refusalOf = (name: OidName, value: Uint8Array, critical = false): string =>
  thrownBy(() => withExtension(name, value, critical)).message
const text = (number: number, value: string): Uint8Array =>
  element(contextTag(number), Buffer.from(value, 'latin1'))
const nothing = new Uint8Array(0)

describe('key usage', () => {
  test.each<[string, Uint8Array, readonly string[]]>([
    ['none', bitString(nothing), []],
    ['the first', bitString(Uint8Array.of(0x80), 7), ['digitalSignature']],
    ['the ninth', bitString(Uint8Array.of(0, 0x80), 7), ['decipherOnly']],
    ['more bits than there are names', bitString(Uint8Array.of(0x02, 0x7f, 0xff), 0), ['cRLSign']],
    ['CA', bitString(Uint8Array.of(0x06), 1), ['keyCertSign', 'cRLSign']],
  ])('%s', (_, value, usages) => {
    expect(withExtension('keyUsage', value).keyUsage).toEqual(usages)
  })

  test('rejects an OCTET STRING', () => {
    expect(refusalOf('keyUsage', octetString(Uint8Array.of(7, 0x80)))).toContain(
      'keyUsage.KeyUsage at offset',
    )
  })
})

describe('basic constraints', () => {
  test.each<[string, Uint8Array, object]>([
    ['empty', sequence(), { ca: false }],
    ['a CA', sequence(boolean(true)), { ca: true }],
    ['a CA with path length 0', sequence(boolean(true), integer(0)), { ca: true, pathLength: 0 }],
    ['CA: FALSE with a path length', sequence(integer(5)), { ca: false, pathLength: 5 }],
    ['FALSE that is written', sequence(boolean(false)), { ca: false }],
  ])('%s', (_, value, constraints) => {
    expect(withExtension('basicConstraints', value).basicConstraints).toEqual(constraints)
  })

  test.each<[string, Uint8Array, string]>([
    ['a negative path length', sequence(boolean(true), integer(-1)), 'pathLenConstraint at'],
    ['a path length above 64 bits', sequence(integer(new Uint8Array(9).fill(1))), 'INTEGER above 64 bits'],
    ['a BOOLEAN of 01', sequence(element(tags.boolean, Uint8Array.of(1))), 'cA at'],
    ['nothing', nothing, 'missing'],
  ])('rejects %s', (_, value, reason) => {
    expect(refusalOf('basicConstraints', value)).toContain(reason)
  })
})

describe('key identifiers', () => {
  const keyId = octetString(Uint8Array.of(1, 2, 0xff))

  test('are hexadecimal', () => {
    expect(withExtension('subjectKeyIdentifier', keyId).subjectKeyId).toBe('0102ff')
    const authority = sequence(
      element(contextTag(0), Uint8Array.of(0xab)),
      explicit(1, sequence()),
      text(2, 'x'),
    )
    expect(withExtension('authorityKeyIdentifier', authority).authorityKeyId).toBe('ab')
    expect(withExtension('authorityKeyIdentifier', sequence()).authorityKeyId).toBeUndefined()
  })

  test.each<[OidName, Uint8Array]>([
    ['subjectKeyIdentifier', keyId],
    ['authorityKeyIdentifier', sequence()],
    ['authorityInfoAccess', sequence()],
  ])('%s must not be critical', (name, value) => {
    expect(withExtension(name, value)).toBeInstanceOf(Certificate)
    expect(refusalOf(name, value, true)).toMatch(
      new RegExp(`^certificate: ${name}\\.critical at offset \\d+: marked critical, which RFC 5280 forbids$`),
    )
  })

  test('rejects an authority key identifier that is not a SEQUENCE', () => {
    expect(refusalOf('authorityKeyIdentifier', keyId)).toContain('OCTET STRING where SEQUENCE belongs')
  })
})

describe('SANs', () => {
  const names = (...list: Uint8Array[]): Certificate['subjectAltNames'] =>
    withExtension('subjectAltName', sequence(...list)).subjectAltNames

  test('reads all types, in order', () => {
    const found = names(
      text(2, 'b'),
      text(2, 'a'),
      text(1, 'm@x'),
      text(6, 'spiffe://x'),
      element(0x87, Buffer.alloc(4)),
    )
    expect(found).toMatchObject({
      dns: ['b', 'a'],
      email: ['m@x'],
      uri: ['spiffe://x'],
      ip: ['0.0.0.0'],
      other: [],
    })
    expect(found.ipBytes).toEqual([Buffer.alloc(4)])
  })

  test('lists names of types that Go ignores', () => {
    const upn = sequence(
      oid('1.3.6.1.4.1.311.20.2.3'),
      explicit(0, element(tags.utf8String, Buffer.from('u@x'))),
    )
    const otherName = Buffer.concat([Uint8Array.of(constructedTag(0)), upn.subarray(1)])
    const registered = element(contextTag(8), oid('1.2.3').subarray(2))
    expect(
      names(otherName, explicit(4, sequence()), explicit(3), explicit(5), registered, nullElement).other,
    ).toEqual([
      'otherName:1.3.6.1.4.1.311.20.2.3',
      'dirName:',
      'x400Address',
      'ediPartyName',
      'registeredID:1.2.3',
      'NULL',
    ])
    expect(names(explicit(4, integer(1))).other).toEqual(['[4], malformed'])
  })

  test('lists at most 100 names of such types', () => {
    const other = names(...Array<Uint8Array>(1000).fill(explicit(3))).other
    expect(other).toHaveLength(101)
    expect(other.at(-1)).toBe('and more')
  })

  test('accepts unusual names that Go accepts', () => {
    expect(names(text(2, ''), text(2, 'a b'), text(2, '-.'), text(1, 'x'), text(6, '')).dns).toEqual([
      '',
      'a b',
      '-.',
    ])
  })

  test.each<[string, Uint8Array, string]>([
    ['a DNS name above 7 bits', text(2, 'ä'), 'dNSName at'],
    ['a mailbox above 7 bits', text(1, 'ä@x'), 'rfc822Name at'],
    ['a URI above 7 bits', text(6, 'http://ä'), 'uniformResourceIdentifier at'],
    ['a URI with an invalid port', text(6, 'http://a:b\x1b'), '"http://a:b\\u001b": control character'],
    ['an address of 5 bytes', element(0x87, Buffer.alloc(5)), 'iPAddress at'],
    ['a name that is cut off', Uint8Array.of(0x82, 5), 'name at'],
  ])('rejects %s', (_, name, reason) => {
    expect(refusalOf('subjectAltName', sequence(name))).toContain(
      `subjectAltName.${reason}`.replace('subjectAltName."', '"'),
    )
  })
})

describe('name constraints', () => {
  const constraints = (...trees: Uint8Array[]): Uint8Array =>
    sequence(explicit(0, ...trees.map((tree) => sequence(tree))))

  test('keeps address and mask of ranges', () => {
    const range = element(0x87, Uint8Array.of(10, 1, 2, 3, 255, 240, 0, 0))
    const read = withExtension('nameConstraints', constraints(range)).nameConstraints!
    expect(read.permitted.ip.map(({ text: shown }) => shown)).toEqual(['10.1.2.3/12'])
    expect([...read.permitted.ip[0]!.mask]).toEqual([255, 240, 0, 0])
  })

  test('ignores minimum and maximum', () => {
    const subtree = sequence(text(2, 'a'), element(contextTag(0), Uint8Array.of(1)))
    expect(
      withExtension('nameConstraints', sequence(explicit(1, subtree))).nameConstraints?.excluded.dns,
    ).toEqual(['a'])
  })

  test.each<[string, Uint8Array, string]>([
    ['empty', sequence(), 'empty'],
    ['of empty lists', sequence(explicit(0), explicit(1)), 'empty'],
    ['with data after them', sequence(explicit(0, sequence(text(2, 'a'))), nullElement), '2 bytes too many'],
    ['in the wrong order', sequence(explicit(1, sequence(text(2, 'a'))), explicit(0)), 'bytes too many'],
    [
      'with data after the SEQUENCE',
      Buffer.concat([constraints(text(2, 'a')), nullElement]),
      '2 bytes too many',
    ],
    ['with a dot at the end of a name', constraints(text(2, 'a.')), '"a." is not a name constraint'],
    [
      'with a mask that has holes',
      constraints(element(0x87, Uint8Array.of(1, 2, 3, 4, 255, 0, 255, 0))),
      'invalid mask 255.0.255.0',
    ],
    ['with an address without mask', constraints(element(0x87, Buffer.alloc(4))), 'constraint of 4 bytes'],
    ['with an invalid mailbox', constraints(text(1, 'a b@c')), '"a b@c" is not a name constraint'],
    ['with an address for URIs', constraints(text(6, '10.0.0.1')), '"10.0.0.1" is not a name constraint'],
    ['above 7 bits', constraints(text(2, 'ä')), 'not an IA5String'],
  ])('rejects constraints %s', (_, value, reason) => {
    expect(refusalOf('nameConstraints', value)).toContain(reason)
  })
})

describe('policies', () => {
  const policy = (...parts: Uint8Array[]): Uint8Array => sequence(...parts)

  test('reads identifiers and ignores qualifiers', () => {
    const value = sequence(policy(oid('1.2.3'), sequence()), policy(oid('2.5.29.32.0')))
    expect(withExtension('certificatePolicies', value).policies).toEqual(['1.2.3', '2.5.29.32.0'])
  })

  test('rejects duplicate policies', () => {
    expect(refusalOf('certificatePolicies', sequence(policy(oid('1.2.3')), policy(oid('1.2.3'))))).toContain(
      '1.2.3 for the second time',
    )
  })

  test('reads mappings, constraints and inhibitAnyPolicy', () => {
    const mappings = sequence(sequence(oid('1.2.3'), oid('1.2.4')))
    expect(withExtension('policyMappings', mappings).decoded.policyMappings).toEqual([
      { issuerDomainPolicy: '1.2.3', subjectDomainPolicy: '1.2.4' },
    ])
    const constraints = sequence(
      element(contextTag(0), Uint8Array.of(1)),
      element(contextTag(1), Uint8Array.of(2)),
    )
    expect(withExtension('policyConstraints', constraints).decoded).toMatchObject({
      requireExplicitPolicy: 1,
      inhibitPolicyMapping: 2,
    })
    expect(withExtension('inhibitAnyPolicy', integer(3)).decoded.inhibitAnyPolicy).toBe(3)
    expect(refusalOf('inhibitAnyPolicy', sequence())).toContain('inhibitAnyPolicy.SkipCerts')
  })

  test('keeps mappings with malformed identifiers, as Go does', () => {
    const mappings = sequence(sequence(element(tags.oid, Uint8Array.of(0x80)), oid('1.2.4')))
    expect(withExtension('policyMappings', mappings).decoded.policyMappings[0]?.issuerDomainPolicy).toBe(
      '#80',
    )
  })
})

test('names extended key usages, and unknown ones by identifier', () => {
  const value = sequence(oid('1.3.6.1.5.5.7.3.1'), oid('2.5.29.37.0'), oid('1.2.3'))
  expect(withExtension('extKeyUsage', value).extendedKeyUsage).toEqual([
    'serverAuth',
    'anyExtendedKeyUsage',
    '1.2.3',
  ])
  expect(refusalOf('extKeyUsage', sequence(nullElement))).toContain('extKeyUsage.KeyPurposeId')
})

test('reads the URIs at the start of a fullName as CRL addresses', () => {
  const point = (...names: Uint8Array[]): Uint8Array => sequence(explicit(0, explicit(0, ...names)))
  const value = sequence(
    point(text(6, 'http://a'), text(6, 'ldap://b'), explicit(4, sequence()), text(6, 'http://c')),
    sequence(),
  )
  expect(withExtension('cRLDistributionPoints', value).crlDistributionPoints).toEqual([
    'http://a',
    'ldap://b',
  ])
  expect(refusalOf('cRLDistributionPoints', sequence(sequence(explicit(0, explicit(1)))))).toContain(
    'fullName',
  )
})

test('reads both kinds of authority information addresses and ignores others', () => {
  const access = (method: string, location: Uint8Array): Uint8Array => sequence(oid(method), location)
  const value = sequence(
    access('1.3.6.1.5.5.7.48.1', text(6, 'http://o')),
    access('1.3.6.1.5.5.7.48.2', text(6, 'http://i')),
    access('1.3.6.1.5.5.7.48.2', explicit(4, sequence())),
    access('1.2.3', text(6, 'http://x')),
  )
  expect(withExtension('authorityInfoAccess', value).authorityInfoAccess).toEqual({
    ocsp: ['http://o'],
    caIssuers: ['http://i'],
  })
})
