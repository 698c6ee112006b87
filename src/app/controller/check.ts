import type { Cluster } from '../../cluster/cluster.ts'
import { missingRights } from '../../cluster/rights.ts'
import type { Enabled } from './approved-by.ts'
import type { CheckedPermission, ControllerCheck } from './check-report.ts'
import { neededRights } from './rights-table.ts'

// `kcert controller check`: each permission that the controller needs, and whether this user has it.

/** Returns the report. Throws KCERT_API_FORBIDDEN and KCERT_UNREACHABLE when the API server does not say. */
export async function checkController(
  { objects, access }: Pick<Cluster, 'objects' | 'access'>,
  enabled: Enabled,
  namespace: string,
): Promise<ControllerCheck> {
  const permissions: CheckedPermission[] = []
  for (const { neededFor, rights } of neededRights(enabled, namespace)) {
    const missing = await missingRights(objects, rights)
    permissions.push(...rights.map((right) => ({ ...right, allowed: !missing.includes(right), neededFor })))
  }
  const user = (await access.whoAmI())?.username
  return {
    apiVersion: 'kcert/v1',
    kind: 'ControllerCheck',
    ...(user !== undefined && { user }),
    namespace,
    permissions,
    missing: permissions.filter(({ allowed }) => !allowed).length,
  }
}
