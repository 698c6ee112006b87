import type { RequestsApi } from '../csr/requests-api.ts'
import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { hostPort, isLoopback } from '../errors/host-port.ts'
import type { Clock } from '../system/clock.ts'
import { readFile } from '../system/files.ts'
import type { RandomBytes } from '../system/random.ts'
import { type AccessApi, accessOf } from './access.ts'
import { type ApiCall, ApiClient, type Pause } from './api-client.ts'
import { type Connection, connectionOf } from './connection.ts'
import { bareHost, type ClientPair, Credentials, describeUser, type UserDescription } from './credentials.ts'
import type { Surroundings } from './exec-credential.ts'
import { Failures } from './failures.ts'
import { readKubeconfigs, type SelectedContext, selectContext, unusable } from './kubeconfig-files.ts'
import type { ApiObject } from './malformed.ts'
import { type NodeProxy, nodeProxyOf, textOf } from './node-proxy.ts'
import { type ObjectsApi, objectsOf } from './objects.ts'
import { type Overrides, withOverrides } from './overrides.ts'
import { type PodExec, podExecOf } from './pod-exec.ts'
import { requestsOf } from './requests.ts'
import { waiting } from './resting.ts'
import { type Route, Transport } from './transport.ts'
import { watchOf } from './watch.ts'

export interface ClusterOptions extends ConnectionOptions {
  /** Kubeconfigs, merged as kubectl does. */
  readonly files: readonly string[]
  /** False for default paths. Without any file, kcert uses the pod's service account. */
  readonly filesMustExist: boolean
  readonly context?: string
  /** Names in the kubeconfig that replace those of the context. */
  readonly cluster?: string
  readonly user?: string
  readonly overrides?: Overrides
}

export interface ConnectionOptions {
  /** Timeout of one request; 0 for none. */
  readonly requestTimeoutMs: number
  readonly surroundings: Surroundings
  readonly clock: Clock
  readonly random: RandomBytes
  /** Receives a warning about a kubeconfig that disables verification of the server. */
  readonly warn?: (text: string) => void
  /** The limit of a page of a list (default 16 MiB), for a process with little memory. One object may have eight times as many bytes. */
  readonly mostPageBytes?: number
  /** Ends all requests, pauses and credential programs. */
  readonly signal?: AbortSignal
  /** Receives the number of bytes of each response. */
  readonly onBytes?: (count: number) => void
  /** Replaces waiting in tests. */
  readonly pause?: Pause
}

/** The objects, and the JSON or text of any path, as one API server serves them. */
export interface OneApiServer extends Pick<ObjectsApi, 'list' | 'create'> {
  read(path: string): Promise<ApiObject>
  text(path: string): Promise<string>
}

/** A cluster reached through its API server. Nothing is sent before the first call. */
export interface Cluster {
  /** The URL of the API server. */
  readonly server: string
  readonly contextName: string
  /** The namespace of the context, as kubectl uses it. */
  readonly namespace: string
  /** The user, without secrets. Details of a client certificate are available after the first request. */
  readonly user: UserDescription
  /** Returns how other clients reach the cluster. Reads the CA file if there is one. Throws KCERT_KUBECONFIG_UNUSABLE. */
  connection(): Connection
  /** Returns the client certificate and its key, to present to other servers; undefined for a user without one. */
  clientPair(): Promise<ClientPair | undefined>
  readonly requests: RequestsApi
  readonly objects: ObjectsApi
  readonly access: AccessApi
  readonly nodeProxy: NodeProxy
  readonly podExec: PodExec
  /** Returns the same server for a client certificate, verified with these CAs in PEM. The caller closes it. */
  as(client: ClientPair, certificateAuthority: string): Cluster
  /** Returns another API server of the cluster, for the same user. */
  through(route: Route): OneApiServer
  /** Closes all connections. */
  close(): void
}

const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * Returns the cluster that the kubeconfigs select, or the one that this pod runs in. Throws KCERT_KUBECONFIG_UNUSABLE,
 * KCERT_FILE_NOT_FOUND and KCERT_FILE_UNREADABLE. Sends no request yet.
 */
export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  return openContext(await select(options), options)
}

/** Returns the cluster of a context that was selected before. Throws KCERT_KUBECONFIG_UNUSABLE. Sends no request yet. */
export function openContext(selected: SelectedContext, options: ConnectionOptions): Cluster {
  refuseInsecureBesideCa(selected)
  const cluster = openSelected(selected, options)
  const warning = unverifiedWarning(selected, new URL(cluster.server))
  if (warning !== undefined) options.warn?.(warning)
  return cluster
}

