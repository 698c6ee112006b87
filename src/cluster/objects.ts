import { KcertError } from '../errors/kcert-error.ts'
import type { ApiClient, ApiObject } from './api-client.ts'
import { StatusError } from './failures.ts'
import { describeResource, pathOf, type Resource } from './resource.ts'

/** What narrows a list or a watch; the API server does the narrowing. */
export interface Selection {
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

export interface ObjectChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: ApiObject
}

export type PatchType = 'merge' | 'strategic-merge' | 'json'

/** Objects of any kind, as JSON. Errors are as with RequestsApi (src/csr/requests-api.ts). */
export interface ObjectsApi {
  /** Undefined when there is none of this name. */
  get(resource: Resource): Promise<ApiObject | undefined>
  /** All that match, page by page; a list that grew too old in between is begun again, so that one may come twice. */
  list(resource: Resource, selection?: Selection): AsyncIterable<ApiObject>
  /** With `dryRun` the API server does all but keep the object (dryRun=All). */
  create(resource: Resource, object: ApiObject, choice?: { readonly dryRun: boolean }): Promise<ApiObject>
  /** With metadata.resourceVersion and uid in it, these are preconditions. */
  replace(resource: Resource, object: ApiObject): Promise<ApiObject>
  patch(resource: Resource, patch: object, type: PatchType): Promise<ApiObject>
  /** False when there was none, or it is not this one any more. */
  delete(
    resource: Resource,
    preconditions?: { readonly uid?: string; readonly resourceVersion?: string },
  ): Promise<boolean>
  /** What is there and each change of it until the signal is given. */
  watch(resource: Resource, selection: Selection, signal: AbortSignal): AsyncIterable<ObjectChange>
}

// As kubectl asks for them; also what keeps an API server's memory small.
const pageSize = 500

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

/** Returns the objects of a cluster, watching excepted (watch.ts). */
export function objectsOf(client: Pick<ApiClient, 'call'>): Omit<ObjectsApi, 'watch'> {
  return {
    async get(resource) {
      try {
        return await client.call({
          method: 'GET',
          path: pathOf(resource),
          isRepeatable: true,
          purpose: `read ${describeResource(resource)}`,
        })
      } catch (error) {
        // A server that does not know the kind answers 404 in plain text.
        if (error instanceof StatusError && error.reason === 'NotFound') return undefined
        throw error
      }
    },

    async *list(resource, selection = {}) {
      let next: string | undefined
      for (;;) {
        const page: Page | 'too-old' = await readPage(client, resource, selection, next)
        if (page !== 'too-old') yield* page.items
        next = page === 'too-old' ? undefined : page.next
        if (page !== 'too-old' && next === undefined) return
      }
    },

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

    replace(resource, object) {
      return client.call({
        method: 'PUT',
        path: pathOf(resource),
        body: object,
        isRepeatable: metadataOf(object).resourceVersion !== undefined,
        purpose: `write ${describeResource(resource)}`,
      })
    },

    patch(resource, patch, type) {
      return client.call({
        method: 'PATCH',
        path: pathOf(resource),
        body: patch,
        contentType: patchTypes[type],
        isRepeatable: type !== 'json' && metadataOf(patch as ApiObject).resourceVersion !== undefined,
        purpose: `change ${describeResource(resource)}`,
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
        if (error instanceof StatusError && error.status === 404) return false
        if (error instanceof StatusError && error.status === 409 && preconditions !== undefined) return false
        throw error
      }
    },
  }
}

/** Returns one page of a list; `too-old` when the server does not remember the list that `next` continues. */
export async function readPage(
  client: Pick<ApiClient, 'call'>,
  resource: Resource,
  { labelSelector, fieldSelector }: Selection,
  next: string | undefined,
): Promise<Page | 'too-old'> {
  const purpose = `list ${describeResource(resource)}`
  try {
    const list = await client.call({
      method: 'GET',
      path: pathOf(resource),
      query: { limit: String(pageSize), continue: next, labelSelector, fieldSelector },
      isRepeatable: true,
      purpose,
    })
    const { resourceVersion, continue: more } = metadataOf(list)
    if (!Array.isArray(list.items) && list.items !== null) throw notAList(purpose)
    return {
      items: withKinds(list),
      resourceVersion: textOf(resourceVersion),
      next: textOf(more),
    }
  } catch (error) {
    if (next !== undefined && error instanceof StatusError && error.status === 410) return 'too-old'
    throw error
  }
}

/** Items of a list do not say what they are; the list does. */
function withKinds({ apiVersion, kind, items }: ApiObject): ApiObject[] {
  const itemKind = typeof kind === 'string' ? kind.replace(/List$/, '') : undefined
  return ((items ?? []) as ApiObject[]).map((item) => ({
    ...(apiVersion !== undefined && { apiVersion }),
    ...(itemKind !== undefined && { kind: itemKind }),
    ...item,
  }))
}

export function metadataOf(object: ApiObject): Readonly<Record<string, unknown>> {
  const { metadata } = object
  return typeof metadata === 'object' && metadata !== null ? (metadata as Record<string, unknown>) : {}
}

function nameIn(object: ApiObject): { name?: string } {
  const { name } = metadataOf(object)
  return typeof name === 'string' ? { name } : {}
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function notAList(purpose: string): KcertError {
  return new KcertError('KCERT_UNREACHABLE', 'the API server does not answer as one', {
    why: `asked to ${purpose}, it sent no list`,
  })
}
