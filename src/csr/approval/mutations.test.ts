import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  clientDescription,
  clientRequest,
  nodeNames,
  requestPem,
  servingDescription,
  servingRequest,
} from '../../../test/csr/made-requests.ts'
import { type FakeCluster, fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { usages } from '../../pki/usages.ts'
import type { RequestDescription } from '../../x509/issuing.ts'
import { readPem, writePem } from '../../x509/pem.ts'
import { CertificateRequest } from '../../x509/request.ts'
import type { SigningRequest } from '../signing-request.ts'
import { parseCidr } from './addresses.ts'
import { decide } from './decide.ts'
import type { NodeFacts } from './facts.ts'
import { kubeletClientPolicy } from './kubelet-client.ts'
import { kubeletServingPolicy } from './kubelet-serving.ts'
import '../../../test/seeded.ts'

const node: NodeFacts = {
  name: 'node-1',
  addresses: [
    { type: 'Hostname', address: 'node-1' },
    { type: 'InternalDNS', address: 'node-1.nodes.example.com' },
    { type: 'InternalIP', address: '10.1.0.7' },
    { type: 'InternalIP', address: '2001:db8:0:0::7' },
  ],
  isControlPlane: false,
}
const cluster: FakeCluster = {
  allowed: ['system:node:node-1 selfnodeclient'],
  nodes: [node],
  served: {},
  addresses: { apiServers: ['10.1.0.2', 'api.example.com'], serviceCidrs: ['10.96.0.0/12'] },
}
const policies = [
  kubeletClientPolicy({ newNodesOnly: true }),
  kubeletServingPolicy({
    maxExpirationSeconds: 86_400,
    cidrs: [parseCidr('10.1.0.0/16')!, parseCidr('2001:db8::/32')!],
  }),
]

async function decisionOn(object: SigningRequest, around: FakeCluster = cluster): Promise<string> {
  return (await decide(object, policies, fakeFacts(around))).decision
}

const text = fc.oneof(
  fc.string({ minLength: 1, maxLength: 20 }),
  fc.constantFrom(
    'system:node:',
    'system:node:node-2',
    'system:node:node-1 ',
    'SYSTEM:NODE:NODE-1',
    'system:masters',
    'kubernetes-admin',
    'node-1',
  ),
)
const otherName = fc.constantFrom(
  'kubernetes',
  'kubernetes.default.svc',
  'api.example.com',
  '*.nodes.example.com',
  '*',
  'localhost',
  'node-2',
  'node-1.nodes.example.com.evil.example',
  'evil-node-1',
  'shop.default.svc.cluster.local',
  '10.1.0.7',
  'node-1\0.example.com',
  'node-1 ',
)
const otherAddress = fc.oneof(
  fc.constantFrom('127.0.0.1', '::1', '0.0.0.0', '10.96.0.1', '10.1.0.2', '10.1.0.8', '2001:db8::8'),
  fc.ipV4().filter((address) => address !== '10.1.0.7'),
)

type Names = { dns: string[]; ip: string[]; email?: string[]; uri?: string[] }

function withNames(change: (names: Names) => void): RequestDescription {
  const names: Names = { dns: [...nodeNames.dns], ip: [...nodeNames.ip] }
  change(names)
  return { ...servingDescription(), subjectAltNames: names }
}

function serving(description: RequestDescription): SigningRequest {
  return servingRequest({ request: Buffer.from(requestPem(description)) })
}

/**
 * Every way to change one field of the serving request, except changes that yield another correct request: adding key
 * encipherment, removing a name while others remain, adding a group to the requester.
 */
const servingMutations: Record<string, fc.Arbitrary<SigningRequest>> = {
  signerName: text.map((signerName) => servingRequest({ signerName })),
  'usages: one missing': fc
    .constantFrom('digital signature', 'server auth')
    .map((gone) =>
      servingRequest({ usages: ['digital signature', 'server auth'].filter((one) => one !== gone) }),
    ),
  'usages: one more': fc
    .constantFrom(
      ...usages.filter((one) => !['digital signature', 'server auth', 'key encipherment'].includes(one)),
      'serverAuth',
      '',
    )
    .map((more) => servingRequest({ usages: ['digital signature', 'server auth', more] })),
  expirationSeconds: fc
    .integer({ min: 86_401, max: 2 ** 31 - 1 })
    .map((expirationSeconds) => servingRequest({ expirationSeconds })),
  username: text.map((username) => servingRequest({ username })),
  groups: fc
    .array(
      text.filter((group) => group !== 'system:nodes'),
      { maxLength: 3 },
    )
    .map((groups) => servingRequest({ groups })),
  'common name': text.map((commonName) =>
    serving({ ...servingDescription(), subject: { commonName, organization: ['system:nodes'] } }),
  ),
  'no common name': fc.constant(
    serving({ ...servingDescription(), subject: { organization: ['system:nodes'] } }),
  ),
  'a second common name': text.map((value) =>
    serving({
      ...servingDescription(),
      subject: [
        [{ type: 'O', value: 'system:nodes' }],
        [{ type: 'CN', value }],
        [{ type: 'CN', value: 'system:node:node-1' }],
      ],
    }),
  ),
  organization: fc
    .array(text, { maxLength: 2 })
    .map((organization) =>
      serving({ ...servingDescription(), subject: { commonName: 'system:node:node-1', organization } }),
    ),
  'organization: one more': text.map((more) =>
    serving({
      ...servingDescription(),
      subject: { commonName: 'system:node:node-1', organization: ['system:nodes', more] },
    }),
  ),
  'another attribute': text.map((value) =>
    serving({
      ...servingDescription(),
      subject: {
        commonName: 'system:node:node-1',
        organization: ['system:nodes'],
        organizationalUnit: [value],
      },
    }),
  ),
  'a DNS name more': otherName.map((name) => serving(withNames((names) => names.dns.push(name)))),
  'another DNS name': otherName.map((name) =>
    serving(
      withNames((names) => {
        names.dns[0] = name
      }),
    ),
  ),
  'an address more': otherAddress.map((address) => serving(withNames((names) => names.ip.push(address)))),
  'another address': otherAddress.map((address) =>
    serving(
      withNames((names) => {
        names.ip[0] = address
      }),
    ),
  ),
  'an email address': fc.constant(
    serving(
      withNames((names) => {
        names.email = ['root@node-1']
      }),
    ),
  ),
  'a URI': fc.constant(
    serving(
      withNames((names) => {
        names.uri = ['spiffe://example.com/node-1']
      }),
    ),
  ),
  'no names': fc.constant(serving({ ...servingDescription(), subjectAltNames: {} })),
  'asks for a CA': fc.constant(serving({ ...servingDescription(), basicConstraints: { ca: true } })),
  'asks to sign certificates': fc.constant(
    serving({ ...servingDescription(), keyUsage: ['digitalSignature', 'keyCertSign'] }),
  ),
  'a condition': fc
    .constantFrom('Approved', 'Denied', 'Failed')
    .map((type) => servingRequest({ conditions: [{ type, status: 'True' }] })),
  'a certificate': fc.constant(servingRequest({ certificate: Buffer.from('x') })),
  'being deleted': fc.constant(servingRequest({ deletionTimestamp: '2026-01-01T00:00:00Z' })),
  'no base64': fc.constant(servingRequest({ request: undefined })),
  'another PEM label': fc
    .constantFrom('CERTIFICATE', 'NEW CERTIFICATE REQUEST', 'certificate request')
    .map((label) =>
      servingRequest({
        request: Buffer.from(requestPem(servingDescription()).replaceAll('CERTIFICATE REQUEST', label)),
      }),
    ),
}

describe('a correct serving request', () => {
  test('is approved', async () => {
    expect(await decisionOn(servingRequest())).toBe('approve')
    expect(await decisionOn(servingRequest({ expirationSeconds: 86_400 }))).toBe('approve')
    expect(
      await decisionOn(servingRequest({ usages: ['server auth', 'key encipherment', 'digital signature'] })),
    ).toBe('approve')
  })

  test.each(Object.entries(servingMutations))(
    'with one change is not approved: %s',
    async (_name, mutation) => {
      await fc.assert(
        fc.asyncProperty(mutation, async (object) => {
          expect(await decisionOn(object)).not.toBe('approve')
        }),
        { numRuns: 60 },
      )
    },
  )

  test('with any bit of the request flipped is not approved', async () => {
    const [block] = readPem(requestPem(servingDescription())).blocks
    for (let bit = 0; bit < block!.der.length * 8; bit++) {
      const der = Buffer.from(block!.der)
      der[bit >> 3]! ^= 1 << (bit & 7)
      const object = servingRequest({ request: Buffer.from(writePem('CERTIFICATE REQUEST', der)) })
      expect({ bit, decision: await decisionOn(object) }).toEqual({ bit, decision: 'ignore' })
    }
  })

  test('with a signature by another key is not approved', async () => {
    const [mine, theirs] = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
    const [a, b] = [mine, theirs].map((key) =>
      CertificateRequest.parse(readPem(requestPem(servingDescription(), key)).blocks[0]!.der),
    )
    const der = Buffer.from(a!.der)
    // Both signatures are at the end, in a BIT STRING of nearly the same length.
    der.set(b!.signature.subarray(-20), der.length - 20)
    expect(
      await decisionOn(servingRequest({ request: Buffer.from(writePem('CERTIFICATE REQUEST', der)) })),
    ).toBe('ignore')
  })

  test('with a weak key is not approved', async () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
    expect(
      await decisionOn(servingRequest({ request: Buffer.from(requestPem(servingDescription(), weak)) })),
    ).toBe('ignore')
  })
})

