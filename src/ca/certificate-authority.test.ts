import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { mlDsaKeys, mlDsaRequest } from '../../test/fixtures/ml-dsa.ts'
import { Certificate } from '../x509/certificate.ts'
import { type CertificateDescription, createRequest, issueCertificate } from '../x509/issuing.ts'
import { openCa, readRequest, signRequest } from './certificate-authority.ts'
import { kubernetesProfile } from './profile.ts'
import { issueRoot } from './root.ts'

const now = new Date('2026-11-21T09:00:00.750Z')
const year = 365 * 86_400_000
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const [caKey, otherKey, requestKey] = [newKey(), newKey(), newKey()]
const root = issueRoot({ subject: { commonName: 'ca' }, ttlMs: 10 * year }, caKey, now, '01')
const names = { ca: 'ca.pem', key: 'ca-key.pem' }
const signingCa = openCa([root], caKey, names)
const serving = kubernetesProfile(['digital signature', 'server auth'])

function certificate(asked: Partial<CertificateDescription>): Certificate {
  const name = { commonName: 'x' }
  const description: CertificateDescription = {
    serialNumber: '01',
    subject: name,
    issuer: name,
    notBefore: now,
    notAfter: new Date(now.getTime() + year),
    publicKey: caKey,
    ...asked,
  }
  return Certificate.parse(issueCertificate(description, caKey))
}

test('certificates are valid from 5 minutes ago, in whole seconds, until a year later minus these 5 minutes', () => {
  const request = readRequest(createRequest({ subject: { commonName: 'a' } }, requestKey), 'a.csr')
  const { notBefore, notAfter } = signRequest(signingCa, request, serving, now, '02').certificate
  expect(notBefore).toEqual(new Date('2026-11-21T08:55:00Z'))
  expect(notAfter).toEqual(new Date('2027-11-21T08:55:00Z'))
})

test('backdating does not shorten a certificate of less than 8 hours', () => {
  const request = readRequest(createRequest({ subject: { commonName: 'a' } }, requestKey), 'a.csr')
  const hour = kubernetesProfile(['client auth'], 3_600_000)
  expect(signRequest(signingCa, request, hour, now, '02').certificate.notAfter).toEqual(
    new Date('2026-11-21T10:00:00Z'),
  )
})

test('a signed certificate names its issuer, verifies with its key, and expires no later than the CA', () => {
  const request = readRequest(createRequest({ subject: { commonName: 'a' } }, requestKey), 'a.csr')
  const century = kubernetesProfile(['server auth'], 100 * year)
  const { certificate: leaf, isClamped } = signRequest(signingCa, request, century, now, '02')
  expect(leaf.isSignedBy(root)).toBe(true)
  expect(leaf.authorityKeyId).toBe(root.subjectKeyId)
  expect([leaf.notAfter, isClamped]).toEqual([root.notAfter, true])
})

test('copies only the subject, the SANs and the key of a request', () => {
  const der = createRequest(
    {
      subject: [[{ type: 'CN', value: 'a' }], [{ type: 'emailAddress', value: 'a@example.com' }]],
      basicConstraints: { ca: true, pathLength: 3 },
      keyUsage: ['keyCertSign'],
      extendedKeyUsage: ['anyExtendedKeyUsage'],
      nameConstraints: { permitted: { dns: ['example.com'] } },
      subjectAltNames: { dns: ['a.example.com'], ip: ['10.0.0.1'] },
    },
    requestKey,
  )
  const issued = signRequest(signingCa, readRequest(der, 'a.csr'), serving, now, '02')
  const { isCa, keyUsage, extendedKeyUsage, nameConstraints, subject, subjectAltNames } = issued.certificate
  expect({ isCa, keyUsage, extendedKeyUsage, nameConstraints, subject: subject.text }).toEqual({
    isCa: false,
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: ['serverAuth'],
    nameConstraints: undefined,
    subject: 'CN=a',
  })
  expect([subjectAltNames.dns, subjectAltNames.ip]).toEqual([['a.example.com'], ['10.0.0.1']])
  expect(issued.droppedExtensions).toEqual(['keyUsage', 'extKeyUsage', 'basicConstraints', 'nameConstraints'])
  expect(issued.droppedAttributes).toEqual(['emailAddress'])
})

test('reports the common names and serial numbers that are not in the certificate', () => {
  const types = ['CN', 'serialNumber', 'CN', 'serialNumber', 'OU', 'OU']
  const subject = types.map((type, at) => [{ type, value: `v${at}` }])
  const request = readRequest(createRequest({ subject }, requestKey), 'a.csr', ['serialNumber', 'OU'])
  const { certificate, droppedAttributes } = signRequest(signingCa, request, serving, now, '02')
  expect([certificate.subject.commonName, droppedAttributes]).toEqual(['v2', ['CN', 'serialNumber']])
})

test('refuses a request whose signature is by another key', () => {
  const der = Buffer.from(createRequest({ subject: { commonName: 'a' } }, requestKey))
  // The signature is at the end.
  der[der.length - 5]! ^= 1
  expect(() => readRequest(der, 'a.csr')).toThrow('the signature of a.csr is invalid')
})

test('refuses a valid ML-DSA signature as kube-controller-manager does, and does not call it invalid', () => {
  const der = mlDsaRequest({ commonName: 'a' }, mlDsaKeys['ML-DSA-65'])
  expect(() => readRequest(der, 'a.csr')).toThrow('the signature of a.csr is not accepted')
})

test('refuses bytes that are not a request, and names their file', () => {
  expect(() => readRequest(Buffer.from('3003020101', 'hex'), 'a.csr')).toThrow('cannot read a.csr as a CSR')
})

test.each([
  ['no certificate', [], caKey, 'ca.pem contains 0 certificates'],
  ['a bundle', [root, root], caKey, 'ca.pem contains 2 certificates'],
  ['a leaf', [certificate({})], caKey, 'ca.pem is not a CA: CN=x'],
  ['CA:FALSE', [certificate({ basicConstraints: { ca: false } })], caKey, 'ca.pem is not a CA: CN=x'],
  [
    'a CA that may not sign',
    [certificate({ basicConstraints: { ca: true }, keyUsage: ['cRLSign'] })],
    caKey,
    'ca.pem may not sign certificates',
  ],
  ["another's key", [root], otherKey, 'the key ca-key.pem does not match the CA ca.pem'],
] as const)('refuses to open %s as a CA', (_, certificates, key, message) => {
  expect(() => openCa(certificates, key, names)).toThrow(message)
})

test('accepts a CA certificate without keyUsage', () => {
  expect(openCa([certificate({ basicConstraints: { ca: true } })], caKey, names).certificate.isCa).toBe(true)
})

test('refuses to sign with an expired CA', () => {
  const request = readRequest(createRequest({ subject: { commonName: 'a' } }, requestKey), 'a.csr')
  const later = new Date(now.getTime() + 11 * year)
  expect(() => signRequest(signingCa, request, serving, later, '02')).toThrow(/^the CA ca.pem has expired/)
})
