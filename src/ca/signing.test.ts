import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { attribute, craftedRequestPem, extensionsFor } from '../../test/csr/made-requests.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { createRequest, type RequestDescription } from '../x509/issuing.ts'
import { writePem } from '../x509/pem.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { openCa } from './certificate-authority.ts'
import { IssuanceLog, type IssuanceLogStore } from './issuance-log.ts'
import { kubernetesProfile } from './profile.ts'
import { requestsOf } from './request-file.ts'
import { issueRoot } from './root.ts'
import { checkRequests, locationOf, signAll, signedCertificate } from './signing.ts'

const now = new Date('2026-11-21T09:00:00Z')
const day = 86_400_000
const [caKey, key] = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey) as [
  never,
  never,
]
const root = issueRoot({ subject: { commonName: 'ca' }, ttlMs: 100 * day }, caKey, now, '0a')
const signingCa = openCa([root], caKey, { ca: 'ca.pem', key: 'ca-key.pem' })
const der = (asked: RequestDescription, by = key) => createRequest(asked, by)
const pem = (asked: RequestDescription, by = key) => writePem('CERTIFICATE REQUEST', der(asked, by))
const named = (commonName: string) => ({ subject: { commonName } })

class MemoryStore implements IssuanceLogStore {
  readonly name = 'issuance-log'
  readonly lines: string[] = []
  read = () => new Uint8Array()
  append = (bytes: Uint8Array) =>
    this.lines.push(...Buffer.from(bytes).toString('utf8').trim().split('\n')) && undefined
  cut = () => undefined
}

let drawn = 1
const random = (count: number) => new Uint8Array(count).fill(drawn++)
const sign = (
  entries: ReturnType<typeof requestsOf>,
  usages = ['client auth'] as const,
  store = new MemoryStore(),
) =>
  signAll(
    checkRequests(entries, kubernetesProfile([])),
    signingCa,
    kubernetesProfile([...usages], 10 * day),
    new IssuanceLog(store),
    now,
    random,
  )

test('signs all requests of a file in order, each with a separate serial number that is in the issuance log', () => {
  const store = new MemoryStore()
  const text = `# two\n${pem(named('a'))}\n${pem(named('b')).replace(/CERTIFICATE REQUEST/g, 'NEW CERTIFICATE REQUEST')}`
  const signed = sign(requestsOf('all.pem', Buffer.from(text)), ['client auth'], store).map(signedCertificate)
  expect(signed.map(({ entry, subject }) => [entry, subject])).toEqual([
    ['request 1', 'CN=a'],
    ['request 2', 'CN=b'],
  ])
  const recorded = store.lines.map((line) => (JSON.parse(line) as { serialNumber: string }).serialNumber)
  expect(recorded).toEqual(signed.map(({ serialNumber }) => serialNumber))
  expect(new Set(recorded).size).toBe(2)
})

test('accepts a request in DER', () => {
  expect(requestsOf('a.der', der(named('a')))).toMatchObject([{ source: 'a.der', entry: '' }])
})

test('signs no request when one is invalid, and names it', () => {
  const bad = Buffer.from(der(named('b')))
  bad[bad.length - 5]! ^= 1
  const text = pem(named('a')) + writePem('CERTIFICATE REQUEST', bad)
  const store = new MemoryStore()
  expect(() => sign(requestsOf('all.pem', Buffer.from(text)), ['client auth'], store)).toThrow(
    '1 of 2 requests were refused, and none was signed',
  )
  expect(store.lines).toEqual([])
})

test('refuses a request that the check of the caller refuses, and names the reason', () => {
  const entries = requestsOf('all.pem', Buffer.from(pem(named('a')) + pem(named('b'))))
  const seen: string[] = []
  const refuseB = (entry: { readonly entry: string }, { subject }: CertificateRequest): void => {
    seen.push(`${entry.entry}: ${subject.commonName}`)
    if (subject.commonName === 'b')
      throw new KcertError('KCERT_REQUEST_REFUSED', 'b is not expected', { why: 'by a test' })
  }
  expect(() => checkRequests(entries, kubernetesProfile([]), refuseB)).toThrow(
    expect.objectContaining({
      code: 'KCERT_REQUEST_REFUSED',
      message: '1 of 2 requests were refused, and none was signed',
      why: 'b is not expected (by a test)',
    }),
  )
  expect(seen).toEqual(['request 1: a', 'request 2: b'])
})

