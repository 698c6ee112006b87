import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Certificate } from '../../src/x509/certificate.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { isValidForHostInNode } from '../../src/x509/node-hostname.ts'
import { askedNames } from './pki-arbitrary.ts'
import { seed } from './seed.ts'

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Names that are similar, because verifiers differ in such cases. */
const label = fc.constantFrom(
  'a',
  'A',
  'foo',
  'fo*',
  '*',
  '*o',
  'f*o',
  '**',
  'xn--a',
  'xn--*',
  'x_y',
  '-a',
  '',
  'b c',
)
const hostName = fc.oneof(
  fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.')),
  fc.constantFrom(...askedNames),
)

test("matches names as Node's tls module does", () => {
  let matched = 0
  fc.assert(
    fc.property(
      fc.array(hostName, { maxLength: 3 }),
      fc.array(hostName, { maxLength: 2 }),
      hostName,
      (dns, commonNames, asked) => {
        const der = issueCertificate(
          {
            serialNumber: '01',
            subject: commonNames.filter((name) => name !== '').map((value) => [{ type: 'CN', value }]),
            issuer: { commonName: 'ca' },
            notBefore: new Date('2026-01-01T00:00:00Z'),
            notAfter: new Date('2027-01-01T00:00:00Z'),
            publicKey: privateKey,
            subjectAltNames: { dns, ip: ['10.0.0.1', 'fd00::1'].slice(0, dns.length) },
          },
          privateKey,
        )
        const peer = new X509Certificate(der).toLegacyObject() as unknown as PeerCertificate
        const accepts = isValidForHostInNode(Certificate.parse(der), asked)
        if (accepts) matched++
        expect(accepts).toBe(checkServerIdentity(asked, peer) === undefined)
      },
    ),
    { numRuns: 5000, seed },
  )
  console.log(`5000 names, seed ${seed}: ${matched} matched`)
  expect(matched).toBeGreaterThan(100)
})
