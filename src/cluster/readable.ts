import { statusIn } from './failures.ts'
import type { ObjectOf } from './kinds.ts'
import type { ObjectChange, ObjectsApi, Selection } from './objects.ts'
import type { Resource } from './resource.ts'

// Objects with the types of their kind, as checked in src/cluster/objects.ts.

type ResourceOf<Plural> = Resource & { readonly resource: Plural }

/** Yields the objects of a kind, like `ObjectsApi.list`. */
export function listEach<Plural extends string>(
  objects: Pick<ObjectsApi, 'list'>,
  resource: ResourceOf<Plural>,
  selection?: Selection,
): AsyncIterable<ObjectOf<Plural>> {
  return objects.list(resource, selection) as AsyncIterable<ObjectOf<Plural>>
}

/** Yields the changes of a kind, like `ObjectsApi.watch`. */
export function watchEach<Plural extends string>(
  objects: Pick<ObjectsApi, 'watch'>,
  resource: ResourceOf<Plural>,
  selection: Selection,
  signal: AbortSignal,
): AsyncIterable<ObjectChange & { readonly object: ObjectOf<Plural> }> {
  return objects.watch(resource, selection, signal) as AsyncIterable<
    ObjectChange & { readonly object: ObjectOf<Plural> }
  >
}

/**
 * Returns all objects of a kind; none where the cluster does not serve the kind. Throws KCERT_API_FORBIDDEN and
 * KCERT_UNREACHABLE.
 */
export async function listAll<Plural extends string>(
  objects: Pick<ObjectsApi, 'list'>,
  resource: ResourceOf<Plural>,
  selection?: Selection,
): Promise<ObjectOf<Plural>[]> {
  // A restarted list may contain an object twice. The later copy is used.
  const found = new Map<string, ObjectOf<Plural>>()
  try {
    for await (const object of listEach(objects, resource, selection)) {
      const { name, namespace } = object.metadata
      found.set(`${namespace}/${name}`, object)
    }
  } catch (error) {
    if (statusIn(error) !== 404) throw error
  }
  return [...found.values()]
}

/** Returns all objects of a kind; undefined when listing them is forbidden. */
export async function listReadable<Plural extends string>(
  objects: Pick<ObjectsApi, 'list'>,
  resource: ResourceOf<Plural>,
  selection?: Selection,
): Promise<ObjectOf<Plural>[] | undefined> {
  try {
    return await listAll(objects, resource, selection)
  } catch (error) {
    if (statusIn(error) === 403) return undefined
    throw error
  }
}

/** Returns one object; undefined when it does not exist. */
export async function getOne<Plural extends string>(
  objects: Pick<ObjectsApi, 'get'>,
  resource: ResourceOf<Plural>,
): Promise<ObjectOf<Plural> | undefined> {
  return (await objects.get(resource)) as ObjectOf<Plural> | undefined
}

/** Returns an object; undefined when reading it is forbidden, `absent` when it does not exist. */
export async function getReadable<Plural extends string>(
  objects: Pick<ObjectsApi, 'get'>,
  resource: ResourceOf<Plural>,
): Promise<ObjectOf<Plural> | 'absent' | undefined> {
  try {
    return (await getOne(objects, resource)) ?? 'absent'
  } catch (error) {
    if (statusIn(error) === 403) return undefined
    if (statusIn(error) === 404) return 'absent'
    throw error
  }
}
