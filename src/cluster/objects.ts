import { given } from '../errors/given.ts'
import { filledText, isObject } from '../errors/is-object.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { ApiCall, ApiClient, Pause } from './api-client.ts'
import { StatusError, statusIn } from './failures.ts'
import { shaped } from './kinds.ts'
import type { ApiObject } from './malformed.ts'
import { MalformedAnswer, mostObjects } from './malformed.ts'
import { describeResource, pathOf, type Resource } from './resource.ts'
import { servedVersion } from './served-version.ts'
import { TooLarge } from './transport.ts'

/** Selectors of a list or a watch. The API server applies them. */
export interface Selection {
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

export interface ObjectChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  /** If the deletion was found only by a list, just its name, namespace, UID and resourceVersion. */
  readonly object: ApiObject
}

export type PatchType = 'merge' | 'strategic-merge' | 'json'

/** Objects of any kind, as JSON. Errors are the same as those of RequestsApi (src/csr/requests-api.ts). */
export interface ObjectsApi {
  /** Returns the object; undefined when it does not exist. */
  get(resource: Resource): Promise<ApiObject | undefined>
  /** Yields all matching objects, page by page. A list that expires is restarted, so an object may appear twice. */
  list(resource: Resource, selection?: Selection): AsyncIterable<ApiObject>
  /** With `dryRun` the API server does everything except persist the object (dryRun=All). */
  create(resource: Resource, object: ApiObject, choice?: { readonly dryRun: boolean }): Promise<ApiObject>
  /** metadata.resourceVersion and uid in the object are preconditions. `confirm` may stop each attempt by an error, which is thrown. */
  replace(resource: Resource, object: ApiObject, confirm?: () => void): Promise<ApiObject>
  patch(resource: Resource, patch: object, type: PatchType): Promise<ApiObject>
  /** Returns false when the object does not exist, or has another UID or resourceVersion. */
  delete(
    resource: Resource,
    preconditions?: { readonly uid?: string; readonly resourceVersion?: string },
  ): Promise<boolean>
  /**
   * Yields the current objects and each change until the signal aborts. Calls `tell` with each failure that it works around, and
   * with undefined when it works again.
   */
  watch(
    resource: Resource,
    selection: Selection,
    signal: AbortSignal,
    tell?: (failure: KcertError | undefined) => void,
  ): AsyncIterable<ObjectChange>
}

// kubectl's page size. It also limits the memory that the API server uses.
const pageSize = 500
// 500 Nodes have about 9 MB, and a user may create CSRs of 2 MB. A larger page is requested again in smaller parts.
const mostPageBytes = 16 * 1024 * 1024
// After so many pages in a row, the next ones may have twice as many objects.
const pagesBeforeMore = 4
// Ten times the pages of half a million objects, since a server may send partly filled pages.
const mostPages = 10_000
const mostRestarts = 3
const restartPauseMs = 1_000
const longestContinue = 64 * 1024

const patchTypes: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  'strategic-merge': 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
}

/** A page of a list. */
export interface Page {
  readonly items: readonly ApiObject[]
  readonly resourceVersion: string | undefined
  readonly next: string | undefined
}

type PageClient = Pick<ApiClient, 'call'> & Partial<Pick<ApiClient, 'mostPageBytes'>>

/** Returns the objects of a cluster, without watches (watch.ts). */
export function objectsOf(client: PageClient, pause: Pause): Omit<ObjectsApi, 'watch'> {
  const callForObject = async (
    method: ApiCall['method'],
    verb: string,
    resource: Resource,
    rest: Omit<ApiCall, 'method' | 'path' | 'purpose'>,
  ): Promise<ApiObject> => {
    const purpose = `${verb} ${describeResource(resource)}`
    return checkedObject(
      await client.call({ method, path: pathOf(resource), purpose, ...rest }),
      resource,
      purpose,
    )
  }
  return {
    async get(resource) {
      try {
        return await callForObject('GET', 'read', resource, { isRepeatable: true })
      } catch (error) {
        // A server that does not serve the kind returns 404 in plain text.
        if (error instanceof StatusError && error.reason === 'NotFound') return undefined
        throw error
      }
    },

    async *list(resource, selection = {}) {
      try {
        for await (const { items } of pagesOf(client, pause, resource, selection)) yield* items
      } catch (error) {
        const isUncertain = statusIn(error) === 404 || statusIn(error) === 403
        if (resource.olderVersions === undefined || !isUncertain) throw error
        const version = await servedVersion(client, resource)
        if (version === resource.version) throw error
        for await (const { items } of pagesOf(client, pause, { ...resource, version }, selection))
          yield* items
      }
    },

    // A response without a name is valid here: reviews and evictions have none.
    create(resource, object, { dryRun } = { dryRun: false }) {
      return client.call({
        method: 'POST',
        path: pathOf(resource),
        ...(dryRun && { query: { dryRun: 'All' } }),
        body: object,
        isRepeatable: dryRun,
        purpose: `create ${describeResource({ ...resource, ...nameIn(object) })}`,
      })
    },

    replace(resource, object, confirm) {
      const isRepeatable = metadataOf(object).resourceVersion !== undefined
      return callForObject('PUT', 'write', resource, { body: object, isRepeatable, confirm })
    },

    patch(resource, patch, type) {
      const isRepeatable = type !== 'json' && metadataOf(patch).resourceVersion !== undefined
      return callForObject('PATCH', 'change', resource, {
        body: patch,
        contentType: patchTypes[type],
        isRepeatable,
      })
    },

    async delete(resource, preconditions) {
      try {
        await client.call({
          method: 'DELETE',
          path: pathOf(resource),
          body: { apiVersion: 'v1', kind: 'DeleteOptions', ...(preconditions && { preconditions }) },
          isRepeatable: preconditions?.uid !== undefined,
          purpose: `delete ${describeResource(resource)}`,
        })
        return true
      } catch (error) {
        if (statusIn(error) === 404) return false
        if (statusIn(error) === 409 && preconditions !== undefined) return false
        throw error
      }
    },
  }
}

