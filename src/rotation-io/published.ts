import { readClusterInfo, signatureState } from '../bootstrap/cluster-info.ts'
import { signingTokens, tokenSecretType } from '../bootstrap/token-secret.ts'
import { statusIn } from '../cluster/failures.ts'
import { type Named, type ObjectOf, resources } from '../cluster/kinds.ts'
import { leaseSeconds, longestLeaseSeconds } from '../cluster/lease.ts'
import { getOne, listAll, listEach } from '../cluster/readable.ts'
import { orUndefined } from '../errors/caught.ts'
import { given } from '../errors/given.ts'
import { wordsOf } from '../errors/kcert-error.ts'
import type { PublishedTrust, Sections } from '../rotation/snapshot.ts'
import type { ControlPlanes } from '../site/control-planes.ts'
import {
  encryptionAlgorithmOf,
  extraArgsOf,
  kubernetesVersionOf,
  withoutAlgorithm,
} from '../site/definitions.ts'
import { apiServerSigner, contentChangedAtMs, contentVersion } from '../site/object-content.ts'
import type { Site } from '../site/site.ts'

// The CAs that the cluster publishes in ConfigMaps, Secrets and bundles.

const inSystem = { namespace: 'kube-system' } as const

const serviceAccountToken = 'kubernetes.io/service-account-token'

/**
 * Returns what controller-managers publish from their --root-ca-file. Includes namespaces without it, and API servers that could
 * not be read.
 */
export async function publishedTrust(
  site: Site,
  planes: ControlPlanes,
  controlPlanes: readonly string[],
): Promise<Sections['published']> {
  const { objects, reading } = site
  const published = (
    kind: PublishedTrust['kind'],
    object: Named,
    pem: string | Uint8Array | undefined,
    field: 'data' | 'spec' = 'data',
  ): PublishedTrust => {
    const { namespace, name } = object.metadata
    return {
      kind,
      name: namespace === undefined ? name : `${namespace}/${name}`,
      isActive: true,
      ...(pem !== undefined && { trust: reading.trustOf(pem) }),
      changedAtMs: contentChangedAtMs(object, field),
    }
  }
  const ofBundle: OfBundle = (one) => published('ClusterTrustBundle', one, one.spec?.trustBundle, 'spec')
  const [namespaces, configMaps, secrets, bundles] = await Promise.all([
    listAll(objects, resources.namespaces),
    listAll(objects, resources.configMaps, { fieldSelector: 'metadata.name=kube-root-ca.crt' }),
    listAll(objects, resources.secrets, { fieldSelector: `type=${serviceAccountToken}` }),
    trustBundles(site, planes, controlPlanes, ofBundle),
  ])
  const byNamespace = new Map(configMaps.map((one) => [one.metadata.namespace, one]))
  return [
    ...namespaces.map(({ metadata: { name }, status }): PublishedTrust => {
      const object = byNamespace.get(name)
      const absent = { kind: 'ConfigMap', name: `${name}/kube-root-ca.crt`, changedAtMs: 0 } as const
      const isActive = status?.phase !== 'Terminating'
      if (object === undefined) return { ...absent, isActive }
      return { ...published('ConfigMap', object, object.data?.['ca.crt']), isActive }
    }),
    ...secrets.map((secret) => {
      const data = secret.data?.['ca.crt']
      return published('Secret', secret, data === undefined ? undefined : Buffer.from(data, 'base64'))
    }),
    ...bundles,
  ]
}

type ClusterTrustBundle = ObjectOf<'clustertrustbundles'>

type OfBundle = (bundle: ClusterTrustBundle) => PublishedTrust

/**
 * Returns the bundles of the API servers' signer. During an upgrade, one API server may serve them and another may not. If the
 * first serves none, kcert tries each. They share one etcd, so any server that serves bundles has all of them.
 */
async function trustBundles(
  site: Site,
  planes: ControlPlanes,
  controlPlanes: readonly string[],
  ofBundle: OfBundle,
): Promise<readonly PublishedTrust[]> {
  const known = await bundlesIn(listEach(site.objects, resources.clusterTrustBundles))
  if (known !== undefined) return known.map(ofBundle)
  const nodes = [...new Set([...controlPlanes, ...(await planes.names())])].sort()
  const flags = await Promise.allSettled(nodes.map((node) => planes.flagsOn(node)))
  // An unreadable node may run an API server.
  const servers = nodes.filter((_, index) => {
    const said = flags[index]
    return said?.status !== 'fulfilled' || said.value !== undefined
  })
  // Then it is the API server that has already responded.
  if (servers.length < 2) return []
  const asked = await Promise.allSettled(
    servers.map((node) => {
      const list: typeof site.objects.list = (resource) => site.listAt(node, resource)
      return bundlesIn(listEach({ list }, resources.clusterTrustBundles))
    }),
  )
  const found = asked.find((one) => one.status === 'fulfilled' && one.value !== undefined)
  if (found?.status === 'fulfilled') return (found.value ?? []).map(ofBundle)
  const unknown = { kind: 'ClusterTrustBundle', isActive: true, changedAtMs: 0 } as const
  return asked.flatMap((one, index) =>
    one.status === 'fulfilled'
      ? []
      : [{ ...unknown, name: `${servers[index]}/kube-apiserver`, unread: wordsOf(one.reason) }],
  )
}

