import { unknownBefore138 } from './go-keys.ts'
import { isMlDsa } from './ml-dsa.ts'
import type { CertificateRequest } from './request.ts'
import type { SignatureRefusal } from './signature.ts'

// The consequence of an invalid signature for a request.

const words: Readonly<Record<SignatureRefusal, string>> = {
  'bad-signature': 'it was not created with the key in the request, so the requester may not hold that key',
  'algorithm-refused': 'its algorithm is broken (MD5)',
  'algorithm-unsupported': 'Kubernetes does not support its algorithm',
  'key-mismatch': 'its algorithm does not fit the key in the request',
  'key-unsupported':
    'Kubernetes does not support such keys: RSA from 1024 bits (since 1.33), ECDSA P-224 to P-521, Ed25519',
  'cannot-be-checked': 'it cannot be checked: the OpenSSL of this Node.js does not support its algorithm',
}

/** Returns why the signature of a request is invalid, as a sentence. */
export function signatureFault(
  { signatureAlgorithm }: Pick<CertificateRequest, 'signatureAlgorithm'>,
  reason: SignatureRefusal,
): string {
  return reason === 'algorithm-unsupported' && isMlDsa(signatureAlgorithm)
    ? `it is of ${signatureAlgorithm}, which ${unknownBefore138}`
    : words[reason]
}
