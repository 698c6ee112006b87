import type { Cluster } from '../../cluster/cluster.ts'
import type { Enabled } from './approved-by.ts'
import type { CheckedPermission, ControllerCheck } from './check-report.ts'
import { lookupRights, lookupsOf, rightToApproveFor, signersOf } from './policy-rights.ts'
import { missingRights, type Right, rightsToApprove, rightsToLead } from './rights.ts'
import { rightsToWatch } from './watch-rights.ts'

// `kcert controller check`: each permission that the controller needs, and whether this user has it.

const purposes = {
  access: 'policy: whether RBAC lets a requester have its certificate',
  nodes: 'policy: Nodes and their addresses',
  'cluster-addresses': 'policy: addresses of API servers and Services',
  'served-certificates': 'policy: certificates that kubelets serve now',
} as const

/** Returns every permission that the controller needs with these parts, and what needs it. */
export function neededRights(
  { approve, watch }: Enabled,
  namespace: string,
): readonly (readonly [neededFor: string, rights: readonly Right[]])[] {
  const policies = approve?.policies ?? []
  return [
    ...(approve === undefined ? [] : [['--approve', rightsToApprove] as const]),
    ['election of the leader', rightsToLead(namespace)],
    ...signersOf(policies).map((signer) => [`approval for ${signer}`, rightToApproveFor(signer)] as const),
    ...lookupsOf(policies).map((lookup) => [purposes[lookup], lookupRights[lookup]] as const),
    ...(watch === undefined
      ? []
      : rightsToWatch(watch).map(([what, rights]) => [`--watch: ${what}`, rights] as const)),
  ]
}

/** Returns the report. Throws KCERT_API_FORBIDDEN and KCERT_UNREACHABLE when the API server does not say. */
export async function checkController(
  { objects, access }: Pick<Cluster, 'objects' | 'access'>,
  enabled: Enabled,
  namespace: string,
): Promise<ControllerCheck> {
  const permissions: CheckedPermission[] = []
  for (const [neededFor, rights] of neededRights(enabled, namespace)) {
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
