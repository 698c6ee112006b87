// ML-DSA (FIPS 204) in certificates, requests and keys (RFC 9881).

interface MlDsaParameters {
  /** Size of a public key in bytes. */
  readonly keyBytes: number
  /** Security strength by OpenSSL's count. */
  readonly securityBits: number
}

const parameterSets = {
  'ML-DSA-44': { keyBytes: 1312, securityBits: 128 },
  'ML-DSA-65': { keyBytes: 1952, securityBits: 192 },
  'ML-DSA-87': { keyBytes: 2592, securityBits: 256 },
} as const satisfies Record<string, MlDsaParameters>

export type MlDsa = keyof typeof parameterSets

export const mlDsaNames = Object.keys(parameterSets) as readonly MlDsa[]

/** Returns the sizes of ML-DSA keys for the name of the algorithm; undefined for every other algorithm. */
export function mlDsaParameters(algorithm: string): MlDsaParameters | undefined {
  return isMlDsa(algorithm) ? parameterSets[algorithm] : undefined
}

/** True for the name of an ML-DSA key or signature algorithm. */
export function isMlDsa(algorithm: string): algorithm is MlDsa {
  return Object.hasOwn(parameterSets, algorithm)
}
