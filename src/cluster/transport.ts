import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { readWhole } from '../system/pipes.ts'
import { type Access, bareHost } from './credentials.ts'

// One HTTP/1.1 request and its response. client-node opens a connection for each request. Here at most 64 connections are kept
// open, in a Node agent, which also starts faster than client-node's HTTP client.

const mostConnections = 64
// Less than the 90 s after which an API server closes idle connections, so that a request rarely uses one that was just closed.
const idleMs = 30_000
const lingerMs = 100
// A page of 500 objects of half a MiB each. V8 does not support strings of 512 MiB.
const defaultBodyBytes = 256 * 1024 * 1024

export interface Exchange {
  readonly method: string
  /** The path with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** The limit of the response body (default 256 MiB). */
  readonly mostBytes?: number
}

export interface Answer {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: Buffer
}

export interface StreamedAnswer {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly chunks: AsyncIterable<Buffer>
}

/** A route to a server other than the kubeconfig's: behind a load balancer, any of the API servers may respond. */
export interface Route {
  /** Returns a connection to the server, before TLS. Errors are events of the stream. */
  dial(): Duplex
  /** Names of the server in addition to the kubeconfig's. Its certificate must have one of them. */
  readonly names: readonly string[]
}

/** A request without a complete response. */
export class Unanswered extends Error {
  readonly code: string | undefined
  /** False when the request cannot have reached the server, because the connection was not established. */
  readonly mayHaveArrived: boolean

  constructor(error: NodeJS.ErrnoException, mayHaveArrived: boolean) {
    super(error.message, { cause: error })
    this.code = error.code
    this.mayHaveArrived = mayHaveArrived
  }
}

/** The cause of an Unanswered whose response body is above the limit. */
export class TooLarge extends Error {}

/** The connections to one server. */
export class Transport {
  readonly #server: URL
  readonly #timeoutMs: number
  readonly #basePath: string
  readonly #route: Route | undefined
  readonly #mostBodyBytes: number
  /** Established connections. */
  readonly #ready = new WeakSet<Socket>()
  readonly #agents = new Map<Access['tls'] | Access['proxyAgent'], HttpAgent>()

  /** `timeoutMs` is the timeout of one request; 0 for none. */
  constructor(server: URL, timeoutMs: number, route?: Route, mostBodyBytes = defaultBodyBytes) {
    this.#server = server
    this.#timeoutMs = timeoutMs
    // A path in the URL belongs to a proxy in front of the API servers.
    this.#basePath = route === undefined ? server.pathname.replace(/\/+$/, '') : ''
    this.#route = route
    this.#mostBodyBytes = mostBodyBytes
  }

