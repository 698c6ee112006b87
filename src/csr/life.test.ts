import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { servingRequest } from '../../test/csr/made-requests.ts'
import { issueCertificate } from '../x509/issuing.ts'
import { writePem } from '../x509/pem.ts'
import { collectionOf, conditionText, issuedCertificate, stateOf } from './life.ts'
import type { RequestCondition, SigningRequest } from './signing-request.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

function certificateUntil(notAfter: string): Uint8Array {
  const der = issueCertificate(
    {
      subject: { commonName: 'x' },
      issuer: { commonName: 'ca' },
      serialNumber: '01',
      notBefore: new Date('2026-11-21T00:00:00Z'),
      notAfter: new Date(notAfter),
      publicKey,
    },
    privateKey,
  )
  return Buffer.from(writePem('CERTIFICATE', der))
}

const nextYear = certificateUntil('2027-11-21T00:00:00Z')

function condition(type: string, lastUpdateTime = '2026-11-21T09:30:00Z'): RequestCondition {
  return { type, status: 'True', lastUpdateTime }
}

function made(fields: Partial<SigningRequest>): SigningRequest {
  return servingRequest({ creationTimestamp: '2026-11-21T09:00:00Z', ...fields })
}

test('does not take the certificate after a damaged one for the issued one', () => {
  const text = Buffer.from(nextYear).toString()
  const issued = (pem: string) => issuedCertificate(made({ certificate: Buffer.from(pem) }))
  expect(issued(text + text)?.notAfter).toEqual(new Date('2027-11-21T00:00:00Z'))
  for (const damaged of [text.replace(/M/g, '!'), text.slice(1), text.replace('TE-----\n', 'TE----\n')])
    expect(issued(damaged + text)).toBeUndefined()
})

const table = [
  ['pending', {}, 'Pending', '2026-11-22T09:00:00.000Z'],
  ['approved', { conditions: [condition('Approved')] }, 'Approved', '2026-11-22T09:30:00.000Z'],
  ['denied', { conditions: [condition('Denied')] }, 'Denied', '2026-11-21T10:30:00.000Z'],
  [
    'failed',
    { conditions: [condition('Approved'), condition('Failed', '2026-11-21T09:31:00Z')] },
    'Approved,Failed',
    '2026-11-21T10:31:00.000Z',
  ],
  [
    'issued',
    { conditions: [condition('Approved')], certificate: nextYear },
    'Approved,Issued',
    '2026-11-21T10:30:00.000Z',
  ],
] as const

test.each(table)(
  'reports the state %s, and when the CSR cleaner deletes the object',
  (state, fields, text, after) => {
    const object = made(fields)
    expect(stateOf(object)).toBe(state)
    expect(conditionText(object)).toBe(text)
    expect(collectionOf(object)?.after.toISOString()).toBe(after)
  },
)

test('names the releases that keep an approved object without a certificate', () => {
  const object = made({ conditions: [condition('Approved')] })
  expect(collectionOf(object)?.reason).toBe(
    'a day after the approval, if it is not signed (Kubernetes 1.35 and later; 1.34 and older keep it)',
  )
})

test('deletes an object when its certificate expires, if that is within the hour', () => {
  const object = made({
    conditions: [condition('Approved')],
    certificate: certificateUntil('2026-11-21T09:40:00Z'),
  })
  expect(collectionOf(object)).toEqual({
    after: new Date('2026-11-21T09:40:00Z'),
    reason: 'when its certificate expires',
  })
})

test('ignores a condition that is not True', () => {
  const object = made({ conditions: [{ type: 'Approved', status: 'False' }] })
  expect(stateOf(object)).toBe('pending')
})

test('returns no deletion time for an object without a creation time', () => {
  const { creationTimestamp: _, ...object } = made({})
  expect(collectionOf(object)).toBeUndefined()
})

test('treats an unreadable certificate as issued', () => {
  const object = made({ conditions: [condition('Approved')], certificate: Buffer.from('nonsense') })
  expect(stateOf(object)).toBe('issued')
})
