import { expect, test } from 'vitest'
import { certificateUsages, isUsage, usages, usagesFor } from './usages.ts'

test('the API server knows 23 usages', () => {
  expect(usages).toHaveLength(23)
  expect(isUsage('client auth')).toBe(true)
  expect(isUsage('clientAuth')).toBe(false)
  expect(isUsage('constructor')).toBe(false)
})

test('usages are written in the order of the bits and of the purposes, whatever order they are asked in', () => {
  expect(certificateUsages(['client auth', 'key encipherment', 'server auth', 'digital signature'])).toEqual({
    keyUsage: ['digitalSignature', 'keyEncipherment'],
    extendedKeyUsage: ['serverAuth', 'clientAuth'],
  })
})

test('two words for one purpose count once', () => {
  expect(certificateUsages(['s/mime', 'email protection', 'signing', 'digital signature'])).toEqual({
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: ['emailProtection'],
  })
})

test('one unknown usage spoils all', () => {
  expect(certificateUsages(['client auth', 'flying'])).toBeUndefined()
})

test('only RSA keys ask for key encipherment', () => {
  expect(usagesFor('server auth', 'RSA')).toContain('key encipherment')
  expect(usagesFor('client auth', 'ECDSA')).toEqual(['digital signature', 'client auth'])
})
