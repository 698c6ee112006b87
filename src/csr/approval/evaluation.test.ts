import { expect, test } from 'vitest'
import { nodeNames, requestPem, servingDescription } from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import type { RequestDescription } from '../../x509/issuing.ts'
import type { RequestObject } from '../requests-api.ts'
import { evaluateByHand, evaluateByPolicy } from './evaluation.ts'
import { noFacts } from './facts.ts'
import { builtinPolicies, readPolicies } from './policy-file.ts'

const addresses = [
  ...nodeNames.dns.map((address) => ({ type: 'InternalDNS', address })),
  ...nodeNames.ip.map((address) => ({ type: 'InternalIP', address })),
]
const cluster = {
  nodes: [{ name: 'node-1', addresses, isControlPlane: false }],
  addresses: { apiServers: ['192.0.2.10'], serviceCidrs: ['10.96.0.0/12'] },
  allowed: [],
  served: {},
}
const facts = fakeFacts(cluster)

function object(description: RequestDescription, fields: Partial<RequestObject['spec']> = {}): RequestObject {
  return {
    metadata: { name: 'a', uid: 'u', resourceVersion: '1' },
    spec: {
      request: Buffer.from(requestPem(description)).toString('base64'),
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      username: 'system:node:node-1',
      groups: ['system:nodes', 'system:authenticated'],
      ...fields,
    },
  }
}

const names = (dns: readonly string[], ip: readonly string[] = [nodeNames.ip[0]]): RequestDescription => ({
  ...servingDescription(),
  subjectAltNames: { dns: [...dns], ip: [...ip] },
})
const user = {
  signerName: 'kubernetes.io/kube-apiserver-client',
  usages: ['client auth'],
  username: 'ann',
  groups: ['system:authenticated'],
}
const subject = (commonName: string, ...organization: string[]): RequestDescription => ({
  subject: { commonName, organization },
})

const dangerous: readonly [string, RequestObject, string][] = [
  ['system:masters', object(subject('eve', 'system:masters'), user), 'no-system-masters'],
  [
    'a node by the signer of users',
    object(subject('system:node:cp1', 'system:nodes'), user),
    'reserved-identity',
  ],
  [
    'a user that Kubernetes keeps for itself',
    object(subject('system:kube-scheduler'), user),
    'reserved-identity',
  ],
  [
    'a group that Kubernetes keeps for itself',
    object(subject('ann', 'system:nodes'), user),
    'reserved-identity',
  ],
  ['a wildcard of a kubelet', object(names(['*.example.com'])), 'no-wildcard'],
  ['a name of the API server', object(names(['kubernetes.default.svc'])), 'no-cluster-name'],
  ['an address of the API server', object(names(['node-1'], ['192.0.2.10'])), 'no-cluster-address'],
  ['an address of a service', object(names(['node-1'], ['10.96.0.1'])), 'no-cluster-address'],
  ['a node that requests another', object(servingDescription(), { username: 'system:node:x' }), 'requester'],
  ['a user who requests a node', object(servingDescription(), { username: 'eve', groups: [] }), 'requester'],
  [
    'an unauthorized user who bootstraps a node',
    object(subject('system:node:cp1', 'system:nodes'), {
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
      username: 'eve',
    }),
    'access-review',
  ],
  [
    'a request that the signer fails',
    object(servingDescription(), { usages: ['client auth'] }),
    'signer-takes-it',
  ],
  ['an unreadable request', { ...object(servingDescription(), { request: 'AAAA' }) }, 'request-pem'],
]

test.each(dangerous)('by name, refuses %s, and approves it with force', async (_, given, rule) => {
  const asked = await evaluateByHand('approve', facts, false)(given)
  expect(asked.course).toBe('refused')
  expect(asked.reason).toMatch(new RegExp(`^${rule}:`))
  expect(asked.verdict.findings.find(({ id }) => id === rule)?.outcome).toBe('unmet')
  expect(await evaluateByHand('approve', facts, true)(given)).toMatchObject({
    course: 'act',
    reason: `forced: ${rule}`,
  })
})

test.each(['no-system-masters', 'reserved-identity'])(
  'by name, reports entitlement as unmet when a user requests more than a user may: %s',
  async (rule) => {
    const [, given] = dangerous.find(([, , id]) => id === rule)!
    const { verdict } = await evaluateByHand('approve', facts, false)(given)
    expect(verdict.duties).toEqual({ identity: 'unknown', entitlement: 'unmet' })
    expect(verdict.findings.find(({ id }) => id === rule)).toMatchObject({
      duty: 'entitlement',
      fix: expect.stringMatching(/^deny it: |^approve it with --force if that is intended$/),
    })
  },
)

test.each(dangerous)('by name, always allows to deny %s', async (_, given) => {
  expect(await evaluateByHand('deny', facts, false)(given)).toMatchObject({ course: 'act' })
})

test('by name, approves a user, with the duties that a person must check as unknown', async () => {
  const evaluation = await evaluateByHand('approve', facts, false)(object(subject('ann', 'devs'), user))
  expect(evaluation.course).toBe('act')
  expect(evaluation.verdict.duties).toEqual({ identity: 'unknown', entitlement: 'unknown' })
})

