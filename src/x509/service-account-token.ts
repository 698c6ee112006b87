import { orUndefined } from '../errors/caught.ts'
import { given } from '../errors/given.ts'
import { isObject } from '../errors/is-object.ts'
import { certificateOfBlock } from './certificate.ts'
import { isPrivateKeyLabel, isPublicKeyLabel, readPrivateKey, readPublicKey } from './keys.ts'
import { type PemBlock, readPem } from './pem.ts'
import type { PublicKeyInfo } from './public-key.ts'

// Key IDs and claims of service account tokens. Only header and claims are read, never the signature, so nothing that is
// returned here, except by `tokenTextsIn`, can be used as a credential.

/** The header and claims of a service account token, without the token. */
export interface ServiceAccountToken {
  /** `kid`: the key that signed it. Absent in the tokens of some external signers. */
  readonly keyId?: string
  readonly issuer: string
  readonly namespace: string
  readonly serviceAccount: string
  readonly audiences: readonly string[]
  /** `jti`: in audit events, `authentication.kubernetes.io/credential-id` is "JTI=" and this. Absent in legacy tokens. */
  readonly id?: string
  readonly issuedAtMs?: number
  /** Absent in legacy tokens, which never expire. */
  readonly expiresAtMs?: number
  /** The object that it is bound to, or the Secret of a legacy token: "pod web-0". */
  readonly boundTo?: string
}

/**
 * Returns the key ID of a service account key: base64url of the SHA-256 of its SubjectPublicKeyInfo
 * (k8s.io/kubernetes/pkg/serviceaccount/jwt.go, keyIDFromPublicKey). It is `kid` in tokens and in /openid/v1/jwks.
 */
export function keyIdOf({ sha256 }: Pick<PublicKeyInfo, 'sha256'>): string {
  return Buffer.from(sha256, 'hex').toString('base64url')
}

/**
 * Returns the IDs of the keys with which Kubernetes verifies tokens, from a file: public keys, private keys and certificates in PEM
 * (client-go util/keyutil/key.go). Throws the errors of damaged certificates and keys.
 */
export function serviceAccountKeyIds(content: Uint8Array): string[] {
  return readPem(content).blocks.flatMap((block) => {
    const key = publicKeyIn(block)
    return key?.algorithm === 'RSA' || key?.algorithm === 'ECDSA' ? [keyIdOf(key)] : []
  })
}

/** Returns the public key of a certificate or key; undefined for other blocks. Throws the errors of damaged ones. */
export function publicKeyIn(block: PemBlock): PublicKeyInfo | undefined {
  if (block.label === 'CERTIFICATE') return certificateOfBlock(block).publicKey
  if (isPublicKeyLabel(block.label)) return readPublicKey(block)
  return isPrivateKeyLabel(block.label) ? readPrivateKey(block).publicKey : undefined
}

// The API server accepts a header of 1 MiB in all. Its own tokens have less than 2 KiB.
const longestToken = 65_536
const longestClaim = 1024
/** The last second of the year 9999, as in RFC 5280. */
const lastSecond = 253_402_300_799

/**
 * Returns the claims if a text is one service account token, with white space around it; undefined otherwise. Their signature is
 * not verified: anyone can write such a text.
 */
export function readServiceAccountToken(text: string): ServiceAccountToken | undefined {
  if (text.length > 2 * longestToken) return undefined
  const token = text.trim()
  if (token.length > longestToken || !/^eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+$/.test(token)) return undefined
  const [header, claims] = token.split('.', 2).map(objectIn)
  return header && claims && tokenOf(header, claims)
}

/** Returns every service account token in a text: a configuration file, an HTTP header, or the token itself. */
export function serviceAccountTokensIn(text: string): ServiceAccountToken[] {
  return tokenTextsIn(text).flatMap((token) => readServiceAccountToken(token) ?? [])
}

/** Returns what may be a service account token in a text, with its signature: a credential. */
export function tokenTextsIn(text: string): string[] {
  // One match for each run of characters, so that no text takes longer than its length.
  return [...text.matchAll(/[\w.-]{40,}/g)].flatMap(([run]) => {
    const parts = run.split('.')
    // A token may follow the "n" of an escaped line break, and end with the full stop of a sentence.
    return parts.flatMap((part, at) => {
      const [claims = '', signature = ''] = parts.slice(at + 1, at + 3)
      const header = part.replace(/^[nrt]?eyJ/, 'eyJ')
      return header.startsWith('eyJ') && claims.startsWith('eyJ') ? [`${header}.${claims}.${signature}`] : []
    })
  })
}

type Json = Readonly<Record<string, unknown>>

function objectIn(base64url: string): Json | undefined {
  const value = orUndefined((): unknown => JSON.parse(Buffer.from(base64url, 'base64url').toString('utf8')))
  return isObject(value) ? value : undefined
}

function tokenOf(header: Json, claims: Json): ServiceAccountToken | undefined {
  // Names as in ServiceAccount.metadata: k8s.io/apiserver/pkg/authentication/serviceaccount/util.go, SplitUsername.
  const [, namespace, serviceAccount] =
    /^system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})$/.exec(textOf(claims.sub) ?? '') ?? []
  const issuer = textOf(claims.iss)
  const [issuedAtMs, expiresAtMs] = [claims.iat, claims.exp].map(msOf)
  if (namespace === undefined || serviceAccount === undefined || issuer === undefined) return undefined
  // API servers reject such times, too.
  if ([issuedAtMs, expiresAtMs].some(Number.isNaN)) return undefined
  return {
    ...{ issuer, namespace, serviceAccount },
    audiences: [claims.aud].flat().flatMap((one) => textOf(one) ?? []),
    ...given({
      keyId: textOf(header.kid),
      id: textOf(claims.jti),
      issuedAtMs,
      expiresAtMs,
      boundTo: boundTo(claims),
    }),
  }
}

/** Legacy tokens have claims with slashes, and bound ones the object "kubernetes.io" (pkg/serviceaccount/legacy.go, claims.go). */
function boundTo(claims: Json): string | undefined {
  const secret = textOf(claims['kubernetes.io/serviceaccount/secret.name'])
  if (secret !== undefined) return `secret ${secret}`
  const bound = claims['kubernetes.io']
  if (!isObject(bound)) return undefined
  for (const kind of ['pod', 'secret', 'node']) {
    const object = bound[kind]
    const name = isObject(object) ? textOf(object.name) : undefined
    if (name !== undefined) return `${kind} ${name}`
  }
  return undefined
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= longestClaim ? value : undefined
}

/** Returns the time of a NumericDate (RFC 7519 section 2), between 1970 and 9999; NaN for what is no number. */
function msOf(seconds: unknown): number | undefined {
  if (seconds === undefined) return undefined
  return typeof seconds === 'number' ? Math.max(0, Math.min(Math.floor(seconds), lastSecond)) * 1000 : NaN
}
