import { describe, expect, test } from 'vitest'
import { clientRequest } from '../../../test/csr/made-requests.ts'
import { type FakeCluster, type FakeFacts, fakeFacts } from '../../../test/fakes/approval-facts.ts'
import type { SigningRequest } from '../signing-request.ts'
import { decide, type Verdict } from './decide.ts'
import { kubeletClientPolicy } from './kubelet-client.ts'

const bootstrap: Partial<SigningRequest> = {
  username: 'system:bootstrap:abcdef',
  userUid: 'u-1',
  groups: ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token'],
  extra: { 'example.com/zone': ['a', 'b'] },
}
const mayBootstrap: FakeCluster = { allowed: ['system:bootstrap:abcdef nodeclient'] }

async function ask(
  object: SigningRequest,
  cluster: FakeCluster,
  newNodesOnly = false,
): Promise<Verdict & { facts: FakeFacts }> {
  const facts = fakeFacts(cluster)
  return { ...(await decide(object, [kubeletClientPolicy({ newNodesOnly })], facts)), facts }
}

describe('the RBAC lookup', () => {
  test('is the one that kube-controller-manager makes, with all attributes of the requester', async () => {
    const { decision, facts } = await ask(clientRequest(bootstrap), mayBootstrap)
    expect(decision).toBe('approve')
    expect(facts.questions).toEqual([
      {
        user: 'system:bootstrap:abcdef',
        uid: 'u-1',
        groups: bootstrap.groups,
        extra: bootstrap.extra,
        resource: {
          group: 'certificates.k8s.io',
          version: '*',
          resource: 'certificatesigningrequests',
          subresource: 'nodeclient',
          verb: 'create',
        },
      },
    ])
  })

  test('when unavailable, is suggested as a kubectl command with a separate subresource and all groups', async () => {
    const { findings } = await ask(clientRequest(bootstrap), {})
    expect(findings.find(({ id }) => id === 'access-review')?.next).toBe(
      'kubectl auth can-i create certificatesigningrequests.certificates.k8s.io --subresource=nodeclient --as=system:bootstrap:abcdef --as-group=system:bootstrappers --as-group=system:bootstrappers:kubeadm:default-node-token',
    )
    const drafted = await ask(clientRequest({ username: undefined as never, groups: [] }), {})
    expect(drafted.findings.find(({ id }) => id === 'access-review')).toMatchObject({
      detail: 'kcert could not check whether RBAC lets the requester create nodeclient',
      next: expect.stringMatching(/--subresource=nodeclient --as=USER$/),
    })
  })

  test('of a node for itself asks for selfnodeclient first, then nodeclient', async () => {
    const { decision, facts } = await ask(clientRequest(), { allowed: ['system:node:node-1 nodeclient'] })
    expect(decision).toBe('approve')
    expect(facts.questions.map(({ resource }) => resource.subresource)).toEqual([
      'selfnodeclient',
      'nodeclient',
    ])
    expect(
      (await ask(clientRequest(), { allowed: ['system:node:node-1 selfnodeclient'] })).facts.questions,
    ).toHaveLength(1)
  })

  test('skips the request when it is not allowed, and names the missing role', async () => {
    const { decision, findings } = await ask(clientRequest(bootstrap), { allowed: [] })
    expect(decision).toBe('ignore')
    expect(findings.find(({ outcome }) => outcome === 'unmet')).toMatchObject({
      id: 'access-review',
      duty: 'entitlement',
      fix: expect.stringContaining('system:certificates.k8s.io:certificatesigningrequests:nodeclient'),
    })
  })

  test('skips the request when the lookup is unavailable or fails', async () => {
    expect(await ask(clientRequest(bootstrap), {})).toMatchObject({ decision: 'ignore', isIncomplete: false })
    const failing = await ask(clientRequest(bootstrap), {
      ...mayBootstrap,
      failing: { isAllowed: 'connection reset' },
    })
    expect(failing).toMatchObject({
      decision: 'ignore',
      isIncomplete: true,
      reason: 'kubelet-client: a lookup failed: connection reset',
    })
  })
})

describe('for new nodes only', () => {
  const node = { name: 'node-1', addresses: [], isControlPlane: false }

  test('refuses a certificate for an existing Node to a bootstrap token', async () => {
    expect((await ask(clientRequest(bootstrap), { ...mayBootstrap, nodes: [node] }, true)).decision).toBe(
      'ignore',
    )
    expect((await ask(clientRequest(bootstrap), { ...mayBootstrap, nodes: [] }, true)).decision).toBe(
      'approve',
    )
    expect((await ask(clientRequest(bootstrap), mayBootstrap, true)).decision).toBe('ignore')
    expect((await ask(clientRequest(bootstrap), { ...mayBootstrap, nodes: [node] })).decision).toBe('approve')
  })

  test('still lets a node renew its certificate', async () => {
    const around = { allowed: ['system:node:node-1 selfnodeclient'], nodes: [node] }
    expect((await ask(clientRequest(), around, true)).decision).toBe('approve')
  })
})

test('refuses a node that requests the name of another node, even where RBAC allows it', async () => {
  const { decision, facts, duties } = await ask(clientRequest({ username: 'system:node:node-2' }), {
    allowed: ['system:node:node-2 nodeclient'],
  })
  expect({ decision, duties, questions: facts.questions }).toEqual({
    decision: 'ignore',
    duties: { identity: 'unmet', entitlement: 'unknown' },
    questions: [],
  })
})
