import { describe, expect, test } from 'vitest'
import type { CertificateRecord } from '../../src/rotation/certificate-record.ts'
import { preflight, unseenNodes } from '../../src/rotation/refusals.ts'
import {
  type ComponentSnapshot,
  type FileSnapshot,
  fileKey,
  type ParsedContent,
} from '../../src/rotation/snapshot.ts'
import type { CaChange, Target } from '../../src/rotation/target.ts'

// Every refusal on a cluster that differs from an accepted one in one value.

const pki = '/etc/kubernetes/pki'
const atMs = Date.parse('2026-06-01T00:00:00Z')

function ca(digest: string, more: Partial<CertificateRecord> = {}): CertificateRecord {
  const subject = `CN=${digest}`
  const spki = `${digest}-key`
  const notAfterMs = atMs + 1
  return {
    digest,
    subject,
    issuer: subject,
    subjectKeyId: digest,
    spki,
    isCa: true,
    notBeforeMs: 0,
    notAfterMs,
    ...more,
  }
}

const cluster: CaChange = { ca: 'cluster', oldCa: ca('old'), newCa: ca('new') }
const frontProxy: CaChange = { ca: 'front-proxy', oldCa: ca('fp-old'), newCa: ca('fp-new') }

function component(
  node: string,
  name: ComponentSnapshot['name'],
  flags: Record<string, string>,
): ComponentSnapshot {
  const definition = `/etc/kubernetes/manifests/${name}.yaml`
  return {
    id: `${node}/${name}`,
    node,
    name,
    runsAs: 'static-pod',
    definition,
    definitionDigest: '',
    flags,
    annotations: {},
    version: 'v1.36.0',
  }
}

const apiFlags = {
  'client-ca-file': `${pki}/ca.crt`,
  'requestheader-client-ca-file': `${pki}/front-proxy-ca.crt`,
  'etcd-cafile': `${pki}/etcd/ca.crt`,
}
const managerFlags = {
  'client-ca-file': `${pki}/ca.crt`,
  'root-ca-file': `${pki}/ca.crt`,
  'cluster-signing-cert-file': `${pki}/ca.crt`,
  'cluster-signing-key-file': `${pki}/ca.key`,
}

function file(node: string, path: string, contains: ParsedContent): [string, FileSnapshot] {
  return [fileKey(node, path), { node, path, digest: '', mode: 0o600, changedAtMs: 0, contains }]
}

const node = { isControlPlane: true, isReady: true, kubeletVersion: 'v1.36.0', layout: 'kubeadm' } as const
const accepted = {
  atMs,
  certificates: new Map([cluster.oldCa, frontProxy.oldCa, ca('etcd')].map((one) => [one.digest, one])),
  nodes: [
    { ...node, name: 'cp1' },
    { ...node, name: 'cp2', layout: 'plain' },
  ],
  components: [
    component('cp1', 'kube-apiserver', apiFlags),
    component('cp1', 'kube-controller-manager', managerFlags),
    component('cp1', 'kube-scheduler', { 'client-ca-file': '/elsewhere.crt' }),
    component('cp2', 'kube-apiserver', apiFlags),
  ],
  files: new Map([
    file('cp1', `${pki}/ca.key`, { kind: 'key', spki: 'old-key' }),
    file('cp1', `${pki}/front-proxy-ca.key`, { kind: 'key', spki: 'fp-old-key' }),
    file('cp1', `${pki}/etcd/ca.crt`, { kind: 'certificates', certificates: ['etcd'] }),
    file('cp2', `${pki}/etcd/ca.crt`, { kind: 'certificates', certificates: ['etcd'] }),
  ]),
  extensionAuthentication: {
    version: '1',
    changedAtMs: 0,
    client: [],
    requestheader: [],
    allowsAnyName: false,
  },
} as const
const target = { changes: [cluster, frontProxy], isDropping: false } as unknown as Target
const first = { number: 1, risk: 'writes' } as never

type Cluster = Parameters<typeof preflight>[0]

function refusals(
  observed: Partial<Record<keyof typeof accepted, unknown>> = {},
  changed: Partial<Target> = {},
  phase = first,
) {
  return preflight({ ...accepted, ...observed } as unknown as Cluster, { ...target, ...changed }, phase)
}

