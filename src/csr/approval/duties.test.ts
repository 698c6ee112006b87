import { expect, test } from 'vitest'
import { clientRequest, nodeNames, servingRequest, submitted } from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { decide } from './decide.ts'
import { noFacts } from './facts.ts'
import { builtinPolicies, readPolicies } from './policy-file.ts'

const addresses = [...nodeNames.dns, ...nodeNames.ip].map((address) => ({ type: 'InternalDNS', address }))
const facts = fakeFacts({
  nodes: [{ name: 'node-1', addresses, isControlPlane: false }],
  addresses: { apiServers: ['192.0.2.10'], serviceCidrs: ['10.96.0.0/12'] },
  allowed: [],
})
const user = submitted(
  { subject: { commonName: 'ann', organization: ['devs'] } },
  { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'], username: 'ann', groups: [] },
)
const rule = await readPolicies(
  `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- {name: devs, decision: approve, signerNames: ["kubernetes.io/kube-apiserver-client"], usernames: [ann], commonNames: ["{username}"], organizations: [devs], usages: [client auth]}
`,
  'policy.yaml',
)
// Who sends the request, and whether the requester may have these names.
const identity = [
  'key-possession',
  'key-strength',
  'one-subject',
  'node-name',
  'requester',
  'requester-group',
  'node-exists',
]
const common = [
  ...['key-possession', 'key-strength', 'one-subject', 'plain-subject', 'plain-request', 'no-system-masters'],
  ...['no-ca', 'plain-names', 'signer-takes-it'],
]
const serving = [
  ...common,
  ...[
    'node-name',
    'requester',
    'requester-group',
    'no-wildcard',
    'no-cluster-name',
    'no-special-address',
    'dns-suffix',
  ],
]
const ofCluster = ['node-exists', 'own-names', 'no-cluster-address', 'no-other-node']
const ofRule = [
  ...[
    'requester',
    'common-name',
    'organization',
    'dns-names',
    'ip-addresses',
    'emails',
    'uris',
    'usages',
    'lifetime',
  ],
]

test.each([
  ['kubelet-serving', servingRequest(), builtinPolicies, facts, [...serving, ...ofCluster]],
  [
    'kubelet-serving without a cluster',
    servingRequest(),
    builtinPolicies,
    noFacts,
    [...serving, 'node-exists', 'own-names'],
  ],
  [
    'kubelet-serving for another node',
    servingRequest({ username: 'system:node:x' }),
    builtinPolicies,
    facts,
    [...serving, 'own-names'],
  ],
  [
    'kubelet-client',
    clientRequest(),
    builtinPolicies,
    facts,
    [...common, 'node-name', 'requester', 'access-review'],
  ],
  ['a rule of a policy', user, rule, facts, [...common, ...ofRule]],
])('each finding for %s names its duty', async (_, object, policies, known, ids) => {
  const { findings } = await decide(object, policies, known)
  expect(findings.map(({ id, duty }) => [id, duty])).toEqual(
    ids.map((id) => [id, identity.includes(id) ? 'identity' : 'entitlement']),
  )
})
