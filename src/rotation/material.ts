import { given } from '../errors/given.ts'
import type { Flags } from '../pki/component-flags.ts'
import type { Content } from './action.ts'
import { apiServerOn, type ComponentSnapshot, fileAt, type Observed } from './snapshot.ts'
import { bundleOf, type CaChange, type CaName, changeOf, type Target } from './target.ts'

// kcert's own folder on a control-plane node, next to the rotated CA. Flags point controller-managers to it, so that no file
// changes under a process that reads it. Phase 12 deletes it.

/**
 * Returns kcert's folder on a control-plane node: next to the CA file with which its API server authenticates clients. The rotation
 * of etcd's CA has another folder, next to that CA.
 */
export function folderOn(observed: Observed<'components'>, node: string, ca: CaName = 'cluster'): string {
  return kcertFolderIn(apiServerOn(observed, node)?.flags ?? {}, ca)
}

/** Returns kcert's folder for the flags of an API server. */
export function kcertFolderIn(flags: Flags, ca: CaName): string {
  const { 'client-ca-file': clientCa, 'etcd-cafile': etcdCa = '/etc/kubernetes/pki/etcd/ca.crt' } = flags
  return kcertFolderFor(ca === 'etcd' ? etcdCa : clientCa)
}

/** Returns kcert's folder for the value of the API server's --client-ca-file. */
export function kcertFolderFor(clientCaFile = '/etc/kubernetes/pki/ca.crt'): string {
  return `${clientCaFile.slice(0, clientCaFile.lastIndexOf('/'))}/kcert`
}

/** Returns the path of the index with these bytes after its rotation is finished. */
export function pastIndex(digest: string): string {
  return `${copiesFolder}/index-${digest.slice(0, 12)}.jsonl`
}

/** Returns the path of the bytes of a copy. */
export function copyPath(digest: string): string {
  return `${copiesFolder}/by-digest/${digest}`
}

/** Folder of the copies on every node, named by digest. index.jsonl contains the original path of each. */
export const copiesFolder = '/var/lib/kcert/copies'

const stems = {
  cluster: 'ca',
  'front-proxy': 'front-proxy-ca',
  etcd: 'ca',
} as const satisfies Record<CaName, string>

/** Returns the paths of the files that phase 1 distributes for a CA. */
export function materialPaths(folder: string, ca: CaName) {
  const stem = stems[ca]
  return {
    oldCertificate: `${folder}/old/${stem}.crt`,
    oldKey: `${folder}/old/${stem}.key`,
    newCertificate: `${folder}/new/${stem}.crt`,
    newKey: `${folder}/new/${stem}.key`,
    bundle: `${folder}/${stem}-bundle.crt`,
    bridge: `${folder}/${stem}-bridge.crt`,
  } as const
}

export interface MaterialFile {
  readonly path: string
  readonly content: Extract<Content, { kind: 'certificates' | 'ca-key' }>
  readonly mode: number
}

/** Returns the files that phase 1 distributes to each control-plane node, certificates before keys. */
export function materialOf(folder: string, target: Target): readonly MaterialFile[] {
  return target.changes.flatMap((change) => materialOfCa(folder, change, target))
}

function materialOfCa(folder: string, change: CaChange, { keyType, etcdClients }: Target): MaterialFile[] {
  const { ca, oldCa, newCa, bridge } = change
  const paths = materialPaths(folder, ca)
  const certificates = (path: string, digests: readonly string[]): MaterialFile => {
    return { path, content: { kind: 'certificates', certificates: digests }, mode: 0o644 }
  }
  const key = (path: string, generation: 'old' | 'new'): MaterialFile => {
    const ofType = generation === 'new' && given({ keyType })
    return { path, content: { kind: 'ca-key', ca, generation, ...ofType }, mode: 0o600 }
  }
  return [
    // The key first: an existing certificate implies an existing key.
    key(paths.newKey, 'new'),
    certificates(paths.newCertificate, [newCa.digest]),
    key(paths.oldKey, 'old'),
    certificates(paths.oldCertificate, [oldCa.digest]),
    // For etcd, it is for clients that are unknown to kcert, and shows that the rotation began with such clients.
    ...(ca === 'etcd' && etcdClients === 'known' ? [] : [certificates(paths.bundle, bundleOf(change))]),
    ...(bridge ? [certificates(paths.bridge, [bridge.digest])] : []),
  ]
}

/** Returns true when the file has the content for phase 1; a planned certificate matches nothing. */
export function isLaidOut(
  observed: Observed<'files'>,
  node: string,
  wanted: MaterialFile,
  target: Target,
): boolean {
  const contains = fileAt(observed, node, wanted.path)?.contains
  const { content } = wanted
  if (content.kind === 'certificates') {
    return contains?.kind === 'certificates' && contains.certificates.join() === content.certificates.join()
  }
  const change = changeOf(target, content.ca)
  const ca = content.generation === 'old' ? change?.oldCa : change?.newCa
  return contains?.kind === 'key' && contains.spki === ca?.spki
}

/** Returns the path of the key next to a certificate: ca.crt → ca.key, ca.pem → ca-key.pem. */
export function keyPathFor(certificatePath: string): string {
  return certificatePath.endsWith('.pem')
    ? certificatePath.replace(/\.pem$/, '-key.pem')
    : certificatePath.replace(/\.[^./]*$/, '.key')
}

/** Returns the path of the file with which an API server authenticates the CA's clients. With kubeadm it is the CA's own file. */
export function caFileOf(api: Pick<ComponentSnapshot, 'flags'>, ca: CaName): string | undefined {
  return api.flags[caFlags[ca]]
}

/** The flag of an API server that names the file of a CA. */
const caFlags = {
  cluster: 'client-ca-file',
  'front-proxy': 'requestheader-client-ca-file',
  etcd: 'etcd-cafile',
} as const satisfies Record<CaName, string>