function what(...given: Parameters<typeof refusals>): string[] {
  return refusals(...given).map((one) => one.what)
}

/** The components, with the flags of one of them replaced. */
function withFlags(id: string, flags: Record<string, string>): { components: ComponentSnapshot[] } {
  const components = accepted.components.map((one) =>
    one.id === id ? { ...one, flags: { ...one.flags, ...flags } } : one,
  )
  return { components: components as ComponentSnapshot[] }
}

function withCas(
  change: (one: CaChange) => Partial<CaChange>,
  of: CaChange['ca'] = 'cluster',
): Partial<Target> {
  return { changes: [cluster, frontProxy].map((one) => (one.ca === of ? { ...one, ...change(one) } : one)) }
}

function withFiles(...files: [string, FileSnapshot][]): { files: Map<string, FileSnapshot> } {
  return { files: new Map([...accepted.files, ...files] as [string, FileSnapshot][]) }
}

test('accepts a kubeadm cluster and a plain one', () => {
  expect(refusals()).toEqual([])
})

test('accepts the components in any order', () => {
  expect(what({ components: accepted.components.toReversed() })).toEqual([])
})

test('refuses layouts that other tools rotate, each once, with the nodes and the procedure of that tool', () => {
  const nodes = ['k3s', 'managed', 'k3s', 'kubeadm'].map((layout, index) => ({
    ...node,
    name: `n${index}`,
    layout,
  }))
  expect(refusals({ nodes })).toEqual([
    {
      what: 'kcert does not rotate k3s clusters: n0, n1, n2',
      why: 'k3s creates and rotates the CAs of the cluster',
      next: 'k3s certificate rotate-ca --help',
    },
    {
      what: 'kcert does not rotate managed clusters: n0, n1, n2',
      why: 'the provider creates and rotates the CAs of the cluster; use its CA rotation',
      next: 'kcert rotate-ca discover --dry-run',
    },
  ])
})

test('refuses a cluster without a known kube-apiserver', () => {
  const components = accepted.components.filter(({ name }) => name !== 'kube-apiserver')
  expect(what({ components })).toContain('no kube-apiserver was found on any node')
})

describe('one CA for two purposes', () => {
  test('cluster and front proxy', () => {
    const shared = withCas(() => ({ oldCa: ca('other', { spki: 'old-key' }) }), 'front-proxy')
    expect(
      what(withFiles(file('cp1', `${pki}/front-proxy-ca.key`, { kind: 'key', spki: 'old-key' })), shared),
    ).toEqual(['the cluster and the front proxy share one CA'])
  })

  test.each<[string, Partial<Target>]>([
    ['the cluster CA alone', { changes: [cluster] }],
    ['the front-proxy CA alone', { changes: [frontProxy] }],
    ['no CA', { changes: [] }],
  ])('%s is rotated: no second CA to compare with', (_, changed) => {
    expect(what({}, changed)).toEqual([])
  })

  test('cluster and etcd, named once', () => {
    const etcd = (on: string) =>
      file(on, `${pki}/etcd/ca.crt`, { kind: 'certificates', certificates: ['etcd', 'old'] })
    expect(what(withFiles(etcd('cp1'), etcd('cp2')))).toEqual(['the cluster and etcd share one CA (on cp1)'])
    expect(what(withFiles(etcd('cp2')))).toEqual(['the cluster and etcd share one CA (on cp2)'])
  })

  test('the front-proxy CA for etcd, except in a rotation of the front-proxy CA alone', () => {
    const etcd = file('cp1', `${pki}/etcd/ca.crt`, { kind: 'certificates', certificates: ['unread'] })
    expect(what(withFiles(etcd), { changes: [frontProxy] })).toEqual([])
  })

  test.each<ParsedContent>([
    { kind: 'key', spki: 'old-key' },
    { kind: 'other' },
    { kind: 'certificates', certificates: ['unread'] },
  ])('an etcd CA file with %j proves nothing', (contains) => {
    expect(what(withFiles(file('cp1', `${pki}/etcd/ca.crt`, contains)))).toEqual([])
  })

  test('a missing etcd CA file proves nothing', () => {
    expect(what(withFlags('cp1/kube-apiserver', { 'etcd-cafile': '/gone' }))).toEqual([])
  })
})

