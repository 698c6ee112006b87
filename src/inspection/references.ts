import { posix } from 'node:path'
import type { Origin } from './entries.ts'

const nodeFolders = ['/etc/kubernetes/', '/var/lib/kubelet/']

/**
 * Returns the path of a file that a kubeconfig refers to: relative to the kubeconfig's own folder, as client-go resolves it.
 * In a copy of a whole node (…/cp1/etc/kubernetes/kubelet.conf) the node's own absolute paths lead into the copy, not to the
 * machine that kcert runs on. Undefined for a relative path when the kubeconfig came from no file.
 */
export function mapReference(written: string, { file }: Origin): string | undefined {
  if (!written.startsWith('/')) return file && linkDestination(file.path, written)
  const prefix = copyPrefix(file?.path)
  return prefix !== '' && nodeFolders.some((folder) => written.startsWith(folder))
    ? prefix + written
    : written
}

/** The part of the path before /etc/kubernetes/; empty for /etc/kubernetes itself. */
function copyPrefix(path: string | undefined): string {
  return path?.slice(0, Math.max(0, path.lastIndexOf('/etc/kubernetes/'))) ?? ''
}

/** Returns the absolute path that a symbolic link leads to. */
export function linkDestination(path: string, target: string): string {
  return posix.resolve('/', posix.dirname(path), target)
}
