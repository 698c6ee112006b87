import type { ProcessFacts } from '../pki/node-access.ts'
import { callHttp, callHttps } from './http-call.ts'
import { configurationOf, healthOf, type ListeningConfiguration } from './listening.ts'
import type { Site } from './site.ts'

const timeoutMs = 3_000

/**
 * Returns true if the process is healthy, as seen from its node. A process that requires credentials responds, and counts as
 * healthy.
 */
export async function isHealthy(
  site: Site,
  node: string,
  process: ProcessFacts,
  configuration?: ListeningConfiguration,
): Promise<boolean> {
  const status = await healthStatus(site, node, process, configuration)
  return status === 200 || status === 401 || status === 403
}

/**
 * Returns the HTTP status of a process on its own node; 0 if none responds. The server is not authenticated: a response on the
 * node's own loopback is enough.
 */
export async function healthStatus(
  site: Site,
  node: string,
  process: ProcessFacts,
  configuration?: ListeningConfiguration,
): Promise<number> {
  const said = configuration ?? (await configurationOf(site.node(node), process))
  const { path, port, host, isTls } = healthOf(process, said)
  try {
    const stream = site.dial(node, host, port)
    return (await (isTls ? callHttps : callHttp)({ stream, path, timeoutMs })).status
  } catch {
    return 0
  }
}
