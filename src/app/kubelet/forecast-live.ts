import pMap from 'p-map'
import type { Cluster } from '../../cluster/cluster.ts'
import { type NodeObject, resources } from '../../cluster/kinds.ts'
import type { ApiObject } from '../../cluster/malformed.ts'
import { listEach, listReadable } from '../../cluster/readable.ts'
import { issuedCertificate, stateOf } from '../../csr/life.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { RequestObject } from '../../csr/requests-api.ts'
import { kubeletClient, kubeletServing } from '../../csr/signers.ts'
import { readRequestContent, type SigningRequest } from '../../csr/signing-request.ts'
import { hostPort } from '../../errors/host-port.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import {
  type ControllerManagerFacts,
  type KubeletFacts,
  type SeenCertificate,
  seenCertificate,
  signingDurationMs,
} from '../../kubelet/forecast.ts'
import { foreignSubjectOf, nodeUserPrefix } from '../../pki/kubelet.ts'
import { nodeHost } from '../../pki/node-address.ts'
import type { Clock } from '../../system/clock.ts'
import { readServed } from '../../tls/served.ts'
import { type Certificate, readCertificates } from '../../x509/certificate.ts'

// What `kcert kubelet forecast` reads from a live cluster.

const nodesAtOnce = 16
/** Kubelet metrics: the remaining lifetime of a certificate. */
export const ttlMetrics = {
  client: 'kubelet_certificate_manager_client_ttl_seconds',
  server: 'kubelet_certificate_manager_server_ttl_seconds',
} as const
/** Certificates that expire within this time of one another are treated as the same. */
const sameEndMs = 10_000

export interface LiveOptions {
  readonly clock: Clock
  /** The timeout of a handshake. */
  readonly timeoutMs: number
  /** Only these nodes; empty means all. */
  readonly only: readonly string[]
}

/** Returns the facts of the cluster's kubelets. Throws if the Nodes cannot be listed. */
export async function liveFacts(
  cluster: Cluster,
  options: LiveOptions,
): Promise<{ kubelets: KubeletFacts[]; controllerManagers: ControllerManagerFacts[] }> {
  const nodes = await Array.fromAsync(listEach(cluster.objects, resources.nodes))
  const wanted = nodes.filter(
    ({ metadata }) => options.only.length === 0 || options.only.includes(metadata.name),
  )
  const missing = options.only.find((name) => !nodes.some(({ metadata }) => metadata.name === name))
  if (missing !== undefined)
    throw new KcertError('KCERT_API_NOT_FOUND', `there is no Node ${JSON.stringify(missing)}`, {
      next: 'kubectl get nodes',
    })
  const [requests, controllerManagers] = await Promise.all([
    kubeletRequests(cluster),
    controllerManagersOf(cluster),
  ])
  const kubelets = await pMap(wanted, (node) => factsOf(cluster, node, requests, options), {
    concurrency: nodesAtOnce,
  })
  return { kubelets, controllerManagers }
}

interface KubeletRequest {
  readonly node: string
  readonly usage: SeenCertificate['usage']
  readonly object: SigningRequest
  readonly issued: Certificate | undefined
}

/** Returns undefined if listing them is forbidden. */
async function kubeletRequests({ requests }: Cluster): Promise<KubeletRequest[] | undefined> {
  try {
    const found: RequestObject[] = []
    for (const signerName of [kubeletClient, kubeletServing])
      for await (const object of requests.list({ signerName })) found.push(object)
    return requestsOfKubelets(found)
  } catch (error) {
    if (error instanceof KcertError && error.code === 'KCERT_API_FORBIDDEN') return undefined
    throw error
  }
}

/** Returns the requests for certificates of kubelets, from any requester. */
export function requestsOfKubelets(objects: readonly RequestObject[]): KubeletRequest[] {
  return objects.flatMap((each): KubeletRequest[] => {
    const object = signingRequestOfObject(each)
    const usage = { [kubeletClient]: 'client', [kubeletServing]: 'serving' }[object.signerName] as
      | SeenCertificate['usage']
      | undefined
    const name = readRequestContent(object.request).request?.subject.commonName ?? ''
    if (usage === undefined || !name.startsWith(nodeUserPrefix)) return []
    return [{ node: name.slice(nodeUserPrefix.length), usage, object, issued: issuedCertificate(object) }]
  })
}

/** Returns the pending requests. */
export function pendingOf(requests: readonly KubeletRequest[], node: string): KubeletFacts['pending'] {
  return requests.flatMap(({ node: of, usage, object }) => {
    const state = stateOf(object)
    if (of !== node || (state !== 'pending' && state !== 'approved')) return []
    const { name = '', creationTimestamp } = object
    return [{ name, usage, state, ...(creationTimestamp === undefined ? {} : { creationTimestamp }) }]
  })
}

