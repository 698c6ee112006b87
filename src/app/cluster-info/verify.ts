import pMap from 'p-map'
import type { ClusterInfoVerification } from '../../bootstrap/cluster-info-report.ts'
import {
  type PublishedCas,
  type ServedFacts,
  verifyClusterInfo,
} from '../../bootstrap/cluster-info-verification.ts'
import { announcedBy, announcedIn, announcements } from '../../cluster/announced-servers.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { getReadable, listReadable } from '../../cluster/readable.ts'
import { hostPort } from '../../errors/host-port.ts'
import type { Clock } from '../../system/clock.ts'
import { parseEndpoint } from '../../tls/endpoint.ts'
import { servedCertificates } from '../../tls/served.ts'
import { readCertificates } from '../../x509/certificate.ts'
import { clusterInfoOf, clusterInfoResource, tokensOf } from '../bootstrap/objects.ts'

export interface VerificationSettings {
  /** CA files to compare it with. */
  readonly published: readonly PublishedCas[]
  readonly timeoutMs: number
  /** False: reads no Secrets, and does not verify the signatures (default true). */
  readonly readTokens?: boolean
}

/** Compares cluster-info with its tokens, the running API servers, the CAs that the cluster publishes, and files. */
export async function verifyClusterInfoOn(
  cluster: Cluster,
  { published, timeoutMs, readTokens = true }: VerificationSettings,
  clock: Clock,
): Promise<ClusterInfoVerification> {
  const now = clock()
  const [{ info }, tokens, root, isPublic, places] = await Promise.all([
    clusterInfoOf(cluster),
    readTokens ? tokensOf(cluster, now) : undefined,
    publishedRoot(cluster),
    cluster.access.isAllowed({
      user: 'system:anonymous',
      groups: ['system:unauthenticated'],
      extra: {},
      resource: { ...clusterInfoResource, subresource: '', verb: 'get' },
    }),
    apiServerPlaces(cluster),
  ])
  const all = new Set([...(info.server === undefined ? [] : [info.server]), cluster.server, ...places])
  return verifyClusterInfo({
    info,
    tokens: tokens?.signing,
    served: await readServedAt([...all], timeoutMs),
    published: [...(root === undefined ? [] : [root]), ...published],
    isPublic,
    now,
  })
}

/** Returns the chains that servers at these addresses (URLs, or HOST:PORT) present, each endpoint once. */
export async function readServedAt(places: readonly string[], timeoutMs: number): Promise<ServedFacts[]> {
  const endpoints = new Map(
    places.flatMap((place) => {
      const endpoint = parseEndpoint(place.replace(/\/$/, ''))
      return endpoint === undefined ? [] : [[endpoint.name, endpoint] as const]
    }),
  )
  return pMap(
    [...endpoints.values()],
    async (endpoint): Promise<ServedFacts> => {
      const { name: place, host } = endpoint
      try {
        return { place, host, chain: await servedCertificates(endpoint, timeoutMs) }
      } catch (error) {
        const { why, message } = error as Error & { why?: string }
        return { place, host, fault: why ?? message }
      }
    },
    { concurrency: 16 },
  )
}

async function publishedRoot({ objects }: Cluster): Promise<PublishedCas | undefined> {
  const found = await getReadable(objects, { ...clusterInfoResource, name: 'kube-root-ca.crt' })
  if (found === undefined || found === 'absent') return undefined
  const pem = found.data?.['ca.crt'] ?? ''
  try {
    const certificates = readCertificates(Buffer.from(pem))
    return { place: 'ConfigMap kube-root-ca.crt of kube-public', certificates }
  } catch {
    // `kcert inspect` reports content that is not a certificate; here there is nothing to compare.
    return undefined
  }
}

/** Returns the address of each API server in the EndpointSlice; none if reading it is forbidden. */
export async function apiServerPlaces({ objects }: Cluster): Promise<string[]> {
  const slices = await listReadable(objects, announcements, announcedBy)
  return (slices ?? []).flatMap(announcedIn).map(({ host, port }) => hostPort(host, port))
}
