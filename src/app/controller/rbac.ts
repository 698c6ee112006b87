import { type Right, rulesOf } from '../../cluster/rights.ts'
import { controllerName } from '../../csr/controller-events.ts'
import type { NeededRights, Part } from './rights-table.ts'

/** Returns the permissions of the whole cluster, and those of each namespace, sorted by name. */
export function byNamespace(rights: readonly Right[]): readonly [namespace: string | undefined, Right[]][] {
  const namespaces = [...new Set(rights.flatMap(({ namespace }) => namespace ?? []))].sort()
  return [undefined, ...namespaces]
    .map((namespace): [string | undefined, Right[]] => [
      namespace,
      rights.filter((right) => right.namespace === namespace),
    ])
    .filter(([, some]) => some.length > 0)
}

const apiGroup = 'rbac.authorization.k8s.io'

/** Returns the roles of a part that grant its rows to the service account in a namespace, each with its binding. */
export function rolesOf(part: Part, needed: readonly NeededRights[], accountNamespace: string): object[] {
  const rights = needed.flatMap((row) => (row.part === part ? row.rights : []))
  // Another controller in another namespace has roles of its own. Those of the election are in its namespace.
  const name = [controllerName, part, ...(part === 'election' ? [] : [accountNamespace])].join('-')
  return byNamespace(rights).flatMap(([namespace, some]) => {
    const kind = namespace === undefined ? 'ClusterRole' : 'Role'
    const metadata = { name, ...(namespace !== undefined && { namespace }) }
    return [
      { apiVersion: `${apiGroup}/v1`, kind, metadata, rules: rulesOf(some) },
      {
        apiVersion: `${apiGroup}/v1`,
        kind: `${kind}Binding`,
        metadata,
        roleRef: { apiGroup, kind, name },
        subjects: [{ kind: 'ServiceAccount', name: controllerName, namespace: accountNamespace }],
      },
    ]
  })
}
