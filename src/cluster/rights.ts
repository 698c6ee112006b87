import type { ObjectsApi } from './objects.ts'

/** A permission that kcert needs. */
export interface Right {
  readonly verb: string
  readonly group: string
  /** With its subresource: "certificatesigningrequests/approval". */
  readonly resource: string
  readonly namespace?: string
  /** RBAC may grant it for this object alone. */
  readonly name?: string
}

/** Returns a permission for each of these verbs. */
export const each = (verbs: string, right: Omit<Right, 'verb'>): Right[] =>
  verbs.split(' ').map((verb) => ({ verb, ...right }))

/** Returns the permissions that this user lacks (SelfSubjectAccessReview). Throws when the API server does not say. */
export async function missingRights(
  objects: Pick<ObjectsApi, 'create'>,
  rights: readonly Right[],
): Promise<readonly Right[]> {
  const missing: Right[] = []
  for (const right of rights) if (!(await isAllowed(objects, right))) missing.push(right)
  return missing
}

/** Returns a permission as RBAC writes it: "update certificatesigningrequests/approval.certificates.k8s.io". */
export function rightText({ verb, group, resource, namespace, name }: Right): string {
  const kind = group === '' ? resource : `${resource}.${group}`
  return `${verb} ${kind}${name === undefined ? '' : ` ${name}`}${namespace === undefined ? '' : ` in namespace ${namespace}`}`
}

/** A rule of a Role or ClusterRole. */
export interface RbacRule {
  readonly apiGroups: readonly [string]
  readonly resources: readonly [string]
  readonly resourceNames?: readonly [string]
  readonly verbs: readonly string[]
}

/** Returns the rules that grant these permissions, and no others: one for each resource and name. */
export function rulesOf(rights: readonly Right[]): readonly RbacRule[] {
  const rules = new Map<string, RbacRule>()
  for (const { verb, group, resource, name } of rights) {
    const key = JSON.stringify([group, resource, name])
    const verbs = [...(rules.get(key)?.verbs ?? []), verb]
    const resourceNames = name !== undefined && { resourceNames: [name] as const }
    rules.set(key, { apiGroups: [group], resources: [resource], ...resourceNames, verbs })
  }
  return [...rules.values()]
}

const reviews = {
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'selfsubjectaccessreviews',
} as const

async function isAllowed(
  objects: Pick<ObjectsApi, 'create'>,
  { resource: whole, ...attributes }: Right,
): Promise<boolean> {
  const [resource = '', subresource] = whole.split('/')
  const { status } = await objects.create(reviews, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { ...attributes, resource, ...(subresource && { subresource }) } },
  })
  return (status as { allowed?: unknown } | undefined)?.allowed === true
}
