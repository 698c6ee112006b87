import type { WriteFile } from './action.ts'
import { type CertificateRecord, type Digest, isSignedByCa } from './certificate-record.ts'
import { type ComponentPicture, certificatesIn, type FilePicture, fileAt, type Seen } from './picture.ts'
import { type CaChange, type CaName, changeOf, type Target } from './target.ts'

// Leaf certificates of API servers: one serves, one goes to kubelets, one goes to aggregated API servers.

export const leafFlags = {
  serving: { flag: 'tls-cert-file', ca: 'cluster' },
  'kubelet-client': { flag: 'kubelet-client-certificate', ca: 'cluster' },
  'front-proxy-client': { flag: 'proxy-client-cert-file', ca: 'front-proxy' },
} as const satisfies Record<string, { flag: string; ca: CaName }>

export type LeafRole = keyof typeof leafFlags

/** Returns the file of an API server's leaf, when the flag is set and the file is there. */
export function leafFile(
  seen: Seen<'files'>,
  api: ComponentPicture,
  role: LeafRole,
): FilePicture | undefined {
  return fileAt(seen, api.node, api.flags[leafFlags[role].flag])
}

/** Returns the first certificate of a file. */
export function leafIn(seen: Seen<'files'>, file: FilePicture | undefined): CertificateRecord | undefined {
  const digest = file?.holds.kind === 'kubeconfig' ? file.holds.client : certificatesIn(file)[0]
  return digest === undefined ? undefined : seen.certificates.get(digest)
}

/** True when the file's leaf is signed by the old CA. */
export function isOfOldCa(seen: Seen<'files'>, file: FilePicture | undefined, change: CaChange): boolean {
  return isSignedByCa(leafIn(seen, file), change.oldCa)
}

/** Returns the writing that replaces an API server's leaf by one of the new CA, this chain behind it; nothing when it is one. */
export function reissuing(
  seen: Seen<'files'>,
  phase: number,
  api: ComponentPicture,
  role: LeafRole,
  target: Target,
  chain: readonly Digest[] = [],
): readonly WriteFile[] {
  const { ca } = leafFlags[role]
  const change = changeOf(target, ca)
  const file = leafFile(seen, api, role)
  const leaf = leafIn(seen, file)
  if (change === undefined || file === undefined || leaf === undefined) return []
  if (!isSignedByCa(leaf, change.oldCa)) return []
  const { node, path, digest, mode } = file
  const newKey = target.newKeys ? ({ newKey: true } as const) : {}
  const content = { kind: 'reissued', leaf: leaf.digest, ca, chain, ...newKey } as const
  return [{ kind: 'write-file', phase, node, path, replaces: digest, content, mode }]
}
