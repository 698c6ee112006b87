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

// CA files with which a process verifies its clients or its servers.

interface TrustFlag {
  readonly flag: string
  readonly ca: CaName
  /** `hot`: read again by itself within seconds; `start`: read once. */
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

/** Which flags of a component name such files. kubeadm gives a scheduler none of them: it reads what API servers publish. */
export const trustFlags = {
  'kube-apiserver': [
    clientCa,
    requestheaderCa,
    // The connection to kubelets is made once; its CAs are never read again.
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

/** Returns one of each file, though several processes read it. */
export function distinctFiles(files: readonly TrustFile[]): readonly TrustFile[] {
  return [...new Map(files.map((file) => [fileKey(file.node, file.path), file])).values()]
}

/** True when the file holds the new CA of its kind, or is none of this rotation's. */
export function holdsNew(observed: Observed<'files'>, file: TrustFile, target: Target): boolean {
  const change = changeOf(target, file.ca)
  const certificates = certificatesIn(fileAt(observed, file.node, file.path))
  return (
    change === undefined ||
    certificates.includes(change.newCa.digest) ||
    (file.flag === kubeletCaFlag && verifiesByOthers(certificates, change))
  )
}

/** Kubelets may serve certificates of another CA: a client that trusts only that CA does not get the new one. */
function verifiesByOthers(certificates: readonly string[], { oldCa, newCa }: CaChange): boolean {
  return (
    certificates.length > 0 && !certificates.includes(oldCa.digest) && !certificates.includes(newCa.digest)
  )
}

/** Returns the file by which an API server verifies kubelets, where it is the rotated CA's. It is read once. */
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

/** True when the file still holds the old CA of its kind. */
export function holdsOld(
  observed: Observed<'files'>,
  { node, path, ca }: TrustFile,
  target: Target,
): boolean {
  const change = changeOf(target, ca)
  return change !== undefined && certificatesIn(fileAt(observed, node, path)).includes(change.oldCa.digest)
}

/** Returns the writing that adds the new CA behind what the file holds; nothing when it is there. */
export function addingNew(
  observed: Observed<'files'>,
  trustFile: TrustFile,
  target: Target,
): readonly Task<'write-file'>[] {
  const change = changeOf(target, trustFile.ca)
  const file = fileAt(observed, trustFile.node, trustFile.path)
  if (change === undefined || file === undefined || holdsNew(observed, trustFile, target)) return []
  const certificates = withNew(certificatesIn(file), change)
  return [rewrite(file, { kind: 'certificates', certificates })]
}

/** Returns the writing that leaves the new CA and takes the old one out; nothing when that is so. */
export function droppingOld(
  observed: Observed<'files'>,
  trustFile: TrustFile,
  target: Target,
): readonly Task<'write-file'>[] {
  const change = changeOf(target, trustFile.ca)
  const file = fileAt(observed, trustFile.node, trustFile.path)
  if (change === undefined || file === undefined) return []
  if (holdsNew(observed, trustFile, target) && !holdsOld(observed, trustFile, target)) return []
  const certificates = withoutOld(certificatesIn(file), change)
  return [rewrite(file, { kind: 'certificates', certificates })]
}
