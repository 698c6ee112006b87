import { flagsOf } from '../pki/component-flags.ts'
import type { ProcessFacts } from '../pki/node-access.ts'
import { isAnyAddress, listeningOf } from './control-planes.ts'
import { callHttp } from './http-call.ts'
import { callHttps } from './https-call.ts'
import type { Site } from './site.ts'

const timeoutMs = 3_000

/** True when the process says through its node that it is well. One that asks for credentials answers, and counts as well. */
export async function isHealthy(site: Site, node: string, process: ProcessFacts): Promise<boolean> {
  const status = await healthStatus(site, node, process)
  return status === 200 || status === 401 || status === 403
}

/**
 * Returns the status that a process answers on its own node; 0 where nobody does. Who answers is not proven: what counts is that
 * somebody does on the node's own loopback.
 */
export async function healthStatus(site: Site, node: string, process: ProcessFacts): Promise<number> {
  const { path, port, host, isTls } = healthOf(process)
  try {
    const stream = site.dial(node, host, port)
    return (await (isTls ? callHttps : callHttp)({ stream, path, timeoutMs })).status
  } catch {
    return 0
  }
}

interface Health {
  readonly host: string
  readonly port: number
  readonly path: string
  readonly isTls: boolean
}

/** Returns where a process says that it is well. */
export function healthOf({ program, argv }: Pick<ProcessFacts, 'program' | 'argv'>): Health {
  const flags = flagsOf(argv)
  if (program === 'kubelet') {
    const port = Number(flags['healthz-port'] ?? 10_248)
    return { host: hostOf(flags['healthz-bind-address']), port, path: '/healthz', isTls: false }
  }
  if (program === 'kube-proxy') {
    const [, host = '', port = '10256'] = /^(.*):(\d+)$/.exec(flags['healthz-bind-address'] ?? '') ?? []
    return {
      host: hostOf(host),
      port: Number(port),
      path: '/healthz',
      isTls: false,
    }
  }
  const path = program === 'kube-apiserver' ? '/readyz' : '/healthz'
  return { ...listeningOf(argv), path, isTls: true }
}

function hostOf(address: string | undefined): string {
  return address === undefined || isAnyAddress(address) ? '127.0.0.1' : address
}
