import type { Content } from './action.ts'
import { apiServerOn, type ComponentSnapshot, fileAt, type Observed } from './snapshot.ts'
import { bundleOf, type CaChange, type CaName, changeOf, type Target } from './target.ts'

// kcert's own folder on a control-plane node, beside the CA that is rotated. Controller-managers are led there by path, so
// that no file changes its meaning under a process that reads it. It is gone when phase 12 ends.

/** Returns where kcert keeps its files on a control-plane node: beside the CA by which its API server knows clients. */
export function folderOn(observed: Observed<'components'>, node: string): string {
  return folderBeside(apiServerOn(observed, node)?.flags['client-ca-file'])
}

/** The same, from the API server's --client-ca-file. */
export function folderBeside(clientCaFile = '/etc/kubernetes/pki/ca.crt'): string {
  return `${folderOfPath(clientCaFile)}/kcert`
}

/** The index of the copies: a CopyPicture in JSON on each line. */
export const copiesIndex = '/var/lib/kcert/copies/index.jsonl'

/** Path of the index with these bytes once its rotation is finished. */
export function pastIndex(digest: string): string {
  return `${copiesFolder}/index-${digest.slice(0, 12)}.jsonl`
}

/** Where the bytes of a copy lie. */
export function copyPath(digest: string): string {
  return `${copiesFolder}/by-digest/${digest}`
}

/** Where copies lie on every node, by digest, with index.jsonl that says what each of them was. */
export const copiesFolder = '/var/lib/kcert/copies'

const stems = { cluster: 'ca', 'front-proxy': 'front-proxy-ca' } as const satisfies Record<CaName, string>

/** Paths of what phase 1 lays out for a CA. */
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
  readonly content: Content
  readonly mode: number
}

/** Returns the files that phase 1 lays out on each control-plane node, certificates before keys. */
export function materialOf(folder: string, target: Target): readonly MaterialFile[] {
  return target.changes.flatMap((change) => materialOfCa(folder, change))
}

function materialOfCa(folder: string, change: CaChange): MaterialFile[] {
  const { ca, oldCa, newCa, bridge } = change
  const paths = materialPaths(folder, ca)
  const certificates = (path: string, digests: readonly string[]): MaterialFile => {
    return { path, content: { kind: 'certificates', certificates: digests }, mode: 0o644 }
  }
  const key = (path: string, generation: 'old' | 'new'): MaterialFile => {
    return { path, content: { kind: 'ca-key', ca, generation }, mode: 0o600 }
  }
  return [
    // The key first: a certificate that is there says that its key is.
    key(paths.newKey, 'new'),
    certificates(paths.newCertificate, [newCa.digest]),
    key(paths.oldKey, 'old'),
    certificates(paths.oldCertificate, [oldCa.digest]),
    certificates(paths.bundle, bundleOf(change)),
    ...(bridge ? [certificates(paths.bridge, [bridge.digest])] : []),
  ]
}

/** True when the file holds what phase 1 wants there; a planned certificate matches nothing. */
export function isLaidOut(
  observed: Observed<'files'>,
  node: string,
  wanted: MaterialFile,
  target: Target,
): boolean {
  const holds = fileAt(observed, node, wanted.path)?.holds
  const { content } = wanted
  if (content.kind === 'certificates') {
    return holds?.kind === 'certificates' && holds.certificates.join() === content.certificates.join()
  }
  if (content.kind !== 'ca-key') return false
  const change = changeOf(target, content.ca)
  const ca = content.generation === 'old' ? change?.oldCa : change?.newCa
  return holds?.kind === 'key' && holds.spki === ca?.spki
}

/** Returns the key's path beside a certificate's: ca.crt → ca.key, ca.pem → ca-key.pem. */
export function keyBeside(certificatePath: string): string {
  return certificatePath.endsWith('.pem')
    ? certificatePath.replace(/\.pem$/, '-key.pem')
    : certificatePath.replace(/\.[^./]*$/, '.key')
}

/** Returns the path of the file by which an API server knows the CA's clients; it is the CA's own file with kubeadm. */
export function caFileOf(api: ComponentSnapshot, ca: CaName): string | undefined {
  return api.flags[ca === 'cluster' ? 'client-ca-file' : 'requestheader-client-ca-file']
}

function folderOfPath(path: string): string {
  return path.slice(0, path.lastIndexOf('/'))
}
