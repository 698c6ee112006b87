import { expect, test } from 'vitest'
import { client, createCa } from '../../test/scripts/small-pki.ts'
import { readPair } from './pair.ts'

const ca = createCa('kubernetes')
const { pem, keyPem } = client('admin', ca)

test('reads the leaf, its issuers and the key', () => {
  expect(readPair(pem + ca.pem + keyPem, 'f').chain.map(({ subject }) => subject.commonName)).toEqual([
    'admin',
    'kubernetes',
  ])
})

test.each([
  ['the first', `${pem.replace(/M/g, '!')}${pem}${keyPem}`],
  ['an issuer', `${pem}${ca.pem.slice(1)}${keyPem}`],
])('refuses a pair with a damaged certificate and drops none: %s', (_, text) => {
  expect(() => readPair(text, 'f')).toThrow(
    expect.objectContaining({
      code: 'KCERT_PAIR_UNFIT',
      why: expect.stringMatching(/^a certificate in it cannot be read: PEM block CERTIFICATE at line/),
    }),
  )
})
