import { describe, expect, test } from 'vitest'
import { DerReader } from './der.ts'
import { Repeated } from './repeated.ts'

function readerOf(bytes: Uint8Array): DerReader {
  return new DerReader(bytes, 'test')
}

describe('Repeated', () => {
  test('reads equal bytes once and shares the value', () => {
    let readings = 0
    const repeated = new Repeated((reader) => {
      readings++
      reader.next('value')
      return { of: reader.lastContent[0] }
    })
    const first = repeated.of(readerOf(Uint8Array.of(2, 1, 7)))
    const second = readerOf(Uint8Array.of(2, 1, 7))
    expect(repeated.of(second)).toBe(first)
    expect(second.atEnd).toBe(true)
    expect(repeated.of(readerOf(Uint8Array.of(2, 1, 8)))).toEqual({ of: 8 })
    expect(readings).toBe(2)
  })

  test('keeps the value when the input bytes change later', () => {
    const repeated = new Repeated((reader) => {
      reader.next('value')
      return reader.lastContent[0]
    })
    const bytes = Uint8Array.of(2, 1, 7)
    repeated.of(readerOf(bytes))
    bytes[2] = 9
    expect(repeated.of(readerOf(bytes))).toBe(9)
    expect(repeated.of(readerOf(Uint8Array.of(2, 1, 7)))).toBe(7)
  })

  test('throws again on each read of rejected bytes', () => {
    const repeated = new Repeated((reader) => reader.boolean('flag'))
    for (let time = 0; time < 2; time++) {
      expect(() => repeated.of(readerOf(Uint8Array.of(1, 1, 5)))).toThrow('neither 00 nor FF')
    }
  })

  test('returns the right values for many inputs that share a slot', () => {
    const repeated = new Repeated((reader) => {
      reader.next('value')
      return [...reader.lastContent].join()
    })
    for (let round = 0; round < 2; round++) {
      for (let value = 0; value < 1000; value++) {
        const bytes = Uint8Array.of(4, 2, value >> 8, value & 255)
        expect(repeated.of(readerOf(bytes))).toBe(`${value >> 8},${value & 255}`)
      }
    }
  })
})
