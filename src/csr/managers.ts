import type { RequestObject } from './requests-api.ts'

interface ManagedFields {
  readonly manager?: unknown
  readonly operation?: unknown
  readonly subresource?: unknown
  readonly time?: unknown
}

/**
 * Returns the program that approved or denied an object: the API server notes in metadata.managedFields which one wrote to the
 * subresource approval last. Users are not noted anywhere but in the audit log. Undefined when nobody did.
 */
export function decidedBy({ metadata }: RequestObject): string | undefined {
  const { managedFields } = metadata as { managedFields?: unknown }
  if (!Array.isArray(managedFields)) return undefined
  const [last] = (managedFields as ManagedFields[])
    .filter((one) => one?.subresource === 'approval' && typeof one.manager === 'string')
    .toSorted((one, other) => (String(one.time) < String(other.time) ? 1 : -1))
  return last === undefined ? undefined : String(last.manager)
}