/**
 * Yields the pages of a list. Pages of large objects have fewer of them. A list that expires is restarted a few times, with a page
 * that `isFirst`. Throws MalformedAnswer for an endless list.
 */
export async function* pagesOf(
  client: PageClient,
  pause: Pause,
  resource: Resource,
  selection: Selection,
  signal?: AbortSignal,
): AsyncGenerator<Page & { readonly isFirst: boolean }> {
  const purpose = `list ${describeResource(resource)}`
  let restarts = 0
  let next: string | undefined
  let seen = new Set<string>()
  let count = 0
  let limit = pageSize
  let pagesOfLimit = 0
  for (let pages = 1; ; pages++) {
    if (pages > mostPages) throw new MalformedAnswer(purpose, `more than ${mostPages} pages`)
    try {
      const page = await readPage(client, resource, selection, { next, limit }, signal)
      yield { ...page, isFirst: next === undefined }
      if (++pagesOfLimit % pagesBeforeMore === 0) limit = Math.min(limit * 2, pageSize)
      count += page.items.length
      if (page.next === undefined) return
      next = page.next
    } catch (error) {
      if (limit > 1 && error instanceof KcertError && error.cause instanceof TooLarge) {
        limit = Math.max(limit >> 2, 1)
        pagesOfLimit = 0
        continue
      }
      const isTooOld = next !== undefined && statusIn(error) === 410
      if (!isTooOld || restarts === mostRestarts) throw error
      await pause(restartPauseMs * 2 ** restarts++, signal)
      next = undefined
      seen = new Set()
      count = 0
      continue
    }
    if (count > mostObjects) throw new MalformedAnswer(purpose, `more than ${mostObjects} objects`)
    if (seen.has(next)) throw new MalformedAnswer(purpose, 'the same continue token twice')
    if (next.length > longestContinue)
      throw new MalformedAnswer(purpose, `a continue token of ${next.length} characters`)
    seen.add(next)
  }
}

async function readPage(
  client: PageClient,
  resource: Resource,
  { labelSelector, fieldSelector }: Selection,
  { next, limit }: { readonly next: string | undefined; readonly limit: number },
  signal: AbortSignal | undefined,
): Promise<Page> {
  const purpose = `list ${describeResource(resource)}`
  const list = await client.call({
    method: 'GET',
    path: pathOf(resource),
    query: { limit: String(limit), continue: next, labelSelector, fieldSelector },
    isRepeatable: true,
    // An object alone may be as large as any other response.
    mostBytes: limit > 1 ? (client.mostPageBytes ?? mostPageBytes) : undefined,
    signal,
    purpose,
  })
  const { resourceVersion, continue: more } = metadataOf(list)
  // Treated as absent, a continue token of another type would end the list, and a resourceVersion of another type would end the
  // watch.
  for (const [field, value] of Object.entries({ continue: more, resourceVersion }))
    if (typeof (value ?? '') !== 'string')
      throw new MalformedAnswer(purpose, `a metadata.${field} that is not text`)
  // Go encodes an empty list as null.
  if (!Array.isArray(list.items) && list.items !== null)
    throw new MalformedAnswer(purpose, 'an object that is not a list')
  const items = ((list.items ?? []) as unknown[]).map((item) => checkedObject(item, resource, purpose))
  return {
    items: withKinds(list, items),
    resourceVersion: filledText(resourceVersion),
    next: filledText(more),
  }
}

/** Returns an object with a name and fields of the right types, as every API server sends it. Throws MalformedAnswer. */
export function checkedObject(value: unknown, { resource }: Resource, purpose: string): ApiObject {
  if (!isObject(value)) throw new MalformedAnswer(purpose, 'an item that is not an object')
  if (!isObject(value.metadata) || filledText(value.metadata.name) === undefined)
    throw new MalformedAnswer(purpose, 'an object without metadata.name')
  const read = shaped(value, resource)
  if ('object' in read) return read.object
  throw new MalformedAnswer(purpose, `an object whose ${read.fault}`)
}

/** Items of a list have no kind and apiVersion. The list has them. */
function withKinds({ apiVersion, kind }: ApiObject, items: readonly ApiObject[]): ApiObject[] {
  const itemKind = typeof kind === 'string' ? kind.replace(/List$/, '') : undefined
  return items.map((item) => ({ ...given({ apiVersion, kind: itemKind }), ...item }))
}

export function metadataOf(object: object): ApiObject {
  const metadata = 'metadata' in object ? object.metadata : undefined
  return isObject(metadata) ? metadata : {}
}

function nameIn(object: ApiObject): { name?: string } {
  const { name } = metadataOf(object)
  return typeof name === 'string' ? { name } : {}
}
