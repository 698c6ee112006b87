import { type ObjectOf, resources } from '../cluster/kinds.ts'
import { listAll } from '../cluster/readable.ts'
import type { BackendSnapshot } from '../rotation/snapshot.ts'
import type { Site } from '../site/site.ts'

/** Returns the running pods that Services select, from their EndpointSlices. */
export async function backends({ objects }: Pick<Site, 'objects'>): Promise<readonly BackendSnapshot[]> {
  const [pods, slices] = await Promise.all([
    listAll(objects, resources.pods, { fieldSelector: 'status.phase=Running' }),
    listAll(objects, resources.endpointSlices),
  ])
  const services = Map.groupBy(slices.flatMap(leadsOf), ({ pod }) => pod)
  return pods.flatMap(({ metadata, spec, status }): BackendSnapshot[] => {
    const { namespace, name, deletionTimestamp } = metadata
    const pod = `${namespace}/${name}`
    const its = services.get(pod)
    if (its === undefined || spec?.nodeName === undefined || deletionTimestamp !== undefined) return []
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')
    const changedAtMs = Date.parse(ready?.lastTransitionTime ?? '')
    return [
      {
        pod,
        node: spec.nodeName,
        isReady: ready?.status === 'True',
        changedAtMs: Number.isNaN(changedAtMs) ? Number.POSITIVE_INFINITY : changedAtMs,
        services: [...new Set(its.map(({ service }) => service))],
      },
    ]
  })
}

function leadsOf({ metadata, endpoints = [] }: ObjectOf<'endpointslices'>) {
  const name = metadata.labels?.['kubernetes.io/service-name']
  if (name === undefined) return []
  return endpoints.flatMap(({ targetRef }) =>
    targetRef?.kind === 'Pod'
      ? [{ pod: `${targetRef.namespace}/${targetRef.name}`, service: `${metadata.namespace}/${name}` }]
      : [],
  )
}
