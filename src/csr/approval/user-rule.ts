import { listed, quoted } from '../quoting.ts'
import type { Finding } from '../rule.ts'
import { nodeNameOf, usagesForSigner } from '../signers.ts'
import type { SigningRequest } from '../signing-request.ts'
import { type Cidr, isInRanges } from './addresses.ts'
import type { Candidate } from './candidate.ts'
import { type Boundary, fits, type Placeholders } from './patterns.ts'
import { evaluated, outOfScope, type Policy, type PolicyEvaluation } from './policy.ts'
import { approvalRule, nameCountFindings, requestFindings } from './request-rules.ts'

/** A user's rule. An approving rule allows only what its lists contain; a denying rule denies what they contain. */
export interface UserRule {
  readonly name: string
  readonly decision: 'approve' | 'deny'
  readonly signerNames: readonly string[]
  readonly usernames?: readonly string[]
  readonly groups?: readonly string[]
  readonly commonNames?: readonly string[]
  readonly organizations?: readonly string[]
  readonly dnsNames?: readonly string[]
  /** Allow commonNames and dnsNames of an approving rule to match names that are wildcards themselves. */
  readonly wildcards?: boolean
  /** The total number of DNS names, IP addresses, email addresses and URIs that an approving rule allows. */
  readonly maxNames?: number
  readonly ipAddresses?: readonly Cidr[]
  readonly emails?: readonly string[]
  readonly uris?: readonly string[]
  readonly usages?: readonly string[]
  readonly maxExpirationSeconds?: number
}

/** A pattern matches these names only when it spells out their beginning, because Kubernetes reserves them. */
const reservedPrefix = 'system:'

/** Returns the policy of a user's rule. */
export function userRulePolicy(rule: UserRule): Policy {
  return {
    name: rule.name,
    signerNames: rule.decision === 'approve' ? rule.signerNames : [],
    lookups: [],
    evaluate: async (candidate) =>
      rule.decision === 'approve' ? approving(rule, candidate) : denying(rule, candidate),
  }
}

function approving(rule: UserRule, candidate: Candidate): PolicyEvaluation {
  const { object } = candidate
  if (!someFits(object.signerName, rule.signerNames, '/'))
    return outOfScope(rule.name, 'it is for another signer')
  // A rule applies only to its requesters: it does not apply to the request of another one, and that request breaks nothing.
  const { username } = object
  if (username === undefined) return outOfScope(rule.name, 'the requester is unknown')
  const who = requesterIn(rule, username, object.groups)
  if (who === undefined) return outOfScope(rule.name, `${quoted(username)} is not a user of the rule`)
  return evaluated(
    rule.name,
    [
      ...requestFindings(candidate),
      approvalRule('requester', 'identity').met(`${quoted(username)} is ${who}`),
      ...askedFindings(rule, candidate),
    ],
    'ignore',
  )
}

/** Returns which entry of the rule matches the requester; undefined when none does. */
function requesterIn(rule: UserRule, username: string, groups: readonly string[]): string | undefined {
  if (someFits(username, rule.usernames, ':')) return 'a user of the rule'
  const group = groups.find((one) => rule.groups?.includes(one))
  return group === undefined ? undefined : `in group ${quoted(group)}`
}

/** One list of a rule, and the values of the request to compare with it. */
interface Asked {
  readonly id: string
  readonly values: readonly string[]
  readonly isAllowed: (value: string) => boolean
}

