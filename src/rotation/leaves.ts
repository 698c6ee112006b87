import { given } from '../errors/given.ts'
import type { Task } from './action.ts'
import { type CertificateRecord, type Digest, isSignedByCa } from './certificate-record.ts'
import { keyPathFor } from './material.ts'
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

// Leaf certificates of API servers: the serving certificate, the client certificate for kubelets and the one for aggregated API
// servers.

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

/** Returns the files of API servers' leaf certificates whose flag is set and whose file exists. */
export function apiLeaves(observed: Observed<'components' | 'files'>): readonly ApiLeaf[] {
  return apiServers(observed).flatMap((api) =>
    leafRoles.flatMap((role) => {
      const file = leafFile(observed, api, role)
      return file === undefined ? [] : [{ api, role, ca: leafFlags[role].ca, file }]
    }),
  )
}

/** Returns the API servers' leaf certificates that the old CA signed. */
export function oldApiLeaves(observed: Observed<'components' | 'files'>, target: Target): readonly ApiLeaf[] {
  return apiLeaves(observed).filter((leaf) => isLeafOf('oldCa', observed, leaf, target))
}

/** True when that generation of its CA signed a leaf. */
export function isLeafOf(
  generation: 'oldCa' | 'newCa',
  observed: Observed<'files'>,
  { ca, file }: Pick<ApiLeaf, 'ca' | 'file'>,
  target: Target,
): boolean {
  const change = changeOf(target, ca)
  return change !== undefined && isSignedByCa(leafIn(observed, file), change[generation])
}

/** Returns the file of an API server's leaf certificate if the flag is set and the file exists. */
export function leafFile(
  observed: Observed<'files'>,
  api: ComponentSnapshot,
  role: LeafRole,
): FileSnapshot | undefined {
  return fileAt(observed, api.node, api.flags[leafFlags[role].flag])
}

/**
 * Returns true when an API server uses one certificate both for serving and as a client of kubelets, as many manual installations
 * do.
 */
export function hasOneLeaf({ flags }: ComponentSnapshot): boolean {
  const path = flags[leafFlags.serving.flag]
  return path !== undefined && path === flags[leafFlags['kubelet-client'].flag]
}

/** Returns the first certificate of a file. */
export function leafIn(
  observed: Observed<'files'>,
  file: FileSnapshot | undefined,
): CertificateRecord | undefined {
  const digest = file?.contains.kind === 'kubeconfig' ? file.contains.client : certificatesIn(file)[0]
  return digest === undefined ? undefined : observed.certificates.get(digest)
}

/** Returns true when the old CA signed the leaf certificate in the file. */
export function isOfOldCa(
  observed: Observed<'files'>,
  file: FileSnapshot | undefined,
  change: CaChange,
): boolean {
  return isSignedByCa(leafIn(observed, file), change.oldCa)
}

/** Returns the handshakes in which the server presented a leaf certificate of this CA. */
export function handshakesWith(
  { handshakes, certificates }: Observed<'handshakes'>,
  ca: CertificateRecord,
): readonly HandshakeSnapshot[] {
  return handshakes.filter(({ chain: [leaf = ''] }) => isSignedByCa(certificates.get(leaf), ca))
}

/**
 * Returns the action that replaces an API server's leaf certificate with one of the new CA, followed by this chain; empty when it
 * is already one.
 */
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
 * Returns the action that replaces the leaf certificate in a file with one of the new CA for the same names; empty when the old
 * CA did not sign it. `key`: path of the key file, if known.
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
  const newKey = target.newKeys && {
    newKey: key ?? keyPathFor(file.path),
    ...given({ keyType: target.keyType }),
  }
  return [rewrite(file, { kind: 'reissued', leaf: leaf.digest, ca, chain, ...newKey })]
}
