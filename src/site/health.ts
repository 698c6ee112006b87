import type { ProcessFacts } from '../pki/node-access.ts'
import { callHttp, callHttps } from './http-call.ts'
import { configurationOf, healthOf, type ListeningConfiguration } from './listening.ts'
import type { Site } from './site.ts'

const timeoutMs = 3_000

/** True when the process says through its node that it is well. One that asks for credentials answers, and counts as well. */
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
 * Returns the status that a process answers on its own node; 0 where no one does. Who answers is not proven: what counts is that
 * somebody does on the node's own loopback.
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
