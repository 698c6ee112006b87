import { execFileSync } from 'node:child_process'
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openCa, readRequest, signRequest } from '../../src/ca/certificate-authority.ts'
import { kubernetesProfile } from '../../src/ca/profile.ts'
import { issueRoot } from '../../src/ca/root.ts'
import { usages as allUsages, certificateUsages, type Usage } from '../../src/pki/usages.ts'
import { keyUsages } from '../../src/x509/extensions.ts'
import { createRequest, type RequestDescription } from '../../src/x509/issuing.ts'
import { buildGoPeer } from '../peers/go-peer.ts'
import '../seeded.ts'

// kcert and Go, called as in kube-controller-manager, sign the same request with the same serial number and times. The bytes must
// be identical. The CA's key is Ed25519, whose signatures contain nothing random.

const peer = buildGoPeer()
if ('missing' in peer) process.stdout.write(`skipped: ${peer.missing}\n`)

const now = new Date('2026-11-21T09:00:00Z')
const caKey = generateKeyPairSync('ed25519').privateKey
const signingCa = openCa(
  [issueRoot({ subject: { commonName: 'ca' }, ttlMs: 87_600 * 3_600_000 }, caKey, now, '01')],
  caKey,
  { ca: 'ca', key: 'key' },
)
const requestKeys = [
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
  generateKeyPairSync('ed25519').privateKey,
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
]

// Go's x509.ExtKeyUsage by number.
const goPurposes = [
  'anyExtendedKeyUsage',
  'serverAuth',
  'clientAuth',
  'codeSigning',
  'emailProtection',
  'ipsecEndSystem',
  'ipsecTunnel',
  'ipsecUser',
  'timeStamping',
  'OCSPSigning',
  'msSGC',
  'nsSGC',
]

const value = fc.oneof(
  fc.constantFrom('system:nodes', 'system:node:a', 'Example Ltd', 'Käse & Brot', 'a*b', '', ' x', '日本'),
  fc.string({ maxLength: 20, unit: 'grapheme' }),
)
const attributeTypes = ['OU', 'C', 'L', 'ST', 'STREET', 'postalCode', 'serialNumber', 'UID', 'title']
const attribute = fc.record({
  type: fc.constantFrom('CN', 'O', 'O', ...attributeTypes),
  value,
})
const label = fc.stringMatching(/^[a-z0-9-]{1,12}$/)
const altNames = fc.record({
  dns: fc.array(fc.oneof(label, fc.constantFrom('*.example.com', 'a_b.example.com')), { maxLength: 3 }),
  ip: fc.array(fc.oneof(fc.ipV4(), fc.ipV6()), { maxLength: 3 }),
  email: fc.array(fc.constantFrom('a@example.com', 'b@example.org'), { maxLength: 2 }),
  uri: fc.array(fc.constantFrom('spiffe://example.org/a', 'https://example.com/x?y=z'), { maxLength: 2 }),
})
const request = fc.record({
  subject: fc.oneof(
    { arbitrary: fc.array(fc.array(attribute, { minLength: 1, maxLength: 3 }), { maxLength: 5 }), weight: 9 },
    // The name of the CA itself.
    { arbitrary: fc.constant([[{ type: 'CN', value: 'ca' }]]), weight: 1 },
  ),
  subjectAltNames: altNames,
  extras: fc.boolean(),
  key: fc.constantFrom(...requestKeys),
  usages: fc.subarray([...allUsages]),
  serialNumber: fc.stringMatching(/^[1-9a-f][0-9a-f]{1,31}$/),
})

interface Asked {
  readonly der: Uint8Array
  readonly usages: readonly Usage[]
  readonly serialNumber: string
}

function byKcert({ der, usages, serialNumber }: Asked): string {
  const { certificate } = signRequest(
    signingCa,
    readRequest(der, 'r', attributeTypes),
    kubernetesProfile(usages),
    now,
    serialNumber,
  )
  return Buffer.from(certificate.der).toString('hex')
}

function byGo(asked: readonly Asked[], path: string): string[] {
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
  const key = base64(caKey.export({ format: 'der', type: 'pkcs8' }))
  const questions = asked.map(({ der, usages, serialNumber }) => {
    const { keyUsage, extendedKeyUsage } = certificateUsages(usages)!
    return JSON.stringify({
      ca: base64(signingCa.certificate.der),
      key,
      request: base64(der),
      serial: serialNumber,
      notBefore: new Date(now.getTime() - 300_000),
      notAfter: new Date(now.getTime() + 8760 * 3_600_000 - 300_000),
      keyUsage: keyUsage.reduce((bits, usage) => bits | (1 << keyUsages.indexOf(usage)), 0),
      extKeyUsage: extendedKeyUsage.map((purpose) => goPurposes.indexOf(purpose)),
    })
  })
  const answers = execFileSync(path, ['sign'], {
    input: questions.join('\n'),
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  return answers
    .trim()
    .split('\n')
    .map((line) => {
      const { certificate, error } = JSON.parse(line) as { certificate?: string; error?: string }
      return certificate === undefined
        ? `refused: ${error}`
        : Buffer.from(certificate, 'base64').toString('hex')
    })
}

describe.skipIf('missing' in peer)('kcert and Go', () => {
  test('sign the same request into identical bytes', () => {
    const { path } = peer as { path: string }
    fc.assert(
      fc.property(fc.array(request, { minLength: 20, maxLength: 20 }), (allSettings) => {
        const asked = allSettings.map((settings): Asked => ({ ...settings, der: requestOf(settings) }))
        expect(asked.map(byKcert)).toEqual(byGo(asked, path))
      }),
      { numRuns: 50 },
    )
  })
})

function requestOf({
  extras,
  key,
  ...settings
}: RequestDescription & { extras: boolean; key: KeyObject }): Uint8Array {
  const asksForMore = {
    basicConstraints: { ca: true },
    keyUsage: ['keyCertSign'] as const,
    subjectKeyId: 'abcd',
  }
  return createRequest(
    {
      subject: settings.subject,
      subjectAltNames: settings.subjectAltNames ?? {},
      ...(extras ? asksForMore : {}),
    },
    key,
  )
}

test('includes only key types that Kubernetes reads', () => {
  expect(requestKeys.map((key) => createPublicKey(key).asymmetricKeyType)).toEqual([
    'ec',
    'ec',
    'ed25519',
    'rsa',
  ])
})
