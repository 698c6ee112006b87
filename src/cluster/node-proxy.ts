import type { ApiClient } from './api-client.ts'

/** What kubelets answer, through the API server's proxy. */
export interface NodeProxy {
  /** Returns the text of a path ("configz", "metrics"). Throws as the API server's answers do. */
  get(node: string, path: string): Promise<string>
}

const patienceMs = 20_000
// A kubelet's metrics are some hundred KiB.
const mostBytes = 16 * 1024 * 1024

export function nodeProxyOf(client: Pick<ApiClient, 'open'>): NodeProxy {
  return {
    async get(node, path) {
      const call = {
        method: 'GET',
        path: `/api/v1/nodes/${encodeURIComponent(node)}/proxy/${path}`,
        // What a kubelet that is away answers does not change by asking eight times.
        isRepeatable: false,
        purpose: `read ${path} of node ${JSON.stringify(node)}`,
      } as const
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of await client.open(call, AbortSignal.timeout(patienceMs))) {
        size += chunk.length
        if (size > mostBytes) throw new Error(`${path} of ${node} is longer than ${mostBytes} octets`)
        chunks.push(chunk)
      }
      return Buffer.concat(chunks).toString('utf8')
    },
  }
}
