import { type ClusterInfo, signatureState } from '../../bootstrap/cluster-info.ts'
import { pinOf } from '../../bootstrap/pin.ts'
import type { BootstrapToken } from '../../bootstrap/token.ts'
import { type Cluster, type ConnectionOptions, openPlace } from '../../cluster/cluster.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { parseEndpoint } from '../../tls/endpoint.ts'
import { writeCertificates } from '../../x509/certificate.ts'
import { clusterInfoOf, clusterInfoPlace, joiningServer } from './objects.ts'

/** The information that a joining node has. */
export interface DiscoverySettings {
  readonly token: BootstrapToken
  /** One of them must match a CA in cluster-info. */
  readonly pins: readonly string[]
}

export interface DiscoveredCluster {
  readonly info: ClusterInfo
  readonly server: string
  /** Why it is trusted. */
  readonly proof: string[]
}

/**
 * Returns the content of cluster-info, read with a kubeconfig and verified by the token's signature and, if given, a public key
 * pin.
 */
export async function discoverBy(cluster: Cluster, settings: DiscoverySettings): Promise<DiscoveredCluster> {
  const { info } = await clusterInfoOf(cluster)
  const { server, proof } = provenServer(info, settings)
  const { skipsTlsVerify } = cluster.connection()
  if (skipsTlsVerify && settings.pins.length === 0)
    throw unproven(
      'the kubeconfig has insecure-skip-tls-verify, and --pin is not given',
      'any server could have answered',
    )
  return {
    info,
    server,
    proof: skipsTlsVerify ? proof : [...proof, 'read from a server that the CA of your kubeconfig verifies'],
  }
}

/**
 * Returns the same from only an address, a token and a pin, as kubeadm join does. It reads cluster-info from an unverified
 * server, verifies signature and pin, and reads it again from a server that these CAs verify. Both must be byte-identical.
 */
export async function discoverAt(
  place: string,
  settings: DiscoverySettings,
  options: ConnectionOptions,
): Promise<DiscoveredCluster> {
  const endpoint = parseEndpoint(place)
  if (endpoint === undefined)
    throw new KcertError('KCERT_USAGE', `invalid --server ${JSON.stringify(place)}`, {
      why: 'it must be HOST:PORT',
      next: '--server api.example.com:6443',
    })
  const server = `https://${endpoint.name}`
  const unverified = await readAt({ server, skipsTlsVerify: true, certificateAuthority: undefined }, options)
  const proven = provenServer(unverified, settings)
  const pem = writeCertificates(unverified.cas)
  const verified = await readAt(
    { server, skipsTlsVerify: false, certificateAuthority: Buffer.from(pem) },
    options,
  )
  if (verified.kubeconfig !== unverified.kubeconfig)
    throw unproven(
      `${server} serves different versions of ${clusterInfoPlace} with and without TLS verification`,
      'another program intercepts the connection, or cluster-info changed between the two requests',
    )
  return {
    info: unverified,
    server: proven.server,
    proof: [...proven.proof, `read again from ${server}, verified by its CAs`],
  }
}

async function readAt(
  place: Parameters<typeof openPlace>[0],
  options: ConnectionOptions,
): Promise<ClusterInfo> {
  const cluster = openPlace(place, undefined, options)
  try {
    return (await clusterInfoOf(cluster)).info
  } catch (error) {
    if (error instanceof KcertError && error.code === 'KCERT_API_FORBIDDEN') throw hidden(error)
    throw error
  } finally {
    cluster.close()
  }
}

function provenServer(
  info: ClusterInfo,
  { token, pins }: DiscoverySettings,
): Omit<DiscoveredCluster, 'info'> {
  const { cas } = info
  const server = joiningServer(info)
  const state = signatureState(info, token)
  if (state === 'missing')
    throw unproven(
      `${clusterInfoPlace} is not signed by token ${token.id}`,
      'the token has expired, lacks the usage signing, or belongs to another cluster; for a new token, the signature appears within seconds',
    )
  if (state === 'stale')
    throw unproven(
      `the signature of token ${token.id} does not match the content of ${clusterInfoPlace}`,
      'the token is mistyped, or belongs to another cluster',
    )
  const signed = `signed by token ${token.id}`
  if (pins.length === 0) return { server, proof: [signed] }
  const met = cas.map(pinOf).find((pin) => pins.includes(pin))
  if (met !== undefined) return { server, proof: [signed, `its CA has the pin ${met}`] }
  throw unproven(
    `no CA of ${clusterInfoPlace} has one of the pins`,
    `they have: ${cas.map(pinOf).join(', ')}`,
  )
}

/** Joining nodes are not authenticated yet; they may read only this one object. */
function hidden(cause: KcertError): KcertError {
  return new KcertError('KCERT_API_FORBIDDEN', `joining nodes may not read ${clusterInfoPlace}`, {
    why: 'unauthenticated clients (system:anonymous) have no permission to read it; an administrator can grant it',
    next: 'kcert bootstrap rbac -o yaml | kubectl apply -f -',
    cause,
  })
}

function unproven(what: string, why: string): KcertError {
  return new KcertError('KCERT_CLUSTER_INFO_UNPROVEN', what, {
    why,
    next: 'kcert cluster-info pin',
  })
}
