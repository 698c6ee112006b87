import { setTimeout as pauseFor } from 'node:timers/promises'
import type { RequestsApi } from '../csr/requests-api.ts'
import { commandLine } from '../errors/command-line.ts'
import { hostPort, isLoopback } from '../errors/host-port.ts'
import type { Clock } from '../system/clock.ts'
import { readFile } from '../system/files.ts'
import type { RandomBytes } from '../system/random.ts'
import { type AccessApi, accessOf } from './access.ts'
import { ApiClient, type Pause } from './api-client.ts'
import { type Connection, connectionOf } from './connection.ts'
import { bareHost, type ClientPair, Credentials, describeUser, type UserDescription } from './credentials.ts'
import type { Surroundings } from './exec-credential.ts'
import { Failures } from './failures.ts'
import { readKubeconfigs, type SelectedContext, selectContext, unusable } from './kubeconfig-files.ts'
import { type NodeProxy, nodeProxyOf } from './node-proxy.ts'
import { type ObjectsApi, objectsOf } from './objects.ts'
import { type Overrides, withOverrides } from './overrides.ts'
import { requestsOf } from './requests.ts'
import { Transport, type Way } from './transport.ts'
import { watchOf } from './watch.ts'

export interface ClusterOptions extends ConnectionOptions {
  /** Kubeconfigs, merged as kubectl does. */
  readonly files: readonly string[]
  /** False for default places. Without any file, a pod's service account is taken. */
  readonly filesMustExist: boolean
  readonly context?: string
  /** Names in the kubeconfig, instead of those of the context. */
  readonly cluster?: string
  readonly user?: string
  readonly overrides?: Overrides
}

export interface ConnectionOptions {
  /** For one request; 0 for no end. */
  readonly requestTimeoutMs: number
  readonly surroundings: Surroundings
  readonly clock: Clock
  readonly random: RandomBytes
  /** Told of a kubeconfig that leads to a server which is not verified. */
  readonly warn?: (text: string) => void
  /** Instead of waiting; for tests. */
  readonly pause?: Pause
}

/** A cluster that is reached over its API server. Nothing is sent before the first call. */
export interface Cluster {
  /** The URL of the API server. */
  readonly server: string
  readonly contextName: string
  /** Of the context, as kubectl would take it. */
  readonly namespace: string
  /** Who asks, without anything secret; of a client certificate more is known once a request was made. */
  readonly user: UserDescription
  /** How others reach it; reads the CA's file where it is one. Throws KCERT_KUBECONFIG_UNUSABLE. */
  connection(): Connection
  /** Returns the client certificate with its key, to show it to other servers; undefined for a user who has none. */
  clientPair(): Promise<ClientPair | undefined>
  readonly requests: RequestsApi
  readonly objects: ObjectsApi
  readonly access: AccessApi
  readonly nodeProxy: NodeProxy
  /** Returns the objects as another API server of the cluster tells of them, to the same user. */
  through(way: Way): Pick<ObjectsApi, 'list'>
  /** Ends all connections. */
  close(): void
}

const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * Returns the cluster that the kubeconfigs lead to, or the one that this pod runs in. Throws KCERT_KUBECONFIG_UNUSABLE,
 * KCERT_FILE_NOT_FOUND and KCERT_FILE_UNREADABLE. The server is not asked yet.
 */
export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const selected = await select(options)
  refuseInsecureBesideCa(selected)
  const cluster = openSelected(selected, options)
  const warning = unverifiedWarning(selected, new URL(cluster.server))
  if (warning !== undefined) options.warn?.(warning)
  return cluster
}

/** client-go refuses both together: which of the two counts would be a guess. */
function refuseInsecureBesideCa({ cluster, contextName, files, source }: SelectedContext): void {
  const ca = ['certificate-authority-data', 'certificate-authority'].find((field) => cluster[field])
  if (ca === undefined || cluster['insecure-skip-tls-verify'] !== true) return
  const what = `context ${JSON.stringify(contextName)} of ${source} has both ${ca} and insecure-skip-tls-verify`
  throw unusable(what, {
    why: 'kubectl refuses both together: remove insecure-skip-tls-verify, or the CA',
    next: commandLine`kcert inspect ${files}`,
  })
}

function unverifiedWarning({ cluster, contextName }: SelectedContext, server: URL): string | undefined {
  const of = `context ${JSON.stringify(contextName)}`
  if (server.protocol === 'http:') {
    // kubectl proxy listens there.
    if (isLoopback(bareHost(server))) return undefined
    return `${server.origin} is not verified: ${of} uses plain HTTP, so any server can answer; no credentials are sent`
  }
  if (cluster['insecure-skip-tls-verify'] !== true) return undefined
  return `${server.origin} is not verified: ${of} sets insecure-skip-tls-verify, so any server that answers receives your credentials`
}

/** The part of a connection that identifies the server. */
export type Place = Pick<Connection, 'server' | 'certificateAuthority' | 'skipsTlsVerify'> &
  Partial<Pick<Connection, 'tlsServerName' | 'proxyUrl'>>

