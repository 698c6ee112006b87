import { isMlDsa } from './ml-dsa.ts'
import type { PublicKeyInfo } from './public-key.ts'

// The keys that Kubernetes components accept, by the Go version that each minor version is built with (k8s.io/kubernetes, go.mod:
// go and godebug).

type KeyFacts = Pick<PublicKeyInfo, 'algorithm' | 'bits' | 'rsaExponent' | 'defect'>

/** True for keys that Go up to 1.26 uses in TLS and to verify signatures. */
export function isUsedByGo({ algorithm, bits = 0, rsaExponent = 0 }: KeyFacts): boolean {
  if (algorithm !== 'RSA') return algorithm === 'ECDSA' || algorithm === 'Ed25519'
  // Go since 1.24 rejects RSA keys below 1024 bits. All versions reject an exponent that is even or does not fit 31 bits.
  return bits >= 1024 && rsaExponent >= 2 && rsaExponent % 2 === 1 && rsaExponent < 2 ** 31
}

/**
 * True for RSA keys above 8192 bits. crypto/x509 verifies their signatures, but crypto/tls rejects every peer certificate with
 * such a key (handshake_client.go, checkKeySize).
 */
export function isTooLongForTls({ algorithm, bits = 0 }: KeyFacts): boolean {
  return algorithm === 'RSA' && bits > 8192
}

/** crypto/x509 and crypto/tls support ML-DSA since Go 1.27, and etcd 3.7 is built with Go 1.26. The text follows "which". */
export const unknownBefore138 =
  'Kubernetes up to 1.37 and etcd up to 3.7 (Go 1.26) do not support; Kubernetes 1.38 (Go 1.27) is the first to support it, in TLS 1.3'

/** Returns the Kubernetes minor versions that accept such a key, as a clause that follows a comma; undefined if none does. */
export function minorsOfKey(key: KeyFacts): string | undefined {
  const { algorithm, bits, defect } = key
  if (isTooLongForTls(key)) return 'which TLS in Go, and so Kubernetes, refuses: 8192 bits is the maximum'
  if (defect !== undefined) return `which no program can use: ${defect}`
  if (isMlDsa(algorithm)) return `which ${unknownBefore138}`
  // Kubernetes 1.32 is built with Go 1.24 and "godebug default=go1.23", which leaves rsa1024min off.
  return algorithm === 'RSA' && bits !== undefined && bits < 1024
    ? 'which Kubernetes refuses since 1.33 (Go 1.24)'
    : undefined
}
