import { posix } from 'node:path'
import type { Origin } from './entries.ts'

const nodeFolders = ['/etc/kubernetes/', '/var/lib/kubelet/']

/**
 * Returns the path of a file that a kubeconfig refers to: relative to the kubeconfig's folder, as client-go resolves it. In a
 * copy of a whole node (…/cp1/etc/kubernetes/kubelet.conf), the node's absolute paths point into the copy, not to the machine
 * that runs kcert. Undefined for a relative path when the kubeconfig has no file.
 */
export function mapReference(written: string, { file }: Origin): string | undefined {
  if (!written.startsWith('/')) return file && linkDestination(file.path, written)
  const prefix = copyPrefix(file?.path)
  return prefix !== '' && nodeFolders.some((folder) => written.startsWith(folder))
    ? prefix + written
    : written
}

/** Returns the part of the path before /etc/kubernetes/; empty for /etc/kubernetes itself. */
function copyPrefix(path: string | undefined): string {
  return path?.slice(0, Math.max(0, path.lastIndexOf('/etc/kubernetes/'))) ?? ''
}

/** Returns the absolute path of a symbolic link's target. */
export function linkDestination(path: string, target: string): string {
  return posix.resolve('/', posix.dirname(path), target)
}
