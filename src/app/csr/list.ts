import { clusterRequest, requestList } from '../../csr/cluster-request.ts'
import { type RequestState, requestStates } from '../../csr/life.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { ClusterRequest, RequestList } from '../../csr/request-report.ts'
import type { RequestsApi } from '../../csr/requests-api.ts'
import { given } from '../../errors/given.ts'

export interface ListSettings {
  readonly signer?: string | undefined
  readonly selector?: string | undefined
  readonly requester?: string | undefined
  /** Empty means all. */
  readonly states: readonly RequestState[]
}

/** Returns the selected requests. The API server selects by signer and labels; the rest is selected here. */
export async function listRequests(
  api: RequestsApi,
  { signer, selector, requester, states }: ListSettings,
  now: Date,
): Promise<RequestList> {
  const wanted = new Set(states.length === 0 ? requestStates : states)
  const found = new Map<string, ClusterRequest>()
  const selection = given({ signerName: signer, labelSelector: selector })
  for await (const object of api.list(selection)) {
    if (requester !== undefined && object.spec.username !== requester) continue
    const request = clusterRequest(signingRequestOfObject(object), now)
    // A list that is restarted returns an object twice; the later one counts.
    if (wanted.has(request.state)) found.set(request.name, request)
    else found.delete(request.name)
  }
  return requestList([...found.values()], now)
}
