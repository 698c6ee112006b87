import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createRequest } from '../x509/issuing.ts'
import { createdRequest, keyNotices } from './created-request.ts'

test.each([
  [1024, ['the key, RSA 1024, is too weak: approvers deny the request']],
  [2048, []],
])('the notices for an RSA key of %d bits', (modulusLength, notices) => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength })
  const der = createRequest({ subject: { commonName: 'ann' } }, privateKey)
  expect(keyNotices(createdRequest(der, {}))).toEqual(notices)
})
