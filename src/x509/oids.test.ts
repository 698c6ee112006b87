import { expect, test } from 'vitest'
import { attributeTypeName, encodeOid, extendedKeyUsageName, knownOid, nameOfOid, oidOf } from './oids.ts'

test('encodes an identifier as in X.690', () => {
  expect(encodeOid('1.2.840.113549')).toEqual([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d])
  expect(encodeOid('2.999.3')).toEqual([0x88, 0x37, 0x03])
})

test('finds known identifiers by their bytes, without copying', () => {
  const bytes = Uint8Array.from([0xff, ...encodeOid('2.5.29.17'), 0xff])
  expect(knownOid(bytes, 1, 4)).toBe('2.5.29.17')
  expect(knownOid(bytes, 1, 5)).toBeUndefined()
  expect(knownOid(Uint8Array.from(encodeOid('1.3.6.1.4.1.55555')), 0, 8)).toBeUndefined()
})

test('maps names to identifiers and back', () => {
  expect(nameOfOid('1.2.840.10045.4.3.2')).toBe('ecdsa-with-SHA256')
  expect(oidOf('ecdsa-with-SHA256')).toBe('1.2.840.10045.4.3.2')
  expect(nameOfOid('1.2.3')).toBeUndefined()
})

test('returns the identifier itself if it is not in the attribute or usage table', () => {
  expect(attributeTypeName('2.5.4.3')).toBe('CN')
  expect(attributeTypeName('2.5.29.17')).toBe('2.5.29.17')
  expect(extendedKeyUsageName('1.3.6.1.5.5.7.3.1')).toBe('serverAuth')
  expect(extendedKeyUsageName('2.5.4.3')).toBe('2.5.4.3')
})
