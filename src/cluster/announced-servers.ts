import { type ObjectOf, resources } from './kinds.ts'
import type { Selection } from './objects.ts'

// Where API servers announce themselves: the endpoints of the Service "kubernetes".

/** To be listed with `announcedBy`; the caller handles a user who may not read it. */
export const announcements = { ...resources.endpointSlices, namespace: 'default' } as const

export const announcedBy: Selection = { labelSelector: 'kubernetes.io/service-name=kubernetes' }

/** Returns the API servers of such a slice; 6443 is the port where it names none. */
export function announcedIn({
  endpoints = [],
  ports = [],
}: ObjectOf<'endpointslices'>): { readonly host: string; readonly port: number }[] {
  const port = ports[0]?.port ?? 6443
  return endpoints.flatMap(({ addresses = [] }) => addresses.map((host) => ({ host, port })))
}
