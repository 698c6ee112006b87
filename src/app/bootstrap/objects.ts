import { type ClusterInfo, readClusterInfo } from '../../bootstrap/cluster-info.ts'
import type { BootstrapToken } from '../../bootstrap/token.ts'
import {
  readTokenSecret,
  signingTokens,
  type TokenFacts,
  tokenNamespace,
  tokenSecretType,
} from '../../bootstrap/token-secret.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { type ObjectOf, resources } from '../../cluster/kinds.ts'
import { getOne, listReadable } from '../../cluster/readable.ts'
import type { Resource } from '../../cluster/resource.ts'
import { KcertError } from '../../errors/kcert-error.ts'

// The objects of a cluster that nodes need to join, as the commands of cluster-info, token and bootstrap read them.

export const clusterInfoPlace = 'kube-public/cluster-info'

export const clusterInfoResource = {
  ...resources.configMaps,
  namespace: 'kube-public',
  name: 'cluster-info',
} as const satisfies Resource

export const tokenSecrets = {
  ...resources.secrets,
  namespace: tokenNamespace,
} as const satisfies Resource

export interface FoundClusterInfo {
  readonly object: ObjectOf<'configmaps'>
  readonly version: string
  readonly data: Readonly<Record<string, string>>
  readonly info: ClusterInfo
}

/** Returns kube-public/cluster-info. Throws KCERT_API_NOT_FOUND when there is none. */
export async function clusterInfoOf({ objects }: Pick<Cluster, 'objects'>): Promise<FoundClusterInfo> {
  const object = await getOne(objects, clusterInfoResource)
  if (object === undefined)
    throw new KcertError('KCERT_API_NOT_FOUND', `the cluster has no ConfigMap ${clusterInfoPlace}`, {
      why: 'kubeadm init creates it; other installers do not need it. Create it on a control-plane node',
      next: 'kubeadm init phase bootstrap-token',
    })
  const { data = {}, metadata } = object
  return { object, version: metadata.resourceVersion ?? '', data, info: await readClusterInfo(data) }
}

/** Returns the server that nodes join. Throws KCERT_CLUSTER_INFO_UNPROVEN when they cannot use cluster-info. */
export function joiningServer({ server, faults: [fault] }: ClusterInfo, fix?: string): string {
  if (fault === undefined && server !== undefined) return server
  throw new KcertError('KCERT_CLUSTER_INFO_UNPROVEN', `${clusterInfoPlace} cannot be used by joining nodes`, {
    why: fault?.detail ?? 'it has no server',
    fix,
    next: fault?.next ?? 'kcert cluster-info show',
  })
}

/** A token of the cluster, without its secret half. */
export interface FoundToken {
  readonly facts: TokenFacts
  readonly secretName: string
}

export interface FoundTokens {
  readonly all: readonly FoundToken[]
  /** The tokens with which kube-controller-manager signs cluster-info. */
  readonly signing: readonly BootstrapToken[]
}

/** Returns the bootstrap tokens of the cluster; undefined if listing their Secrets is forbidden. */
export async function tokensOf(
  { objects }: Pick<Cluster, 'objects'>,
  now: Date,
): Promise<FoundTokens | undefined> {
  const listed = await listReadable(objects, tokenSecrets, { fieldSelector: `type=${tokenSecretType}` })
  if (listed === undefined) return undefined
  return {
    all: listed.map((secret) => ({
      facts: readTokenSecret(secret, now),
      secretName: secret.metadata.name,
    })),
    signing: signingTokens(listed, now),
  }
}
