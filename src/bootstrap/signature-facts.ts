import { type ClusterInfo, signatureState } from './cluster-info.ts'
import type { SignatureFacts } from './cluster-info-report.ts'
import type { BootstrapToken } from './token.ts'

/** Returns the state of every present or missing signature; `unknown` when the signing tokens are unavailable. */
export function signatureFacts(
  info: Pick<ClusterInfo, 'kubeconfig' | 'signatures'>,
  tokens: readonly BootstrapToken[] | undefined,
): SignatureFacts[] {
  if (tokens === undefined)
    return [...info.signatures.keys()].map((tokenId) => ({ tokenId, state: 'unknown' }))
  const signers = new Set(tokens.map(({ id }) => id))
  const orphans = [...info.signatures.keys()].filter((id) => !signers.has(id))
  return [
    ...tokens.map((token) => ({ tokenId: token.id, state: signatureState(info, token) })),
    ...orphans.map((tokenId): SignatureFacts => ({ tokenId, state: 'orphaned' })),
  ]
}