describe('the cluster of a serving request', () => {
  const other: NodeFacts = {
    name: 'node-2',
    addresses: [{ type: 'InternalIP', address: '10.1.0.8' }],
    isControlPlane: false,
  }

  test.each<[string, FakeCluster]>([
    ['there is no such Node', { ...cluster, nodes: [other] }],
    ['the Node has no addresses', { ...cluster, nodes: [{ ...node, addresses: [] }] }],
    ...node.addresses.map((gone): [string, FakeCluster] => [
      `the Node lacks ${gone.address}`,
      { ...cluster, nodes: [{ ...node, addresses: node.addresses.filter((one) => one !== gone) }] },
    ]),
    [
      'another Node has the address too',
      { ...cluster, nodes: [node, { ...other, addresses: node.addresses.slice(2) }] },
    ],
    [
      'the address is a service',
      { ...cluster, addresses: { apiServers: [], serviceCidrs: ['10.1.0.0/24'] } },
    ],
    [
      'the address is an API server',
      { ...cluster, addresses: { apiServers: ['10.1.0.7'], serviceCidrs: [] } },
    ],
    ['the name is an API server', { ...cluster, addresses: { apiServers: ['NODE-1'], serviceCidrs: [] } }],
    ['no information about Nodes', { addresses: cluster.addresses! }],
    ['no information about API servers', { nodes: [node] }],
    ...(['findNode', 'findNodesAt', 'readClusterAddresses'] as const).map((lookup): [string, FakeCluster] => [
      `${lookup} fails`,
      { ...cluster, failing: { [lookup]: 'timeout' } },
    ]),
  ])('is not approved when %s', async (_name, around) => {
    expect(await decisionOn(servingRequest(), around)).toBe('ignore')
  })

  test('lets a control-plane node have the address of its API server', async () => {
    const around = {
      ...cluster,
      nodes: [{ ...node, isControlPlane: true }],
      addresses: { apiServers: ['10.1.0.7'], serviceCidrs: [] },
    }
    expect(await decisionOn(servingRequest(), around)).toBe('approve')
  })
})

