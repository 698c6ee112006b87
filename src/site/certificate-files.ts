import { kubeadmFolders } from '../pki/kubeadm.ts'
import type { NodeAccess, ReadFile } from '../pki/node-access.ts'

/** Returns shell patterns of a node's files that contain certificates and keys. */
export function certificatePatterns(
  pkiFolder: string = kubeadmFolders.pki,
  kubeletFolder: string = kubeadmFolders.kubeletPki,
): string[] {
  return [
    `${pkiFolder}/*.crt`,
    `${pkiFolder}/*.key`,
    `${pkiFolder}/*.pem`,
    `${pkiFolder}/etcd/*.crt`,
    `${pkiFolder}/etcd/*.key`,
    `${kubeadmFolders.kubernetes}/*.conf`,
    `${kubeadmFolders.kubernetes}/*.kubeconfig`,
    `${kubeletFolder}/kubelet-*-current.pem`,
    '/etc/cni/net.d/*kubeconfig*',
  ]
}

/** Returns the files that match the patterns, and the existing files of the paths, each once even if links lead to it. */
export async function readCertificateFiles(
  node: NodeAccess,
  patterns: readonly string[],
  paths: readonly string[],
): Promise<ReadFile[]> {
  const matched = await node.matchPaths(patterns)
  const files = await node.readFiles([...new Set([...matched, ...paths])].sort())
  // Either a link or its target is enough. The kubelet reads its links.
  const linked = new Set(
    files.flatMap(({ path, linkTarget }) => (linkTarget === undefined ? [] : [linkedFrom(path, linkTarget)])),
  )
  return files.flatMap((file) =>
    file.found === 'file' && !linked.has(file.path) && !isDated(file.path) ? [file] : [],
  )
}

/** Returns the absolute path that a link, or a file at `path`, refers to: relative to its folder. */
export function linkedFrom(path: string, target: string): string {
  return target.startsWith('/') ? target : `${folderOf(path)}/${target}`
}

export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'))
}

/** In a kubelet's store only link targets count; the kubelet no longer uses the older files next to them. */
function isDated(path: string): boolean {
  return /\/kubelet-(?:client|server)-\d[^/]*\.pem$/.test(path)
}
