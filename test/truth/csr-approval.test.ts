import { describe, expect, test } from 'vitest'
import { decide } from '../../src/csr/approval/decide.ts'
import { kubeletClientPolicy } from '../../src/csr/approval/kubelet-client.ts'
import { kubeletServingPolicy } from '../../src/csr/approval/kubelet-serving.ts'
import type { Policy } from '../../src/csr/approval/policy.ts'
import type { SigningRequest } from '../../src/csr/signing-request.ts'
import { type FakeCluster, fakeFacts } from '../fakes/approval-facts.ts'
import { recorded } from './recorded.ts'

interface ApprovalCase {
  readonly id: string
  readonly policy:
    | 'kcm-nodeclient'
    | 'kcm-selfnodeclient'
    | 'kcm-handle'
    | 'node-object-match'
    | 'kubelet-serving-conformance'
  readonly expect: 'approve' | 'deny' | 'ignore' | 'error' | 'recognise'
  readonly signerName: string
  readonly usages: string[]
  readonly username: string
  readonly groups: string[]
  readonly request: string
  readonly context: {
    readonly sarAllowed?: boolean
    readonly sarError?: boolean
    readonly nodeExists?: boolean
    readonly nodeAddresses?: { type: string; address: string }[] | null
    readonly status?: { certificate?: string; conditions?: string[] }
    readonly deletionTimestamp?: boolean
    readonly updateError?: boolean
  }
}

const truth = recorded<{ cases: ApprovalCase[] }>('csr-approval.json')

/**
 * The cases where kcert's policies differ from the recorded approver, with the reason. None of them is an approval that the
 * recorded approver did not give.
 */
const disagreements: Readonly<Record<string, { kcert: string; why: string }>> = {
  'kcm/nodeclient/other-cn': {
    kcert: 'ignore',
    why: "a node asks for another node's identity; the controller leaves this to NodeRestriction, kcert does not rely on that plugin",
  },
  'kcm/nodeclient/other-cn-no-key-encipherment': { kcert: 'ignore', why: 'as above' },
  'alex1989hu/valid': {
    kcert: 'ignore',
    why: 'the recorded approver holds the names against nothing; kcert wants them among the addresses of the Node, and there is no Node',
  },
  'alex1989hu/dns-only': { kcert: 'ignore', why: 'as above' },
  'alex1989hu/ip-only': { kcert: 'ignore', why: 'as above' },
}

