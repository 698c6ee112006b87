import type { Cluster } from '../../cluster/cluster.ts'
import { explainFactsOf } from '../../cluster/explain-facts.ts'
import { resources } from '../../cluster/kinds.ts'
import type { Selection } from '../../cluster/objects.ts'
import { listEach } from '../../cluster/readable.ts'
import { explainPodRequest } from '../../csr/pods/explain.ts'
import type { PodExplanation, PodRequest, PodRequestList, PodRequestState } from '../../csr/pods/report.ts'
import { podRequest, podRequestList, podRequestStates } from '../../csr/pods/request.ts'
import { given } from '../../errors/given.ts'

interface PodListOptions {
  readonly namespace?: string | undefined
  readonly signer?: string | undefined
  readonly selector?: string | undefined
  /** Empty means all. */
  readonly states: readonly PodRequestState[]
}

/** Returns the PodCertificateRequests of a cluster. Throws KCERT_API_NOT_FOUND if the API server does not serve them. */
export async function listPodRequests(
  cluster: Cluster,
  { namespace, signer, selector, states }: PodListOptions,
  now: Date,
): Promise<PodRequestList> {
  const wanted = new Set(states.length === 0 ? podRequestStates : states)
  const found = await readPodRequests(cluster, namespace, now, {
    ...given({
      labelSelector: selector,
      fieldSelector: signer === undefined ? undefined : `spec.signerName=${signer}`,
    }),
  })
  return podRequestList(
    found.filter(({ state }) => wanted.has(state)),
    now,
  )
}

/** Returns why the named PodCertificateRequest is in its current state; undefined if it does not exist. */
export async function explainPod(
  cluster: Cluster,
  namespace: string,
  name: string,
  now: Date,
): Promise<PodExplanation | undefined> {
  // A list, because the list permission is enough, and a list finds the served version.
  const found = await readPodRequests(cluster, namespace, now, { fieldSelector: `metadata.name=${name}` })
  const request = found.find((one) => one.name === name)
  return request && explainPodRequest(request, explainFactsOf(cluster), now)
}

async function readPodRequests(
  { objects }: Cluster,
  namespace: string | undefined,
  now: Date,
  selection: Selection,
): Promise<PodRequest[]> {
  const resource = {
    ...resources.podCertificateRequests,
    ...given({ namespace }),
  }
  // A list that is restarted returns an object twice; the later one counts.
  const found = new Map<string, PodRequest>()
  for await (const object of listEach(objects, resource, selection)) {
    const request = podRequest(object, now)
    found.set(`${request.namespace}/${request.name}`, request)
  }
  return [...found.values()]
}
