import type { Task } from './action.ts'
import {
  type ComponentName,
  type ComponentSnapshot,
  certificatesIn,
  fileAt,
  fileKey,
  type Observed,
  type ProcessId,
} from './snapshot.ts'
import { type CaChange, type CaName, changeOf, type Target, withNew, withoutOld } from './target.ts'
import { rewrite } from './tasks.ts'

// CA files with which a process verifies clients or servers.

interface TrustFlag {
  readonly flag: string
  readonly ca: CaName
  /** `hot`: the process reads the file again within seconds; `start`: it reads the file once. */
  readonly reload: 'hot' | 'start'
}

export interface TrustFile extends TrustFlag {
  readonly process: ProcessId
  readonly node: string
  readonly path: string
}

const kubeletCaFlag = 'kubelet-certificate-authority'
const clientCa: TrustFlag = { flag: 'client-ca-file', ca: 'cluster', reload: 'hot' }
const requestheaderCa: TrustFlag = {
  flag: 'requestheader-client-ca-file',
  ca: 'front-proxy',
  reload: 'hot',
}

/** The flags of each component that name such files. With kubeadm, a scheduler has none: it reads what API servers publish. */
export const trustFlags = {
  'kube-apiserver': [
    clientCa,
    requestheaderCa,
    // The API server sets up its connection to kubelets once and never reads these CAs again.
    { flag: kubeletCaFlag, ca: 'cluster', reload: 'start' },
  ],
  'kube-controller-manager': [clientCa, requestheaderCa],
  'kube-scheduler': [clientCa, requestheaderCa],
  'cloud-controller-manager': [],
  'kube-proxy': [],
} as const satisfies Record<ComponentName, readonly TrustFlag[]>

/** Returns the trust files of these components, node by node. */
export function trustFilesOf(
  observed: Observed<'components'>,
  names: readonly ComponentName[],
): readonly TrustFile[] {
  return observed.components
    .filter(({ name }) => names.includes(name))
    .flatMap(({ id, node, name, flags }) =>
      trustFlags[name].flatMap(({ flag, ca, reload }) => {
        const path = flags[flag]
        return path === undefined ? [] : [{ process: id, node, path, flag, ca, reload }]
      }),
    )
}

/** Returns every trust file of the control plane, and of kubelets. */
export function allTrustFiles(observed: Observed<'components' | 'kubelets'>): readonly TrustFile[] {
  const names = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const
  return [...trustFilesOf(observed, names), ...kubeletTrustFiles(observed)]
}

/** Returns the client CA file of each kubelet. */
export function kubeletTrustFiles(observed: Observed<'kubelets'>): readonly TrustFile[] {
  return observed.kubelets.map(({ id, node, clientCaFile }) => ({
    process: id,
    node,
    path: clientCaFile,
    flag: 'clientCAFile',
    ca: 'cluster',
    reload: 'hot',
  }))
}

/** Returns each file once, even if several processes read it. */
export function distinctFiles(files: readonly TrustFile[]): readonly TrustFile[] {
  return [...new Map(files.map((file) => [fileKey(file.node, file.path), file])).values()]
}

/** Returns true when the file contains the new CA of its kind, or does not belong to this rotation. */
export function containsNew(observed: Observed<'files'>, file: TrustFile, target: Target): boolean {
  const change = changeOf(target, file.ca)
  const certificates = certificatesIn(fileAt(observed, file.node, file.path))
  return (
    change === undefined ||
    certificates.includes(change.newCa.digest) ||
    (file.flag === kubeletCaFlag && verifiesByOthers(certificates, change))
  )
}

/**
 * Returns true when the file trusts only another CA. Kubelets may serve certificates of that CA, and such a file does not get the
 * new CA.
 */
function verifiesByOthers(certificates: readonly string[], { oldCa, newCa }: CaChange): boolean {
  return (
    certificates.length > 0 && !certificates.includes(oldCa.digest) && !certificates.includes(newCa.digest)
  )
}

/** Returns the file with which an API server verifies kubelets, if it contains the rotated CA. It is read once. */
export function kubeletCaFileOf(
  observed: Observed<'files'>,
  { node, flags }: ComponentSnapshot,
  target: Target,
): string | undefined {
  const change = changeOf(target, 'cluster')
  const path = flags[kubeletCaFlag]
  if (change === undefined || path === undefined) return undefined
  return verifiesByOthers(certificatesIn(fileAt(observed, node, path)), change) ? undefined : path
}

/** Returns true when the file still contains the old CA of its kind. */
export function containsOld(
  observed: Observed<'files'>,
  { node, path, ca }: TrustFile,
  target: Target,
): boolean {
  const change = changeOf(target, ca)
  return change !== undefined && certificatesIn(fileAt(observed, node, path)).includes(change.oldCa.digest)
}

/** Returns the action that appends the new CA to the file; empty when it is already there. */
export function addingNew(
  observed: Observed<'files'>,
  trustFile: TrustFile,
  target: Target,
): readonly Task<'write-file'>[] {
  const change = changeOf(target, trustFile.ca)
  const file = fileAt(observed, trustFile.node, trustFile.path)
  if (change === undefined || file === undefined || containsNew(observed, trustFile, target)) return []
  const certificates = withNew(certificatesIn(file), change)
  return [rewrite(file, { kind: 'certificates', certificates })]
}

/** Returns the action that removes the old CA from the file and keeps the new one; empty when this is done. */
export function droppingOld(
  observed: Observed<'files'>,
  trustFile: TrustFile,
  target: Target,
): readonly Task<'write-file'>[] {
  const change = changeOf(target, trustFile.ca)
  const file = fileAt(observed, trustFile.node, trustFile.path)
  if (change === undefined || file === undefined) return []
  if (containsNew(observed, trustFile, target) && !containsOld(observed, trustFile, target)) return []
  const certificates = withoutOld(certificatesIn(file), change)
  return [rewrite(file, { kind: 'certificates', certificates })]
}
