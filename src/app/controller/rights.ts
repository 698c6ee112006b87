import type { ObjectsApi } from '../../cluster/objects.ts'

/** A permission that the controller needs. */
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
