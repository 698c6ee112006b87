import type { Certificate } from './certificate.ts'
import type { ConstraintViolation } from './name-constraints.ts'
import type { GoRefusal } from './path.ts'

export type Chain = readonly Certificate[]

/** Why a chain is not trusted. docs/refusals.md lists this table; the codes are part of the JSON contract. */
export const refusalCodes = {
  CERT_EXPIRED: 'A certificate of the chain has expired.',
  CERT_NOT_YET_VALID: 'A certificate of the chain is not valid yet, or a clock is wrong.',
  CRITICAL_EXTENSION_UNKNOWN: 'A certificate has a critical extension that Go does not support.',
  HOST_NAME_MISMATCH: 'The leaf is not valid for the requested name.',
  LEAF_SELF_SIGNED: 'The leaf is self-signed and not among the roots.',
  ROOT_NOT_TRUSTED: 'The chain ends in a CA that is not among the given roots.',
  ISSUER_UNKNOWN: 'The certificate of the issuer is neither among the roots nor among the intermediates.',
  ISSUER_KEY_OTHER:
    'A CA with the right name was found, but another key created the signature: usually that of the CA before or after a rotation.',
  SIGNATURE_WEAK: 'A certificate is signed with SHA-1 or MD5, which Go rejects.',
  SIGNATURE_UNSUPPORTED: 'A certificate is signed with an algorithm that Go does not support.',
  ISSUER_KEY_UNSUPPORTED:
    'Go does not support the key of an issuer, such as RSA below 1024 bits, or above 8192 bits in a CA certificate that a server or client sends.',
  LEAF_KEY_UNSUPPORTED:
    'The chain is valid, but TLS in Go does not support the key of the leaf. Examples are RSA below 1024 or above 8192 bits, DSA, and ML-DSA before Kubernetes 1.38.',
  ISSUER_NOT_CA: 'A certificate signed another, but it is not a CA by its basic constraints.',
  ISSUER_MAY_NOT_SIGN: 'A CA signed a certificate, but its key usage lacks keyCertSign.',
  PATH_LENGTH_EXCEEDED: 'The path length of a CA allows fewer intermediates than the chain has.',
  USAGE_WRONG: 'The extended key usage of a certificate of the chain does not allow the purpose.',
  NAME_NOT_ALLOWED: 'The name constraints of a CA forbid a name of a certificate below it.',
  POLICY_NOT_MET: 'A CA requires a certificate policy, and none is valid for the whole chain.',
  TOO_MANY_CANDIDATES: 'Go gives up after 100 possible issuers.',
  USER_UID_INVALID:
    'The client certificate has two user UIDs, or an empty one: API servers respond with 401 (since Kubernetes 1.33).',
} as const

export type RefusalCode = keyof typeof refusalCodes

export interface Refusal {
  readonly code: RefusalCode
  /** The certificate that causes the refusal. */
  readonly certificate: Certificate
  /** The certificate that was tried as its issuer and does not fit, or the certificate below it. */
  readonly other?: Certificate
  /** The certificates from the leaf to the end of the search, or the verified chain. */
  readonly chain: Chain
  readonly violation?: ConstraintViolation
  /** The subject of Go's error. */
  readonly go: GoCause
}

/** Go reports less than kcert does, and sometimes refers to another certificate. Its error text is built from this. */
type GoCause =
  | GoRefusal
  | { readonly kind: 'host'; readonly certificate: Certificate; readonly name: string }
  | { readonly kind: 'constraint'; readonly violation: ConstraintViolation }
  | { readonly kind: 'usage' }
  /** TLS rejects the leaf's key after a chain was found. */
  | { readonly kind: 'leaf-key'; readonly certificate: Certificate }
  | { readonly kind: 'rsa-too-long'; readonly purpose: 'server' | 'client' }
  /** The API server rejects the user UIDs after a chain was found. */
  | { readonly kind: 'user'; readonly uids: readonly string[] }
  | { readonly kind: 'no-chain'; readonly badUsage: number; readonly badPolicies: number }