describe('a correct kubelet client request', () => {
  const mutations: Record<string, fc.Arbitrary<SigningRequest>> = {
    signerName: text.map((signerName) => clientRequest({ signerName })),
    usages: fc
      .subarray([...usages])
      .filter(
        (set) =>
          !(
            set.includes('digital signature') &&
            set.includes('client auth') &&
            set.every((one) => ['digital signature', 'client auth', 'key encipherment'].includes(one))
          ),
      )
      .map((set) => clientRequest({ usages: set })),
    username: text.map((username) => clientRequest({ username })),
    'common name': text.map((commonName) =>
      clientRequest({
        request: Buffer.from(requestPem({ subject: { commonName, organization: ['system:nodes'] } })),
      }),
    ),
    organization: fc.array(text, { maxLength: 3 }).map((organization) =>
      clientRequest({
        request: Buffer.from(requestPem({ subject: { commonName: 'system:node:node-1', organization } })),
      }),
    ),
    names: fc
      .oneof(
        otherName.map((dns) => ({ dns: [dns] })),
        otherAddress.map((ip) => ({ ip: [ip] })),
        fc.constant({ email: ['a@example.com'] }),
        fc.constant({ uri: ['https://example.com/'] }),
      )
      .map((subjectAltNames) =>
        clientRequest({ request: Buffer.from(requestPem({ ...clientDescription(), subjectAltNames })) }),
      ),
    'a condition': fc
      .constantFrom('Approved', 'Denied', 'Failed')
      .map((type) => clientRequest({ conditions: [{ type, status: 'True' }] })),
  }

  test('is approved', async () => {
    expect(await decisionOn(clientRequest())).toBe('approve')
  })

  test.each(Object.entries(mutations))('with one change is not approved: %s', async (_name, mutation) => {
    await fc.assert(
      fc.asyncProperty(mutation, async (object) => {
        expect(await decisionOn(object)).not.toBe('approve')
      }),
      { numRuns: 60 },
    )
  })
})
