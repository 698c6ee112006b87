import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type CurveName, coordinateSize, isCurveName, pointDefect } from './curves.ts'

const primes = {
  'P-256': 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
  'P-384': 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
  'P-521': 2n ** 521n - 1n,
} as const

function point(curve: CurveName, x: bigint, y: bigint): Buffer {
  const hex = (value: bigint): string => value.toString(16).padStart(2 * coordinateSize(curve), '0')
  return Buffer.from(`04${hex(x)}${hex(y)}`, 'hex')
}
const defectOf = (curve: CurveName, bytes: Buffer): string | undefined =>
  pointDefect(curve, bytes, 0, bytes.length)

test.each([
  ['P-224', 'secp224r1'],
  ['P-256', 'prime256v1'],
  ['P-384', 'secp384r1'],
  ['P-521', 'secp521r1'],
] as const)('accepts a key on %s, and rejects it with one bit changed', (curve, namedCurve) => {
  for (let i = 0; i < 20; i++) {
    const spki = generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'der', type: 'spki' })
    const bytes = spki.subarray(-1 - 2 * coordinateSize(curve))
    expect(defectOf(curve, bytes)).toBeUndefined()
    bytes[bytes.length - 1 - i]! ^= 1
    expect(defectOf(curve, bytes)).toBe(`a point that is not on ${curve}`)
  }
})

describe('rejects a coordinate that is not below p, even if it represents a point', () => {
  test.each(Object.entries(primes) as [keyof typeof primes, bigint][])('%s', (curve, p) => {
    // Use the first small x that has a y: then x + p still fits in the bytes of a coordinate.
    const [x, y] = firstPoint(curve, p)
    expect(defectOf(curve, point(curve, x, y))).toBeUndefined()
    expect(defectOf(curve, point(curve, x + p, y))).toBe(`a point that is not on ${curve}`)
  })

  function firstPoint(curve: keyof typeof primes, p: bigint): [x: bigint, y: bigint] {
    for (let x = 1n; ; x++) {
      const y = squareRoot(rightSide(curve, x), p)
      if (y !== undefined) return [x, y]
    }
  }

  function squareRoot(square: bigint, p: bigint): bigint | undefined {
    // All three primes are 3 modulo 4.
    const root = power(square, (p + 1n) / 4n, p)
    return (root * root - square) % p === 0n ? root : undefined
  }

  function power(base: bigint, exponent: bigint, p: bigint): bigint {
    let result = 1n
    for (const bit of exponent.toString(2)) {
      result = (result * result) % p
      if (bit === '1') result = (result * base) % p
    }
    return result
  }

  /** Returns x³ − 3x + b, with b from an OpenSSL key. */
  function rightSide(curve: keyof typeof primes, x: bigint): bigint {
    const p = primes[curve]
    const jwk = generateKeyPairSync('ec', { namedCurve: curve }).publicKey.export({ format: 'jwk' })
    const number = (text: string): bigint => BigInt(`0x${Buffer.from(text, 'base64url').toString('hex')}`)
    const [gx, gy] = [number(jwk.x!), number(jwk.y!)]
    const b = gy * gy - gx * gx * gx + 3n * gx
    return (((x * x * x - 3n * x + b) % p) + p) % p
  }
})

test('isCurveName accepts only the names in the table', () => {
  expect(isCurveName('P-256')).toBe(true)
  for (const other of [undefined, 'secp256k1', 'toString']) expect(isCurveName(other)).toBe(false)
})
