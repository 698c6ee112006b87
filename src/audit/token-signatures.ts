import type { PublicKeyInfo } from '../x509/public-key.ts'
import { keyIdOf, readServiceAccountToken, type ServiceAccountToken } from '../x509/service-account-token.ts'
import { isTokenSignedBy, publicKeysIn, signedTokensIn } from '../x509/token-signature.ts'

/** The signatures of the tokens that are found. Anyone can write a token with the key ID of another key. */
export class TokenSignatures {
  private readonly keys = new Map<string, PublicKeyInfo>()
  /** Claims → the tokens with them. */
  private readonly tokens = new Map<string, Set<string>>()
  private readonly verdicts = new Map<string, boolean>()

  /** Adds the keys in a file that the operator names. */
  addKeys(content: Uint8Array): void {
    for (const key of publicKeysIn(content)) this.keys.set(keyIdOf(key), key)
  }

  /** Adds the tokens in a file or object. */
  addTokens(text: string): void {
    for (const token of signedTokensIn(text)) {
      const claims = readServiceAccountToken(token)
      if (claims === undefined) continue
      const id = JSON.stringify(claims)
      const known = this.tokens.get(id) ?? new Set()
      // A copy: part of a string would keep the whole one in memory.
      this.tokens.set(id, known.add(Buffer.from(token).toString()))
    }
  }

  /** Returns true if the key that a token names is known, and signed no token with these claims. Call it after all were added. */
  isForged(claims: ServiceAccountToken): boolean {
    const key = this.keys.get(claims.keyId ?? '')
    if (key === undefined) return false
    const id = JSON.stringify(claims)
    const verdict =
      this.verdicts.get(id) ?? ![...(this.tokens.get(id) ?? [])].some((one) => isTokenSignedBy(one, key))
    this.verdicts.set(id, verdict)
    return verdict
  }
}
