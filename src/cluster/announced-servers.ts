import { type ObjectOf, resources } from './kinds.ts'
import type { Selection } from './objects.ts'

// API servers publish their addresses as endpoints of the Service "kubernetes".

/** The slices to list with `announcedBy`. The caller handles a user who may not read them. */
export const announcements = { ...resources.endpointSlices, namespace: 'default' } as const

export const announcedBy: Selection = { labelSelector: 'kubernetes.io/service-name=kubernetes' }

/** Returns the API servers of such a slice. The port defaults to 6443. */
export function announcedIn({
  endpoints = [],
  ports = [],
}: ObjectOf<'endpointslices'>): { readonly host: string; readonly port: number }[] {
  const port = ports[0]?.port ?? 6443
  return endpoints.flatMap(({ addresses = [] }) => addresses.map((host) => ({ host, port })))
}