function objectOf({ signerName, usages, username, groups, request, context }: ApprovalCase): SigningRequest {
  const conditions = (context.status?.conditions ?? []).map((type) => ({ type, status: 'True' }))
  const certificate = context.status?.certificate
  return {
    apiVersion: 'certificates.k8s.io/v1',
    name: 'csr-1',
    labels: {},
    request: Buffer.from(request),
    signerName,
    usages,
    username,
    groups,
    extra: {},
    conditions,
    ...(certificate === undefined ? {} : { certificate: Buffer.from(certificate) }),
    ...(context.deletionTimestamp ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
  }
}

/** Returns the cluster of a case. Where the case has no RBAC result, every recognized requester is allowed. */
function clusterOf({ policy, username, context }: ApprovalCase): FakeCluster {
  const subresources = {
    'kcm-nodeclient': ['nodeclient'],
    'kcm-selfnodeclient': ['selfnodeclient'],
    'kcm-handle': ['nodeclient', 'selfnodeclient'],
    'node-object-match': [],
    'kubelet-serving-conformance': [],
  }[policy]
  const addresses = context.nodeAddresses
  return {
    allowed: context.sarAllowed === false ? [] : subresources.map((name) => `${username} ${name}`),
    nodes: addresses
      ? [{ name: username.replace('system:node:', ''), addresses, isControlPlane: false }]
      : [],
    served: {},
    addresses: { apiServers: [], serviceCidrs: [] },
    ...(context.sarError ? { failing: { isAllowed: 'the API server does not answer' } } : {}),
  }
}

// gardener's approver denies a request that breaks its rules; the others skip it. Both approve names that do not begin with the
// node's,
// which kcert's policy does only for the suffixes in its settings.
function policiesFor({ policy }: ApprovalCase): Policy[] {
  const onViolation = policy === 'node-object-match' ? 'deny' : 'ignore'
  const dnsSuffixes = ['bar', 'baz', 'foo']
  return [kubeletClientPolicy({ onViolation }), kubeletServingPolicy({ onViolation, dnsSuffixes })]
}

/** The recorded outcomes as kcert decisions: an error skips the object, and a recognized and allowed requester is approved. */
const inOurWords = {
  approve: 'approve',
  recognise: 'approve',
  deny: 'deny',
  ignore: 'ignore',
  error: 'ignore',
}

async function decisions(): Promise<{ id: string; kcert: string; recorded: string }[]> {
  return Promise.all(
    truth!.cases.map(async (one) => ({
      id: one.id,
      kcert: (await decide(objectOf(one), policiesFor(one), fakeFacts(clusterOf(one)))).decision,
      recorded: inOurWords[one.expect],
    })),
  )
}

describe.skipIf(truth === undefined)(
  'the recorded approvers: kube-controller-manager, gardener, kubelet-serving-cert-approver',
  () => {
    test('approves nothing that they did not approve', async () => {
      const approved = (await decisions()).filter(({ kcert }) => kcert === 'approve')
      expect(approved.filter(({ recorded }) => recorded !== 'approve')).toEqual([])
      expect(approved.length).toBeGreaterThan(0)
    })

    test('decides all 74 cases as recorded, except those in the table', async () => {
      const all = await decisions()
      expect(all).toHaveLength(74)
      const differing = all.filter(({ kcert, recorded }) => kcert !== recorded)
      const table = Object.entries(disagreements).map(([id, { kcert }]) => ({ id, kcert }))
      expect(differing.map(({ id, kcert }) => ({ id, kcert }))).toEqual(table)
    })

    test('approves what an approver that ignores Nodes approved, once the Node has these names', async () => {
      for (const one of truth!.cases.filter(({ id }) => /^alex1989hu\/(valid|dns-only|ip-only)$/.test(id))) {
        const nodeAddresses = [
          { type: 'InternalDNS', address: 'foo.bar' },
          { type: 'InternalIP', address: '1.2.3.4' },
        ]
        const withNode = { ...one, context: { ...one.context, nodeAddresses } }
        const { decision } = await decide(objectOf(one), policiesFor(one), fakeFacts(clusterOf(withNode)))
        expect({ id: one.id, decision }).toEqual({ id: one.id, decision: 'approve' })
      }
    })

    test('approves nothing after a failed lookup or a negative review', async () => {
      for (const one of truth!.cases.filter(({ policy }) => policy === 'kcm-nodeclient')) {
        const failing = fakeFacts({ ...clusterOf(one), failing: { isAllowed: 'timeout' } })
        const refusing = fakeFacts({ ...clusterOf(one), allowed: [] })
        for (const facts of [failing, refusing])
          expect((await decide(objectOf(one), policiesFor(one), facts)).decision).toBe('ignore')
      }
    })

    test('without dnsSuffixes, skips names that do not begin with the node’s, including approved ones', async () => {
      const one = truth!.cases.find(({ id }) => id === 'gardener/all-match')!
      const { decision, reason } = await decide(
        objectOf(one),
        [kubeletServingPolicy()],
        fakeFacts(clusterOf(one)),
      )
      expect(decision).toBe('ignore')
      expect(reason).toMatch(
        /^dns-suffix: "foo\.bar", "bar\.baz", "baz\.foo", "baz\.bar" is not the node's name/,
      )
    })

    test('makes no lookups for a request that is not recognized', async () => {
      const one = truth!.cases.find(({ id }) => id === 'kcm/handle/recognised-0-allowed-1')!
      const facts = fakeFacts(clusterOf(one))
      await decide(objectOf(one), policiesFor(one), facts)
      expect(facts.lookups).toEqual([])
    })
  },
)
