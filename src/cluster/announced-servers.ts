import type { Selection } from './objects.ts'
import type { Resource } from './resource.ts'

// Where API servers announce themselves: what stands behind the Service "kubernetes".

/** To be listed with `announcedBy`; who may not read it is answered by whoever asks. */
export const announcements: Resource = {
  group: 'discovery.k8s.io',
  version: 'v1',
  resource: 'endpointslices',
  namespace: 'default',
}

export const announcedBy: Selection = { labelSelector: 'kubernetes.io/service-name=kubernetes' }

interface EndpointSlice {
  readonly endpoints?: readonly { readonly addresses?: readonly string[] }[] | null
  readonly ports?: readonly { readonly port?: number }[] | null
}

/** Returns the API servers of such a slice; 6443 is the port where it names none. */
export function announcedIn(slice: unknown): { readonly host: string; readonly port: number }[] {
  const { endpoints, ports } = slice as EndpointSlice
  const port = ports?.[0]?.port ?? 6443
  return (endpoints ?? []).flatMap(({ addresses = [] }) => addresses.map((host) => ({ host, port })))
}
