import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { Certificate } from '../../src/x509/certificate.ts'
import { tags } from '../../src/x509/der.ts'
import { element, explicit, integer, oid as oidElement, sequence, setOf } from '../../src/x509/der-writer.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { isCertificateLabel, looksLikePem, readPem } from '../../src/x509/pem.ts'
import {
  craft,
  extension,
  extensions,
  keys,
  notAfter,
  notBefore,
  type Parts,
} from '../fixtures/certificates.ts'
import { buildGoPeer } from '../peers/go-peer.ts'
import { readRecorded, recordedFiles } from '../truth/manifest.ts'
import { seed } from './seed.ts'

// kcert accepts and rejects the same certificates as Go's crypto/x509, and reads the same values. The inputs are certificates
// with changed bytes, and generated ones with one unusual field.

const runs = Number(process.env.KCERT_PARSES ?? 20_000)

const peer = buildGoPeer()
if ('missing' in peer) console.log(peer.missing)

const issued = issueCertificate(
  {
    serialNumber: '0a1b',
    subject: { commonName: 'system:node:n1', organization: ['system:nodes', 'ä'] },
    issuer: { commonName: 'kubernetes' },
    notBefore,
    notAfter,
    publicKey: keys.rsa,
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: ['serverAuth', '1.2.3'],
    basicConstraints: { ca: true, pathLength: 1 },
    subjectKeyId: '0102',
    authorityKeyId: '0304',
    subjectAltNames: { dns: ['a.b'], ip: ['10.0.0.1', 'fd00::1'], email: ['a@b'], uri: ['spiffe://c/d'] },
    nameConstraints: { permitted: { dns: ['.a'], ip: ['10.0.0.0/8'] }, excluded: { email: ['b'] } },
    crlDistributionPoints: ['http://c'],
    policies: ['1.2.3'],
  },
  keys.p384,
)
const originals = [issued, ...recordedCertificates()].filter(({ length }) => length < 2500)

function recordedCertificates(): Uint8Array[] {
  return [...recordedFiles('odd'), ...recordedFiles('good')]
    .filter(({ kind }) => kind === 'certificate')
    .flatMap(({ path }) => {
      const bytes = readRecorded(path)
      return looksLikePem(bytes) ? readPem(bytes).blocks.filter(({ label }) => isCertificateLabel(label)) : []
    })
    .map(({ der }) => der)
}

const byte = fc.oneof(
  fc.nat(255),
  fc.constantFrom(0, 1, 2, 6, 0x0c, 0x13, 0x17, 0x30, 0x31, 0x7f, 0x80, 0x82, 0x86, 0xa0, 0xff),
)
const mutant = fc
  .tuple(fc.nat(originals.length - 1), fc.array(fc.tuple(fc.nat(2500), byte), { minLength: 1, maxLength: 2 }))
  .map(([which, edits]) => {
    const der = Buffer.from(originals[which]!)
    for (const [at, value] of edits) der[at % der.length] = value
    return der
  })

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
const words = (...list: string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...list), { minLength: 1, maxLength: 7 }).map((parts) => parts.join(''))
const uri = words(
  ...[
    'http://',
    'https://',
    'spiffe://',
    'urn:',
    '//',
    '/',
    '?',
    '#',
    '@',
    ':',
    '[',
    ']',
    '%',
    '%25',
    '%41',
    '%zz',
    '%80',
  ],
  ...[
    '.',
    'a',
    'example.com',
    '::1',
    '1.2.3.4',
    'fe80::1',
    '8080',
    '*',
    ' ',
    '\t',
    '\x7f',
    '+',
    '<',
    '^',
    '|',
    '`',
    '\\',
    'é',
  ],
)
const mailbox = words(
  'a',
  'b.c',
  '.',
  '@',
  '"',
  '\\',
  '\\"',
  ' ',
  '\t',
  '\x01',
  'example.com',
  '(',
  '!',
  '+',
  'é',
  '\n',
)
const time = fc
  .tuple(
    fc.constantFrom(
      '260101000000Z',
      '2601010000Z',
      '20260101000000Z',
      '500101000000+0100',
      '20240229120000Z',
      '20260101000000+2359',
    ),
    fc.array(fc.tuple(fc.nat(20), fc.constantFrom('', '0', '3', '9', 'Z', '+', '-', '.')), { maxLength: 2 }),
  )
  .map(([text, edits]) => {
    let edited: string = text
    for (const [at, c] of edits) edited = edited.slice(0, at) + c + edited.slice(at + 1)
    return edited
  })
const few = fc.uint8Array({ maxLength: 9 })
const oddOid = fc
  .array(fc.constantFrom(0x80, 0x81, 0xff, 0x8f, 0x7f, 1, 0x2a, 0x55), { maxLength: 8 })
  .map((list) => Uint8Array.from(list))
const stringTag = fc.constantFrom(0x0c, 0x12, 0x13, 0x14, 0x16, 0x1e, 0x1c, 0x1b, 0x04, 0x02)

