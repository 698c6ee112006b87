import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { Certificate } from '../x509/certificate.ts'
import { issueCertificate, keyIdentifierOf } from '../x509/issuing.ts'
import type { NameInput } from '../x509/name-encoding.ts'
import { generatePrivateKey } from '../x509/new-key.ts'
import { verifySignature } from '../x509/signature.ts'
import { issueBridge, issueSuccessor, reissueLeaf, withCommonName } from './successor.ts'

const day = 86_400_000
const now = new Date('2026-11-21T12:00:00Z')
const p256 = { algorithm: 'ECDSA', curve: 'P-256' } as const
const [oldKey, newKey, leafKey] = [
  generatePrivateKey(p256),
  generatePrivateKey(p256),
  generatePrivateKey(p256),
]
const issuing = { now, serialNumber: '0102' }

function signingCa(subjectKeyId: string | undefined = keyIdentifierOf(oldKey)) {
  const der = issueCertificate(
    {
      serialNumber: '01',
      subject: { commonName: 'kubernetes' },
      issuer: { commonName: 'kubernetes' },
      notBefore: new Date(now.getTime() - 900 * day),
      notAfter: new Date(now.getTime() + 100 * day),
      publicKey: oldKey,
      keyUsage: ['digitalSignature', 'keyEncipherment', 'keyCertSign'],
      basicConstraints: { ca: true },
      ...(subjectKeyId === '' ? {} : { subjectKeyId }),
      subjectAltNames: { dns: ['kubernetes'] },
    },
    oldKey,
  )
  return { certificate: Certificate.parse(der), key: oldKey }
}

const old = signingCa()
const subject = withCommonName(old.certificate.subject, (name) => `${name}-ca-2`)
const newCa = issueSuccessor(old.certificate, subject, newKey, issuing)

test('the new CA has another name and key, and the usages and validity of the old one', () => {
  expect(newCa.subject.text).toBe('CN=kubernetes-ca-2')
  expect(newCa.keyUsage).toEqual(old.certificate.keyUsage)
  expect(newCa.isCa).toBe(true)
  expect(newCa.subjectKeyId).toBe(keyIdentifierOf(newKey))
  expect(newCa.notBefore).toEqual(new Date(now.getTime() - 300_000))
  expect(newCa.notAfter).toEqual(new Date(now.getTime() + 1000 * day - 300_000))
  expect(verifySignature(newCa, newCa.publicKey)).toEqual({ ok: true })
})

test('the bridge certificate has the new key and name, is signed by the old CA, and expires with it', () => {
  const bridge = issueBridge(newCa, old, issuing)
  expect(bridge.subject.text).toBe('CN=kubernetes-ca-2')
  expect(bridge.publicKey.sha256).toBe(newCa.publicKey.sha256)
  expect(bridge.authorityKeyId).toBe(old.certificate.subjectKeyId)
  expect(bridge.subjectKeyId).toBe(newCa.subjectKeyId)
  expect(bridge.notAfter).toEqual(old.certificate.notAfter)
  expect(verifySignature(bridge, old.certificate.publicKey)).toEqual({ ok: true })
  const [leaf, middle] = [reissued(), new X509Certificate(bridge.der)]
  expect(new X509Certificate(leaf.der).checkIssued(middle)).toBe(true)
  expect(middle.checkIssued(new X509Certificate(old.certificate.der))).toBe(true)
})

test('the bridge certificate has no authority key identifier when the old CA has no key identifier', () => {
  expect(issueBridge(newCa, signingCa(''), issuing).authorityKeyId).toBeUndefined()
})

test('a reissued leaf keeps subject, names, usages and key', () => {
  const [before, after] = [leaf(), reissued()]
  expect(after.subject.text).toBe(before.subject.text)
  expect(after.subjectAltNames.dns).toEqual(before.subjectAltNames.dns)
  expect(after.subjectAltNames.ip).toEqual(before.subjectAltNames.ip)
  expect(after.extendedKeyUsage).toEqual(before.extendedKeyUsage)
  expect(after.publicKey.sha256).toBe(before.publicKey.sha256)
  expect(after.authorityKeyId).toBe(newCa.subjectKeyId)
  expect(after.notAfterMs - after.notBeforeMs).toBe(before.notAfterMs - before.notBeforeMs)
  expect(verifySignature(after, newCa.publicKey)).toEqual({ ok: true })
})

test('a leaf with another key does not keep the old key identifier', () => {
  const key = generatePrivateKey(p256)
  const after = reissueLeaf(leaf(), { certificate: newCa, key: newKey }, issuing, key)
  expect(after.subjectKeyId).toBeUndefined()
  expect(keyIdentifierOf(after.publicKey)).toBe(keyIdentifierOf(key))
})

test.each([[[]], [['kubeadm:cluster-admins']], [['system:masters']]])(
  'a kubeadm leaf with the organizations %j keeps its subject, byte for byte',
  (organization) => {
    const before = leaf({ organization, commonName: 'kube-apiserver-kubelet-client' })
    const after = reissueLeaf(before, { certificate: newCa, key: newKey }, issuing)
    expect(Buffer.from(after.subject.der)).toEqual(Buffer.from(before.subject.der))
  },
)

function leaf(
  subject: NameInput = { organization: ['system:masters'], commonName: 'kube-apiserver' },
): Certificate {
  return Certificate.parse(
    issueCertificate(
      {
        serialNumber: '03',
        subject,
        issuer: old.certificate.subject,
        notBefore: new Date(now.getTime() - 10 * day),
        notAfter: new Date(now.getTime() + 355 * day + 300_000),
        publicKey: leafKey,
        keyUsage: ['digitalSignature', 'keyEncipherment'],
        extendedKeyUsage: ['serverAuth'],
        basicConstraints: { ca: false },
        subjectKeyId: keyIdentifierOf(leafKey),
        subjectAltNames: { dns: ['kubernetes', 'cp1'], ip: ['10.96.0.1'] },
      },
      oldKey,
    ),
  )
}

function reissued(): Certificate {
  return reissueLeaf(leaf(), { certificate: newCa, key: newKey }, issuing)
}
