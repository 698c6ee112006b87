import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { sha256Hex, sha256HexHere } from './sha256.ts'

test("sha256HexHere returns OpenSSL's digest at every length around block boundaries", () => {
  for (let length = 0; length < 300; length++) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 151 + length * 17) & 0xff)
    expect(sha256HexHere(bytes), String(length)).toBe(hash('sha256', bytes, 'hex'))
  }
  const long = new Uint8Array(100_000).fill(0xa5)
  expect(sha256HexHere(long)).toBe(hash('sha256', long, 'hex'))
})

test('sha256Hex returns the same digest from either implementation', () => {
  const bytes = Buffer.from('abc')
  const digests = new Set(Array.from({ length: 20 }, () => sha256Hex(bytes)))
  expect([...digests]).toEqual(['ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'])
})