/** client-go refuses a CA together with insecure-skip-tls-verify. Choosing one of the two would be a guess. */
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
    // kubectl proxy listens on loopback addresses.
    if (isLoopback(bareHost(server))) return undefined
    return `${server.origin} is not verified: ${of} uses plain HTTP, so any server can answer; no credentials are sent`
  }
  if (cluster['insecure-skip-tls-verify'] !== true) return undefined
  return `${server.origin} is not verified: ${of} sets insecure-skip-tls-verify, so any server that answers receives your credentials`
}

/** The part of a connection that identifies the server. */
export type Place = Pick<Connection, 'server' | 'certificateAuthority' | 'skipsTlsVerify'> &
  Partial<Pick<Connection, 'tlsServerName' | 'proxyUrl'>>

/** Returns a cluster without a kubeconfig, for a bearer token or for an anonymous user. */
export function openPlace(
  place: Place,
  bearerToken: string | undefined,
  options: ConnectionOptions,
): Cluster {
  const { server, certificateAuthority: ca, skipsTlsVerify, tlsServerName, proxyUrl } = place
  const cluster = {
    server,
    ...(ca && !skipsTlsVerify ? { 'certificate-authority-data': base64(ca) } : {}),
    ...(skipsTlsVerify ? { 'insecure-skip-tls-verify': true } : {}),
    ...given({ 'tls-server-name': tlsServerName, 'proxy-url': proxyUrl }),
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
  const { clock, random, requestTimeoutMs, mostPageBytes, signal, onBytes, pause = waiting } = options
  const surroundings = signal === undefined ? options.surroundings : abortable(options.surroundings, signal)
  const server = serverOf(selected)
  const { contextName, files, kubectl } = selected
  const credentials = new Credentials(server, selected, surroundings, clock)
  const user = (): UserDescription => describeUser(selected, credentials.certificate)
  const transport = new Transport(server, requestTimeoutMs, undefined, mostPageBytes && 8 * mostPageBytes)
  const failures = new Failures({
    server,
    clock,
    kubectl,
    files,
    user,
    timeoutMs: requestTimeoutMs,
  })
  const clientOver = (over: Transport) =>
    new ApiClient({ transport: over, credentials, failures, random, pause, mostPageBytes, signal, onBytes })
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
    podExec: podExecOf(client),
    as: ({ certificate, key }, certificateAuthority) =>
      openSelected(
        {
          ...selected,
          cluster: { ...selected.cluster, 'certificate-authority-data': base64(certificateAuthority) },
          userName: 'kcert',
          user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) },
        },
        options,
      ),
    through: (route) => {
      const there = clientOver(new Transport(server, requestTimeoutMs, route))
      return {
        ...objectsOf(there, pause),
        read: (path) => there.call(readOf(path)),
        text: (path) => textOf(there, { path, of: 'the API server', purpose: `read ${path}` }),
      }
    },
    close: () => transport.close(),
  }
}

/** Credential programs run at the same time here, so none of them may use the terminal. */
function abortable({ env }: Surroundings, signal: AbortSignal): Surroundings {
  return { env, stdinIsTerminal: false, signal }
}

function readOf(path: string): ApiCall {
  // /openid/v1/jwks has its own media type.
  return { method: 'GET', path, accept: 'application/json, */*', isRepeatable: true, purpose: `read ${path}` }
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

/** Returns the equivalent of a kubeconfig for the pod's service account; undefined outside of pods. */
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
  // client-go also accepts "host:port" and assumes https.
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)
  if (url?.username || url?.password) {
    const what = `the server of context ${JSON.stringify(selected.contextName)} contains a password in its URL`
    throw unusable(what, {
      why: 'messages and logs contain the URL: write the credential to "users" of the kubeconfig instead',
      next: commandLine`kcert inspect ${selected.files}`,
    })
  }
  if (url !== null && (url.protocol === 'https:' || url.protocol === 'http:')) return url
  // The text may contain a password.
  const shown = JSON.stringify(text.replace(/^.*@/s, '…@'))
  const what = `the server ${shown} of context ${JSON.stringify(selected.contextName)} is not a URL`
  throw unusable(what, {
    why: 'the form is https://HOST:PORT',
    next: commandLine`kcert inspect ${selected.files}`,
  })
}

function base64(content: Uint8Array | string): string {
  return Buffer.from(content as Uint8Array).toString('base64')
}
