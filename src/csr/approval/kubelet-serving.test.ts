import { describe, expect, test } from 'vitest'
import {
  nodeNames,
  requestPem,
  servingDescription,
  servingRequest,
  someKey,
} from '../../../test/csr/made-requests.ts'
import { type FakeCluster, fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { Certificate } from '../../x509/certificate.ts'
import { type AltNamesDescription, issueCertificate, type RequestDescription } from '../../x509/issuing.ts'
import type { SigningRequest } from '../signing-request.ts'
import { decide, type Verdict } from './decide.ts'
import type { NodeFacts } from './facts.ts'
import { type KubeletServingSettings, kubeletServingPolicy } from './kubelet-serving.ts'

function nodeWith(names: AltNamesDescription): NodeFacts {
  const addresses = [
    ...(names.dns ?? []).map((address) => ({ type: 'InternalDNS', address })),
    ...(names.ip ?? []).map((address) => ({ type: 'InternalIP', address })),
  ]
  return { name: 'node-1', addresses, isControlPlane: false }
}

const quiet: FakeCluster = { served: {}, addresses: { apiServers: [], serviceCidrs: [] } }

function asking(change: Partial<RequestDescription>): SigningRequest {
  return servingRequest({ request: Buffer.from(requestPem({ ...servingDescription(), ...change })) })
}

function verdictOn(
  object: SigningRequest,
  cluster: FakeCluster,
  settings: KubeletServingSettings = {},
): Promise<Verdict> {
  return decide(object, [kubeletServingPolicy(settings)], fakeFacts({ ...quiet, ...cluster }))
}

describe('refuses a name that belongs to others even when the Node lists it', () => {
  test.each<[string, AltNamesDescription]>([
    ['no-wildcard', { dns: ['*.nodes.example.com'] }],
    ['no-cluster-name', { dns: ['kubernetes'] }],
    ['no-cluster-name', { dns: ['kubernetes.default'] }],
    ['no-cluster-name', { dns: ['KUBERNETES.default.svc'] }],
    ['no-cluster-name', { dns: ['web.shop.svc'] }],
    ['no-cluster-name', { dns: ['svc'] }],
    ['no-cluster-name', { dns: ['cluster.local'] }],
    ['no-cluster-name', { dns: ['web.shop.svc.cluster.local'] }],
    ['no-cluster-name', { dns: ['10-0-0-1.shop.pod.cluster.local'] }],
    ['no-cluster-name', { dns: ['localhost'] }],
    ['no-special-address', { ip: ['127.0.0.1'] }],
    ['no-special-address', { ip: ['::1'] }],
    ['no-special-address', { ip: ['0.0.0.0'] }],
    ['no-special-address', { ip: ['169.254.169.254'] }],
    ['no-special-address', { ip: ['fe80::1'] }],
    ['no-special-address', { ip: ['64:ff9b::10.96.0.1'] }],
    ['no-special-address', { ip: ['64:ff9b:1::10.96.0.1'] }],
    ['no-special-address', { ip: ['::10.96.0.1'] }],
    ['no-special-address', { ip: ['2002:a60:1::'] }],
    ['no-special-address', { ip: ['2001:0:a60:1::'] }],
    ['no-special-address', { ip: ['ff02::1'] }],
    ['no-cluster-name', { dns: ['host.docker.internal'] }],
    ['no-cluster-name', { dns: ['10-244-0-5.my-namespace.pod'] }],
    ['no-cluster-name', { dns: ['host.containers.internal'] }],
    ['plain-names', { dns: ['127.1'] }],
    ['plain-names', { dns: ['0x7f000001'] }],
    ['plain-names', { dns: ['2130706433'] }],
    ['plain-names', { dns: ['0177.0.0.1'] }],
    ['plain-names', { dns: ['node-1.0x1'] }],
    ['plain-names', { dns: ['10.1.0.7'] }],
    ['plain-names', { dns: ['node 1'] }],
    ['plain-names', { dns: ['node-1,evil'] }],
  ])('%s: %j', async (rule, subjectAltNames) => {
    // The policy allows every suffix of these names, so that no other rule refuses them.
    const dnsSuffixes = ['com', 'default', 'svc', 'pod', 'local', 'internal', '1', '0x1', '7']
    const around = { nodes: [nodeWith(subjectAltNames)] }
    const verdict = await verdictOn(asking({ subjectAltNames }), around, { dnsSuffixes })
    expect(verdict.decision).toBe('ignore')
    expect(verdict.reason).toMatch(new RegExp(`^${rule}: `))
  })

  test('refuses a name of an unsupported type', async () => {
    // GeneralNames: dNSName node-1, registeredID 1.2.3
    const value = Buffer.from('300c82066e6f64652d3188022a03', 'hex')
    const object = asking({ subjectAltNames: {}, extensions: [{ oid: '2.5.29.17', value }] })
    expect((await verdictOn(object, { nodes: [nodeWith({ dns: ['node-1'] })] })).reason).toMatch(
      /^plain-names: "registeredID:1\.2\.3" is of a type/,
    )
  })

  test('accepts a name that resembles a cluster name but is the node’s own', async () => {
    const names = {
      dns: [
        'kubernetes-1.example.com',
        'svc.example.com',
        'cluster.local.example.com',
        'mydocker.internal.example.com',
        'localhost.example.com',
        'my.kubernetes',
        'node.mysvc',
      ],
    }
    const verdict = await verdictOn(
      asking({ subjectAltNames: names }),
      { nodes: [nodeWith(names)] },
      { dnsSuffixes: ['.example.com', '.kubernetes', '.mysvc'] },
    )
    expect(verdict.decision).toBe('approve')
  })

  test('refuses an IPv4 address in 16 bytes, which other programs read as IPv6', async () => {
    // GeneralNames: iPAddress ::ffff:10.1.0.7
    const value = Buffer.from('3012871000000000000000000000ffff0a010007', 'hex')
    const object = asking({ subjectAltNames: {}, extensions: [{ oid: '2.5.29.17', value }] })
    const { decision, reason } = await verdictOn(object, { nodes: [nodeWith({ ip: ['10.1.0.7'] })] })
    expect([decision, reason]).toEqual([
      'ignore',
      'no-special-address: "10.1.0.7" is an address that no single node owns',
    ])
  })
})

describe('DNS names', () => {
  const decisionOn = async (name: string, settings: KubeletServingSettings = {}) => {
    const names = { dns: [name] }
    return verdictOn(asking({ subjectAltNames: names }), { nodes: [nodeWith(names)] }, settings)
  }

  test.each(['node-1', 'NODE-1', 'node-1.example.com', 'node-1.a.b.example.com'])(
    'without a setting: approves %s, which begins with the node name',
    async (name) => {
      expect((await decisionOn(name)).decision).toBe('approve')
    },
  )

  test.each([
    'vault.corp.example.net',
    'kube-dns.kube-system',
    'metrics-server.kube-system',
    'node-10.example.com',
    'anode-1.example.com',
    'x.node-1.example.com',
    // SERVICE.NAMESPACE, where a Service has the node's name.
    'node-1.default',
    'ip-10-1-0-7.ec2.internal',
  ])('without a setting: refuses %s, even when the Node has it', async (name) => {
    const verdict = await decisionOn(name)
    expect(verdict).toMatchObject({ decision: 'ignore', duties: { entitlement: 'unmet' } })
    expect(verdict.reason).toBe(
      `dns-suffix: "${name}" is not the node's name, alone or followed by a domain of two labels or more`,
    )
    expect(verdict.findings.find(({ id }) => id === 'dns-suffix')?.fix).toMatch(/dnsSuffixes of the policy/)
  })

  test.each([
    ['ip-10-1-0-7.ec2.internal', ['.ec2.internal'], 'approve'],
    ['ec2-203-0-113-7.compute-1.amazonaws.com', ['ec2.internal', 'compute-1.amazonaws.com'], 'approve'],
    ['node-1.lan', ['.lan'], 'approve'],
    ['node-1', ['.lan'], 'approve'],
    ['node-1.example.com', ['.lan'], 'ignore'],
    ['evil-lan', ['lan'], 'ignore'],
    ['kube-dns.kube-system', ['.lan'], 'ignore'],
  ])('%s with dnsSuffixes %j: %s', async (name, dnsSuffixes, expected) => {
    expect((await decisionOn(name, { dnsSuffixes })).decision).toBe(expected)
  })

  test('names the domains that are allowed', async () => {
    expect((await decisionOn('node-1.example.com', { dnsSuffixes: ['.lan', '.corp'] })).reason).toBe(
      'dns-suffix: "node-1.example.com" is not in ".lan", ".corp"',
    )
  })

  test('requires a suffix in the policy for a node named like a Service and its namespace', async () => {
    const names = { dns: ['metrics-server.kube-system'] }
    const commonName = 'system:node:metrics-server.kube-system'
    const object = servingRequest({
      request: Buffer.from(
        requestPem({ subject: { commonName, organization: ['system:nodes'] }, subjectAltNames: names }),
      ),
      username: commonName,
    })
    const nodes = [{ ...nodeWith(names), name: 'metrics-server.kube-system' }]
    expect((await verdictOn(object, { nodes })).reason).toMatch(/^dns-suffix: /)
    expect((await verdictOn(object, { nodes }, { dnsSuffixes: ['.lan'] })).decision).toBe('ignore')
    expect((await verdictOn(object, { nodes }, { dnsSuffixes: ['.kube-system'] })).decision).toBe('approve')
  })
})

test('refuses more names than maxNames', async () => {
  const around = { nodes: [nodeWith(nodeNames)] }
  expect((await verdictOn(servingRequest(), around, { maxNames: 4 })).decision).toBe('approve')
  const verdict = await verdictOn(servingRequest(), around, { maxNames: 3 })
  expect([verdict.decision, verdict.reason]).toEqual([
    'ignore',
    'name-count: 4 names, and the policy allows 3',
  ])
})

test('treats a Hostname that is an IP address as an address', async () => {
  const node: NodeFacts = {
    name: 'node-1',
    addresses: [{ type: 'Hostname', address: '10.1.0.7' }],
    isControlPlane: false,
  }
  expect(
    (await verdictOn(asking({ subjectAltNames: { ip: ['10.1.0.7'] } }), { nodes: [node] })).decision,
  ).toBe('approve')
  expect(
    (await verdictOn(asking({ subjectAltNames: { dns: ['10.1.0.7'] } }), { nodes: [node] })).decision,
  ).toBe('ignore')
})

test('accepts an address that several Nodes have where the policy allows it', async () => {
  const gateway = { ip: ['192.0.2.1'] }
  const nodes = [nodeWith(gateway), { ...nodeWith(gateway), name: 'node-2' }]
  const object = asking({ subjectAltNames: gateway })
  expect((await verdictOn(object, { nodes })).reason).toBe('no-other-node: Node "node-2" has "192.0.2.1" too')
  expect((await verdictOn(object, { nodes }, { sharedAddresses: ['192.0.2.1'] })).decision).toBe('approve')
})

test('compares a shared name without case, and does not take U+017F, whose upper case is S, for an s', async () => {
  const name = { dns: ['node-1.s.example.com'] }
  const nodes = [nodeWith(name), { ...nodeWith(name), name: 'node-2' }]
  const reasonBy = async (shared: string) =>
    (await verdictOn(asking({ subjectAltNames: name }), { nodes }, { sharedAddresses: [shared] })).reason
  expect(await reasonBy('NODE-1.S.example.com')).toBe('all rules of kubelet-serving are met')
  expect(await reasonBy('node-1.\u017f.example.com')).toMatch(/^no-other-node: /)
})

describe('the certificate that the kubelet currently serves', () => {
  function serving(commonName: string, subjectAltNames: AltNamesDescription): Certificate {
    const subject = { commonName, organization: ['system:nodes'] }
    return Certificate.parse(
      issueCertificate(
        {
          serialNumber: '01',
          subject,
          issuer: { commonName: 'kubernetes' },
          notBefore: new Date('2026-01-01T00:00:00Z'),
          notAfter: new Date('2027-01-01T00:00:00Z'),
          publicKey: someKey,
          subjectAltNames,
        },
        someKey,
      ),
    )
  }
  const own = serving('system:node:node-1', { dns: [...nodeNames.dns].reverse(), ip: [...nodeNames.ip] })
  const bare = nodeWith({ ip: ['10.1.0.99'] })

  test('with the same names approves the request, whatever the Node lists', async () => {
    const around = { nodes: [bare], served: { 'node-1': { certificate: own, isTrusted: true } } }
    expect(await verdictOn(servingRequest(), around)).toMatchObject({
      decision: 'approve',
      duties: { identity: 'met', entitlement: 'met' },
    })
    const found = (await verdictOn(servingRequest(), around)).findings.find(({ id }) => id === 'own-names')
    expect(found).toMatchObject({
      duty: 'entitlement',
      outcome: 'met',
      detail: 'the names are those of the certificate that the kubelet serves now',
    })
    expect((await verdictOn(servingRequest(), around, { names: 'served' })).decision).toBe('approve')
    expect((await verdictOn(servingRequest(), around, { names: 'node' })).decision).toBe('ignore')
  })

  test.each<[string, FakeCluster['served'], string]>([
    [
      'is not trusted',
      { 'node-1': { certificate: own, isTrusted: false, reason: 'expired' } },
      'is not trusted: expired',
    ],
    [
      'is that of another node',
      {
        'node-1': {
          certificate: serving('system:node:node-2', { dns: [...nodeNames.dns], ip: [...nodeNames.ip] }),
          isTrusted: true,
        },
      },
      'a certificate of "system:node:node-2"',
    ],
    [
      'lacks one of the names',
      {
        'node-1': {
          certificate: serving('system:node:node-1', { dns: ['node-1'], ip: [...nodeNames.ip] }),
          isTrusted: true,
        },
      },
      '"node-1.nodes.example.com" differs',
    ],
    [
      'has one name more',
      {
        'node-1': {
          certificate: serving('system:node:node-1', {
            dns: [...nodeNames.dns, 'more'],
            ip: [...nodeNames.ip],
          }),
          isTrusted: true,
        },
      },
      '"more" differs',
    ],
    [
      'has another address',
      {
        'node-1': {
          certificate: serving('system:node:node-1', {
            dns: [...nodeNames.dns],
            ip: ['10.1.0.7', '10.1.0.8'],
          }),
          isTrusted: true,
        },
      },
      '"2001:db8::7", "10.1.0.8" differs',
    ],
    [
      'is not trusted, for an unknown reason,',
      { 'node-1': { certificate: own, isTrusted: false } },
      'is not trusted: its chain does not verify',
    ],
    ['is not there', {}, 'serves no certificate'],
  ])('approves nothing when it %s', async (_name, served, words) => {
    const verdict = await verdictOn(servingRequest(), { nodes: [bare], served: served! }, { names: 'served' })
    expect(verdict.decision).toBe('ignore')
    expect(verdict.reason).toContain(words)
    expect((await verdictOn(servingRequest(), { nodes: [bare], served: served! })).decision).toBe('ignore')
  })

  test('is not needed where the Node has all the names', async () => {
    const facts = fakeFacts({ ...quiet, nodes: [nodeWith(nodeNames)] })
    expect((await decide(servingRequest(), [kubeletServingPolicy()], facts)).decision).toBe('approve')
    expect(facts.lookups).not.toContain('readServedCertificate')
  })

  test('skips the request when it is unavailable, even with a policy that denies', async () => {
    const { served: _, ...unknown } = quiet
    const facts = fakeFacts({ ...unknown, nodes: [bare] })
    const verdict = await decide(servingRequest(), [kubeletServingPolicy({ onViolation: 'deny' })], facts)
    expect(verdict).toMatchObject({ decision: 'ignore', duties: { entitlement: 'unknown' } })
  })
})
