import { request } from 'node:http'
import { connect as connectTls } from 'node:tls'
import { flagsOf } from '../pki/component-flags.ts'
import type { ProcessFacts } from '../pki/node-access.ts'
import type { Site } from './site.ts'

const timeoutMs = 3_000

/** Where a process answers for its health, as its own node reaches it. */
interface HealthEndpoint {
  readonly host: string
  readonly port: number
  readonly path: string
  readonly isTls: boolean
}

/** True when the process says through its node that it is well. One that asks for credentials answers, and counts as well. */
export async function isHealthy(site: Site, node: string, process: ProcessFacts): Promise<boolean> {
  const endpoint = healthEndpoint(process)
  const status = await statusOf(site, node, endpoint).catch(() => 0)
  return status === 200 || status === 401 || status === 403
}

/** Returns where a component listens on its node: the loopback, unless it is bound to one address. */
export function listenerOf(
  argv: readonly string[],
  defaultPort: number,
  portFlag: string,
  addressFlag: string,
) {
  const flags = flagsOf(argv)
  const address = flags[addressFlag]
  const isAny = address === undefined || /^(?:0\.0\.0\.0|::|)$/.test(address)
  return { host: isAny ? '127.0.0.1' : address, port: Number(flags[portFlag] ?? defaultPort) }
}

function healthEndpoint({ program, argv }: ProcessFacts): HealthEndpoint {
  switch (program) {
    case 'kubelet':
      return {
        ...listenerOf(argv, 10_248, 'healthz-port', 'healthz-bind-address'),
        path: '/healthz',
        isTls: false,
      }
    case 'kube-proxy':
      return { host: '127.0.0.1', port: 10_256, path: '/healthz', isTls: false }
    case 'kube-apiserver':
      return { ...listenerOf(argv, 6_443, 'secure-port', 'bind-address'), path: '/readyz', isTls: true }
    case 'kube-scheduler':
      return { ...listenerOf(argv, 10_259, 'secure-port', 'bind-address'), path: '/healthz', isTls: true }
    case 'cloud-controller-manager':
      return { ...listenerOf(argv, 10_258, 'secure-port', 'bind-address'), path: '/healthz', isTls: true }
    default:
      return { ...listenerOf(argv, 10_257, 'secure-port', 'bind-address'), path: '/healthz', isTls: true }
  }
}

/** The answer's status. Who answers is not proven: what counts is that somebody does on the node's own loopback. */
function statusOf(site: Site, node: string, { host, port, path, isTls }: HealthEndpoint): Promise<number> {
  const stream = site.dial(node, host, port)
  const connection = isTls ? connectTls({ socket: stream, rejectUnauthorized: false }) : stream
  return new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no answer in time')), timeoutMs)
    const asked = request({ path, host, createConnection: () => connection }, (answer) => {
      clearTimeout(timer)
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    for (const emitter of [stream, connection, asked]) emitter.on('error', reject)
    stream.on('close', () => reject(new Error('the connection was closed')))
    asked.setHeader('Connection', 'close')
    asked.end()
  }).finally(() => {
    connection.destroy()
    stream.destroy()
  })
}