test.each([
  [0, ['the cluster CA has expired: 2026-06-01T00:00:00.000Z']],
  [1, []],
])('a CA that expires %i ms from now', (fromNow, expected) => {
  expect(
    what(
      {},
      withCas(({ oldCa }) => ({ oldCa: { ...oldCa, notAfterMs: atMs + fromNow } })),
    ),
  ).toEqual(expected)
})

describe('Kubernetes versions', () => {
  const nodes = (...versions: string[]) => ({
    nodes: versions.map((kubeletVersion, index) => ({ ...node, name: `n${index}`, kubeletVersion })),
  })
  const untested = 'Kubernetes 1.38 is untested: n1'
  const phase = (number: number, risk: string) => ({ number, risk }) as never

  test.each([
    { versions: ['v1.36.0', 'v1.36.9-vendor'], accepted: [], reported: [] },
    { versions: ['v1.36.3', 'v1.38.0'], accepted: [], reported: [untested] },
    { versions: ['v1.36.3', 'v1.38.0'], accepted: ['1.38'], reported: [] },
    { versions: ['v1.36.3', 'v1.38.0'], accepted: ['1.39', '38', '1.38.0'], reported: [untested] },
    { versions: ['v2.36.3'], accepted: ['2.36'], reported: ['the Kubernetes version of n0 is unknown'] },
    { versions: ['', '1.36.3'], accepted: [''], reported: ['the Kubernetes version of n0, n1 is unknown'] },
    { versions: ['', 'v1.36.3'], accepted: ['unknown'], reported: [] },
  ])('$versions, of which $accepted are accepted', ({ versions, accepted: minors, reported }) => {
    const found = what(nodes(...versions), { acceptedVersions: new Set(minors) }, phase(2, 'restarts'))
    expect(found).toEqual(reported)
  })

  const withVersions = (versions: Record<string, string | undefined>) => ({
    components: accepted.components.map((one) => {
      const { version, ...others } = one
      const other = one.id in versions ? versions[one.id] : version
      return other === undefined ? others : { ...others, version: other }
    }),
  })

  test('checks the version of API servers, controller-managers and schedulers like that of kubelets', () => {
    const untestedOn = (id: string) =>
      what(withVersions({ [id]: 'v1.32.9' }), { acceptedVersions: new Set() }, phase(2, 'restarts'))
    for (const { id } of accepted.components)
      expect(untestedOn(id)).toEqual([`Kubernetes 1.32 is untested: ${id}`])
  })

  test('names a component with an unreadable version, and accepts it as unknown', () => {
    const observed = withVersions({ 'cp2/kube-apiserver': undefined, 'cp1/kube-scheduler': 'latest' })
    const [refusal, ...others] = refusals(observed, { acceptedVersions: new Set() }, phase(2, 'restarts'))
    expect(others).toEqual([])
    expect(refusal).toMatchObject({
      what: 'the Kubernetes version of cp1/kube-scheduler, cp2/kube-apiserver is unknown',
      next: 'kcert rotate-ca plan --accept-untested-version unknown',
    })
    expect(what(observed, { acceptedVersions: new Set(['unknown']) }, phase(2, 'restarts'))).toEqual([])
  })

  test('reports each minor version once, the components of a node together, and at most five names', () => {
    const names = ['cp1', 'cp2', 'w1', 'w2', 'w3', 'w4', 'w5']
    const observed = {
      nodes: names.map((name) => ({ ...node, name, kubeletVersion: 'v1.38.1' })),
      ...withVersions({ 'cp1/kube-apiserver': 'v1.38.1', 'cp1/kube-scheduler': 'v1.39.0' }),
    }
    expect(what(observed, { acceptedVersions: new Set() }, phase(2, 'restarts'))).toEqual([
      'Kubernetes 1.38 is untested: cp1, cp2, w1, w2, w3 and 2 more',
      'Kubernetes 1.39 is untested: cp1/kube-scheduler',
    ])
  })

  test('ignores the versions of a cloud-controller-manager and of a kube-proxy run by systemd', () => {
    const { version: _, ...proxy } = component('cp1', 'kube-proxy', {})
    const other = { ...component('cp1', 'cloud-controller-manager', {}), version: 'v0.1.2' }
    const components = [...accepted.components, proxy, other]
    expect(what({ components }, { acceptedVersions: new Set() }, phase(2, 'restarts'))).toEqual([])
  })

  test('accepts every version in a phase that only reads', () => {
    const settings = { acceptedVersions: new Set<string>() }
    expect(what(nodes('v1.38.0'), settings, phase(3, 'reads'))).toEqual([])
    expect(refusals(nodes('v1.38.0'), settings, phase(12, 'irreversible'))[0]?.next).toBe(
      'kcert rotate-ca plan --accept-untested-version 1.38',
    )
  })
})