  /** Returns the complete response. Throws Unanswered. */
  async exchange(exchange: Exchange, access: Access, signal?: AbortSignal): Promise<Answer> {
    const { mostBytes = this.#mostBodyBytes } = exchange
    const { request, answered } = this.#send(exchange, access, signal)
    let isLate = false
    const giveUp = (): void => {
      isLate = true
      request.destroy()
    }
    const timer = this.#timeoutMs > 0 ? setTimeout(giveUp, this.#timeoutMs) : undefined
    try {
      const { status, retryAfter, chunks } = await answered
      const body = await readWhole(chunks, mostBytes)
      if (body !== undefined) return { status, retryAfter, body }
      throw new Unanswered(new TooLarge(`the answer is larger than ${mostBytes >> 20} MiB`), true)
    } catch (error) {
      if (!isLate) throw error
      const timedOut = Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })
      throw new Unanswered(timedOut, error instanceof Unanswered ? error.mayHaveArrived : true)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Returns the response after its headers arrive. Its body ends with the connection or the signal. Throws Unanswered. */
  stream(exchange: Exchange, access: Access, signal: AbortSignal): Promise<StreamedAnswer> {
    return this.#send(exchange, access, signal).answered
  }

  #send(
    { method, path, headers, body }: Exchange,
    access: Access,
    signal?: AbortSignal,
  ): { request: ClientRequest; answered: Promise<StreamedAnswer> } {
    const { promise, resolve, reject } = Promise.withResolvers<StreamedAnswer>()
    const isTls = access.tls !== undefined
    const options: RequestOptions = {
      method,
      host: bareHost(this.#server),
      port: this.#server.port || (isTls ? 443 : 80),
      path: this.#basePath + path,
      headers: {
        ...headers,
        // For DELETE, Node would send the body without a Content-Length.
        ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
        ...access.headers,
      } as Record<string, string>,
      agent: this.#agentOf(access),
      ...(signal && { signal }),
    }
    let mayHaveArrived = false
    const request = (isTls ? requestHttps : requestHttp)(options, (answer) => {
      resolve({
        status: answer.statusCode ?? 0,
        retryAfter: answer.headers['retry-after'],
        chunks: chunksOf(answer),
      })
    })
    request.on('socket', (socket) => {
      // request.reusedSocket stays false for a connection that passes from one request to the next in the queue.
      if (this.#ready.has(socket)) mayHaveArrived = true
      else
        socket.once(isTls ? 'secureConnect' : 'connect', () => {
          this.#ready.add(socket)
          mayHaveArrived = true
        })
    })
    request.on('error', (error) => reject(new Unanswered(error, mayHaveArrived)))
    request.end(body)
    return { request, answered: promise }
  }

  /** Returns the URL of a path, and the agent whose connections have these credentials, for a request that `exchange` cannot send. */
  place(path: string, access: Access): { readonly url: string; readonly agent: HttpAgent } {
    return { url: this.#server.origin + this.#basePath + path, agent: this.#agentOf(access) }
  }

  /** Closes all connections: those in use at once, idle ones soon. */
  close(): void {
    for (const agent of this.#agents.values()) {
      const isIdle = Object.keys(agent.sockets).length === 0
      // Idle connections do not keep the process alive. If it exits now, the system closes them, which takes Node much longer.
      if (isIdle) setTimeout(() => agent.destroy(), lingerMs).unref()
      else agent.destroy()
    }
    this.#agents.clear()
  }

  #agentOf({ tls, proxyAgent }: Access): HttpAgent {
    const key = proxyAgent ?? tls
    const known = this.#agents.get(key)
    if (known !== undefined) return known
    if (this.#route !== undefined) return dialling(this.#route, tls)
    // Credentials are read again every minute, so a process that runs for months has many of them.
    for (const [replaced, agent] of this.#agents) {
      if (Object.keys(agent.sockets).length + Object.keys(agent.requests).length > 0) continue
      agent.destroy()
      this.#agents.delete(replaced)
    }
    const agent = proxyAgent === undefined ? this.#newAgent(tls) : keepingAlive(proxyAgent, tls)
    this.#agents.set(key, agent)
    return agent
  }

  #newAgent(tls: Access['tls']): HttpAgent {
    const kept = { keepAlive: true, maxSockets: mostConnections, timeout: idleMs } as const
    return tls === undefined ? new HttpAgent(kept) : new HttpsAgent({ ...kept, ...tlsOptions(tls) })
  }
}

/**
 * One connection for each request, since such a connection uses a process on a node. Plain HTTP does not authenticate the server,
 * so no credential is sent over it.
 */
function dialling({ dial, names }: Route, tls: Access['tls']): HttpAgent {
  if (tls === undefined) throw new TypeError('a route through a tunnel supports TLS only')
  const agent = new HttpsAgent(tlsOptions(tls, names))
  agent.createConnection = (options) => connect({ ...(options as ConnectionOptions), socket: dial() })
  return agent
}

/**
 * client-node creates agents that open a connection for each request. The verification goes into the agent's options, because
 * Node keeps no connection whose request has its own checkServerIdentity.
 */
function keepingAlive(agent: HttpAgent, tls: Access['tls']): HttpAgent {
  const { options } = agent as HttpAgent & { readonly options: object }
  if (tls !== undefined) Object.assign(options, tlsOptions(tls))
  return Object.assign(agent, { keepAlive: true, maxSockets: mostConnections })
}

function tlsOptions(
  { secureContext, verifies, serverName }: NonNullable<Access['tls']>,
  otherNames: readonly string[] = [],
) {
  return {
    secureContext,
    // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED has no effect.
    rejectUnauthorized: verifies,
    // An IP address is not a server name (RFC 6066 section 3), but the certificate must contain it.
    ...(isIP(serverName) ? {} : { servername: serverName }),
    checkServerIdentity: (_: string, certificate: PeerCertificate) => {
      const faults = [serverName, ...otherNames].map((name) => checkServerIdentity(name, certificate))
      return faults.includes(undefined) ? undefined : faults[0]
    },
  }
}

async function* chunksOf(answer: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* answer
  } catch (error) {
    throw new Unanswered(error as NodeJS.ErrnoException, true)
  }
}
