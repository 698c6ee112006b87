import { messageOf } from '../errors/kcert-error.ts'
import type { Kubeconfig } from '../kubeconfig/kubeconfig.ts'
import { openKubeconfig } from '../kubeconfig/open.ts'
import { type Certificate, readCertificates } from '../x509/certificate.ts'
import { signatureKeyPrefix, verifiesKubeconfig } from './signature.ts'
import type { BootstrapToken } from './token.ts'

/** `data` of the ConfigMap kube-public/cluster-info. */
export type ClusterInfoData = Readonly<Record<string, string>>

/** The content of kube-public/cluster-info, and its errors. */
export interface ClusterInfo {
  /** The exact text that the signatures cover. */
  readonly kubeconfig: string
  /** The name of its only cluster: usually empty. */
  readonly clusterName: string
  readonly server: string | undefined
  readonly cas: readonly Certificate[]
  /** By the ID of the token that signed. */
  readonly signatures: ReadonlyMap<string, string>
  readonly faults: readonly ClusterInfoFault[]
}

export interface ClusterInfoFault {
  readonly id:
    | 'no-kubeconfig'
    | 'kubeconfig-malformed'
    | 'cluster-count'
    | 'no-server'
    | 'no-ca'
    | 'ca-by-path'
    | 'ca-malformed'
    | 'secret-inside'
  readonly detail: string
  readonly next: string
}

/** With the CA file of kubeadm. */
export const clusterCaUpdate = 'kcert cluster-info update --ca /etc/kubernetes/pki/ca.crt'
// The CA is not the only error: kubeadm creates the whole object from a kubeconfig.
const rewrite =
  'kubectl -n kube-public get configmap cluster-info -o yaml > cluster-info.yaml && kubectl -n kube-public delete configmap cluster-info && kubeadm init phase bootstrap-token'

/** Returns the content of the ConfigMap. Invalid content never makes it throw, because the operator must see it to repair it. */
export async function readClusterInfo(data: ClusterInfoData): Promise<ClusterInfo> {
  const kubeconfig = data.kubeconfig
  const signatures = new Map(
    Object.entries(data)
      .filter(([key]) => key.startsWith(signatureKeyPrefix))
      .map(([key, signature]) => [key.slice(signatureKeyPrefix.length), signature]),
  )
  const unread = (fault: ClusterInfoFault): ClusterInfo => ({
    ...{ kubeconfig: kubeconfig ?? '', clusterName: '', server: undefined },
    ...{ cas: [], signatures, faults: [fault] },
  })
  const next = 'kubeadm init phase bootstrap-token'
  if (kubeconfig === undefined) return unread({ id: 'no-kubeconfig', detail: 'data has no kubeconfig', next })
  const opened = await openKubeconfig(kubeconfig)
  if (opened === undefined || opened.refusal !== undefined) {
    const detail = opened
      ? `client-go rejects data.kubeconfig: ${opened.refusal}`
      : 'data.kubeconfig is not a kubeconfig'
    return unread({ id: 'kubeconfig-malformed', detail, next: rewrite })
  }
  return { kubeconfig, signatures, ...contentOf(opened.kubeconfig) }
}

/** Returns whether a signing token has a valid signature here. */
export function signatureState(
  { kubeconfig, signatures }: Pick<ClusterInfo, 'kubeconfig' | 'signatures'>,
  token: BootstrapToken,
): 'valid' | 'stale' | 'missing' {
  const signature = signatures.get(token.id)
  if (signature === undefined) return 'missing'
  return verifiesKubeconfig(kubeconfig, signature, token) ? 'valid' : 'stale'
}

function contentOf({ clusters, users }: Kubeconfig) {
  const [cluster] = clusters
  const cas = casOf(cluster)
  const isSecret = users.some(
    ({ clientKey, credentials }) => clientKey !== undefined || credentials.length > 0,
  )
  const count = `it has ${clusters.length} clusters instead of one`
  const faults: (ClusterInfoFault | false)[] = [
    // kubeadm join accepts only a kubeconfig with exactly one cluster.
    clusters.length !== 1 && { id: 'cluster-count', detail: count, next: rewrite },
    isSecret && {
      id: 'secret-inside',
      detail:
        'it contains a credential that everyone on the network can read: remove the users, and revoke the credential',
      next: 'kubectl -n kube-public edit configmap cluster-info',
    },
    cluster !== undefined &&
      !cluster.server && { id: 'no-server', detail: 'its cluster has no server', next: rewrite },
    !Array.isArray(cas) && { ...cas, next: clusterCaUpdate },
  ]
  return {
    clusterName: cluster?.name ?? '',
    server: cluster?.server,
    cas: Array.isArray(cas) ? cas : [],
    faults: faults.filter((fault) => fault !== false),
  }
}

function casOf(
  cluster: Kubeconfig['clusters'][number] | undefined,
): Certificate[] | Omit<ClusterInfoFault, 'next'> {
  const { data, file } = cluster?.certificateAuthority ?? {}
  try {
    if (data !== undefined) return readCertificates(data)
  } catch (error) {
    return { id: 'ca-malformed', detail: `certificate-authority-data: ${messageOf(error)}` }
  }
  if (file === undefined) return { id: 'no-ca', detail: 'its cluster has no CA certificate' }
  const detail = `its cluster references the file ${file}, which joining nodes do not have`
  return { id: 'ca-by-path', detail }
}
