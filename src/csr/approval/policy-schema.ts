import * as v from 'valibot'
import { usages } from '../../pki/usages.ts'
import * as json from '../../x509/json-fields.ts'
import { parseCidr } from './addresses.ts'
import { placeholdersOf } from './patterns.ts'
import { placeholderNames } from './user-rule.ts'

// The approval policy, as users write it. docs/schemas/ApprovalPolicy.json is generated from this schema; policy-file.ts imports
// it only when there is a policy to read.

const text = v.pipe(v.string(), v.nonEmpty('is empty'))

const pattern = v.pipe(
  text,
  v.check(
    (value) => placeholdersOf(value).every((name) => placeholderNames.includes(name)),
    `has an unknown placeholder; known are ${placeholderNames.map((name) => `{${name}}`).join(', ')}`,
  ),
)

const cidr = v.pipe(
  text,
  v.check(
    (value) => parseCidr(value) !== undefined,
    'is not a range of addresses such as 10.0.0.0/16 or fd00::/64',
  ),
)

const dnsSuffix = v.pipe(
  text,
  v.regex(/^\.?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$/, 'is not a DNS suffix such as .nodes.example.com'),
)

const seconds = v.pipe(
  v.number(),
  v.integer('is not a whole number of seconds'),
  v.minValue(600, 'is below 600, the minimum of the API server'),
)

const list = <Item extends v.GenericSchema>(item: Item, what: string) =>
  json.optionalField(v.array(item), what)

const maxNames = v.optional(
  v.pipe(
    v.number(),
    v.integer('is not a whole number'),
    v.minValue(1, 'must be at least 1'),
    v.description(
      'maximum number of DNS names, IP addresses, email addresses and URIs together (default no limit)',
    ),
  ),
)
const name = json.optionalField(text, 'shown in decisions and in the condition of the object')
const onViolation = json.optionalField(
  v.picklist(['ignore', 'deny']),
  'what to do with a request that breaks a rule (default ignore, which skips it)',
)
const maxExpirationSeconds = json.optionalField(seconds, 'the longest lifetime that a request may have')

export const kubeletClientSchema = v.strictObject({
  builtin: v.literal('kubelet-client'),
  name,
  onViolation,
  newNodesOnly: json.optionalField(
    v.boolean(),
    'approve a first certificate only if no Node of that name exists (default false)',
  ),
})

export const kubeletServingSchema = v.strictObject({
  builtin: v.literal('kubelet-serving'),
  name,
  onViolation,
  names: json.optionalField(
    v.picklist(['node', 'served', 'node-or-served']),
    "what the names are compared with: the Node's addresses, the certificate that the kubelet serves now, or either (default node-or-served)",
  ),
  dnsSuffixes: list(
    dnsSuffix,
    "DNS names must end in one of these, or be the Node's name (default the Node's name, alone or with a suffix of two labels or more)",
  ),
  cidrs: list(cidr, 'IP addresses must be in one of these'),
  sharedAddresses: list(
    text,
    'names and addresses that several Nodes may have, such as the address of a NAT gateway',
  ),
  maxNames,
  maxExpirationSeconds,
})

const patterns = (what: string) => list(pattern, what)

const ruleFields = {
  name: json.described(text, 'shown in decisions and in the condition of the object'),
  signerNames: v.pipe(
    v.array(pattern),
    v.minLength(1, 'is empty'),
    v.description('patterns; "*" stops at a slash'),
  ),
  usernames: patterns('patterns of spec.username; "*" stops at a colon'),
  groups: list(
    text,
    'compared with spec.groups: exact names in an approving rule, patterns in a denying one',
  ),
  commonNames: patterns('patterns of the common name'),
  organizations: patterns('patterns of the organizations (groups) in the subject'),
  dnsNames: patterns('patterns of DNS names; "*" stops at a dot'),
  ipAddresses: list(cidr, 'ranges of IP addresses'),
  emails: patterns('patterns of email addresses'),
  uris: patterns('patterns of URIs; "*" stops at a slash'),
  usages: list(v.picklist(usages), 'usages of the certificates API'),
  maxExpirationSeconds,
}

export const approveSchema = json.described(
  v.strictObject({
    decision: v.literal('approve'),
    ...ruleFields,
    wildcards: json.optionalField(
      v.boolean(),
      'let commonNames and dnsNames match names that are wildcards themselves (default false)',
    ),
    maxNames,
  }),
  'approves a request if the lists allow everything in it; a missing list allows nothing',
)

export const denySchema = json.described(
  v.strictObject({ decision: v.literal('deny'), ...ruleFields }),
  'denies a request that has at least one value of every list in the rule; "*" matches any character',
)

export const clusterSchema = v.strictObject({
  domain: json.optionalField(dnsSuffix, "DNS domain of the cluster's Services (default cluster.local)"),
  apiServers: list(
    text,
    'names and addresses of API servers and load balancers, which no kubelet may request',
  ),
  serviceCidrs: list(cidr, 'IP ranges of Services, which no kubelet may request'),
})

export const policySchema = v.strictObject({
  ...json.header('ApprovalPolicy'),
  cluster: v.optional(clusterSchema),
  rules: json.described(
    v.array(v.union([kubeletClientSchema, kubeletServingSchema, approveSchema, denySchema])),
    'a denial beats an approval in any order; kcert skips requests that no rule approves',
  ),
})

export type PolicyDocument = v.InferOutput<typeof policySchema>
export type RuleDocument = PolicyDocument['rules'][number]
