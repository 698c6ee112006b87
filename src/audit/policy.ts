import { KcertError } from '../errors/kcert-error.ts'
import { shortList } from '../errors/short-list.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { plainValue } from '../kubeconfig/node.ts'
import { lineText, schemaFault } from '../kubeconfig/schema-fault.ts'
import type { AuditPolicy, AuditPolicyRule } from './policy-schema.ts'
import type { AuditPolicyCheck, AuditPolicyFinding } from './report.ts'

// Which requests an audit policy records. The first rule that matches a request decides
// (k8s.io/apiserver/pkg/audit/policy/checker.go).

/** The smallest policy with which `kcert audit` sees every use of every credential. */
export const sufficientPolicy = `# The smallest audit policy that kcert audit needs. Start kube-apiserver with
# --audit-policy-file and --audit-log-path.
apiVersion: audit.k8s.io/v1
kind: Policy
# The other events of a request say the same, and more.
omitStages: [RequestReceived]
rules:
# Requests without a credential, such as the probes of kubelets.
- level: None
  users: [system:anonymous]
  userGroups: [system:unauthenticated]
# The certificates that signers issue, so that kcert knows their subjects.
- level: Request
  verbs: [update, patch]
  resources:
  - group: certificates.k8s.io
    resources: [certificatesigningrequests/status, podcertificaterequests/status]
  omitManagedFields: true
# Who sent each request, from where, and with which credential. No content of objects.
- level: Metadata
`

/** Returns the audit policy in a file. Throws KCERT_POLICY_INVALID with the line, and why. */
export async function readAuditPolicy(text: string, source: string): Promise<AuditPolicy> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  if (defect !== undefined) throw invalid(`${source}${lineText(defect.line)}`, defect.reason)
  const [document, second] = documents
  if (document === undefined || second !== undefined)
    throw invalid(source, `it has ${documents.length} YAML documents, and an audit policy has one`)
  const { auditPolicySchema } = await import('./policy-schema.ts')
  const value = plainValue(document)
  const fault = await schemaFault({ document, text, source }, auditPolicySchema, value)
  if (fault !== undefined) throw invalid(fault.place, fault.why)
  const policy = value as AuditPolicy
  for (const [index, rule] of policy.rules.entries()) checkRule(rule, `${source}: rules[${index}]`)
  return policy
}

function checkRule({ nonResourceURLs, resources, namespaces }: AuditPolicyRule, place: string): void {
  if (nonResourceURLs?.length && (resources?.length || namespaces?.length))
    throw invalid(place, 'a rule is about resources or about nonResourceURLs, not both')
  for (const one of resources ?? [])
    if (one.resourceNames?.length && !one.resources?.length)
      throw invalid(place, 'resourceNames requires resources')
}

function invalid(place: string, why: string): KcertError {
  return new KcertError('KCERT_POLICY_INVALID', place, { why, next: 'kcert audit policy' })
}

/** Returns what a policy hides from `kcert audit`. */
export function checkAuditPolicy(policy: AuditPolicy, source: string): AuditPolicyCheck {
  const rules = policy.rules.map((rule, index) => ruleOf(rule, index + 1, policy.omitStages ?? []))
  const reached = rules.filter((rule, index) => !rules.slice(0, index).some((before) => covers(before, rule)))
  const findings = [
    ...reached.filter(hides).map(hiddenUse),
    ...(rules.some((rule) => covers(rule, everything)) ? [] : [unmatched]),
    ...notRecorded(
      reached,
      tokenRequest,
      ({ level, omits }) => level !== 'None' && omits.has('ResponseComplete'),
    ).map(hiddenTokens),
    ...notRecorded(reached, issuedCertificate, ({ level }) => level === 'Metadata')
      .slice(0, 1)
      .map(hiddenCertificates),
  ]
  return {
    apiVersion: 'kcert/v1',
    kind: 'AuditPolicyCheck',
    source,
    isSufficient: findings.every((finding) => finding.hides === 'issued-certificates'),
    findings,
  }
}

