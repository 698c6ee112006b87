import type { Certificate } from './certificate.ts'
import { mlDsaParameters } from './ml-dsa.ts'

// Security strength in bits by OpenSSL's count. TLS level 1 requires 80. Level 2, the default of OpenSSL 3.2 and Node 24,
// requires 112.

/** Returns the strength of the certificate's own key; 0 when it is unknown. */
export function securityBitsOfKey({ publicKey }: Certificate): number {
  const { algorithm, bits = 0, curve } = publicKey
  switch (algorithm) {
    case 'RSA':
    case 'DSA':
      return bitsOfModulus(bits)
    case 'ECDSA':
      return curveBits[curve ?? ''] ?? 0
    case 'Ed25519':
      return 128
    default:
      // OpenSSL cannot read a malformed key.
      return (publicKey.defect === undefined && mlDsaParameters(algorithm)?.securityBits) || 0
  }
}

const curveBits: Readonly<Record<string, number>> = { 'P-224': 112, 'P-256': 128, 'P-384': 192, 'P-521': 256 }

// NIST SP 800-56B appendix D, with the exact values for the sizes that standards list.
const namedSizes: Readonly<Record<number, number>> = {
  2048: 112,
  3072: 128,
  4096: 152,
  6144: 176,
  7680: 192,
  8192: 200,
  15360: 256,
}

function bitsOfModulus(length: number): number {
  const named = namedSizes[length]
  if (named !== undefined) return named
  if (length < 8) return 0
  const x = length * Math.LN2
  const strength = (1.923 * Math.cbrt(x * Math.log(x) ** 2) - 4.69) / Math.LN2
  return Math.floor((strength + 4) / 8) * 8
}

const digestBits: readonly (readonly [RegExp, number])[] = [
  [/md5/i, 39],
  [/sha1(?!\d)/i, 63],
  [/sha224/i, 112],
  [/sha256/i, 128],
  [/sha384/i, 192],
  [/sha512/i, 256],
  [/^Ed25519$/, 128],
  // RSA-PSS: the parameters contain its hash, and weak hashes are not used with it.
  [/PSS/, 128],
]

/** Returns the strength of the signature on the certificate; 0 when it is unknown. */
export function securityBitsOfSignature({ signatureAlgorithm }: Certificate): number {
  return (
    mlDsaParameters(signatureAlgorithm)?.securityBits ??
    digestBits.find(([pattern]) => pattern.test(signatureAlgorithm))?.[1] ??
    0
  )
}
