import { KcertError } from '../errors/kcert-error.ts'
import type { Certificate } from '../x509/certificate.ts'

const pinPattern = /^sha256:([0-9a-f]{64})$/i

/** Returns the argument of `kubeadm join --discovery-token-ca-cert-hash`: SHA-256 of the SubjectPublicKeyInfo. */
export function pinOf({ publicKey }: Certificate): string {
  return `sha256:${publicKey.sha256}`
}

/** Returns a public key pin in canonical form, for comparison. Throws KCERT_USAGE for a pin that kubeadm would reject. */
export function parsePin(text: string): string {
  const digest = pinPattern.exec(text)?.[1]
  if (digest !== undefined) return `sha256:${digest.toLowerCase()}`
  throw new KcertError('KCERT_USAGE', `invalid public key pin ${JSON.stringify(text)}`, {
    why: 'a public key pin is sha256: and 64 hexadecimal digits',
    next: 'kcert cluster-info pin',
  })
}
