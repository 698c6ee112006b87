import pMap from 'p-map'
import { KcertError } from '../errors/kcert-error.ts'
import type { RequestObject, RequestsApi } from './requests-api.ts'

/** One call gives a page of 500, so that more names than these are looked for in a list first. */
const leastToList = 64
/** A list that is much longer than what is looked for is not read to its end. */
const mostListed = (wanted: number): number => 4 * wanted + 1_000

/**
 * Returns the objects of these names, undefined where there is none of a name. Few are read one by one; of many, those that a list
 * holds are taken from it, where the user may list.
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
    // Who may read what it names need not be allowed to list.
    if (!(error instanceof KcertError && error.code === 'KCERT_API_FORBIDDEN')) throw error
  }
  return found
}
