import type { ClusterAddresses } from '../csr/approval/facts.ts'
import { withoutBrackets } from '../errors/host-port.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import { announcedBy, announcedIn, announcements } from './announced-servers.ts'
import type { Cluster } from './cluster.ts'
import { type PodObject, resources } from './kinds.ts'
import { getReadable, listReadable } from './readable.ts'

// Which addresses and names belong to API servers and services. No single object has them all, so kcert reads and combines
// several sources. If kcert may not read a source that could add more, the result is undefined.

const endpoints = { ...resources.endpoints, namespace: 'default', name: 'kubernetes' } as const
const kubeadmConfig = { ...resources.configMaps, namespace: 'kube-system', name: 'kubeadm-config' } as const
const clusterInfo = { ...resources.configMaps, namespace: 'kube-public', name: 'cluster-info' } as const
const systemPods = { ...resources.pods, namespace: 'kube-system' } as const

const serviceNames = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc']

/**
 * Returns the addresses at which clients reach API servers and services; undefined when the current user's rights do not suffice.
 */
export async function readClusterAddresses(cluster: Cluster): Promise<ClusterAddresses | undefined> {
  const { objects } = cluster
  const [servers, kubeadm, info] = await Promise.all([
    endpointAddresses(cluster),
    configMapDocument(cluster, kubeadmConfig, 'ClusterConfiguration'),
    configMapDocument(cluster, clusterInfo, 'kubeconfig'),
  ])
  // kcert's own server URL and cluster-info name a load balancer. Without the right to read cluster-info, kcert's own URL has to
  // do.
  if (servers === undefined || kubeadm === undefined) return undefined
  const ranges = await serviceRanges(objects, kubeadm)
  if (ranges === undefined) return undefined
  const infoServers = itemsOf(valueAt(valuesOf(info), 'clusters')).map((one) =>
    textOf(valueAt(one, 'cluster', 'server')),
  )
  const domain = textOf(valueAt(valuesOf(kubeadm), 'networking', 'dnsDomain')) ?? 'cluster.local'
  const hosts = [
    hostOf(cluster.server),
    ...infoServers.map(hostOf),
    hostOf(textOf(valueAt(valuesOf(kubeadm), 'controlPlaneEndpoint'))),
    ...itemsOf(valueAt(valuesOf(kubeadm), 'apiServer', 'certSANs')).map(textOf),
    ...serviceNames,
    `kubernetes.default.svc.${domain}`,
  ]
  const named = hosts.filter((host) => host !== undefined)
  return { apiServers: [...new Set([...servers, ...named])], serviceCidrs: ranges }
}

/** The endpoints of the Service "kubernetes": every API server publishes its address there. */
async function endpointAddresses({ objects }: Cluster): Promise<string[] | undefined> {
  const found = await listReadable(objects, announcements, announcedBy)
  const addresses = (found ?? []).flatMap(announcedIn).map(({ host }) => host)
  if (addresses.length > 0) return addresses
  const older = await getReadable(objects, endpoints)
  if (older === undefined || older === 'absent') return undefined
  const ips = (older.subsets ?? []).flatMap(({ addresses = [] }) => addresses.flatMap(({ ip }) => ip ?? []))
  return ips.length > 0 ? ips : undefined
}

/** ServiceCIDRs since Kubernetes 1.33. In older releases, kubeadm's configuration or the flags of the API servers. */
async function serviceRanges(
  objects: Cluster['objects'],
  kubeadm: Node | 'absent',
): Promise<string[] | undefined> {
  const listed = await listReadable(objects, resources.serviceCidrs)
  const ranges = (listed ?? []).flatMap(({ spec }) => spec?.cidrs ?? [])
  if (ranges.length > 0) return ranges
  const subnet = textOf(valueAt(valuesOf(kubeadm), 'networking', 'serviceSubnet'))
  if (subnet !== undefined) return subnet.split(',').map((range) => range.trim())
  const pods = await listReadable(objects, systemPods, { labelSelector: 'component=kube-apiserver' })
  const fromFlags = (pods ?? []).flatMap(rangesInFlags)
  return fromFlags.length > 0 ? [...new Set(fromFlags)] : undefined
}

function rangesInFlags({ spec }: PodObject): string[] {
  const words = (spec?.containers ?? []).flatMap(({ command = [], args = [] }) => [...command, ...args])
  const flag = '--service-cluster-ip-range='
  return words.filter((word) => word.startsWith(flag)).flatMap((word) => word.slice(flag.length).split(','))
}

/** Returns the YAML in a key of a ConfigMap; undefined when kcert may not read or cannot parse it. */
async function configMapDocument(
  { objects }: Cluster,
  resource: typeof kubeadmConfig | typeof clusterInfo,
  key: string,
): Promise<Node | 'absent' | undefined> {
  const object = await getReadable(objects, resource)
  if (object === undefined || object === 'absent') return object
  const text = object.data?.[key]
  if (text === undefined) return 'absent'
  const { documents, defects } = await readDocuments(text)
  return defects.length > 0 ? undefined : (documents[0] ?? 'absent')
}

function valuesOf(document: Node | 'absent' | undefined): Node | undefined {
  return document === 'absent' ? undefined : document
}

/** Returns the host of a URL, of HOST:PORT, or of HOST; undefined for other text. */
export function hostOf(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  const isUrl = /^[a-z]+:\/\//i.test(text)
  const isBareIpv6 = !isUrl && (text.match(/:/g) ?? []).length > 1 && !text.startsWith('[')
  if (isBareIpv6) return text
  const host = URL.parse(isUrl ? text : `https://${text}`)?.hostname
  return host === undefined ? undefined : withoutBrackets(host)
}
