import { createHmac } from 'node:crypto'
import type { BootstrapToken } from './token.ts'

/** In data of kube-public/cluster-info, before the id of the token that signed. */
export const signatureKeyPrefix = 'jws-kubeconfig-'

/**
 * Returns the detached JWS (RFC 7515 appendix F, HS256) of a cluster-info kubeconfig by a token, as the bootstrap signer of
 * kube-controller-manager writes it. It covers the exact bytes of the text: any edit asks for a new one.
 */
export function signKubeconfig(kubeconfig: string, { id, secret }: BootstrapToken): string {
  // Field order and spacing are those of Kubernetes: a verifier compares text.
  const header = base64url(JSON.stringify({ alg: 'HS256', kid: id }))
  const signature = createHmac('sha256', secret)
    .update(`${header}.${base64url(kubeconfig)}`)
    .digest('base64url')
  return `${header}..${signature}`
}

/** True when this is what the token signs the kubeconfig with. */
export function verifiesKubeconfig(kubeconfig: string, signature: string, token: BootstrapToken): boolean {
  return signature === signKubeconfig(kubeconfig, token)
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url')
}
