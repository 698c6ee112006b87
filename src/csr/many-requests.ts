import pMap from 'p-map'
import { KcertError } from '../errors/kcert-error.ts'
import type { RequestObject, RequestsApi } from './requests-api.ts'

/** For more names than these, a list comes first: one call returns a page of 500. */
const leastToList = 64
/** kcert stops reading a list that is much longer than the names. */
const mostListed = (wanted: number): number => 4 * wanted + 1_000

/**
 * Returns the objects with these names, undefined for each missing one. A few are read one by one. Many are taken from a list, if
 * the user may list.
 */
export async function readRequests(
  api: Pick<RequestsApi, 'get' | 'list'>,
  names: readonly string[],
  { concurrency, onRead = () => {} }: { readonly concurrency: number; readonly onRead?: () => void },
): Promise<(RequestObject | undefined)[]> {
  const listed = names.length < leastToList ? new Map<string, RequestObject>() : await listedOf(api, names)
  return pMap(
    names,
    async (name) => {
      const object = listed.get(name) ?? (await api.get(name))
      onRead()
      return object
    },
    { concurrency },
  )
}

async function listedOf(
  api: Pick<RequestsApi, 'list'>,
  names: readonly string[],
): Promise<Map<string, RequestObject>> {
  const wanted = new Set(names)
  const found = new Map<string, RequestObject>()
  let seen = 0
  try {
    for await (const object of api.list()) {
      const { name = '' } = object.metadata
      if (wanted.has(name)) found.set(name, object)
      if (found.size === wanted.size || ++seen >= mostListed(wanted.size)) break
    }
  } catch (error) {
    // A user with the verb get may lack the verb list.
    if (!(error instanceof KcertError && error.code === 'KCERT_API_FORBIDDEN')) throw error
  }
  return found
}
