import type { Cluster } from '../cluster/cluster.ts'
import type { Resource } from '../cluster/resource.ts'
import type {
  AccessQuestion,
  ApprovalFacts,
  ClusterAddresses,
  NodeFacts,
  ServedCertificate,
} from '../csr/approval/facts.ts'
import { factsOfNodes } from '../csr/approval/node-list.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Clock } from '../system/clock.ts'
import { type Certificate, readCertificates } from '../x509/certificate.ts'

// What approvers want to know of a cluster, looked up once a run. What may not be read is unknown, and what depends on it is not
// approved; a call that fails throws, with the same effect.

type Object = Readonly<Record<string, unknown>>

const nodes: Resource = { group: '', version: 'v1', resource: 'nodes' }
const serviceCidrs: Resource = { group: 'networking.k8s.io', version: 'v1', resource: 'servicecidrs' }
const slices: Resource = {
  group: 'discovery.k8s.io',
  version: 'v1',
  resource: 'endpointslices',
  namespace: 'default',
}
const configMaps: Resource = { group: '', version: 'v1', resource: 'configmaps' }

const kubeletPort = 10250
const kubeletTimeoutMs = 3000

/** Returns the facts of a cluster. */
export function approvalFactsOf(cluster: Cluster, clock: Clock): ApprovalFacts {
  const known = once(async () => {
    const listed = await readable(all(cluster, nodes))
    return listed && factsOfNodes(listed.map(nodeOf))
  })
  const addresses = once(() => clusterAddresses(cluster))
  const kubeletCas = once(async () => {
    const data = await configMapData(cluster, 'kube-system', 'kube-root-ca.crt')
    return data?.['ca.crt'] === undefined ? undefined : readCertificates(Buffer.from(data['ca.crt']))
  })
  const answers = new Map<string, Promise<boolean | undefined>>()
  return {
    isAllowed(question: AccessQuestion) {
      const key = JSON.stringify(question)
      const asked = answers.get(key) ?? cluster.access.isAllowed(question)
      answers.set(key, asked)
      // A failure is no answer: the next one who asks tries again.
      asked.catch(() => answers.delete(key))
      return asked
    },
    findNode: async (name) => (await known())?.findNode(name),
    findNodesAt: async (address) => (await known())?.findNodesAt(address),
    readClusterAddresses: addresses,
    async readServedCertificate(node) {
      const cas = await kubeletCas()
      return cas && servedBy(node, cas, clock)
    },
  }
}

/** Returns what `look` found the first time; what failed is looked up again. */
function once<Result>(look: () => Promise<Result>): () => Promise<Result> {
  let found: Promise<Result> | undefined
  return () => {
    found ??= look().catch((error: unknown) => {
      found = undefined
      throw error
    })
    return found
  }
}

async function all(cluster: Cluster, resource: Resource, selector?: string): Promise<Object[]> {
  const found = []
  const selection = selector === undefined ? {} : { labelSelector: selector }
  for await (const object of cluster.objects.list(resource, selection)) found.push(object)
  return found
}

/** Undefined where we may not look, or the cluster has no such kind. */
async function readable<Result>(reading: Promise<Result>): Promise<Result | undefined> {
  try {
    return await reading
  } catch (error) {
    const isRefused =
      error instanceof KcertError &&
      (error.code === 'KCERT_API_FORBIDDEN' || error.code === 'KCERT_API_NOT_FOUND')
    if (isRefused) return undefined
    throw error
  }
}

function nodeOf(object: Object): NodeFacts {
  const { metadata, status } = object as {
    metadata?: { name?: string; labels?: Record<string, string> }
    status?: { addresses?: { type?: string; address?: string }[] }
  }
  return {
    name: metadata?.name ?? '',
    addresses: (status?.addresses ?? []).map(({ type = '', address = '' }) => ({ type, address })),
    isControlPlane: Object.hasOwn(metadata?.labels ?? {}, 'node-role.kubernetes.io/control-plane'),
  }
}

/**
 * Where clients reach API servers and services: the ServiceCIDRs (Kubernetes 1.33), the endpoints of the Service "kubernetes", the
 * server of kubeadm's cluster-info, and the one that we ask ourselves.
 */
async function clusterAddresses(cluster: Cluster): Promise<ClusterAddresses | undefined> {
  const [cidrs, endpoints, info] = await Promise.all([
    readable(all(cluster, serviceCidrs)),
    readable(all(cluster, slices, 'kubernetes.io/service-name=kubernetes')),
    configMapData(cluster, 'kube-public', 'cluster-info'),
  ])
  if (cidrs === undefined || endpoints === undefined) return undefined
  const ranges = cidrs.flatMap((one) => (one as { spec?: { cidrs?: string[] } }).spec?.cidrs ?? [])
  const servers = endpoints.flatMap((one) =>
    ((one as { endpoints?: { addresses?: string[] }[] }).endpoints ?? []).flatMap(
      ({ addresses = [] }) => addresses,
    ),
  )
  const urls = [cluster.server, ...(info?.kubeconfig?.match(/^\s*server:\s*"?\S+/gm) ?? [])]
  const hosts = urls.flatMap((text) => URL.parse(text.replace(/^\s*server:\s*"?|"$/g, ''))?.hostname ?? [])
  return {
    apiServers: [...new Set([...servers, ...hosts.map((host) => host.replace(/^\[|\]$/g, ''))])],
    serviceCidrs: ranges,
  }
}

async function configMapData(
  cluster: Cluster,
  namespace: string,
  name: string,
): Promise<Record<string, string> | undefined> {
  const found = await readable(cluster.objects.get({ ...configMaps, namespace, name }))
  return found?.data as Record<string, string> | undefined
}

/** What the kubelet of a node shows on its port; undefined when it cannot be reached from here. */
async function servedBy(
  node: NodeFacts,
  cas: readonly Certificate[],
  clock: Clock,
): Promise<ServedCertificate | 'none' | undefined> {
  const host = ['InternalIP', 'ExternalIP', 'Hostname']
    .map((wanted) => node.addresses.find(({ type }) => type === wanted)?.address)
    .find((address) => address !== undefined)
  if (host === undefined) return 'none'
  const [{ readServed }, { verifyChain }, { CertificatePool }] = await Promise.all([
    import('../tls/served.ts'),
    import('../x509/chain.ts'),
    import('../x509/certificate-pool.ts'),
  ])
  let chain: readonly Certificate[]
  try {
    const endpoint = { name: `${node.name}:${kubeletPort}`, host, port: kubeletPort }
    chain = readCertificates((await readServed(endpoint, kubeletTimeoutMs)).bytes)
  } catch (error) {
    if (error instanceof KcertError) return undefined
    throw error
  }
  const [certificate, ...intermediates] = chain
  if (certificate === undefined) return 'none'
  const verdict = verifyChain({
    leaf: certificate,
    roots: new CertificatePool(cas),
    intermediates: new CertificatePool(intermediates),
    at: clock(),
    purpose: 'server',
  })
  return verdict.trusted
    ? { certificate, isTrusted: true }
    : { certificate, isTrusted: false, reason: verdict.refusal.code }
}
