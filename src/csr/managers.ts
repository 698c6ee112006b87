import type { RequestObject } from './requests-api.ts'

/**
 * Returns the program that approved or denied an object: the API server notes in metadata.managedFields which one wrote to the
 * subresource approval last. Users are not noted anywhere but in the audit log. Undefined when nobody did.
 */
export function decidedBy({ metadata }: RequestObject): string | undefined {
  const managedFields: unknown = 'managedFields' in metadata ? metadata.managedFields : undefined
  if (!Array.isArray(managedFields)) return undefined
  const [last] = managedFields
    .filter((one) => one?.subresource === 'approval' && typeof one.manager === 'string')
    .toSorted((one, other) => (String(one.time) < String(other.time) ? 1 : -1))
  return last === undefined ? undefined : String(last.manager)
}