describe('intermediate CAs', () => {
  test.each<[CaChange['ca'], string]>([
    ['cluster', 'kcert rotate-ca plan --ca front-proxy'],
    ['front-proxy', 'kcert rotate-ca plan --ca cluster'],
  ])('as %s CA: the next step plans the rotation of the other CA', (of, next) => {
    const changed = withCas(({ oldCa }) => ({ oldCa: { ...oldCa, issuer: 'CN=root' } }), of)
    expect(refusals({}, changed).map((one) => one.next)).toEqual([next])
  })

  test('an old one', () => {
    expect(
      what(
        {},
        withCas(({ oldCa }) => ({ oldCa: { ...oldCa, issuer: 'CN=root' } })),
      ),
    ).toEqual(['the cluster CA is an intermediate: CN=old, signed by CN=root'])
  })

  test('a new one', () => {
    expect(
      what(
        {},
        withCas(({ newCa }) => ({ newCa: { ...newCa, issuer: 'CN=root' } })),
      ),
    ).toEqual(['the new cluster CA is an intermediate: CN=new, signed by CN=root'])
  })
})

describe('a new CA with the name of the old one', () => {
  const named = (more: Partial<CertificateRecord>) =>
    ca('new', { subject: 'CN=old', issuer: 'CN=old', ...more })
  const refused = ['the new cluster CA has the name of the old one: CN=old']
  const { subjectKeyId: _, ...oldWithout } = cluster.oldCa
  const { subjectKeyId: __, ...newWithout } = named({})

  test.each<[string, Partial<CaChange>, string[]]>([
    ['both have key identifiers', { newCa: named({}) }, []],
    ['the new one has none', { newCa: newWithout }, refused],
    ['the old one has none', { oldCa: oldWithout, newCa: named({}) }, refused],
    ['another name, without key identifiers', { oldCa: oldWithout }, []],
  ])('%s', (_, change, expected) => {
    expect(
      what(
        {},
        withCas(() => change),
      ),
    ).toEqual(expected)
  })
})

test('suggests a new name for a CA with the old name', () => {
  const { subjectKeyId: _, ...newCa } = ca('new', { subject: 'CN=old', issuer: 'CN=old' })
  expect(
    refusals(
      {},
      withCas(() => ({ newCa })),
    )[0]?.why,
  ).toContain('CN=old-2')
})

test('refuses a new CA with the key of the old one', () => {
  expect(
    what(
      {},
      withCas(({ newCa }) => ({ newCa: { ...newCa, spki: 'old-key' } })),
    ),
  ).toEqual(['the new cluster CA has the key of the old one'])
})

