import { createHmac } from 'node:crypto'
import type { BootstrapToken } from './token.ts'

/** The prefix of a signature key in kube-public/cluster-info, before the ID of the token. */
export const signatureKeyPrefix = 'jws-kubeconfig-'

/**
 * Returns the detached JWS (RFC 7515 appendix F, HS256) of a cluster-info kubeconfig by a token, as the bootstrap signer of
 * kube-controller-manager writes it. It covers the exact bytes of the text: any edit needs a new signature.
 */
export function signKubeconfig(kubeconfig: string, { id, secret }: BootstrapToken): string {
  // Field order and spacing are those of Kubernetes, because a verifier compares text.
  const header = base64url(JSON.stringify({ alg: 'HS256', kid: id }))
  const signature = createHmac('sha256', secret)
    .update(`${header}.${base64url(kubeconfig)}`)
    .digest('base64url')
  return `${header}..${signature}`
}

/** True when the signature is the one of this token for the kubeconfig. */
export function verifiesKubeconfig(kubeconfig: string, signature: string, token: BootstrapToken): boolean {
  return signature === signKubeconfig(kubeconfig, token)
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url')
}
