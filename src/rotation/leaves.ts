import type { WriteFile } from './action.ts'
import { type CertificateRecord, type Digest, isSignedByCa } from './certificate-record.ts'
import { keyBeside } from './material.ts'
import { type ComponentPicture, certificatesIn, type FilePicture, fileAt, type Seen } from './picture.ts'
import { type CaChange, type CaName, changeOf, type Target } from './target.ts'

// Leaf certificates of API servers: one serves, one goes to kubelets, one goes to aggregated API servers.

export const leafFlags = {
  serving: { flag: 'tls-cert-file', key: 'tls-private-key-file', ca: 'cluster' },
  'kubelet-client': { flag: 'kubelet-client-certificate', key: 'kubelet-client-key', ca: 'cluster' },
  'front-proxy-client': {
    flag: 'proxy-client-cert-file',
    key: 'proxy-client-key-file',
    ca: 'front-proxy',
  },
} as const satisfies Record<string, { flag: string; key: string; ca: CaName }>

export type LeafRole = keyof typeof leafFlags

/** Returns the file of an API server's leaf, when the flag is set and the file is there. */
export function leafFile(
  seen: Seen<'files'>,
  api: ComponentPicture,
  role: LeafRole,
): FilePicture | undefined {
  return fileAt(seen, api.node, api.flags[leafFlags[role].flag])
}

/** True when an API server serves, and goes to kubelets, with one certificate, as many installations by hand have it. */
export function hasOneLeaf({ flags }: ComponentPicture): boolean {
  const path = flags[leafFlags.serving.flag]
  return path !== undefined && path === flags[leafFlags['kubelet-client'].flag]
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
  const { ca, key } = leafFlags[role]
  const change = changeOf(target, ca)
  const files = { certificate: leafFile(seen, api, role), key: api.flags[key] }
  return change === undefined ? [] : reissuingFile(seen, phase, files, change, target, chain)
}

/** Returns the writing that replaces the leaf in a file by one of the new CA for the same names; nothing when it is none of the old one. */
export function reissuingFile(
  seen: Seen<'files'>,
  phase: number,
  {
    certificate: file,
    key,
  }: { readonly certificate: FilePicture | undefined; readonly key: string | undefined },
  change: CaChange,
  target: Target,
  chain: readonly Digest[] = [],
): readonly WriteFile[] {
  const leaf = leafIn(seen, file)
  if (file === undefined || leaf === undefined || !isSignedByCa(leaf, change.oldCa)) return []
  const { ca } = change
  const { node, path, digest, mode } = file
  const newKey = target.newKeys ? { newKey: key ?? keyBeside(path) } : {}
  const content = { kind: 'reissued', leaf: leaf.digest, ca, chain, ...newKey } as const
  return [{ kind: 'write-file', phase, node, path, replaces: digest, content, mode }]
}