describe('files other than those of the API server', () => {
  const id = 'cp1/kube-controller-manager'
  const refused = (flag: string, path: string, of = id) => [
    `flags that name other files than the API server's --client-ca-file: ${of} --${flag}=${path}`,
  ]

  test.each(['root-ca-file', 'cluster-signing-cert-file', 'cluster-signing-key-file'])(
    'refuses --%s with another file',
    (flag) => {
      expect(what(withFlags(id, { [flag]: '/own.pem' }))).toEqual(refused(flag, '/own.pem'))
    },
  )

  test('refuses the key in place of the certificate, and the reverse', () => {
    expect(what(withFlags(id, { 'root-ca-file': `${pki}/ca.key` }))).toEqual(
      refused('root-ca-file', `${pki}/ca.key`),
    )
    expect(what(withFlags(id, { 'cluster-signing-key-file': `${pki}/ca.crt` }))).toEqual(
      refused('cluster-signing-key-file', `${pki}/ca.crt`),
    )
  })

  test('accepts the folder of kcert, but not a folder with the same prefix', () => {
    expect(what(withFlags(id, { 'root-ca-file': `${pki}/kcert/ca-bundle.crt` }))).toEqual([])
    expect(what(withFlags(id, { 'root-ca-file': `${pki}/kcert2/ca.crt` }))).toEqual(
      refused('root-ca-file', `${pki}/kcert2/ca.crt`),
    )
    expect(what(withFlags(id, { 'root-ca-file': `/x${pki}/kcert/a.crt` }))).toEqual(
      refused('root-ca-file', `/x${pki}/kcert/a.crt`),
    )
  })

  test('refuses those of a cloud-controller-manager too, and names all', () => {
    const components = [
      ...accepted.components,
      component('cp1', 'cloud-controller-manager', { 'root-ca-file': '/b.crt' }),
      component('cp2', 'kube-controller-manager', { 'root-ca-file': '/c.crt' }),
    ]
    expect(what({ components })).toEqual([
      "flags that name other files than the API server's --client-ca-file: " +
        'cp1/cloud-controller-manager --root-ca-file=/b.crt, cp2/kube-controller-manager --root-ca-file=/c.crt',
    ])
  })

  test('compares with nothing when the node has no API server, or its flag is missing', () => {
    const other = component('w1', 'kube-controller-manager', { 'root-ca-file': '/c.crt' })
    expect(what({ components: [...accepted.components, other] })).toEqual([])
    const components = [component('cp2', 'kube-apiserver', { ...apiFlags, 'client-ca-file': '' }), other]
    const withoutFlag = components.map((one) => {
      const { 'client-ca-file': _, ...flags } = one.flags
      return { ...one, node: 'cp1', flags }
    })
    expect(what({ components: withoutFlag }, { changes: [cluster] })).not.toContain('files of their own')
  })

  test('accepts them in a rotation of the front-proxy CA alone', () => {
    expect(what(withFlags(id, { 'root-ca-file': '/own.crt' }), { changes: [frontProxy] })).toEqual([])
  })
})

describe('the key of the CA', () => {
  const missing = (name: string) => `no control-plane node has the key of the ${name} CA`
  const keyOn = (on: string, contains: ParsedContent) =>
    new Map(
      [...accepted.files].flatMap(([key, one]) =>
        one.path === `${pki}/ca.key` ? [file(on, one.path, contains)] : [[key, one]],
      ) as never,
    )

  test('is enough on any control-plane node', () => {
    expect(what({ files: keyOn('cp2', { kind: 'key', spki: 'old-key' }) })).toEqual([])
  })

  test.each<[string, string, ParsedContent]>([
    ['on a worker', 'w1', { kind: 'key', spki: 'old-key' }],
    ['of another CA', 'cp1', { kind: 'key', spki: 'new-key' }],
    ['in a file with a certificate and its key', 'cp1', { kind: 'pair', certificates: [], spki: 'old-key' }],
  ])('%s does not count', (_, on, contains) => {
    const components = [...accepted.components, component('w1', 'kube-proxy', {})]
    expect(what({ components, files: keyOn(on, contains) })).toEqual([missing('cluster')])
  })

  test('is required only in phase 1', () => {
    expect(what({ files: new Map() })).toEqual([missing('cluster'), missing('front-proxy')])
    expect(what({ files: new Map() }, {}, { number: 2, risk: 'writes' } as never)).toEqual([])
  })

  test('counts as missing when the API server has no CA file', () => {
    const components = accepted.components.map((one) => ({ ...one, flags: {} }))
    expect(what({ components }, { changes: [cluster] })).toEqual([missing('cluster')])
  })

  test('is searched for only next to an API server', () => {
    const components = [component('cp1', 'kube-scheduler', apiFlags)]
    expect(what({ components })).toEqual(['no kube-apiserver was found on any node'])
  })
})