test('when the issuance log cannot be written, no certificate is returned', () => {
  const store = new MemoryStore()
  store.append = () => {
    throw new Error('disk full')
  }
  expect(() => sign(requestsOf('a', der(named('a'))), ['client auth'], store)).toThrow('disk full')
})

test.each([
  ['a key', writePem('PRIVATE KEY', Buffer.from('3000', 'hex')), 'f contains no certificate request'],
  ['nothing', '', 'f contains no certificate request'],
  ['text', 'hello', 'f contains no certificate request'],
  ['a request without its end', pem(named('a')).slice(0, -20), 'f: line 1: '],
])('refuses a file with %s', (_, text, message) => {
  expect(() => requestsOf('f', Buffer.from(text))).toThrow(message)
})

const notices = (asked: RequestDescription, usages: readonly string[], by = key) =>
  signedCertificate(sign(requestsOf('a', der(asked, by)), usages as never)[0]!).notices.join('; ')

test('reports what a certificate can and cannot be used for', () => {
  const masters = { subject: { commonName: 'a', organization: ['system:masters'] } }
  expect(notices(masters, ['client auth'])).toContain('no RBAC rule can revoke')
  expect(notices(masters, ['server auth'])).toContain('no RBAC rule can revoke')
  expect(notices({ subject: {} }, ['client auth'])).toContain('no common name')
  expect(notices(named('a'), ['server auth'])).toContain('it has no SANs')
  expect(notices({ ...named('a'), subjectAltNames: { ip: ['::1'] } }, ['server auth'])).toBe('')
  expect(notices({ ...named('a'), basicConstraints: { ca: true } }, ['client auth'])).toBe(
    'requested extensions left out: basicConstraints',
  )
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey as never
  expect(notices(named('a'), ['client auth'], weak)).toContain('its RSA key has only 1024 bits')
})

test.each([
  [
    'a\0.example.com',
    'not a valid DNS name, and clients may interpret it differently: "a\\u0000.example.com"',
  ],
  ['a b', 'not a valid DNS name, and clients may interpret it differently: "a b"'],
  ['', 'not a valid DNS name, and clients may interpret it differently: ""'],
  ['*', 'not a valid DNS name, and clients may interpret it differently: "*"'],
  ['127.1', 'not a valid DNS name, and clients may interpret it differently: "127.1"'],
  ['*.example.com', 'wildcard, valid for any single label in place of *: "*.example.com"'],
  ['a.example.com', ''],
])('reports the DNS name %j: %s', (name, expected) => {
  expect(notices({ ...named('a'), subjectAltNames: { dns: [name] } }, ['server auth'])).toBe(expected)
})

test.each([
  [{ email: ['a@b.c,d@e.f'] }, '"a@b.c,d@e.f"'],
  [{ email: ['a\0@b.c'] }, '"a\\u0000@b.c"'],
  [{ uri: ['spiffe://x/../y'], email: ['a@b.c'] }, '"spiffe://x/../y"'],
])('reports the email addresses and URIs of %j', (subjectAltNames, names) => {
  expect(notices({ ...named('a'), subjectAltNames }, ['server auth'])).toBe(
    `not a plain email address or a normalized URI, and clients may interpret it differently: ${names}`,
  )
})

test('reports invisible characters in the subject', () => {
  expect(notices(named('a\u202eb'), ['client auth'])).toBe(
    'its subject has control or invisible characters: "a\\u202eb"',
  )
})

