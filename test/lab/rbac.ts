import type { Cluster } from '../../src/cluster/cluster.ts'
import { type Grant, newName } from '../contract/stage.ts'

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
const roleApi = `${rbac.group}/${rbac.version}`

/** Grants rights by a ClusterRole and its binding, and returns when the API server applies them. */
export async function grantByRbac(cluster: Cluster, grant: Grant): Promise<void> {
  const { username, verbs, group, resources, names } = grant
  const name = newName('contract-grant')
  const rule = { apiGroups: [group], resources, verbs, ...(names && { resourceNames: names }) }
  await cluster.objects.create(
    { ...rbac, resource: 'clusterroles' },
    { apiVersion: roleApi, kind: 'ClusterRole', metadata: { name }, rules: [rule] },
  )
  await cluster.objects.create(
    { ...rbac, resource: 'clusterrolebindings' },
    {
      apiVersion: roleApi,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: rbac.group, kind: 'ClusterRole', name },
      subjects: [{ apiGroup: rbac.group, kind: 'User', name: username }],
    },
  )
  const [resource = '', subresource = ''] = resources[0]!.split('/')
  const attributes = { group, version: '*', resource, subresource, verb: verbs[0]! }
  const question = {
    user: username,
    groups: [],
    extra: {},
    resource: { ...attributes, ...(names && { name: names[0]! }) },
  }
  while ((await cluster.access.isAllowed(question)) !== true)
    await new Promise((resolve) => setTimeout(resolve, 20))
}