const names = (...list: Uint8Array[]): Partial<Parts> => ({
  tail: extensions([extension('subjectAltName', sequence(...list))]),
})
const constraint = (base: Uint8Array): Partial<Parts> => ({
  tail: extensions([extension('nameConstraints', sequence(explicit(0, sequence(base))))]),
})
const crafted = fc
  .oneof(
    uri.map((text) => names(element(0x86, latin1(text)))),
    fc
      .tuple(fc.constantFrom(0x81, 0x82, 0x86), fc.oneof(uri, mailbox))
      .map(([tag, text]) => constraint(element(tag, latin1(text)))),
    fc
      .constantFrom(4, 16, 5, 8)
      .chain((length) =>
        fc.uint8Array({ minLength: length, maxLength: length }).map((ip) => names(element(0x87, ip))),
      ),
    fc.tuple(fc.constantFrom(tags.utcTime, tags.generalizedTime), time).map(([tag, text]) => ({
      validity: sequence(element(tag, latin1(text)), element(tags.utcTime, latin1('270101000000Z'))),
    })),
    fc.tuple(stringTag, few).map(([tag, bytes]) => ({
      subject: sequence(setOf(sequence(oidElement('2.5.4.3'), element(tag, bytes)))),
    })),
    oddOid.map((bytes) => ({
      tail: extensions([extension('extKeyUsage', sequence(element(tags.oid, bytes)))]),
    })),
    oddOid.map((bytes) => ({
      tail: extensions([extension('certificatePolicies', sequence(sequence(element(tags.oid, bytes))))]),
    })),
    few.map((bytes) => ({ serialNumber: element(tags.integer, bytes) })),
    few.map((bytes) => ({ version: explicit(0, element(tags.integer, bytes)) })),
    few.map((bytes) => ({
      tail: extensions([extension('basicConstraints', sequence(element(tags.integer, bytes)))]),
    })),
    few.map((bytes) => ({ tail: extensions([extension('keyUsage', element(tags.bitString, bytes))]) })),
    few.map((bytes) => ({ signatureValue: element(tags.bitString, bytes), serialNumber: integer(5) })),
  )
  .map(craft)

interface GoReading {
  readonly ok: boolean
  readonly error?: string
  readonly [field: string]: unknown
}

describe.skipIf('missing' in peer)('kcert and Go', () => {
  test.each([
    ['certificates with changed bytes', mutant],
    ['certificates with an odd field', crafted],
  ])('accept, reject and read equally %s', (_, arbitrary) => {
    const samples = fc.sample(arbitrary as fc.Arbitrary<Uint8Array>, { numRuns: runs, seed })
    const readings = readByGo(samples)
    const differing = samples.flatMap((der, i) => {
      const go = readings[i]!
      const kcert = read(der)
      const isSame = go.ok
        ? JSON.stringify(kcert) === JSON.stringify(comparable(go))
        : typeof kcert === 'string'
      return isSame ? [] : [{ der: Buffer.from(der).toString('hex'), go, kcert }]
    })
    console.log(`${runs} of seed ${seed}: Go accepts ${readings.filter(({ ok }) => ok).length}`)
    expect(differing.slice(0, 5)).toEqual([])
    expect(readings.filter(({ ok }) => ok).length).toBeGreaterThan(runs / 10)
  })
})

function readByGo(samples: readonly Uint8Array[]): GoReading[] {
  const input = samples
    .map((der, i) => JSON.stringify({ id: String(i), der: Buffer.from(der).toString('base64') }))
    .join('\n')
  const { stdout, stderr } = spawnSync('path' in peer ? peer.path : '', ['parse'], {
    input,
    maxBuffer: 2 ** 30,
    encoding: 'utf8',
  })
  if (stderr.length > 0) throw new Error(stderr)
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as GoReading)
}

/**
 * Returns the values that kcert reads, with Go's names, or the message when it rejects the input. Any error but a KcertError
 * fails the test.
 */
function read(der: Uint8Array): Record<string, unknown> | string {
  try {
    const c = Certificate.parse(der)
    const { dns, ip, email } = c.subjectAltNames
    return {
      version: c.version,
      serialNumber: c.serialNumber === '00' ? '' : c.serialNumber,
      // Without milliseconds. Go's JSON has no years outside 0 to 9999 either.
      notBefore: c.notBefore.getTime(),
      notAfter: c.notAfter.getTime(),
      isCa: c.isCa,
      dns,
      ip,
      email,
      subjectKeyId: c.subjectKeyId ?? '',
      authorityKeyId: c.authorityKeyId ?? '',
      unhandledCritical: c.unhandledCriticalExtensions,
      fingerprintSha256: c.fingerprintSha256,
    }
  } catch (error) {
    if (error instanceof KcertError && error.code === 'KCERT_X509_MALFORMED') return error.message
    throw error
  }
}

/** The Go program omits Go's zero time, which is the first second of the year 1. */
const instant = (text: unknown): number =>
  text === undefined ? -62_135_596_800_000 : Date.parse(String(text))

function comparable(go: GoReading): Record<string, unknown> {
  const text = (field: string): unknown => go[field] ?? ''
  const list = (field: string): unknown => go[field] ?? []
  return {
    version: go.version,
    serialNumber: text('serialNumber'),
    notBefore: instant(go.notBefore),
    notAfter: instant(go.notAfter),
    isCa: go.isCa ?? false,
    dns: list('dns'),
    ip: list('ip'),
    email: list('email'),
    subjectKeyId: text('subjectKeyId'),
    authorityKeyId: text('authorityKeyId'),
    unhandledCritical: list('unhandledCritical'),
    fingerprintSha256: text('fingerprintSha256'),
  }
}