/** A rule without absent lists. */
interface Rule {
  readonly number: number
  readonly level: AuditPolicyRule['level']
  readonly omits: ReadonlySet<string>
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly verbs: readonly string[]
  readonly namespaces: readonly string[]
  readonly resources: readonly GroupResources[]
  readonly urls: readonly string[]
}

interface GroupResources {
  readonly group: string
  readonly resources: readonly string[]
  readonly names: readonly string[]
}

function ruleOf(rule: AuditPolicyRule, number: number, omitted: readonly string[]): Rule {
  const { level, users, userGroups, verbs, namespaces, resources, nonResourceURLs, omitStages } = rule
  return {
    ...{ number, level, omits: new Set([...omitted, ...(omitStages ?? [])]) },
    ...{ users: users ?? [], groups: userGroups ?? [], verbs: verbs ?? [] },
    ...{ namespaces: namespaces ?? [], urls: nonResourceURLs ?? [] },
    resources: (resources ?? []).map((one) => ({
      group: one.group ?? '',
      resources: one.resources ?? [],
      names: one.resourceNames ?? [],
    })),
  }
}

const everything = ruleOf({ level: 'Metadata' }, 0, [])

/**
 * True if every authenticated request that `other` matches also matches `rule`. In doubt false: then a finding names a rule that
 * may have no effect.
 */
function covers(rule: Rule, other: Rule): boolean {
  return (
    contains(rule.users, other.users) &&
    // Every authenticated user is in this group.
    (rule.groups.includes('system:authenticated') || contains(rule.groups, other.groups)) &&
    contains(rule.verbs, other.verbs) &&
    coversTargets(rule, other)
  )
}

/** An empty list means all. */
function contains(list: readonly string[], other: readonly string[]): boolean {
  return list.length === 0 || (other.length > 0 && other.every((one) => list.includes(one)))
}

function coversTargets(rule: Rule, other: Rule): boolean {
  if (isForAll(rule)) return true
  if (isForAll(other)) return false
  if (rule.urls.length > 0)
    return other.urls.length > 0 && other.urls.every((url) => rule.urls.some((one) => coversUrl(one, url)))
  if (other.urls.length > 0 || !contains(rule.namespaces, other.namespaces)) return false
  if (rule.resources.length === 0) return true
  return (
    other.resources.length > 0 &&
    other.resources.every((one) => rule.resources.some((wide) => coversResources(wide, one)))
  )
}

function isForAll({ namespaces, resources, urls }: Rule): boolean {
  return namespaces.length === 0 && resources.length === 0 && urls.length === 0
}

function coversUrl(url: string, other: string): boolean {
  return url === '*' || url === other || (url.endsWith('*') && other.startsWith(url.replace(/\*+$/, '')))
}

function coversResources(wide: GroupResources, other: GroupResources): boolean {
  if (wide.group !== other.group) return false
  if (wide.resources.length === 0) return true
  return (
    other.resources.length > 0 &&
    other.resources.every((one) => wide.resources.some((pattern) => coversResource(pattern, one))) &&
    contains(wide.names, other.names)
  )
}

/** `*` is all, `pods/*` is pods and all its subresources, and `*` + `/scale` is that subresource of all resources. */
function coversResource(pattern: string, resource: string): boolean {
  if (pattern === '*' || pattern === resource) return true
  const [name = '', subresource] = resource.split('/', 2)
  if (pattern.startsWith('*/')) return subresource !== undefined && pattern === `*/${subresource}`
  return pattern === `${name}/*`
}

/** True if no event shows the credential of an authenticated request that matches the rule. */
function hides({ level, omits, users, groups }: Rule): boolean {
  const isForAnonymous =
    (users.length > 0 && contains(['system:anonymous'], users)) ||
    (groups.length > 0 && contains(['system:unauthenticated'], groups))
  return (
    !isForAnonymous && (level === 'None' || (omits.has('RequestReceived') && omits.has('ResponseComplete')))
  )
}

