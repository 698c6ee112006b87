import { verify } from 'node:crypto'
import { orUndefined } from '../errors/caught.ts'
import { looksLikePem, readPem } from './pem.ts'
import type { PublicKeyInfo } from './public-key.ts'
import { publicKeyIn, tokenTextsIn } from './service-account-token.ts'

// Signatures of service account tokens, as Kubernetes creates them (pkg/serviceaccount/jwt.go): RS256, and ES256, ES384 or ES512 by
// the curve of the key (RFC 7518 section 3).

const hashes: Readonly<Record<string, string>> = { 'P-256': 'sha256', 'P-384': 'sha384', 'P-521': 'sha512' }

/** Returns true if the key signed the token, a JWS in compact form. */
export function isTokenSignedBy(token: string, key: PublicKeyInfo): boolean {
  const hash = key.algorithm === 'RSA' ? 'sha256' : hashes[key.curve ?? '']
  if (hash === undefined) return false
  const end = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  const verified = orUndefined(() =>
    verify(
      hash,
      Buffer.from(token.slice(0, end)),
      { key: key.keyObject(), dsaEncoding: 'ieee-p1363' },
      signature,
    ),
  )
  return verified === true
}

/** Returns the public keys of public keys, private keys and certificates in PEM; none of a block that cannot be read. */
export function publicKeysIn(content: Uint8Array): PublicKeyInfo[] {
  if (!looksLikePem(content)) return []
  return readPem(content).blocks.flatMap((block) => orUndefined(() => publicKeyIn(block)) ?? [])
}

/** A value of a Secret in a manifest in a value of a Secret. */
const deepestBase64 = 4

/** Returns the same as `tokenTextsIn`, also in the base64 in the text. */
export function signedTokensIn(text: string, depth = deepestBase64): string[] {
  const plain = tokenTextsIn(text)
  if (depth === 0) return plain
  // A token has hundreds of characters. The lines of PEM have 64.
  const encoded = [...text.matchAll(/[A-Za-z0-9+/]{120,}={0,2}/g)].flatMap(([run]) =>
    signedTokensIn(Buffer.from(run, 'base64').toString('latin1'), depth - 1),
  )
  return [...plain, ...encoded]
}
