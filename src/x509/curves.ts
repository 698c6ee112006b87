// NIST's prime curves (SP 800-186), y² = x³ − 3x + b over p. This code only checks whether a point is on its curve: Go rejects a
// certificate whose key is not. node:crypto does everything that involves secrets.

/** Curves, each with the size of a coordinate in bytes. */
const curves = {
  'P-224': {
    size: 28,
    p: 2n ** 224n - 2n ** 96n + 1n,
    b: 0xb4050a850c04b3abf54132565044b0b7d7bfd8ba270b39432355ffb4n,
  },
  'P-256': {
    size: 32,
    p: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
    b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
  },
  'P-384': {
    size: 48,
    p: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
    b: 0xb3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aefn,
  },
  'P-521': {
    size: 66,
    p: 2n ** 521n - 1n,
    b: 0x51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e156193951ec7e937b1652c0bd3bb1bf073573df883d2c34f1ef451fd46b503f00n,
  },
} as const

export type CurveName = keyof typeof curves

export function isCurveName(name: string | undefined): name is CurveName {
  return name !== undefined && Object.hasOwn(curves, name)
}

/** Returns the size in bytes of a coordinate and of a private key. */
export function coordinateSize(name: CurveName): number {
  return curves[name].size
}

/** Returns why bytes are not an uncompressed point (SEC 1 section 2.3.3) of the curve, or undefined. */
export function pointDefect(name: CurveName, bytes: Buffer, start: number, stop: number): string | undefined {
  const { size, p, b } = curves[name]
  if (bytes[start] !== 4) return 'not an uncompressed point'
  if (stop - start !== 1 + 2 * size)
    return `a point of ${stop - start} bytes, where ${name} has ${1 + 2 * size}`
  // Both coordinates come from one text, because building texts takes longer than the arithmetic.
  const both = BigInt(`0x${bytes.toString('hex', start + 1, stop)}`)
  const bits = 8 * size
  const x = both >> BigInt(bits)
  const y = BigInt.asUintN(bits, both)
  const isOnCurve = x < p && y < p && (y * y - (x * x - 3n) * x - b) % p === 0n
  return isOnCurve ? undefined : `a point that is not on ${name}`
}