test('signs subject attributes only where the profile allows them', () => {
  const asked = {
    subject: [[{ type: 'C', value: 'US' }], [{ type: 'OU', value: 'x' }], [{ type: 'CN', value: 'a' }]],
  }
  const entries = requestsOf('a.csr', der(asked))
  expect(() => checkRequests(entries, { subjectAttributes: ['C'] })).toThrow(
    expect.objectContaining({
      code: 'KCERT_REQUEST_REFUSED',
      message: 'the subject of a.csr has attributes that the profile does not allow: OU',
      why: expect.stringContaining('subjectAttributes'),
      fix: expect.stringContaining('the same command again with --allow-subject-attributes OU'),
    }),
  )
  expect(() => checkRequests([...entries, ...entries], { subjectAttributes: ['C'] })).toThrow(
    expect.objectContaining({ fix: expect.stringContaining('--allow-subject-attributes OU') }),
  )
  const other = requestsOf(
    'b.csr',
    der({
      subject: [[{ type: 'O', value: 'o' }], [{ type: 'L', value: 'x' }], [{ type: 'CN', value: 'b' }]],
    }),
  )
  expect(() => checkRequests([...entries, ...other], { subjectAttributes: ['C'] })).toThrow(
    expect.objectContaining({ next: 'kcert csr create --help' }),
  )
  const [checked] = checkRequests(entries, { subjectAttributes: ['OU', 'C'] })
  expect(checked!.request.subject.text).toBe('CN=a,OU=x,C=US')
})

test("refuses a request with Microsoft's extensionRequest", () => {
  const attributes = [
    attribute('1.3.6.1.4.1.311.2.1.14', extensionsFor({ ...named('x'), basicConstraints: { ca: true } })),
  ]
  const text = craftedRequestPem({ commonName: 'a' }, attributes)
  expect(() => sign(requestsOf('a.csr', Buffer.from(text)))).toThrow(
    expect.objectContaining({
      code: 'KCERT_REQUEST_REFUSED',
      message: 'a.csr has unsupported attributes: msExtensionRequest',
    }),
  )
})

test('a location is the file, plus the entry when the file has several', () => {
  expect(locationOf({ source: 'a.csr', entry: '' })).toBe('a.csr')
  expect(locationOf({ source: 'all.pem', entry: 'request 2' })).toBe('all.pem: request 2')
})

test('gives the full reason for a single invalid request, and names five of several', () => {
  const broken = (entry: string) => ({ source: 'all.pem', entry, der: new Uint8Array([0x30, 0]) })
  const refusal = (count: number): unknown => {
    try {
      return checkRequests(
        Array.from({ length: count }, (_, at) => broken(`request ${at + 1}`)) as never,
        kubernetesProfile([]),
      )
    } catch (error) {
      return error
    }
  }
  expect((refusal(1) as Error).message).not.toContain('of 1 requests')
  expect(refusal(6)).toMatchObject({
    code: 'KCERT_REQUEST_REFUSED',
    message: '6 of 6 requests were refused, and none was signed',
    why: expect.stringMatching(/request 1.*\(.+\); .*request 5(?!.*request 6)/),
    next: 'kcert csr create --help',
  })
})

test('rethrows an error that is not a KcertError', () => {
  const entry = {
    source: 'a.csr',
    entry: '',
    get der(): never {
      throw new RangeError('a defect')
    },
  }
  const good = requestsOf('b.csr', der(named('b')))
  expect(() => checkRequests([entry] as never, kubernetesProfile([]))).toThrow(RangeError)
  expect(() => checkRequests([entry, ...good] as never, kubernetesProfile([]))).toThrow(RangeError)
})

test('the report of a signed certificate has its PEM and what the CA left out', () => {
  const [signed] = sign(requestsOf('a.csr', Buffer.from(pem(named('a')))))
  const dropped = { ...signed!, droppedExtensions: ['1.2.3'], droppedAttributes: ['1.2.4'] }
  expect(signedCertificate(dropped as never)).toMatchObject({
    pem: expect.stringMatching(/^-----BEGIN CERTIFICATE-----\n/),
    droppedExtensions: ['1.2.3'],
    droppedAttributes: ['1.2.4'],
  })
})
