import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { Certificate } from '../x509/certificate.ts'
import { type CertificateDescription, issueCertificate, keyIdentifierOf } from '../x509/issuing.ts'
import { openCa } from './certificate-authority.ts'
import { noticesOfRenewal } from './notices.ts'
import { issueRoot, renewRoot } from './root.ts'

const now = new Date('2026-11-21T09:00:00Z')
const day = 86_400_000
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const subject = { commonName: 'signer', organization: ['Example Ltd'] }
const names = { ca: 'ca.pem', key: 'ca-key.pem' }

test('a new CA signs itself, may sign certificates and CRLs, and has a key identifier', () => {
  const root = issueRoot({ subject, ttlMs: 365 * day, pathLength: 0 }, key, now, '0a')
  expect(root.isSelfIssued && root.isSignedBy(root)).toBe(true)
  expect(root.subject.text).toBe('CN=signer,O=Example Ltd')
  expect(root.basicConstraints).toEqual({ ca: true, pathLength: 0 })
  expect(root.keyUsage).toEqual(['keyCertSign', 'cRLSign'])
  expect(root.subjectKeyId).toBe(keyIdentifierOf(createPublicKey(key)))
  expect([root.notBefore, root.notAfter]).toEqual([
    new Date('2026-11-21T08:55:00Z'),
    new Date('2027-11-21T08:55:00Z'),
  ])
})

test('refuses to create a CA that would already be expired', () => {
  expect(() => issueRoot({ subject, ttlMs: 60_000 }, key, now, '0a')).toThrow(
    'would be expired from the start',
  )
})

function oldCa(asked: Partial<CertificateDescription> = {}) {
  const description: CertificateDescription = {
    serialNumber: '0a',
    subject,
    issuer: subject,
    notBefore: new Date('2020-01-01T00:00:00Z'),
    notAfter: new Date('2025-01-01T00:00:00Z'),
    publicKey: key,
    hash: 'sha512',
    keyUsage: ['digitalSignature', 'keyEncipherment', 'keyCertSign'],
    basicConstraints: { ca: true, pathLength: 1 },
    subjectKeyId: 'abcdef',
    subjectAltNames: { dns: ['kubernetes'] },
    extensions: [{ oid: '2.16.840.1.113730.1.13', value: Buffer.from('160141', 'hex') }],
    ...asked,
  }
  return openCa([Certificate.parse(issueCertificate(description, key))], key, names)
}

test('a renewed CA has the name, key, extensions and hash of the old one, and the same validity', () => {
  const signingCa = oldCa()
  const renewed = renewRoot(signingCa, now, '0b')
  const { certificate: old } = signingCa
  expect(renewed.subject.equals(old.subject) && renewed.issuer.equals(old.issuer)).toBe(true)
  expect(renewed.publicKey.sha256).toBe(old.publicKey.sha256)
  const shown = ({ extensions }: Certificate) =>
    extensions.map(({ oid, critical, value }) => `${oid} ${critical} ${Buffer.from(value).toString('hex')}`)
  expect(shown(renewed)).toEqual(shown(old))
  expect(renewed.signatureAlgorithm).toBe('sha512WithRSAEncryption')
  expect(renewed.serialNumber).toBe('0b')
  expect(renewed.notAfter.getTime() - renewed.notBefore.getTime()).toBe(
    old.notAfter.getTime() - old.notBefore.getTime(),
  )
  expect(renewed.isSignedBy(old)).toBe(true)
})

test('a renewed CA has the requested validity', () => {
  expect(renewRoot(oldCa(), now, '0b', 30 * day).notAfter).toEqual(new Date('2026-12-21T08:55:00Z'))
})

test('does not keep the serial number of the old certificate in the authorityKeyIdentifier', () => {
  // SEQUENCE { [0] abcdef, [1] { [4] name }, [2] 0a }, as OpenSSL writes it for "keyid,issuer:always"
  const value = Buffer.from('301b8003abcdefa111a40f300d310b300906035504031302636182010a', 'hex')
  const signingCa = oldCa({ extensions: [{ oid: '2.5.29.35', value }] })
  const renewed = renewRoot(signingCa, now, '0b')
  expect(renewed.authorityKeyId).toBe('abcdef')
  expect(renewed.findExtension('2.5.29.35')!.value).toHaveLength(7)
  const words = 'OpenSSL rejects certificates with that serial number'
  expect(noticesOfRenewal(signingCa, renewed, now).join()).toContain(words)
  expect(noticesOfRenewal(oldCa({ authorityKeyId: 'abcdef' }), renewed, now).join()).not.toContain(words)
})

test('refuses to renew a CA that another CA signed', () => {
  const signingCa = oldCa({ issuer: { commonName: 'root' } })
  expect(() => renewRoot(signingCa, now, '0b')).toThrow(
    'the CA CN=signer,O=Example Ltd is signed by another CA: CN=root',
  )
})