async function factsOf(
  cluster: Cluster,
  node: NodeObject,
  requests: KubeletRequest[] | undefined,
  { clock, timeoutMs }: LiveOptions,
): Promise<KubeletFacts> {
  const name = node.metadata.name
  const unread: string[] = requests === undefined ? ['not allowed to list CertificateSigningRequests'] : []
  const read = async <Result>(what: string, act: () => Promise<Result>): Promise<Result | undefined> => {
    try {
      return await act()
    } catch (error) {
      const { message, why } = error as KcertError
      unread.push(`${what} could not be read: ${why ?? message}`)
      return undefined
    }
  }
  const [configuration, metrics, served] = await Promise.all([
    read('its configuration', async () => configurationIn(await cluster.nodeProxy.get(name, 'configz'))),
    read('its metrics', async () => ({
      text: await cluster.nodeProxy.get(name, 'metrics'),
      atMs: clock().getTime(),
    })),
    read('its serving certificate', () => servedBy(node, timeoutMs)),
  ])
  const own = (requests ?? []).filter((one) => one.node === name)
  /**
   * Reads the expiry from the kubelet's own metric, which exists if the kubelet renews such a certificate. +Inf means no
   * certificate.
   */
  const endOf = (which: keyof typeof ttlMetrics, isRenewed = false): number | undefined => {
    if (metrics === undefined) return undefined
    const ttl = new RegExp(`^${ttlMetrics[which]} (\\S+)$`, 'm').exec(metrics.text)?.[1]
    if (ttl === undefined && isRenewed) unread.push(`its metrics have no ${ttlMetrics[which]}`)
    return Number.isFinite(Number(ttl)) ? metrics.atMs + Number(ttl) * 1000 : undefined
  }
  const client = clientCertificate(own, endOf('client', configuration?.rotateCertificates))
  const byMetric =
    served === undefined || served.stranger !== undefined
      ? servingByMetric(endOf('server', configuration?.serverTlsBootstrap))
      : undefined
  return {
    name,
    configuration,
    certificates: [client, served, byMetric].filter((one) => one !== undefined),
    pending: pendingOf(own, name),
    unread,
  }
}

function configurationIn(text: string): KubeletFacts['configuration'] {
  const { kubeletconfig } = JSON.parse(text) as { kubeletconfig?: ApiObject }
  // A response of another program is not evidence about the kubelet, such as that it does not rotate.
  if (kubeletconfig === undefined) throw new Error('the response is not from a kubelet')
  const { rotateCertificates, serverTLSBootstrap, tlsCertFile } = kubeletconfig
  return {
    // This is the kubelet's running configuration: an absent field means off.
    rotateCertificates: rotateCertificates === true,
    serverTlsBootstrap: serverTLSBootstrap === true,
    tlsCertFile: typeof tlsCertFile === 'string' && tlsCertFile !== '' ? tlsCertFile : undefined,
  }
}

/**
 * Returns the certificate from its CertificateSigningRequest, if that still exists; it is deleted one hour after it was issued.
 */
function clientCertificate(
  requests: readonly KubeletRequest[],
  endMs: number | undefined,
): SeenCertificate | undefined {
  const [latest] = requests
    .flatMap(({ usage, issued, object }) => (usage === 'client' && issued ? [{ issued, object }] : []))
    .filter(({ issued }) => endMs === undefined || Math.abs(issued.notAfterMs - endMs) < sameEndMs)
    .sort((one, other) => other.issued.notAfterMs - one.issued.notAfterMs)
  if (latest !== undefined) {
    const location = `csr/${latest.object.name}`
    return seenCertificate(latest.issued, { usage: 'client', source: 'request', location })
  }
  if (endMs === undefined) return undefined
  return { usage: 'client', source: 'metric', notBeforeMs: undefined, notAfterMs: endMs, isSelfSigned: false }
}

function servingByMetric(endMs: number | undefined): SeenCertificate | undefined {
  if (endMs === undefined) return undefined
  return {
    usage: 'serving',
    source: 'metric',
    notBeforeMs: undefined,
    notAfterMs: endMs,
    isSelfSigned: false,
  }
}

async function servedBy(
  { metadata, status }: NodeObject,
  timeoutMs: number,
): Promise<SeenCertificate | undefined> {
  const host = nodeHost(status?.addresses)
  if (host === undefined) return undefined
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 10_250
  const location = hostPort(host, port)
  const { bytes } = await readServed({ name: `${metadata.name} (${location})`, host, port }, timeoutMs)
  const [leaf] = readCertificates(bytes)
  if (leaf === undefined) return undefined
  const stranger = foreignSubjectOf(leaf.subject, metadata.name)
  return {
    ...seenCertificate(leaf, { usage: 'serving', source: 'handshake', location }),
    ...(stranger === undefined ? {} : { stranger }),
  }
}

async function controllerManagersOf({ objects }: Cluster): Promise<ControllerManagerFacts[]> {
  const pods = await listReadable(
    objects,
    { ...resources.pods, namespace: 'kube-system' },
    { labelSelector: 'component=kube-controller-manager' },
  )
  return (pods ?? []).map(({ metadata, spec }) => {
    const argv = spec?.containers?.flatMap(({ command = [], args = [] }) => [...command, ...args]) ?? []
    return {
      ...(spec?.nodeName === undefined ? {} : { node: spec.nodeName }),
      location: `pod/${metadata.name}`,
      clusterSigningDurationMs: signingDurationMs(argv),
    }
  })
}
