import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Agent, createServer, request as requestHttps, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { parse } from 'yaml'
import type { FaultKind } from '../fakes/api-server-faults.ts'
import { issue, makeCa } from './certificates.ts'
import type { ClusterSpec } from './spec.ts'

// A proxy in front of the API server, like a load balancer that terminates TLS. It applies one fault of networks, proxies or busy
// API servers to one call. Its clients act as the administrator. The kinds of faults are those of the fake API server.

/** The calls of one client. Each client has its own path in the server's URL. */
export interface Way {
  readonly kubeconfig: string
  /** GET /apis/…" for each call, in order. */
  readonly calls: readonly string[]
  /** From now on, open watches get nothing more, and stay open. */
  silence(): void
}

interface Plan {
  readonly calls: string[]
  readonly fault: { readonly kind: FaultKind; readonly at: number } | undefined
  readonly watches: Set<() => void>
}

export interface FaultyProxy {
  /** Writes an administrator's kubeconfig whose call number `at` meets the fault. Without a fault, all calls pass. */
  way(file: string, fault?: { readonly kind: FaultKind; readonly at: number }): Way
  close(): Promise<void>
}

/** Starts the proxy on loopback, in front of the API server in the administrator's kubeconfig. */
export async function startFaultyProxy(kubeconfig: string, keys: ClusterSpec['keys']): Promise<FaultyProxy> {
  const { server: url, ca, cert, key } = administratorOf(kubeconfig)
  const signingCa = await makeCa('faulty-proxy', keys)
  const serving = await issue(
    signingCa,
    { commonName: 'faulty-proxy', names: ['IP:127.0.0.1'], usages: ['serverAuth'] },
    keys,
  )
  const upstream = {
    host: url.hostname,
    port: url.port,
    agent: new Agent({ keepAlive: true, ca, cert, key }),
  }
  const plans: Plan[] = []
  const server = createServer({ key: serving.key, cert: serving.certificate }, (request, response) => {
    const [, number, path = '/'] = /^\/(\d+)(\/.*)$/.exec(request.url ?? '') ?? []
    pass({ request, response, path, plan: plans[Number(number)]! }, upstream)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    way(file, fault) {
      const plan: Plan = { calls: [], fault, watches: new Set() }
      const base = `https://127.0.0.1:${(server.address() as AddressInfo).port}/${plans.push(plan) - 1}`
      writeFileSync(file, kubeconfigOf(base, signingCa.certificate), { mode: 0o600 })
      return {
        kubeconfig: file,
        calls: plan.calls,
        silence: () => {
          for (const silence of plan.watches) silence()
        },
      }
    },
    close: () => end(server, upstream.agent),
  }
}

function administratorOf(kubeconfig: string) {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8'))
  const [{ cluster }, { user }] = [clusters[0], users[0]]
  const decoded = (data: string): Buffer => Buffer.from(data, 'base64')
  return {
    server: new URL(cluster.server),
    ca: decoded(cluster['certificate-authority-data']),
    cert: decoded(user['client-certificate-data']),
    key: decoded(user['client-key-data']),
  }
}

function kubeconfigOf(server: string, caPem: string): string {
  const signingCa = Buffer.from(caPem).toString('base64')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lab', cluster: { server, 'certificate-authority-data': signingCa } }],
    users: [{ name: 'admin', user: { token: 'the-proxy-asks-for-none' } }],
    contexts: [{ name: 'admin@lab', context: { cluster: 'lab', user: 'admin' } }],
    'current-context': 'admin@lab',
  })
}

async function end(server: Server, agent: Agent): Promise<void> {
  server.closeAllConnections()
  agent.destroy()
  await new Promise((closed) => server.close(closed))
}

interface Passing {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly plan: Plan
}

interface Upstream {
  readonly host: string
  readonly port: string
  readonly agent: Agent
}

function pass({ request, response, path, plan }: Passing, upstream: Upstream): void {
  const { method = 'GET' } = request
  const count = plan.calls.push(`${method} ${path}`)
  const kind = plan.fault?.at === count ? plan.fault.kind : undefined
  // A refused client disconnects. Its remaining data is discarded.
  request.on('error', () => {})
  if (kind !== undefined && instead(kind, request, response)) {
    request.resume()
    return
  }
  const { authorization: _, host: __, connection: ___, ...headers } = request.headers
  const onward = requestHttps({ ...upstream, method, path, headers }, (answer) => {
    if (kind !== undefined) return afterwards(kind, answer, request, response)
    response.writeHead(answer.statusCode ?? 0, answer.headers)
    answer.pipe(response)
    if (!path.includes('watch=true')) return
    const silence = (): void => void answer.unpipe(response).resume()
    plan.watches.add(silence)
    response.on('close', () => plan.watches.delete(silence))
  })
  onward.on('error', () => request.socket.destroy())
  // A watch without a client is closed upstream, too.
  response.on('close', () => onward.destroy())
  request.pipe(onward)
}

const refusals: Partial<Record<FaultKind, readonly [status: number, reason: string]>> = {
  conflict: [409, 'Conflict'],
  'too-many-requests': [429, 'TooManyRequests'],
  internal: [500, 'InternalError'],
  'internal-after': [500, 'InternalError'],
  unavailable: [503, 'ServiceUnavailable'],
  expired: [410, 'Expired'],
}

/** Applies a fault that replaces the call. Returns false where the call is made first. */
function instead(kind: FaultKind, request: IncomingMessage, response: ServerResponse): boolean {
  if (kind === 'hang') return true
  if (kind === 'reset-before') {
    request.socket.destroy()
    return true
  }
  if (kind === 'internal-after' || !(kind in refusals)) return false
  refuse(kind, response)
  return true
}

/** Applies a fault to the response of a completed call. */
function afterwards(
  kind: FaultKind,
  answer: IncomingMessage,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  answer.on('error', () => {})
  if (kind === 'cut') {
    response.writeHead(answer.statusCode ?? 0, answer.headers)
    answer.once('data', (chunk: Buffer) => {
      response.write(chunk.subarray(0, chunk.length / 2), () => request.socket.destroy())
    })
    return
  }
  answer.resume()
  if (kind === 'reset-after') request.socket.destroy()
  if (kind === 'internal-after') refuse(kind, response)
}

function refuse(kind: FaultKind, response: ServerResponse): void {
  const [code, reason] = refusals[kind]!
  const message = `a fault of the test: ${kind}`
  const retryAfter = kind === 'too-many-requests' ? { 'Retry-After': '1' } : {}
  response.writeHead(code, { 'Content-Type': 'application/json', ...retryAfter })
  response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message }))
}