function askedFindings(rule: UserRule, { object, request }: Candidate): Finding[] {
  const values = placeholdersFor(object)
  const { dns, ip, email, uri } = request.subjectAltNames
  const pattern = (patterns: readonly string[] | undefined, boundary: Boundary) => (value: string) =>
    someFits(value, patterns, boundary, values)
  // The pattern *.example.com is meant for one label, and a "*" as that label would cover all of them.
  const isWildcardAllowed = (value: string): boolean =>
    !value.includes('*') || (rule.wildcards === true && /^\*\.[^*]+$/.test(value))
  const hostName = (value: string): boolean =>
    isWildcardAllowed(value) && someFits(value.toLowerCase(), rule.dnsNames?.map(lowerCase), '.', values)
  const withoutStar = (isAllowed: (value: string) => boolean) => (value: string) =>
    !value.includes('*') && isAllowed(value)
  // A "*" matches path segments only: a pattern allows a query or a fragment when it spells it out, with no "*" before it.
  const uriAllowed = (value: string): boolean =>
    someFits(
      value,
      rule.uris?.filter((one) => !one.includes('*') || !/[?#]/.test(value)),
      '/',
      values,
    )
  const { commonName } = request.subject
  const usages = rule.usages ?? usagesForSigner(object.signerName, 'RSA')
  const asked: readonly Asked[] = [
    {
      id: 'common-name',
      values: commonName === undefined ? [] : [commonName],
      // Common names of servers are DNS names, and those of users have colons: "*" stops at either.
      isAllowed: (value) =>
        isWildcardAllowed(value) && pattern(rule.commonNames, value.includes(':') ? ':' : '.')(value),
    },
    {
      id: 'organization',
      values: request.subject.organization,
      isAllowed: withoutStar(pattern(rule.organizations, ':')),
    },
    { id: 'dns-names', values: dns, isAllowed: hostName },
    { id: 'ip-addresses', values: ip, isAllowed: (value) => isInRanges(value, rule.ipAddresses ?? []) },
    { id: 'emails', values: email, isAllowed: withoutStar(pattern(rule.emails, '.')) },
    { id: 'uris', values: uri, isAllowed: withoutStar(uriAllowed) },
    { id: 'usages', values: object.usages, isAllowed: (value) => usages?.includes(value) === true },
  ]
  return [
    ...asked.map(askedFinding),
    ...nameCountFindings(request, rule.maxNames),
    lifetimeFinding(rule, object),
  ]
}

function askedFinding({ id, values, isAllowed }: Asked): Finding {
  const { met, unmet } = approvalRule(id, 'entitlement')
  const outside = values.filter((value) => !isAllowed(value))
  if (outside.length === 0)
    return met(values.length === 0 ? 'none requested' : `the rule allows ${listed(values)}`)
  const fix = `add allowed values to ${ruleFields[id]} of the rule, or create a new request without them`
  return unmet(`the rule does not allow ${listed(outside)}`, { fix })
}

const ruleFields: Readonly<Record<string, string>> = {
  'common-name': 'commonNames',
  organization: 'organizations',
  'dns-names': 'dnsNames',
  'ip-addresses': 'ipAddresses',
  emails: 'emails',
  uris: 'uris',
  usages: 'usages',
}

function lifetimeFinding({ maxExpirationSeconds }: UserRule, { expirationSeconds }: SigningRequest): Finding {
  const { met, unmet } = approvalRule('lifetime', 'entitlement')
  if (maxExpirationSeconds === undefined) return met('the rule sets no limit')
  const fix = `use --expiration-seconds ${maxExpirationSeconds}`
  if (expirationSeconds === undefined)
    return unmet(`expirationSeconds is not set, and the rule allows ${maxExpirationSeconds} s`, { fix })
  return expirationSeconds <= maxExpirationSeconds
    ? met(`${expirationSeconds} s`)
    : unmet(`${expirationSeconds} s is more than ${maxExpirationSeconds} s`, { fix })
}

/** Denies a request that has a value of every list that the rule gives. */
function denying(rule: UserRule, { object, request }: Candidate): PolicyEvaluation {
  const { dns, ip, email, uri } = request.subjectAltNames
  const { username, groups, usages, expirationSeconds } = object
  const { commonName, organization } = request.subject
  const { ipAddresses } = rule
  const placeholders = placeholdersFor(object)
  // An approving pattern must not match too much, and a denying one must not match too little: its "*" has no boundary.
  const anyOf = (patterns: readonly string[] | undefined, values: readonly string[]): boolean =>
    patterns === undefined ||
    values.some((value) => patterns.some((one) => fits(value, one, '', placeholders)))
  const lower = (patterns: readonly string[] | undefined): string[] | undefined => patterns?.map(lowerCase)
  const isMeant =
    anyOf(rule.signerNames, [object.signerName]) &&
    anyOf(rule.usernames, username === undefined ? [] : [username]) &&
    anyOf(rule.groups, groups) &&
    anyOf(rule.commonNames, commonName === undefined ? [] : [commonName]) &&
    anyOf(rule.organizations, organization) &&
    anyOf(lower(rule.dnsNames), dns.map(lowerCase)) &&
    (ipAddresses === undefined || ip.some((address) => isInRanges(address, ipAddresses))) &&
    // The domain of an address has no case, so a denial must not miss it in capitals.
    anyOf(lower(rule.emails), email.map(lowerCase)) &&
    anyOf(rule.uris, uri) &&
    (rule.usages === undefined || rule.usages.some((usage) => usages.includes(usage))) &&
    (rule.maxExpirationSeconds === undefined || (expirationSeconds ?? 0) > rule.maxExpirationSeconds)
  if (!isMeant) return outOfScope(rule.name, 'the rule does not match it')
  const fix = `change the request, or the rule ${quoted(rule.name)}`
  const findings = [
    approvalRule(`not-${rule.name}`, 'entitlement').unmet(`the rule ${quoted(rule.name)} denies it`, { fix }),
  ]
  return evaluated(rule.name, findings, 'deny')
}

function someFits(
  value: string,
  patterns: readonly string[] | undefined,
  boundary: Boundary,
  values: Placeholders = {},
): boolean {
  return (
    patterns?.some(
      (pattern) =>
        (!value.startsWith(reservedPrefix) ||
          pattern.startsWith(reservedPrefix) ||
          pattern === '{username}') &&
        fits(value, pattern, boundary, values),
    ) === true
  )
}

function lowerCase(text: string): string {
  return text.toLowerCase()
}

const serviceAccount = /^system:serviceaccount:([^:]+):([^:]+)$/

/** Returns {username}, and the service account or node in it. */
export function placeholdersFor({ username = '' }: Pick<SigningRequest, 'username'>): Placeholders {
  const account = serviceAccount.exec(username)
  return {
    username,
    namespace: account?.[1] ?? '',
    serviceaccount: account?.[2] ?? '',
    node: nodeNameOf(username) ?? '',
  }
}

/** The placeholders that a pattern may contain. */
export const placeholderNames: readonly string[] = Object.keys(placeholdersFor({}))
