import type { RequestObject } from './requests-api.ts'

/**
 * Returns the program that approved or denied an object; undefined without a decision. The API server records in
 * metadata.managedFields which program wrote to the subresource approval last. Only the audit log records the user.
 */
export function decidedBy({ metadata }: RequestObject): string | undefined {
  const managedFields: unknown = 'managedFields' in metadata ? metadata.managedFields : undefined
  if (!Array.isArray(managedFields)) return undefined
  const [last] = managedFields
    .filter((one) => one?.subresource === 'approval' && typeof one.manager === 'string')
    .toSorted((one, other) => (String(one.time) < String(other.time) ? 1 : -1))
  return last === undefined ? undefined : String(last.manager)
}