describe('signers with their own files', () => {
  test.each([
    'kubelet-client-cert',
    'kubelet-serving-key',
    'kube-apiserver-client-cert',
    'legacy-unknown-key',
  ])('--cluster-signing-%s-file', (name) => {
    expect(
      what(withFlags('cp1/kube-controller-manager', { [`cluster-signing-${name}-file`]: '/a' })),
    ).toEqual([`signers with separate files: cp1/kube-controller-manager --cluster-signing-${name}-file`])
  })

  test.each([
    'cluster-signing-duration',
    'x-cluster-signing-kubelet-a-file',
    'cluster-signing-kubelet-a-file-x',
  ])('--%s does not count', (flag) => {
    expect(what(withFlags('cp1/kube-controller-manager', { [flag]: '/a' }))).toEqual([])
  })

  test('are all named', () => {
    const flags = {
      'cluster-signing-legacy-unknown-cert-file': '/a',
      'cluster-signing-legacy-unknown-key-file': '/b',
    }
    expect(what(withFlags('cp1/kube-controller-manager', flags))[0]).toContain(
      '-cert-file, cp1/kube-controller-manager --',
    )
  })
})

test('refuses an empty list of front-proxy names only where the front-proxy CA is rotated', () => {
  const extensionAuthentication = { ...accepted.extensionAuthentication, allowsAnyName: true }
  expect(what({ extensionAuthentication })).toEqual([
    'every certificate of the front-proxy CA is accepted as a front proxy, because --requestheader-allowed-names is empty',
  ])
  expect(what({ extensionAuthentication }, { changes: [cluster] })).toEqual([])
  expect(what({ extensionAuthentication: undefined })).toEqual([])
})

describe('unreachable nodes', () => {
  const nodes = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ ...node, name: `n${index}`, unreachable: 'no route' }))

  test.each([
    [1, '1 node cannot be reached: n0 (no route)'],
    [2, '2 nodes cannot be reached: n0 (no route), n1 (no route)'],
    [
      6,
      '6 nodes cannot be reached: n0 (no route), n1 (no route), n2 (no route), n3 (no route), n4 (no route)',
    ],
  ])('%i of them stop a phase that writes', (count, expected) => {
    expect(what({ nodes: nodes(count) })).toEqual([expected])
  })

  test('do not stop a phase that reads', () => {
    expect(what({ nodes: nodes(1) }, {}, { number: 3, risk: 'reads' } as never)).toEqual([])
  })

  test('are the only refusal once the old CA is being dropped', () => {
    expect(what({ nodes: nodes(1), components: [] }, { isDropping: true })).toEqual([
      '1 node cannot be reached: n0 (no route)',
    ])
  })
})

describe('a phase cannot be complete', () => {
  const seen = (on: string[], ...nodes: { name: string; unreachable?: string }[]) =>
    unseenNodes({ nodes, kubelets: on.map((name) => ({ node: name })) } as unknown as Parameters<
      typeof unseenNodes
    >[0])

  test('when no kubelet was found on a node', () => {
    expect(seen(['cp1'], { name: 'cp1' }, { name: 'w 1' })).toEqual([
      {
        what: 'no kubelet was found on node w 1',
        why: 'every node runs a kubelet; kcert cannot tell which CAs this one trusts and which certificates it uses',
        next: "kubectl get node 'w 1' -o wide",
      },
    ])
  })

  test('when a node cannot be reached, whose kubelet is not reported as well', () => {
    expect(seen([], { name: 'w1', unreachable: 'no route' }).map((one) => one.what)).toEqual([
      '1 node cannot be reached: w1 (no route)',
    ])
  })
})

test('every refusal gives a reason and a next step', () => {
  const given: Parameters<typeof refusals>[] = [
    [{ components: [], nodes: [{ ...node, name: 'a', layout: 'k3s', unreachable: 'x' }] }],
    [
      {
        extensionAuthentication: { ...accepted.extensionAuthentication, allowsAnyName: true },
        files: new Map(),
      },
    ],
    [
      {},
      withCas(() => ({
        oldCa: ca('o', { issuer: 'CN=x', spki: 'fp-old-key' }),
        newCa: ca('o', { issuer: 'CN=x', spki: 'fp-old-key' }),
      })),
    ],
    [
      withFlags('cp1/kube-controller-manager', {
        'root-ca-file': '/x',
        'cluster-signing-legacy-a-file': '/x',
      }),
    ],
  ]
  const all = given.flatMap((one) => refusals(...one))
  expect(all.length).toBeGreaterThan(9)
  for (const { why, next } of all) expect([why, next].every((text) => text.length > 10)).toBe(true)
})
