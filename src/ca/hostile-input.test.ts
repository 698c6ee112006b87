import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import { readCfsslRequest } from '../pki/cfssl-request.ts'
import { createRequest } from '../x509/issuing.ts'
import { writePem } from '../x509/pem.ts'
import { bundle } from './bundle.ts'
import { IssuanceLog } from './issuance-log.ts'
import { readProfile } from './profile-file.ts'
import { requestsOf } from './request-file.ts'
import { issueRoot } from './root.ts'
import { checkRequests } from './signing.ts'
import '../../test/seeded.ts'

// Every file content is read or refused with a KcertError; nothing else is ever thrown.

const now = new Date('2026-11-21T09:00:00Z')
const key = generateKeyPairSync('ed25519').privateKey
const root = issueRoot({ subject: { commonName: 'ca' }, ttlMs: 86_400_000 }, key, now, '0a')
const request = createRequest(
  { subject: { commonName: 'a' }, subjectAltNames: { dns: ['a.example.com'] } },
  key,
)
const cfssl = {
  CN: 'a',
  names: [{ O: 'x', OID: { '1.2.3': 'y' } }],
  hosts: ['::1'],
  key: { algo: 'rsa', size: 2048 },
}
const profiles = {
  signing: { default: { usages: ['any'], expiry: '1h' }, profiles: { a: { usages: ['any'], expiry: '1h' } } },
}

type Read = (bytes: Buffer) => unknown

const store = (bytes: Buffer) => ({
  name: 'issuance-log',
  read: () => bytes,
  append: () => undefined,
  cut: () => undefined,
})
const profile = { subjectAttributes: [] }
const readers: readonly [name: string, sample: Uint8Array | string, read: Read][] = [
  [
    'a request in PEM',
    writePem('CERTIFICATE REQUEST', request),
    (bytes) => checkRequests(requestsOf('f', bytes), profile),
  ],
  ['a request in DER', request, (bytes) => checkRequests(requestsOf('f', bytes), profile)],
  [
    'a bundle in PEM',
    writePem('CERTIFICATE', root.der),
    (bytes) => bundle([{ name: 'f', bytes: bytes }], now, false),
  ],
  ['a bundle in DER', root.der, (bytes) => bundle([{ name: 'f', bytes: bytes }], now, true)],
  [
    'a cfssl request',
    JSON.stringify({ ...cfssl, ca: { expiry: '1h', pathlen: 1 } }),
    (bytes) => readCfsslRequest(bytes.toString('utf8')),
  ],
  ['a profile of cfssl', JSON.stringify(profiles), (bytes) => readProfile(bytes.toString('utf8'), 'f', 'a')],
  [
    'a profile of kcert',
    'default:\n  usages: [any]\n  duration: 1h\n',
    (bytes) => readProfile(bytes.toString('utf8'), 'f'),
  ],
  [
    'an issuance log',
    '{"serialNumber":"01"}\n{"serialNumber":"02"}\n',
    (bytes) => new IssuanceLog(store(bytes)),
  ],
]

const change = fc.record({
  at: fc.nat(),
  octets: fc.uint8Array({ maxLength: 3 }),
  removed: fc.nat({ max: 4 }),
})

function changed(
  sample: Uint8Array | string,
  changes: readonly { at: number; octets: Uint8Array; removed: number }[],
): Buffer {
  return changes.reduce((bytes, { at, octets: inserted, removed }) => {
    const place = bytes.length === 0 ? 0 : at % bytes.length
    return Buffer.concat([bytes.subarray(0, place), inserted, bytes.subarray(place + removed)])
  }, Buffer.from(sample))
}

test.each(readers)('reads or refuses %s with any damage', async (_, sample, read) => {
  let refused = 0
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
      try {
        await read(changed(sample, changes))
      } catch (error) {
        expect(error).toBeInstanceOf(KcertError)
        expect((error as KcertError).why).toBeTruthy()
        refused++
      }
    }),
    { numRuns: 1000 },
  )
  expect(refused).toBeGreaterThan(50)
})