/** A request by its attributes. Any user may send it, in any namespace. */
interface Target {
  readonly verb: string
  readonly group: string
  readonly resource: string
}

const tokenRequest: Target = { verb: 'create', group: '', resource: 'serviceaccounts/token' }
const issuedCertificate: Target = {
  verb: 'update',
  group: 'certificates.k8s.io',
  resource: 'certificatesigningrequests/status',
}

/** Returns the rules that may decide about a request and lack something. */
function notRecorded(
  rules: readonly Rule[],
  { verb, group, resource }: Target,
  lacks: (rule: Rule) => boolean,
): Rule[] {
  const found: Rule[] = []
  const request = { ...everything, verbs: [verb], resources: [{ group, resources: [resource], names: [] }] }
  for (const rule of rules) {
    if (mayMatch(rule, verb, { group, resources: [resource], names: [] }) && lacks(rule)) found.push(rule)
    if (covers(rule, request)) break
  }
  return found
}

function mayMatch({ verbs, urls, resources }: Rule, verb: string, wanted: GroupResources): boolean {
  if (urls.length > 0 || !contains(verbs, [verb])) return false
  // Since Kubernetes 1.36, the group "*" is all groups. Before, it is the name of a group that does not exist.
  const isIn = ({ group, resources }: GroupResources) =>
    coversResources({ group: group === '*' ? wanted.group : group, resources, names: [] }, wanted)
  return resources.length === 0 || resources.some(isIn)
}

function hiddenUse(rule: Rule): AuditPolicyFinding {
  const what = rule.level === 'None' ? 'level None' : 'RequestReceived and ResponseComplete are omitted'
  return {
    rule: rule.number,
    hides: 'uses',
    detail: `${what}: no event shows the credentials of ${targetText(rule)}`,
    fix:
      rule.level === 'None'
        ? 'set its level to Metadata, or delete the rule'
        : 'remove ResponseComplete from omitStages',
  }
}

const unmatched: AuditPolicyFinding = {
  hides: 'uses',
  detail: 'requests that no rule matches have level None',
  fix: 'add "- level: Metadata" as the last rule',
}

function hiddenTokens({ number }: Rule): AuditPolicyFinding {
  return {
    rule: number,
    hides: 'issued-tokens',
    detail: 'ResponseComplete is omitted: no event says which tokens a TokenRequest created',
    fix: 'remove ResponseComplete from omitStages',
  }
}

function hiddenCertificates({ number }: Rule): AuditPolicyFinding {
  return {
    rule: number,
    hides: 'issued-certificates',
    detail: 'level Metadata: events do not contain the certificates that signers issue',
    fix: 'before it, add the rule for certificatesigningrequests/status of the printed policy, or use --known and --cluster',
  }
}

/** Returns the requests that a rule is about, in words. */
function targetText({ users, groups, verbs, namespaces, resources, urls }: Rule): string {
  const parts = [
    users.length > 0 && `users ${shortList(users)}`,
    groups.length > 0 && `groups ${shortList(groups)}`,
    verbs.length > 0 && `verbs ${shortList(verbs)}`,
    resources.length > 0 && `resources ${shortList(resources.flatMap(resourceNames))}`,
    namespaces.length > 0 &&
      `namespaces ${shortList(namespaces.map((name) => (name === '' ? '"" (not namespaced)' : name)))}`,
    urls.length > 0 && `URLs ${shortList(urls)}`,
  ].filter(Boolean)
  return parts.length === 0 ? 'all requests' : `requests with ${parts.join('; ')}`
}

function resourceNames({ group, resources, names }: GroupResources): string[] {
  const suffix = group === '' ? '' : `.${group}`
  const limit = names.length === 0 ? '' : ` (only ${shortList(names)})`
  return (resources.length === 0 ? ['*'] : resources).map((one) => `${one}${suffix}${limit}`)
}
