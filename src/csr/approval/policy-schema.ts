import * as v from 'valibot'
import { usages } from '../../pki/usages.ts'
import { described, header } from '../../x509/json-fields.ts'
import { parseCidr } from './addresses.ts'
import { placeholdersOf } from './patterns.ts'
import { placeholderNames } from './user-rule.ts'

// The approval policy, as users write it. docs/schemas/ApprovalPolicy.json is generated from this; policy-file.ts loads it
// when there is a policy to read.

const text = v.pipe(v.string(), v.nonEmpty('is empty'))

const pattern = v.pipe(
  text,
  v.check(
    (value) => placeholdersOf(value).every((name) => placeholderNames.includes(name)),
    `has a placeholder that is none of ${placeholderNames.map((name) => `{${name}}`).join(', ')}`,
  ),
)

const cidr = v.pipe(
  text,
  v.check(
    (value) => parseCidr(value) !== undefined,
    'is no range of addresses such as 10.0.0.0/16 or fd00::/64',
  ),
)

const dnsSuffix = v.pipe(
  text,
  v.regex(/^\.?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$/, 'is no end of a DNS name such as .nodes.example.com'),
)

const seconds = v.pipe(
  v.number(),
  v.integer('is no whole number of seconds'),
  v.minValue(600, 'is below 600, the least that the API server takes'),
)

const list = <Item extends v.GenericSchema>(item: Item, what: string) =>
  v.optional(described(v.array(item), what))

const maxNames = v.optional(
  v.pipe(
    v.number(),
    v.integer('is no whole number'),
    v.minValue(1, 'allows no name'),
    v.description('the most DNS names, IP addresses, email addresses and URIs together; default: any number'),
  ),
)
const name = v.optional(described(text, 'shown in verdicts and in the condition of the object'))
const onViolation = v.optional(
  described(
    v.picklist(['ignore', 'deny']),
    'what to do with a request that certainly breaks a rule; default: ignore, which leaves it alone',
  ),
)
const maxExpirationSeconds = v.optional(described(seconds, 'the longest lifetime that may be asked for'))

export const kubeletClientSchema = v.strictObject({
  builtin: v.literal('kubelet-client'),
  name,
  onViolation,
  newNodesOnly: v.optional(
    described(
      v.boolean(),
      'approve a first certificate only while no Node of that name exists; default: false',
    ),
  ),
})

export const kubeletServingSchema = v.strictObject({
  builtin: v.literal('kubelet-serving'),
  name,
  onViolation,
  names: v.optional(
    described(
      v.picklist(['node', 'served', 'node-or-served']),
      "what the names must be: among the Node's addresses, those of the certificate that the kubelet serves now, or either; default: node-or-served",
    ),
  ),
  dnsSuffixes: list(
    dnsSuffix,
    "DNS names must end in one of these, or be the Node's name; default: the Node's name, alone or with a suffix of two labels or more",
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
  name: described(text, 'shown in verdicts and in the condition of the object'),
  signerNames: v.pipe(
    v.array(pattern),
    v.minLength(1, 'is empty'),
    v.description('patterns; "*" stops at a slash'),
  ),
  usernames: patterns('patterns of spec.username; "*" stops at a colon'),
  groups: list(text, 'out of spec.groups: exact names in an approving rule, patterns in a denying one'),
  commonNames: patterns('patterns of the common name'),
  organizations: patterns('patterns of the organizations (groups) in the subject'),
  dnsNames: patterns('patterns of DNS names; "*" stops at a dot'),
  ipAddresses: list(cidr, 'ranges of IP addresses'),
  emails: patterns('patterns of email addresses'),
  uris: patterns('patterns of URIs; "*" stops at a slash'),
  usages: list(v.picklist(usages as [string, ...string[]]), 'usages of the certificates API'),
  maxExpirationSeconds,
}

export const approveSchema = described(
  v.strictObject({
    decision: v.literal('approve'),
    ...ruleFields,
    wildcards: v.optional(
      described(
        v.boolean(),
        'let commonNames and dnsNames fit names that are wildcards themselves; default: false',
      ),
    ),
    maxNames,
  }),
  'approves what is wholly within the lists; a list that is left out allows nothing',
)

export const denySchema = described(
  v.strictObject({ decision: v.literal('deny'), ...ruleFields }),
  'denies what has one of the values of every list that is given; "*" stops at nothing',
)

export const clusterSchema = v.strictObject({
  domain: v.optional(described(dnsSuffix, "the domain of the cluster's services; default: cluster.local")),
  apiServers: list(text, 'names and addresses of API servers and load balancers, which no kubelet may have'),
  serviceCidrs: list(cidr, 'addresses of Services, which no kubelet may have'),
})

export const policySchema = v.strictObject({
  ...header('ApprovalPolicy'),
  cluster: v.optional(clusterSchema),
  rules: described(
    v.array(v.union([kubeletClientSchema, kubeletServingSchema, approveSchema, denySchema])),
    'a denial beats an approval, whatever the order; what no rule approves is left alone',
  ),
})

export type PolicyDocument = v.InferOutput<typeof policySchema>
export type RuleDocument = PolicyDocument['rules'][number]