test('by name, approves names that the Node does not have, and shows them as unmet', async () => {
  const evaluation = await evaluateByHand(
    'approve',
    facts,
    false,
  )(object(names(['node-1', 'other.example.com'])))
  expect(evaluation.course).toBe('act')
  expect(evaluation.verdict.duties).toEqual({ identity: 'met', entitlement: 'unmet' })
})

test('by name, approves a Node that has not registered yet', async () => {
  const evaluate = evaluateByHand('approve', fakeFacts({ ...cluster, nodes: [] }), false)
  const { course, reason, verdict } = await evaluate(object(servingDescription()))
  expect([course, reason, verdict.duties.identity]).toEqual(['act', 'by hand', 'unmet'])
})

test('still applies the rules on the text of the request when lookups are forbidden or fail', async () => {
  const failing = fakeFacts({ failing: { findNode: 'timeout' } })
  for (const dark of [noFacts, failing]) {
    const evaluate = evaluateByHand('approve', dark, false)
    expect(await evaluate(object(names(['*.example.com'])))).toMatchObject({ course: 'refused' })
    expect(await evaluate(object(servingDescription()))).toMatchObject({
      course: 'act',
      verdict: { isIncomplete: dark === failing },
    })
  }
})

test('by policy, reports a failed lookup as incomplete, and skips a request whose facts are unavailable', async () => {
  const failing = fakeFacts({ failing: { findNode: 'timeout' } })
  const given = object(servingDescription())
  expect(await evaluateByPolicy('approve', builtinPolicies, failing)(given)).toMatchObject({
    course: 'incomplete',
  })
  expect(await evaluateByPolicy('approve', builtinPolicies, noFacts)(given)).toMatchObject({
    course: 'skipped',
  })
})

test('approving never denies, and denying never approves', async () => {
  const text = `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- {name: no-ci, decision: deny, signerNames: ["*/*"], groups: [ci]}
- {builtin: kubelet-serving}
`
  const policies = await readPolicies(text, 'policy.yaml')
  const ci = object(servingDescription(), { groups: ['ci', 'system:nodes'] })
  const node = object(servingDescription())
  const approve = evaluateByPolicy('approve', policies, facts)
  const deny = evaluateByPolicy('deny', policies, facts)
  expect(await approve(ci)).toMatchObject({
    course: 'skipped',
    reason: expect.stringMatching('no-ci denies'),
  })
  expect(await approve(node)).toMatchObject({ course: 'act' })
  expect(await deny(ci)).toMatchObject({ course: 'act' })
  expect(await deny(node)).toMatchObject({
    course: 'skipped',
    reason: 'policy kubelet-serving approves it',
  })
  const stranger = object(servingDescription(), { groups: [] })
  expect((await deny(stranger)).reason).not.toContain('approves it')
  expect((await approve(stranger)).reason).not.toContain('denies it')
})

test('does not act on an object that is already approved, denied or failed', async () => {
  const given = (type: string): RequestObject => ({
    ...object(servingDescription()),
    status: { conditions: [{ type, status: 'True' }] },
  })
  const evaluate = evaluateByHand('approve', facts, true)
  expect(await evaluate(given('Approved'))).toMatchObject({ course: 'already-decided' })
  // The findings no longer matter.
  expect(await evaluate(given('Denied'))).toMatchObject({ course: 'skipped', verdict: { findings: [] } })
  expect(await evaluate(given('Failed'))).toMatchObject({ course: 'skipped' })
})

test('skips an object that is being deleted, and treats an issued one as approved', async () => {
  const evaluate = evaluateByHand('approve', facts, true)
  const given = object(servingDescription())
  const deleted = { ...given, metadata: { ...given.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
  expect(await evaluate(deleted)).toMatchObject({
    course: 'skipped',
    reason: 'the object is being deleted',
  })
  const issued = { ...given, status: { certificate: 'YQ==' } }
  expect(await evaluate(issued)).toMatchObject({ course: 'already-decided', reason: 'already approved' })
  expect(await evaluateByHand('deny', facts, true)(issued)).toMatchObject({ course: 'skipped' })
})

test('by name, reports the duty of each finding when no policy applies to the request', async () => {
  const { verdict } = await evaluateByHand('approve', facts, false)(object(subject('ann', 'devs'), user))
  const duties = verdict.findings.map(({ id, duty, outcome }) => `${id} ${duty} ${outcome}`)
  expect(duties).toEqual(
    expect.arrayContaining([
      'requester identity unknown',
      'permission entitlement unknown',
      'reserved-identity entitlement met',
    ]),
  )
  expect(verdict.findings.filter(({ question }) => question !== 'approval')).toEqual([])
  expect(verdict.findings.find(({ id }) => id === 'requester')).toMatchObject({
    detail: 'not verified: "ann" is who the request says',
    fix: 'ask the person or team named in the request, through another channel',
  })
  expect(verdict.findings.find(({ id }) => id === 'permission')).toMatchObject({
    fix: 'decide, or write a policy rule (docs/policy.md)',
  })
  const other = object(subject('ann'), { ...user, signerName: 'example.com/a' })
  const found = (await evaluateByHand('approve', facts, false)(other)).verdict.findings.map(({ id }) => id)
  expect(found.slice(-3)).toEqual(['signer-takes-it', 'requester', 'permission'])
  const unread = object(servingDescription(), { request: 'AAAA' })
  expect((await evaluateByHand('approve', facts, true)(unread)).verdict.duties).toEqual({
    identity: 'unmet',
    entitlement: 'unknown',
  })
})
