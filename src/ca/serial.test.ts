import { expect, test } from 'vitest'
import { drawSerialNumber, normalSerialNumber } from './serial.ts'

const never = () => false

test('contains all the random bits that were drawn', () => {
  expect(drawSerialNumber((count) => new Uint8Array(count).fill(0xff), never)).toBe('f'.repeat(32))
  expect(drawSerialNumber((count) => new Uint8Array(count).map((_, index) => index), never)).toBe(
    '0102030405060708090a0b0c0d0e0f',
  )
})

test('draws again after zero and taken numbers', () => {
  const draws = [0, 7, 9]
  const random = (count: number) => new Uint8Array(count).fill(draws.shift()!)
  expect(drawSerialNumber(random, (serialNumber) => serialNumber === '07'.repeat(16))).toBe('09'.repeat(16))
})

test('throws, instead of looping, when the random source repeats itself', () => {
  expect(() => drawSerialNumber((count) => new Uint8Array(count), never)).toThrow(
    'the random source repeats itself',
  )
})

test('formats a serial number as whole bytes in lower case, without leading zero bytes', () => {
  expect(['0', '00', 'A', '000abc', 'FF'].map(normalSerialNumber)).toEqual(['00', '00', '0a', '0abc', 'ff'])
})
