import { orUndefined } from '../errors/caught.ts'
import { isObject } from '../errors/is-object.ts'
import { KcertError } from '../errors/kcert-error.ts'

// An API server sends JSON of a known shape and size. Anything else is never quoted: it may be a Secret.

/** JSON from the API server. */
export type ApiObject = Readonly<Record<string, unknown>>

/** Lists and watches larger than any cluster are stopped. The largest cluster that Kubernetes supports has 150,000 Pods. */
export const mostObjects = 500_000

/** A response that no API server sends. A retry would get the same response, so the call is not retried. */
export class MalformedAnswer extends KcertError {
  constructor(purpose: string, fault: string, next?: string) {
    super('KCERT_UNREACHABLE', 'invalid response from the API server', {
      why: `cannot ${purpose}: the server sent ${fault}`,
      next: next ?? 'kubectl get --raw /version',
    })
  }
}

/** Returns the JSON object of a text; undefined for anything else. */
export function objectIn(text: string): ApiObject | undefined {
  const value = orUndefined((): unknown => JSON.parse(text))
  return isObject(value) ? value : undefined
}
