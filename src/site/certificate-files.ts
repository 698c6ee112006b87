import { kubeadmFolders } from '../pki/kubeadm.ts'
import type { NodeAccess, ReadFile } from '../pki/node-access.ts'

/** Returns shell patterns of the files of a node in which certificates and keys lie. */
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

/** Returns the files that the patterns match and those of the paths that are there, each once, whatever links lead to it. */
export async function readCertificateFiles(
  node: NodeAccess,
  patterns: readonly string[],
  paths: readonly string[],
): Promise<ReadFile[]> {
  const matched = await node.matchPaths(patterns)
  const files = await node.readFiles([...new Set([...matched, ...paths])].sort())
  // Of a link and the file that it leads to one is enough; the kubelet's links are what it reads.
  const linked = new Set(
    files.flatMap(({ path, linkTarget }) => (linkTarget === undefined ? [] : [linkedFrom(path, linkTarget)])),
  )
  return files.flatMap((file) =>
    file.found === 'file' && !linked.has(file.path) && !isDated(file.path) ? [file] : [],
  )
}

/** Returns the absolute path that a link leads to. */
export function linkedFrom(path: string, linkTarget: string): string {
  return linkTarget.startsWith('/') ? linkTarget : `${folderOf(path)}/${linkTarget}`
}

export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'))
}

/** Of a kubelet's store what its links lead to counts; older files beside it are no one's any more. */
function isDated(path: string): boolean {
  return /\/kubelet-(?:client|server)-\d[^/]*\.pem$/.test(path)
}
