import type { Task } from './action.ts'
import { type CertificateRecord, type Digest, isSignedByCa } from './certificate-record.ts'
import { keyBeside } from './material.ts'
import {
  apiServers,
  type ComponentSnapshot,
  certificatesIn,
  type FileSnapshot,
  fileAt,
  type HandshakeSnapshot,
  type Observed,
} from './snapshot.ts'
import { type CaChange, type CaName, changeOf, type Target } from './target.ts'
import { rewrite } from './tasks.ts'

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

const leafRoles: readonly LeafRole[] = ['serving', 'kubelet-client', 'front-proxy-client']

export interface ApiLeaf {
  readonly api: ComponentSnapshot
  readonly role: LeafRole
  readonly ca: CaName
  readonly file: FileSnapshot
}

/** Returns the files of API servers' leaves, as far as the flag is set and the file is there. */
export function apiLeaves(observed: Observed<'components' | 'files'>): readonly ApiLeaf[] {
  return apiServers(observed).flatMap((api) =>
    leafRoles.flatMap((role) => {
      const file = leafFile(observed, api, role)
      return file === undefined ? [] : [{ api, role, ca: leafFlags[role].ca, file }]
    }),
  )
}

/** Returns those of them that the old CA signed. */
export function oldApiLeaves(observed: Observed<'components' | 'files'>, target: Target): readonly ApiLeaf[] {
  return apiLeaves(observed).filter(({ ca, file }) => {
    const change = changeOf(target, ca)
    return change !== undefined && isOfOldCa(observed, file, change)
  })
}

/** Returns the file of an API server's leaf, when the flag is set and the file is there. */
export function leafFile(
  observed: Observed<'files'>,
  api: ComponentSnapshot,
  role: LeafRole,
): FileSnapshot | undefined {
  return fileAt(observed, api.node, api.flags[leafFlags[role].flag])
}

/** True when an API server serves, and goes to kubelets, with one certificate, as many installations by hand have it. */
export function hasOneLeaf({ flags }: ComponentSnapshot): boolean {
  const path = flags[leafFlags.serving.flag]
  return path !== undefined && path === flags[leafFlags['kubelet-client'].flag]
}

/** Returns the first certificate of a file. */
export function leafIn(
  observed: Observed<'files'>,
  file: FileSnapshot | undefined,
): CertificateRecord | undefined {
  const digest = file?.holds.kind === 'kubeconfig' ? file.holds.client : certificatesIn(file)[0]
  return digest === undefined ? undefined : observed.certificates.get(digest)
}

/** True when the file's leaf is signed by the old CA. */
export function isOfOldCa(
  observed: Observed<'files'>,
  file: FileSnapshot | undefined,
  change: CaChange,
): boolean {
  return isSignedByCa(leafIn(observed, file), change.oldCa)
}

/** Returns the handshakes in which a leaf of this CA was shown. */
export function handshakesWith(
  { handshakes, certificates }: Observed<'handshakes'>,
  ca: CertificateRecord,
): readonly HandshakeSnapshot[] {
  return handshakes.filter(({ chain: [leaf = ''] }) => isSignedByCa(certificates.get(leaf), ca))
}

/** Returns the writing that replaces an API server's leaf by one of the new CA, this chain behind it; nothing when it is one. */
export function reissuing(
  observed: Observed<'files'>,
  api: ComponentSnapshot,
  role: LeafRole,
  target: Target,
  chain: readonly Digest[] = [],
): readonly Task<'write-file'>[] {
  const { ca, key } = leafFlags[role]
  const change = changeOf(target, ca)
  if (change === undefined) return []
  return reissuingFile(observed, leafFile(observed, api, role), api.flags[key], change, target, chain)
}

/**
 * Returns the writing that replaces the leaf in a file by one of the new CA for the same names; nothing when it is none of the old one.
 * `key`: path of the file's key, where something says it.
 */
export function reissuingFile(
  observed: Observed<'files'>,
  file: FileSnapshot | undefined,
  key: string | undefined,
  { ca, oldCa }: CaChange,
  target: Target,
  chain: readonly Digest[] = [],
): readonly Task<'write-file'>[] {
  const leaf = leafIn(observed, file)
  if (file === undefined || leaf === undefined || !isSignedByCa(leaf, oldCa)) return []
  const newKey = target.newKeys && { newKey: key ?? keyBeside(file.path) }
  return [rewrite(file, { kind: 'reissued', leaf: leaf.digest, ca, chain, ...newKey })]
}
