import { expect, test } from 'vitest'
import { certificateUsages, isUsage, usages, usagesFor } from './usages.ts'

test('lists the 23 usages of the API server', () => {
  expect(usages).toHaveLength(23)
  expect(isUsage('client auth')).toBe(true)
  expect(isUsage('clientAuth')).toBe(false)
  expect(isUsage('constructor')).toBe(false)
})

test('returns usages in the order of the bits and purposes, independent of the input order', () => {
  expect(certificateUsages(['client auth', 'key encipherment', 'server auth', 'digital signature'])).toEqual({
    keyUsage: ['digitalSignature', 'keyEncipherment'],
    extendedKeyUsage: ['serverAuth', 'clientAuth'],
  })
})

test('counts two names of one purpose once', () => {
  expect(certificateUsages(['s/mime', 'email protection', 'signing', 'digital signature'])).toEqual({
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: ['emailProtection'],
  })
})

test('returns nothing if one usage is unknown', () => {
  expect(certificateUsages(['client auth', 'flying'])).toBeUndefined()
})

test('requests key encipherment only for RSA keys', () => {
  expect(usagesFor('server auth', 'RSA')).toContain('key encipherment')
  expect(usagesFor('client auth', 'ECDSA')).toEqual(['digital signature', 'client auth'])
})
