import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  attribute,
  clientRequest,
  craftedRequestPem,
  requestPem,
  servingDescription,
  servingRequest,
  submitted,
} from '../../../test/csr/made-requests.ts'
import { type FakeCluster, fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { longRsaKey } from '../../../test/fixtures/long-rsa.ts'
import { bitString, integer, oid, sequence, utf8String } from '../../x509/der-writer.ts'
import type { RequestDescription } from '../../x509/issuing.ts'
import { oidOf } from '../../x509/oids.ts'
import type { Finding } from '../rule.ts'
import type { SigningRequest } from '../signing-request.ts'
import { readRequestContent } from '../signing-request.ts'
import { parseCidr } from './addresses.ts'
import type { Candidate } from './candidate.ts'
import { kubeletClientPolicy } from './kubelet-client.ts'
import { kubeletServingPolicy } from './kubelet-serving.ts'
import type { Policy } from './policy.ts'
import { requestFindings } from './request-rules.ts'
import type { NameSource } from './serving-names.ts'

// Every rule of every policy: its name, its duty, and its texts when it is met, unmet or unknown.

const candidateOf = (object: SigningRequest): Candidate => ({
  object,
  request: readRequestContent(object.request).request!,
})
const line = ({ id, duty, outcome, detail }: Finding): string => `${id} ${duty} ${outcome}: ${detail}`
const unmetOf = (findings: readonly Finding[]): Finding[] =>
  findings.filter(({ outcome }) => outcome !== 'met')

async function findingsOf(
  policy: Policy,
  object: SigningRequest,
  cluster: FakeCluster = {},
): Promise<readonly Finding[]> {
  return (await policy.evaluate(candidateOf(object), fakeFacts(cluster))).findings
}

const pem = (text: string): Partial<SigningRequest> => ({ request: Buffer.from(text) })
const serving = (change: Partial<RequestDescription>, fields: Partial<SigningRequest> = {}): SigningRequest =>
  servingRequest({ ...pem(requestPem({ ...servingDescription(), ...change })), ...fields })
const nodeSubject = { commonName: 'system:node:node-1', organization: ['system:nodes'] }

describe('the rules common to all approvals', () => {
  test('are all met by a request of a node', () => {
    const findings = requestFindings(candidateOf(servingRequest()))
    expect(findings.map(line)).toEqual([
      'key-possession identity met: the request is signed with its own key',
      'key-strength identity met: ECDSA P-256',
      'one-subject identity met: "CN=system:node:node-1,O=system:nodes"',
      'plain-subject entitlement met: only CN and O',
      'plain-request entitlement met: one PEM block, without ignored parts',
      'no-system-masters entitlement met: it does not request system:masters',
      'no-ca entitlement met: it does not request a CA certificate',
      'plain-names entitlement met: all names are well formed',
      'signer-takes-it entitlement met: no rule of kubernetes.io/kubelet-serving is broken',
    ])
    expect(new Set(findings.map(({ question }) => question))).toEqual(new Set(['approval']))
    expect(findings.filter(({ fix, next }) => (fix ?? next) !== undefined)).toEqual([])
  })

  const keyOf = (kind: 'ec' | 'rsa' | 'ed25519' | 'ed448', options: object = {}) =>
    generateKeyPairSync(kind as 'ec', options as { namedCurve: string }).privateKey
  const own = { signerName: 'example.com/own', usages: ['client auth'] }

  test.each([
    ['ECDSA P-256', keyOf('ec', { namedCurve: 'P-256' }), true],
    ['ECDSA P-384', keyOf('ec', { namedCurve: 'P-384' }), true],
    ['ECDSA P-521', keyOf('ec', { namedCurve: 'P-521' }), true],
    ['ECDSA P-224 is too weak', keyOf('ec', { namedCurve: 'secp224r1' }), false],
    ['RSA 2048', keyOf('rsa', { modulusLength: 2048 }), true],
    ['RSA 8676, which TLS in Go, and so Kubernetes, refuses: 8192 bits is the maximum', longRsaKey(), false],
    ['RSA 2047 is too weak', keyOf('rsa', { modulusLength: 2047 }), false],
    ['Ed25519', keyOf('ed25519'), true],
  ])('a key: %s', (detail, key, isStrong) => {
    const findings = requestFindings(
      candidateOf(
        submitted({ subject: nodeSubject }, { ...own, ...pem(requestPem({ subject: nodeSubject }, key)) }),
      ),
    )
    expect(findings.find(({ id }) => id === 'key-strength')).toMatchObject({
      duty: 'identity',
      outcome: isStrong ? 'met' : 'unmet',
      detail,
      ...(!isStrong && { fix: 'create a new key: ECDSA P-256, or RSA with 2048 bits' }),
    })
  })

  test('do not take a key of an unsupported type for a supported one of the same length', () => {
    const parameters = sequence(integer(Buffer.alloc(256, 0xff)), integer(3), integer(2))
    const dsa = sequence(sequence(oid(oidOf('id-dsa')), parameters), bitString(integer(5)))
    const request = pem(craftedRequestPem(nodeSubject, [], [], dsa))
    const findings = requestFindings(candidateOf(submitted({ subject: {} }, { ...own, ...request })))
    expect(findings.filter(({ id }) => id === 'key-strength').map(line)).toEqual([
      'key-strength identity unmet: Kubernetes does not support DSA 2048 keys',
    ])
  })

  const twoNames = [
    [{ type: 'CN', value: 'a' }],
    [{ type: 'O', value: 'system:nodes' }],
    [{ type: 'CN', value: 'b' }],
  ]
  test.each<[Partial<RequestDescription>, Partial<SigningRequest>, string]>([
    [{ subject: twoNames }, {}, 'one-subject identity unmet: common names "a", "b"'],
    [
      { extensions: [{ oid: '2.5.29.15', value: Buffer.from('ff', 'hex') }] },
      {},
      'one-subject identity unmet: extension 2.5.29.15 cannot be read',
    ],
    [
      { subject: { ...nodeSubject, organizationalUnit: ['x'] } },
      {},
      'plain-subject entitlement unmet: the subject has "OU", which is not a string value of CN or O',
    ],
    [
      { subject: { commonName: 'a', organization: ['system:masters'] } },
      {},
      'no-system-masters entitlement unmet: it requests O=system:masters',
    ],
    [
      { basicConstraints: { ca: true } },
      {},
      'no-ca entitlement unmet: it requests "CA:TRUE", which only a CA may have',
    ],
    [
      { keyUsage: ['digitalSignature', 'keyCertSign', 'cRLSign'] },
      {},
      'no-ca entitlement unmet: it requests "keyCertSign", "cRLSign", which only a CA may have',
    ],
    [
      {},
      { usages: ['client auth', 'cert sign', 'crl sign'] },
      'no-ca entitlement unmet: it requests "cert sign", "crl sign", which only a CA may have',
    ],
    [
      {
        subjectAltNames: {},
        extensions: [{ oid: '2.5.29.17', value: Buffer.from('30058203610162', 'hex') }],
      },
      {},
      'plain-names entitlement unmet: "a\\u0001b" is a name with a control or invisible character',
    ],
    [
      { subject: { commonName: 'a\u200bb' } },
      {},
      'plain-names entitlement unmet: "a\u200bb" is a name with a control or invisible character',
    ],
    [{ subjectAltNames: { dns: ['a_b'] } }, {}, 'plain-names entitlement unmet: "a_b" is not a DNS name'],
    [
      { subjectAltNames: { email: ['a@b,c@d'] } },
      {},
      'plain-names entitlement unmet: "a@b,c@d" is not exactly one email address',
    ],
    [
      { subjectAltNames: { uri: ['x:/a/../b'] } },
      {},
      'plain-names entitlement unmet: "x:/a/../b" is not a normalized URI',
    ],
  ])('%j %j: %s', (description, fields, expected) => {
    const findings = requestFindings(candidateOf(serving(description, { ...own, ...fields })))
    expect(unmetOf(findings).map(line)).toContain(expected)
    expect(unmetOf(findings)[0]!.fix).toMatch(/^(?:create|deny)/)
  })

  test('accept basic constraints with CA: FALSE', () => {
    const findings = requestFindings(candidateOf(serving({ basicConstraints: { ca: false } }, own)))
    expect(unmetOf(findings)).toEqual([])
    expect(line(findings.at(-1)!)).toBe(
      'signer-takes-it entitlement met: kcert does not know the rules of "example.com/own"',
    )
  })

  test('refuse a request that the Kubernetes signer would fail', () => {
    const found = unmetOf(requestFindings(candidateOf(servingRequest({ usages: ['client auth'] }))))
    expect(found.map(line)).toEqual([
      'signer-takes-it entitlement unmet: the signer requires usages digital signature and server auth, optionally key encipherment, and no other, but "digital signature", "server auth" is missing, "client auth" is not allowed',
    ])
  })

  test('refuse an attribute that Kubernetes does not read', () => {
    const crafted = craftedRequestPem(nodeSubject, [attribute('1.2.3.4', utf8String('x'))])
    const found = unmetOf(requestFindings(candidateOf(servingRequest({ ...own, ...pem(crafted) }))))
    expect(found.map((one) => [line(one), one.fix])).toEqual([
      [
        'plain-request entitlement unmet: Kubernetes ignores "1.2.3.4", which another signer may read',
        'create a new request with only names and usages',
      ],
    ])
  })

  test('refuse a text without a PEM block', () => {
    const { object, request } = candidateOf(servingRequest(own))
    const found = unmetOf(requestFindings({ object: { ...object, ...pem('') }, request }))
    expect(found.map(line)).toEqual([
      'plain-request entitlement unmet: the PEM text has 0 blocks, and Kubernetes reads the first one',
    ])
  })

  test('refuse a signature by another key', () => {
    const block = requestPem(servingDescription()).split('\n')
    const der = Buffer.from(block.slice(1, -2).join(''), 'base64')
    der[der.length - 1]! ^= 1
    const broken = `${block[0]}\n${der.toString('base64')}\n${block.at(-2)}\n`
    const [found] = unmetOf(requestFindings(candidateOf(servingRequest(pem(broken)))))
    expect(found).toMatchObject({ id: 'key-possession', duty: 'identity', outcome: 'unmet' })
    expect(found!.fix).toContain('deny it')
  })
})

const node = {
  name: 'node-1',
  addresses: [
    { type: 'Hostname', address: 'node-1' },
    { type: 'ExternalDNS', address: 'NODE-1.nodes.example.com' },
    { type: 'InternalIP', address: '10.1.0.7' },
    { type: 'ExternalIP', address: '2001:db8:0::7' },
  ],
  isControlPlane: false,
}
const cluster: FakeCluster = {
  nodes: [node],
  served: {},
  addresses: { apiServers: ['192.0.2.10', 'api.example.com'], serviceCidrs: ['10.96.0.0/12', 'none'] },
}

describe('kubelet-serving', () => {
  test('reports each of its rules as met', async () => {
    const cidrs = [parseCidr('10.1.0.0/16')!, parseCidr('2001:db8::/32')!]
    const policy = kubeletServingPolicy({ cidrs, maxNames: 4, maxExpirationSeconds: 3600 })
    const findings = await findingsOf(policy, servingRequest({ expirationSeconds: 3600 }), cluster)
    expect(findings.slice(9).map(line)).toEqual([
      'node-name identity met: "node-1"',
      'requester identity met: "system:node:node-1" requests its own identity',
      'requester-group identity met: the requester is in system:nodes',
      'no-wildcard entitlement met: no name is a wildcard',
      'no-cluster-name entitlement met: no name is a cluster-internal name',
      'no-special-address entitlement met: no name is an address that no single node owns',
      "dns-suffix entitlement met: all are the node's name, alone or followed by a domain of two labels or more",
      'cidr entitlement met: all are in 10.1.0.0/16, 2001:db8::/32',
      'name-count entitlement met: 4 names',
      'lifetime entitlement met: 3600 s',
      'node-exists identity met: Node "node-1" exists',
      'own-names entitlement met: all names are among the addresses of Node "node-1"',
      'no-cluster-address entitlement met: no name belongs to an API server or a Service',
      'no-other-node entitlement met: no other Node has one of these names',
    ])
  })

  test.each<[SigningRequest, string, RegExp]>([
    [
      servingRequest({ username: undefined as never }),
      'requester identity unknown: the requester is unknown',
      /spec\.username/,
    ],
    [
      servingRequest({ username: undefined as never, groups: [] }),
      'requester-group identity unknown: the groups of the requester are unknown',
      /spec\.groups/,
    ],
    [
      servingRequest({ username: 'ann' }),
      'requester identity unmet: "ann" requests the identity of "system:node:node-1"',
      /the kubelet itself must submit it/,
    ],
    [
      servingRequest({ groups: ['x'] }),
      'requester-group identity unmet: the requester is not in system:nodes',
      /O=system:nodes/,
    ],
    [
      serving({ subjectAltNames: { dns: ['*.node-1.a.b', '*.c'] } }),
      'no-wildcard entitlement unmet: "*.node-1.a.b", "*.c" is a wildcard',
      /only the names of the node/,
    ],
    [
      serving({ subjectAltNames: { ip: ['10.2.0.1'] } }),
      'cidr entitlement unmet: "10.2.0.1" is not in 10.1.0.0/16',
      /add it to cidrs of/,
    ],
    [
      serving({ subjectAltNames: { dns: ['other.example.com'] } }),
      'dns-suffix entitlement unmet: "other.example.com" is not the node\'s name, alone or followed by a domain of two labels or more',
      /add it to dnsSuffixes of/,
    ],
    [
      serving({ subjectAltNames: { dns: ['node-1', 'node-1.a.b'], ip: ['10.1.0.7'] } }),
      'name-count entitlement unmet: 3 names, and the policy allows 2',
      /maxNames/,
    ],
    [
      servingRequest({ expirationSeconds: 3601 }),
      'lifetime entitlement unmet: 3601 s is more than 3600 s',
      /3600 or less/,
    ],
    [
      serving({ subject: { organization: ['system:nodes'] } }, { username: '' }),
      'node-name identity unmet: the common name "" is not system:node: and the name of a Node',
      /common name is system:node: and the name of the Node$/,
    ],
    [
      serving({ subject: { ...nodeSubject, commonName: 'system:node:' } }, { username: 'system:node:' }),
      'node-name identity unmet: the common name "system:node:" names no node',
      /common name is system:node: and the name of the Node$/,
    ],
    [
      serving({ subject: { ...nodeSubject, commonName: 'system:node:A' } }),
      'node-name identity unmet: the common name "system:node:A" is not system:node: and the name of a Node',
      /common name is system:node: and the name of the Node$/,
    ],
  ])('reports a rule that is not met (%#)', async (object, expected, fix) => {
    const policy = kubeletServingPolicy({
      cidrs: [parseCidr('10.1.0.0/16')!],
      maxNames: 2,
      maxExpirationSeconds: 3600,
    })
    const found = unmetOf(await findingsOf(policy, object, cluster))
    expect(found.map(line)).toContain(expected)
    expect(found.find((one) => line(one) === expected)!).toMatchObject({
      question: 'approval',
      fix: expect.stringMatching(fix),
    })
  })

  test('makes no lookups for a request whose text breaks a rule, and reports that', async () => {
    const object = servingRequest({ username: 'ann' })
    const facts = fakeFacts(cluster)
    const { findings, reason } = await kubeletServingPolicy().evaluate(candidateOf(object), facts)
    expect(line(findings.at(-1)!)).toBe(
      'own-names entitlement unknown: the names were not compared with a Node',
    )
    expect(findings.at(-1)!.fix).toMatch(/^check the request on the cluster \(--cluster\), or add --nodes /)
    expect(reason).toBe('requester: "ann" requests the identity of "system:node:node-1"')
    expect(facts.lookups).toEqual([])
  })

  test('accepts a request without a lifetime, and has no lifetime rule without a limit', async () => {
    const limited = await findingsOf(
      kubeletServingPolicy({ maxExpirationSeconds: 600 }),
      servingRequest(),
      cluster,
    )
    expect(limited.map(line)).toContain('lifetime entitlement met: not set: the signer decides')
    const one = serving({ subjectAltNames: { dns: ['node-1'] } })
    expect((await findingsOf(kubeletServingPolicy({ maxNames: 1 }), one, cluster)).map(line)).toContain(
      'name-count entitlement met: 1 name',
    )
    const free = await findingsOf(kubeletServingPolicy(), servingRequest(), cluster)
    expect(free.filter(({ id }) => ['lifetime', 'cidr', 'name-count'].includes(id))).toEqual([])
  })

  const names = servingRequest()
  test.each<[string, FakeCluster, string, RegExp]>([
    [
      'the Nodes are unknown',
      { addresses: cluster.addresses! },
      'node-exists identity unknown: the addresses of Node "node-1" are unknown',
      /^kubectl get node node-1 -o yaml$/,
    ],
    [
      'there is no Node',
      { ...cluster, nodes: [] },
      'node-exists identity unmet: Node "node-1" does not exist',
      /wait until/,
    ],
    [
      'no information about the cluster',
      { nodes: [node] },
      'no-cluster-address entitlement unknown: the addresses of API servers and Services are unknown; you can set both under cluster: in the policy',
      /kubectl get servicecidrs/,
    ],
    [
      'a name is that of an API server',
      { ...cluster, addresses: { apiServers: ['NODE-1', '2001:DB8:0::7'], serviceCidrs: [] } },
      'no-cluster-address entitlement unmet: "node-1", "2001:db8::7" belongs to an API server or a Service',
      /deny it/,
    ],
    [
      'an address is that of a service',
      { ...cluster, addresses: { apiServers: [], serviceCidrs: ['10.1.0.0/24'] } },
      'no-cluster-address entitlement unmet: "10.1.0.7" belongs to an API server or a Service',
      /deny it/,
    ],
    [
      'another Node has an address too',
      { ...cluster, nodes: [node, { ...node, name: 'node-2', addresses: node.addresses.slice(2, 3) }] },
      'no-other-node entitlement unmet: Node "node-2" has "10.1.0.7" too',
      /sharedAddresses/,
    ],
    [
      'the Node has no such name, and the kubelet serves nothing',
      { ...cluster, nodes: [{ ...node, addresses: node.addresses.slice(1) }] },
      'own-names entitlement unmet: "node-1" is not an address of Node "node-1", and the kubelet serves no certificate',
      /^kubectl get node node-1/,
    ],
    [
      'the Node has no such name, and the certificate that the kubelet serves is unknown',
      {
        nodes: [{ ...node, addresses: node.addresses.slice(1) }],
        addresses: cluster.addresses!,
      },
      'own-names entitlement unknown: "node-1" is not an address of Node "node-1", and the certificate that the kubelet serves is unknown',
      /^kubectl get node node-1/,
    ],
    [
      'the Node has an address as a name alone',
      {
        ...cluster,
        nodes: [
          {
            ...node,
            addresses: [...node.addresses.slice(0, 2), { type: 'InternalDNS', address: '10.1.0.7' }],
          },
        ],
      },
      'own-names entitlement unmet: "10.1.0.7", "2001:db8::7" is not an address of Node "node-1", and the kubelet serves no certificate',
      /^kubectl get node/,
    ],
    [
      'the Node has its names as a type that is none',
      { ...cluster, nodes: [{ ...node, addresses: node.addresses.map((one) => ({ ...one, type: 'x' })) }] },
      'own-names entitlement unmet: "node-1", "node-1.nodes.example.com", "10.1.0.7", "2001:db8::7" is not an address of Node "node-1", and the kubelet serves no certificate',
      /^kubectl get node/,
    ],
  ])('reports the result of a lookup: %s', async (_, around, expected, advice) => {
    const found = unmetOf(await findingsOf(kubeletServingPolicy(), names, around))
    expect(found.map(line)).toContain(expected)
    const { fix, next } = found.find((one) => line(one) === expected)!
    expect(next ?? fix).toMatch(advice)
  })

  test.each<[NameSource, FakeCluster, string, string]>([
    [
      'node',
      { ...cluster, nodes: [{ ...node, addresses: node.addresses.slice(1) }] },
      'own-names entitlement unmet: "node-1" is not an address of Node "node-1"',
      "kubectl get node node-1 -o jsonpath='{.status.addresses}'",
    ],
    [
      'served',
      { nodes: [node], addresses: cluster.addresses! },
      'own-names entitlement unknown: the certificate that the kubelet serves is unknown',
      'kcert probe node-1:10250',
    ],
    [
      'served',
      cluster,
      'own-names entitlement unmet: the kubelet serves no certificate',
      'kcert csr approve csr-7x2lq',
    ],
  ])('compares names only with %s', async (source, around, expected, next) => {
    const found = unmetOf(await findingsOf(kubeletServingPolicy({ names: source }), names, around))
    expect(found.map((one) => [line(one), one.next])).toEqual([[expected, next]])
  })

  test('suggests no command to approve a request without a name', async () => {
    const { name, ...unnamed } = names
    const found = unmetOf(await findingsOf(kubeletServingPolicy({ names: 'served' }), unnamed, cluster))
    expect(found.map((one) => [line(one), one.fix, one.next])).toEqual([
      [
        'own-names entitlement unmet: the kubelet serves no certificate',
        'compare the names with the machine, then approve it by name',
        undefined,
      ],
    ])
  })

  test('reports an address whose bytes are unavailable as one that no single node owns', async () => {
    const { object, request } = candidateOf(names)
    const subjectAltNames = { ...request.subjectAltNames, ipBytes: [] }
    const blind = Object.create(request, { subjectAltNames: { value: subjectAltNames } })
    const { findings } = await kubeletServingPolicy().evaluate({ object, request: blind }, fakeFacts(cluster))
    expect(unmetOf(findings).map(line)).toContain(
      'no-special-address entitlement unmet: "10.1.0.7", "2001:db8::7" is an address that no single node owns',
    )
  })

  test('reports as unknown whether another Node has a name when Nodes cannot be listed', async () => {
    const facts = { ...fakeFacts(cluster), findNodesAt: async () => undefined }
    const { decision, findings } = await kubeletServingPolicy().evaluate(candidateOf(names), facts)
    expect(decision).toBe('ignore')
    expect(unmetOf(findings).map((one) => [line(one), one.next])).toEqual([
      [
        'no-other-node entitlement unknown: kcert could not check whether another Node has "node-1"',
        'kubectl get nodes -o wide',
      ],
    ])
  })

  test('makes no lookups for the cluster addresses when the policy gives all of them, and does when it gives some', async () => {
    const range = parseCidr('10.96.0.0/12')!
    const outcomeOf = async (settings: Parameters<typeof kubeletServingPolicy>[0]) =>
      (await findingsOf(kubeletServingPolicy(settings), names, { nodes: [node] })).find(
        ({ id }) => id === 'no-cluster-address',
      )!.outcome
    expect(await outcomeOf({ apiServers: ['192.0.2.1'], serviceCidrs: [range] })).toBe('met')
    expect(await outcomeOf({ apiServers: ['192.0.2.1'] })).toBe('unknown')
    expect(await outcomeOf({ serviceCidrs: [range] })).toBe('unknown')
    expect(await outcomeOf({ apiServers: ['NODE-1'], serviceCidrs: [range] })).toBe('unmet')
  })

  test('applies only to kubelets', async () => {
    expect(
      await kubeletServingPolicy({ name: 'x' }).evaluate(candidateOf(clientRequest()), fakeFacts({})),
    ).toEqual({
      policy: 'x',
      applies: false,
      decision: 'ignore',
      reason: 'it is for kubernetes.io/kubelet-serving',
      findings: [],
    })
  })
})

describe('kubelet-client', () => {
  const bootstrap = { username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] }
  const may: FakeCluster = {
    allowed: ['system:bootstrap:abcdef nodeclient', 'system:node:node-1 selfnodeclient'],
  }
  const linesOf = async (object: SigningRequest, around: FakeCluster = {}, newNodesOnly = false) =>
    (await findingsOf(kubeletClientPolicy({ newNodesOnly }), object, around)).slice(9).map(line)

  test.each<[string, SigningRequest, FakeCluster, string[]]>([
    [
      'a node renews its own',
      clientRequest(),
      may,
      [
        'requester identity met: "system:node:node-1" requests its own identity',
        'access-review entitlement met: RBAC lets "system:node:node-1" create selfnodeclient',
      ],
    ],
    [
      'a new node',
      clientRequest(bootstrap),
      { ...may, nodes: [] },
      [
        'requester identity met: "system:bootstrap:abcdef" bootstraps a node',
        'access-review entitlement met: RBAC lets "system:bootstrap:abcdef" create nodeclient',
        'new-node entitlement met: Node "node-1" does not exist yet',
      ],
    ],
    [
      'a node that is there already',
      clientRequest(bootstrap),
      { ...may, nodes: [node] },
      [
        'requester identity met: "system:bootstrap:abcdef" bootstraps a node',
        'access-review entitlement met: RBAC lets "system:bootstrap:abcdef" create nodeclient',
        'new-node entitlement unmet: Node "node-1" exists already; if the machine is being set up again, delete the Node first',
      ],
    ],
    [
      'unknown nodes',
      clientRequest(bootstrap),
      may,
      [
        'requester identity met: "system:bootstrap:abcdef" bootstraps a node',
        'access-review entitlement met: RBAC lets "system:bootstrap:abcdef" create nodeclient',
        'new-node entitlement unknown: kcert could not check whether Node "node-1" exists',
      ],
    ],
    [
      'RBAC refuses a node',
      clientRequest(),
      { allowed: [] },
      [
        'requester identity met: "system:node:node-1" requests its own identity',
        'access-review entitlement unmet: RBAC does not let "system:node:node-1" create selfnodeclient or nodeclient',
      ],
    ],
    [
      'a user without RBAC permission',
      clientRequest({ username: 'eve' }),
      { allowed: [], nodes: [] },
      [
        'requester identity met: "eve" bootstraps a node',
        'access-review entitlement unmet: RBAC does not let "eve" create nodeclient',
        'new-node entitlement met: Node "node-1" does not exist yet',
      ],
    ],
    [
      'a node requests another',
      clientRequest({ username: 'system:node:node-2' }),
      may,
      [
        'requester identity unmet: "system:node:node-2" requests the identity of "system:node:node-1"',
        'access-review entitlement unknown: not checked, because another rule is broken',
      ],
    ],
    [
      'no requester',
      clientRequest({ username: undefined as never, groups: [] }),
      { nodes: [] },
      [
        'requester identity unknown: the requester is unknown',
        'access-review entitlement unknown: kcert could not check whether RBAC lets the requester create nodeclient',
        'new-node entitlement met: Node "node-1" does not exist yet',
      ],
    ],
  ])('%s', async (_, object, around, expected) => {
    const lines = await linesOf(object, around, true)
    expect(lines).toEqual(['node-name identity met: "node-1"', ...expected])
    const withNodes = lines.filter((one) => !one.startsWith('new-node'))
    expect(await linesOf(object, around)).toEqual(withNodes)
  })

  test('without a setting, approves another certificate for an existing node', async () => {
    const around = { ...may, nodes: [node] }
    const { decision } = await kubeletClientPolicy().evaluate(
      candidateOf(clientRequest(bootstrap)),
      fakeFacts(around),
    )
    expect(decision).toBe('approve')
  })

  test('names the requester when the RBAC lookup is unavailable', async () => {
    expect((await linesOf(clientRequest(bootstrap))).at(-1)).toBe(
      'access-review entitlement unknown: kcert could not check whether RBAC lets "system:bootstrap:abcdef" create nodeclient',
    )
  })

  test('advises to check RBAC, grant the permission, inspect the Node, delete it', async () => {
    const nextOf = async (object: SigningRequest, around: FakeCluster) =>
      unmetOf(await findingsOf(kubeletClientPolicy({ newNodesOnly: true }), object, around)).map(
        ({ fix, next }) => next ?? fix,
      )
    const boot = clientRequest(bootstrap)
    expect(await nextOf(boot, { nodes: [] })).toEqual([
      'kubectl auth can-i create certificatesigningrequests.certificates.k8s.io --subresource=nodeclient --as=system:bootstrap:abcdef --as-group=system:bootstrappers',
    ])
    expect(await nextOf(boot, may)).toEqual(['kubectl get node node-1'])
    expect(await nextOf(boot, { ...may, nodes: [node] })).toEqual(['kubectl delete node node-1'])
    expect(await nextOf(clientRequest(), { allowed: [] })).toEqual([
      "bind the requester's group to the ClusterRole system:certificates.k8s.io:certificatesigningrequests:selfnodeclient if it should have this right",
    ])
  })

  test.each([
    ['system:node:node-2', 'requester', 'deny it: a node must not get the identity of another node'],
    ['system:node:node-2', 'access-review', 'correct the broken rule first'],
    [undefined, 'requester', 'check spec.username of the object'],
  ])('of a request by %s, explains how to fix the rule %s', async (username, rule, fix) => {
    const findings = await findingsOf(kubeletClientPolicy(), clientRequest({ username: username as never }))
    expect(findings.find(({ id }) => id === rule)).toMatchObject({ fix })
  })

  test('applies only to kubelet client certificates', async () => {
    const { applies, reason, policy } = await kubeletClientPolicy().evaluate(
      candidateOf(servingRequest()),
      fakeFacts({}),
    )
    expect([policy, applies, reason]).toEqual([
      'kubelet-client',
      false,
      'it is for kubernetes.io/kube-apiserver-client-kubelet',
    ])
  })

  test.each(['ignore', 'deny'] as const)(
    'onViolation: %s applies to broken rules, not to unknown facts',
    async (onViolation) => {
      const policy = kubeletClientPolicy({ onViolation })
      const broken = await policy.evaluate(candidateOf(clientRequest()), fakeFacts({ allowed: [] }))
      const unknown = await policy.evaluate(candidateOf(clientRequest()), fakeFacts({}))
      expect([broken.decision, unknown.decision]).toEqual([onViolation, 'ignore'])
      expect(
        (await kubeletClientPolicy().evaluate(candidateOf(clientRequest()), fakeFacts({ allowed: [] })))
          .decision,
      ).toBe('ignore')
    },
  )
})
