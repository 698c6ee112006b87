import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { requestPem, servingDescription, servingRequest, someKey } from '../../test/csr/made-requests.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { Certificate } from '../x509/certificate.ts'
import { type CertificateDescription, issueCertificate } from '../x509/issuing.ts'
import { readPublicKey } from '../x509/keys.ts'
import { writePem } from '../x509/pem.ts'
import { checkCertificate, issuedChain, refuseUnfit } from './fetched.ts'
import type { SigningRequest } from './signing-request.ts'

const now = new Date('2026-11-21T10:00:00Z')
const caKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey

function certificate(change: Partial<CertificateDescription> = {}): Certificate {
  const der = issueCertificate(
    {
      subject: [[{ type: 'O', value: 'system:nodes' }], [{ type: 'CN', value: 'system:node:node-1' }]],
      issuer: { commonName: 'ca' },
      serialNumber: '01',
      notBefore: new Date('2026-11-21T09:00:00Z'),
      notAfter: new Date('2027-11-21T00:00:00Z'),
      publicKey: someKey,
      subjectAltNames: {
        dns: ['node-1.nodes.example.com', 'node-1'],
        ip: ['10.1.0.7', '2001:db8::7'],
      },
      ...change,
    },
    caKey,
  )
  return Certificate.parse(der)
}

function brokenOf(change: Partial<CertificateDescription>, request = servingRequest()) {
  return checkCertificate(certificate(change), request, { now }).filter(({ ok }) => !ok)
}

test('accepts a certificate with the key, subject and names of the request, in any order', () => {
  expect(brokenOf({})).toEqual([])
})

test('reports what the signer changed: key, subject, missing and extra names, validity', () => {
  expect(brokenOf({ publicKey: otherKey })[0]).toMatchObject({
    id: 'request-key',
    detail: 'it does not match the key of the request',
  })
  expect(
    brokenOf({ subject: { commonName: 'system:node:node-2', organization: ['system:nodes'] } })[0],
  ).toMatchObject({
    id: 'subject',
    detail:
      'its subject is "CN=system:node:node-2,O=system:nodes", but the request has "CN=system:node:node-1,O=system:nodes"',
  })
  expect(
    brokenOf({ subjectAltNames: { dns: ['node-1', 'extra'], ip: ['10.1.0.7', '2001:db8::7'] } })[0],
  ).toMatchObject({
    id: 'names',
    detail: 'it lacks "node-1.nodes.example.com", and it has "extra", which the request does not have',
  })
  expect(brokenOf({ notAfter: new Date('2026-11-21T09:59:00Z') })[0]).toMatchObject({ id: 'validity' })
  expect(brokenOf({ notBefore: new Date('2026-11-21T11:00:00Z') })[0]).toMatchObject({ id: 'validity' })
})

test('compares the certificate with the private key and the CA where they are given', () => {
  const spki = readPublicKey(otherKey.export({ format: 'der', type: 'spki' }))
  const stranger = certificate({ publicKey: otherKey })
  const checks = checkCertificate(certificate(), servingRequest(), {
    now,
    key: { publicKey: spki, place: 'node.key' },
    ca: { certificates: [stranger], place: 'ca.pem' },
  })
  expect(checks.filter(({ ok }) => !ok)).toEqual([
    { id: 'key', ok: false, detail: 'it does not match the key node.key' },
    { id: 'ca', ok: false, detail: 'it is not signed by the CA of ca.pem' },
  ])
  expect(thrownBy(() => refuseUnfit(checks, servingRequest(), { acceptsNames: true }))).toMatchObject({
    code: 'KCERT_CERTIFICATE_UNFIT',
    message: expect.stringContaining(
      'it does not match the key node.key; it is not signed by the CA of ca.pem',
    ),
  })
  expect(() =>
    refuseUnfit(
      checks.filter(({ ok }) => ok),
      servingRequest(),
      { acceptsNames: false },
    ),
  ).not.toThrow()
})

test('accepts another name when the user says that it is correct', () => {
  const other = certificate({ subject: { commonName: 'x' } })
  const checks = checkCertificate(other, servingRequest(), { now })
  expect(() => refuseUnfit(checks, servingRequest(), { acceptsNames: true })).not.toThrow()
  expect(thrownBy(() => refuseUnfit(checks, servingRequest(), { acceptsNames: false })).why).toContain(
    '--accept-names',
  )
})

test('returns the complete chain in the order of the signer', () => {
  const [leaf, issuer] = [certificate(), certificate({ subject: { commonName: 'ca' } })]
  const text = [leaf, issuer].map(({ der }) => writePem('CERTIFICATE', der)).join('')
  const object: SigningRequest = servingRequest({ certificate: Buffer.from(text) })
  expect(issuedChain(object).map(({ subject }) => subject.commonName)).toEqual(['system:node:node-1', 'ca'])
})

test.each([
  ['Denied', /is denied/, 'NotToday: ask Bob'],
  ['Failed', /failed: its signer refused it/, 'NotToday: ask Bob'],
  ['Approved', /waits for its signer/, undefined],
] as const)('explains why a request that is %s has no certificate', (type, message, why) => {
  const conditions = [{ type, status: 'True', reason: 'NotToday', message: 'ask Bob' }]
  const error = thrownBy(() => issuedChain(servingRequest({ conditions })))
  expect(error).toMatchObject({
    code: 'KCERT_CSR_NOT_ISSUED',
    message: expect.stringMatching(message),
    next: 'kcert csr explain csr-7x2lq',
    why,
  })
})

test('compares 100,000 SANs in linear time', () => {
  const dns = Array.from({ length: 100_000 }, (_, index) => `n${index}`)
  const issued = certificate({ subjectAltNames: { dns } })
  const request = servingRequest({
    request: Buffer.from(requestPem({ ...servingDescription(), subjectAltNames: { dns: dns.toReversed() } })),
  })
  const before = process.threadCpuUsage()
  expect(checkCertificate(issued, request, { now }).every(({ ok }) => ok)).toBe(true)
  expect(process.threadCpuUsage(before).user).toBeLessThan(3_000_000)
})
