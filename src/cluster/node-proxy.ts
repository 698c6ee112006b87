import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { readWhole } from '../system/pipes.ts'
import type { ApiClient } from './api-client.ts'
import { MalformedAnswer } from './malformed.ts'

/** Requests to kubelets through the API server's proxy. */
export interface NodeProxy {
  /** Returns the text at a path ("configz", "metrics"). Throws the same errors as calls to the API server. */
  get(node: string, path: string): Promise<string>
}

const patienceMs = 20_000
// A kubelet's metrics take a few hundred KiB.
const mostBytes = 16 * 1024 * 1024

export function nodeProxyOf(client: Pick<ApiClient, 'open'>): NodeProxy {
  return {
    async get(node, path) {
      const call = {
        method: 'GET',
        path: `/api/v1/nodes/${encodeURIComponent(node)}/proxy/${path}`,
        // Eight attempts do not help when a kubelet is down.
        isRepeatable: false,
        purpose: `read ${path} of node ${JSON.stringify(node)}`,
      } as const
      const answer = await client.open(call, AbortSignal.timeout(patienceMs))
      const body = await readWhole(answer, mostBytes).catch((error: Error) => {
        const what = `node ${JSON.stringify(node)} did not respond: cannot ${call.purpose}`
        throw new KcertError('KCERT_UNREACHABLE', what, {
          why: `the response was incomplete, or took longer than ${patienceMs / 1000} s`,
          next: commandLine`kubectl get --raw ${call.path}`,
          cause: error,
        })
      })
      if (body !== undefined) return body.toString('utf8')
      throw new MalformedAnswer(call.purpose, `more than ${mostBytes >> 20} MiB`)
    },
  }
}
