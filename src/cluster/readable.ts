import { StatusError } from './failures.ts'
import type { ApiObject } from './malformed.ts'
import type { ObjectsApi, Selection } from './objects.ts'
import type { Resource } from './resource.ts'

/** Returns all objects of a kind; undefined where we may not list them, and none where the cluster has no such kind. */
export async function listReadable(
  objects: ObjectsApi,
  resource: Resource,
  selection: Selection = {},
): Promise<ApiObject[] | undefined> {
  // A list that was begun again may give an object twice; the later one counts.
  const found = new Map<string, ApiObject>()
  try {
    for await (const object of objects.list(resource, selection)) {
      const { name, namespace } = object.metadata as { name?: string; namespace?: string }
      found.set(`${namespace}/${name}`, object)
    }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    if (error.status === 403) return undefined
    if (error.status !== 404) throw error
  }
  return [...found.values()]
}

/** Returns an object; undefined where we may not read it, `absent` where there is none. */
export async function getReadable(
  objects: ObjectsApi,
  resource: Resource,
): Promise<ApiObject | 'absent' | undefined> {
  try {
    return (await objects.get(resource)) ?? 'absent'
  } catch (error) {
    if (error instanceof StatusError && error.status === 403) return undefined
    if (error instanceof StatusError && error.status === 404) return 'absent'
    throw error
  }
}
