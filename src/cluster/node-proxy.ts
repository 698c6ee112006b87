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
    get: (node, path) =>
      textOf(client, {
        path: `/api/v1/nodes/${encodeURIComponent(node)}/proxy/${path}`,
        of: `node ${JSON.stringify(node)}`,
        purpose: `read ${path} of node ${JSON.stringify(node)}`,
      }),
  }
}

/** Returns a response that is text, such as metrics. `of`: the server, for messages. Throws the same errors as calls to the API server. */
export async function textOf(
  client: Pick<ApiClient, 'open'>,
  { path, of, purpose }: { readonly path: string; readonly of: string; readonly purpose: string },
): Promise<string> {
  // Eight attempts do not help when a server is down.
  const call = { method: 'GET', path, isRepeatable: false, accept: '*/*', purpose } as const
  const answer = await client.open(call, AbortSignal.timeout(patienceMs))
  const body = await readWhole(answer, mostBytes).catch((error: Error) => {
    throw new KcertError('KCERT_UNREACHABLE', `${of} did not respond: cannot ${purpose}`, {
      why: `the response was incomplete, or took longer than ${patienceMs / 1000} s`,
      next: commandLine`kubectl get --raw ${path}`,
      cause: error,
    })
  })
  if (body !== undefined) return body.toString('utf8')
  throw new MalformedAnswer(purpose, `more than ${mostBytes >> 20} MiB`)
}