/** Returns undefined when the API server does not serve this kind. */
async function bundlesIn(list: AsyncIterable<ClusterTrustBundle>): Promise<ClusterTrustBundle[] | undefined> {
  try {
    const all = await Array.fromAsync(list)
    const byName = new Map(all.map((bundle) => [bundle.metadata.name, bundle]))
    return [...byName.values()].filter(({ spec }) => spec?.signerName === apiServerSigner)
  } catch (error) {
    if (statusIn(error) === 404) return undefined
    throw error
  }
}

/** Returns kube-public/cluster-info, and whether each signing token has signed the current content. */
export async function clusterInfo({ objects, certificates, clock }: Site): Promise<Sections['clusterInfo']> {
  const [object, secrets] = await Promise.all([
    getOne(objects, { ...resources.configMaps, namespace: 'kube-public', name: 'cluster-info' }),
    listAll(objects, { ...resources.secrets, ...inSystem }, { fieldSelector: `type=${tokenSecretType}` }),
  ])
  if (object === undefined) return undefined
  const info = await readClusterInfo(object.data ?? {})
  const tokens = signingTokens(secrets, clock())
  return {
    version: contentVersion(object),
    trust: certificates.addAll(info.cas),
    signatures: tokens.map((token) => ({
      tokenId: token.id,
      isValid: signatureState(info, token) === 'valid',
    })),
  }
}

/** Returns the client CAs that API servers publish. */
export async function extensionAuthentication({
  objects,
  reading,
}: Site): Promise<Sections['extensionAuthentication']> {
  const resource = { ...resources.configMaps, ...inSystem, name: 'extension-apiserver-authentication' }
  const object = await getOne(objects, resource)
  if (object === undefined) return undefined
  const { data = {} } = object
  return {
    version: contentVersion(object),
    changedAtMs: contentChangedAtMs(object, 'data'),
    client: reading.trustOf(data['client-ca-file']),
    requestheader: reading.trustOf(data['requestheader-client-ca-file']),
    allowsAnyName:
      data['requestheader-client-ca-file'] !== undefined && isEmptyList(data['requestheader-allowed-names']),
  }
}

function isEmptyList(json: string | undefined): boolean {
  const list = orUndefined((): unknown => JSON.parse(json ?? '[]'))
  return !Array.isArray(list) || list.length === 0
}

/** Returns kubeadm's own configuration; undefined in a cluster without kubeadm. */
export async function kubeadmConfiguration({ objects }: Site): Promise<Sections['kubeadm']> {
  const [object, secret] = await Promise.all([
    getOne(objects, { ...resources.configMaps, ...inSystem, name: 'kubeadm-config' }),
    getOne(objects, { ...resources.secrets, ...inSystem, name: 'kubeadm-certs' }),
  ])
  if (object === undefined) return undefined
  const text = object.data?.ClusterConfiguration ?? ''
  const kubernetesVersion = await kubernetesVersionOf(text)
  const encryptionAlgorithm = await encryptionAlgorithmOf(text)
  return {
    version: contentVersion(object),
    ...(kubernetesVersion && { kubernetesVersion }),
    ...given({ encryptionAlgorithm, noAlgorithm: await withoutAlgorithm(text) }),
    extraArgs: await extraArgsOf(text),
    ...(secret && { certsSecret: contentVersion(secret) }),
  }
}

const leaders = ['kube-controller-manager', 'kube-scheduler', 'cloud-controller-manager']

/** Returns the leader. A Lease that was not renewed in time, or has a renewTime far in the future, has no holder. */
export async function leases({ objects, clock }: Site, nodes: readonly Named[]): Promise<Sections['leases']> {
  const found = await Promise.all(leaders.map((name) => getOne(objects, { ...resources.leases, name })))
  const now = clock().getTime()
  return found.flatMap((lease) => {
    if (lease === undefined) return []
    const { holderIdentity = '', leaseDurationSeconds, renewTime } = lease.spec ?? {}
    const seconds = Math.min(leaseSeconds(leaseDurationSeconds, 15), longestLeaseSeconds)
    const renewedAtMs = Date.parse(renewTime ?? '') || 0
    // Clocks differ by some seconds. A renewal far in the future would make its holder the leader until then.
    const isPlausible = renewedAtMs <= now + longestLeaseSeconds * 1000
    const isHeld = holderIdentity !== '' && isPlausible && now < renewedAtMs + seconds * 1000
    const holder = nodeOfHolder(holderIdentity, nodes)
    return [{ name: lease.metadata.name, ...(isHeld ? { holder } : {}), renewedAtMs }]
  })
}

/** A holder identity is HOSTNAME_UUID, and a Node usually has the name of its host. */
function nodeOfHolder(identity: string, nodes: readonly Named[]): string {
  const host = identity.slice(0, identity.lastIndexOf('_'))
  const node = nodes.find(
    ({ metadata }) =>
      metadata.name === host ||
      metadata.labels?.['kubernetes.io/hostname'] === host ||
      host.startsWith(`${metadata.name}.`),
  )
  return node?.metadata.name ?? host
}
