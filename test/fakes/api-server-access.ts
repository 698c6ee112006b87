// The access table of the fake API server, which both its authorization and its access reviews read.

export interface FakeUser {
  readonly username: string
  readonly groups: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** "*" matches everything. A rule without user and group applies to every authenticated user. */
export interface AccessRule {
  readonly user?: string
  readonly group?: string
  readonly verbs: readonly string[]
  /** API groups; "" is the core group. */
  readonly groups: readonly string[]
  /** For example "certificatesigningrequests" or "certificatesigningrequests/approval". */
  readonly resources: readonly string[]
  readonly names?: readonly string[]
  /** As a RoleBinding in this namespace. */
  readonly namespace?: string
}

export interface Attributes {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly name?: string
  readonly namespace?: string
}

/** Returns whether RBAC allows the action. system:masters may do everything, authenticated users may create self reviews. */
export function isAllowed(
  rules: readonly AccessRule[],
  user: Pick<FakeUser, 'username' | 'groups'>,
  attributes: Attributes,
): boolean {
  if (user.groups.includes('system:masters')) return true
  if (attributes.resource.startsWith('self') && user.groups.includes('system:authenticated')) return true
  return rules.some((rule) => isFor(rule, user) && covers(rule, attributes))
}

export function isFor({ user, group }: AccessRule, who: Pick<FakeUser, 'username' | 'groups'>): boolean {
  return (user === undefined || user === who.username) && (group === undefined || who.groups.includes(group))
}

function covers(rule: AccessRule, attributes: Attributes): boolean {
  const { verb, group, resource, subresource, name, namespace } = attributes
  const full = subresource ? `${resource}/${subresource}` : resource
  const has = (list: readonly string[], value: string): boolean => list.includes('*') || list.includes(value)
  return (
    has(rule.verbs, verb) &&
    has(rule.groups, group) &&
    has(rule.resources, full) &&
    (rule.namespace === undefined || rule.namespace === namespace) &&
    (rule.names === undefined || (name !== undefined && rule.names.includes(name)))
  )
}