/** Returns a cluster that no kubeconfig leads to, with the bearer token, or anonymously without one. */
export function openPlace(
  place: Place,
  bearerToken: string | undefined,
  options: ConnectionOptions,
): Cluster {
  const { server, certificateAuthority: ca, skipsTlsVerify, tlsServerName, proxyUrl } = place
  const cluster = {
    server,
    ...(ca && !skipsTlsVerify ? { 'certificate-authority-data': Buffer.from(ca).toString('base64') } : {}),
    ...(skipsTlsVerify ? { 'insecure-skip-tls-verify': true } : {}),
    ...(tlsServerName === undefined ? {} : { 'tls-server-name': tlsServerName }),
    ...(proxyUrl === undefined ? {} : { 'proxy-url': proxyUrl }),
  }
  const names = {
    contextName: server,
    clusterName: server,
    userName: 'bootstrap',
    files: [server],
    source: server,
    kubectl: commandLine`kubectl`,
  }
  const user = bearerToken === undefined ? {} : { token: bearerToken }
  return openSelected({ ...names, cluster, user }, options)
}

function openSelected(selected: SelectedContext, options: ConnectionOptions): Cluster {
  const { surroundings, clock, random, requestTimeoutMs, pause = waiting } = options
  const server = serverOf(selected)
  const { contextName, files, kubectl } = selected
  const credentials = new Credentials(server, selected, surroundings, clock)
  const user = (): UserDescription => describeUser(selected, credentials.certificate)
  const transport = new Transport(server, requestTimeoutMs)
  const failures = new Failures({
    server,
    credentials,
    clock,
    kubectl,
    files,
    user,
    timeoutMs: requestTimeoutMs,
  })
  const clientOver = (over: Transport) =>
    new ApiClient({ transport: over, credentials, failures, random, pause })
  const client = clientOver(transport)
  const objects = { ...objectsOf(client, pause), watch: watchOf(client, pause) }
  return {
    server: server.href,
    contextName,
    namespace: selected.namespace || 'default',
    get user() {
      return user()
    },
    connection: () => connectionOf(selected),
    clientPair: () => credentials.clientPair(),
    requests: requestsOf(objects),
    objects,
    access: accessOf(client),
    nodeProxy: nodeProxyOf(client),
    through: (way) => objectsOf(clientOver(new Transport(server, requestTimeoutMs, way)), pause),
    close: () => transport.close(),
  }
}

async function select(options: ClusterOptions): Promise<SelectedContext> {
  const { files, filesMustExist, surroundings, context, cluster, user, overrides = {} } = options
  const merged = await readKubeconfigs(files, { mustExist: filesMustExist })
  const asked = { context, cluster, user, server: overrides.server }
  const isEmpty = merged.contexts.size === 0 && merged.clusters.size === 0
  if (!isEmpty || filesMustExist || overrides.server !== undefined)
    return withOverrides(selectContext(merged, asked), overrides)
  const isNamed = [context, cluster, user].some((name) => name !== undefined)
  const pod = isNamed ? undefined : podContext(surroundings.env)
  if (pod !== undefined) return withOverrides(pod, overrides)
  throw unusable('no cluster configured (set KUBECONFIG or --kubeconfig)', {
    why: files.length === 0 ? 'HOME is not set' : `no cluster in ${files.join(', ')}`,
    next: '--kubeconfig /etc/kubernetes/admin.conf',
  })
}

/** Returns what a kubeconfig for the service account of the pod would say that this runs in; undefined outside of pods. */
function podContext({
  KUBERNETES_SERVICE_HOST: host,
  KUBERNETES_SERVICE_PORT: port,
}: Surroundings['env']): SelectedContext | undefined {
  const tokenFile = `${serviceAccount}/token`
  if (!host || !port || 'reason' in readFile(tokenFile)) return undefined
  return {
    contextName: 'in-cluster',
    clusterName: 'in-cluster',
    userName: 'service account of the pod',
    cluster: {
      server: `https://${hostPort(host, port)}`,
      'certificate-authority': `${serviceAccount}/ca.crt`,
    },
    user: { tokenFile },
    files: [tokenFile],
    source: tokenFile,
    kubectl: commandLine`kubectl`,
  }
}

function serverOf(selected: SelectedContext): URL {
  const text = String(selected.cluster.server)
  // client-go takes "host:port" for https as well.
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)
  if (url?.username || url?.password) {
    const what = `the server of context ${JSON.stringify(selected.contextName)} contains a password in its URL`
    throw unusable(what, {
      why: 'messages and logs contain the URL: write the credential to "users" of the kubeconfig instead',
      next: commandLine`kcert inspect ${selected.files}`,
    })
  }
  if (url !== null && (url.protocol === 'https:' || url.protocol === 'http:')) return url
  const what = `the server ${JSON.stringify(text)} of context ${JSON.stringify(selected.contextName)} is not a URL`
  throw unusable(what, {
    why: 'the form is https://HOST:PORT',
    next: commandLine`kcert inspect ${selected.files}`,
  })
}

async function waiting(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await pauseFor(milliseconds, undefined, signal && { signal })
}
