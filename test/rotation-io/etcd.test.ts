import { createServer as createHttp, type Server } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, onTestFinished, test, vi } from 'vitest'
import { actionsOf } from '../../src/rotation/action.ts'
import { etcdPlaybook } from '../../src/rotation/etcd/playbook.ts'
import { keyTypeOf, otherNewCas } from '../../src/rotation/key-type.ts'
import { phaseOf } from '../../src/rotation/phase.ts'
import { runbookOf } from '../../src/rotation/runbook.ts'
import { fileKey, type Snapshot } from '../../src/rotation/snapshot.ts'
import { defaultSettings, type Settings } from '../../src/rotation/target-reading.ts'
import { SiteExecutor } from '../../src/rotation-io/executor.ts'
import { SiteObserver } from '../../src/rotation-io/observer.ts'
import { OwnIdentity } from '../../src/rotation-io/own-identity.ts'
import { inventoryObjects } from '../../src/rotation-io/recovering.ts'
import { RotationCas } from '../../src/rotation-io/rotation-cas.ts'
import { prepareRunbook } from '../../src/rotation-io/runbook.ts'
import { ControlPlanes } from '../../src/site/control-planes.ts'
import { type Certificate, readCertificates } from '../../src/x509/certificate.ts'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'
import { verifySignature } from '../../src/x509/signature.ts'
import { controlPlaneTree } from '../pki/kubeadm-tree.ts'
import { MemoryNode } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

// The files of the first three phases, with real certificates: what kcert observes on nodes, and what it writes there.

const pki = '/etc/kubernetes/pki'
const leaves = ['etcd/server', 'etcd/peer', 'etcd/healthcheck-client', 'apiserver-etcd-client']

function manifest(program: string, flags: Readonly<Record<string, string>>): string {
  const words = Object.entries(flags).map(([name, value]) => `    - --${name}=${value}\n`)
  return `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${program}\nspec:\n  containers:\n  - name: ${program}\n    image: ${program}:1\n    command:\n    - ${program}\n${words.join('')}`
}

function controlPlane(
  name: string,
  servers: Readonly<Record<string, string>> = {},
  madeAt = new Date('2026-11-01T00:00:00Z'),
): MemoryNode {
  const node = new MemoryNode(name, controlPlaneTree({ madeAt, nodeName: name }))
  const put = (program: string, flags: Readonly<Record<string, string>>) =>
    node.files.set(`/etc/kubernetes/manifests/${program}.yaml`, {
      content: Buffer.from(manifest(program, flags)),
      mode: 0o600,
    })
  put('kube-apiserver', {
    'client-ca-file': `${pki}/ca.crt`,
    'requestheader-client-ca-file': `${pki}/front-proxy-ca.crt`,
    'etcd-cafile': `${pki}/etcd/ca.crt`,
    'etcd-certfile': `${pki}/apiserver-etcd-client.crt`,
    ...servers,
  })
  put('etcd', {
    'cert-file': `${pki}/etcd/server.crt`,
    'peer-cert-file': `${pki}/etcd/peer.crt`,
    'trusted-ca-file': `${pki}/etcd/ca.crt`,
    'peer-trusted-ca-file': `${pki}/etcd/ca.crt`,
  })
  return node
}

const sections = ['nodes', 'components', 'kubelets', 'etcdMembers', 'files', 'copies'] as const

async function opened(nodes: ReadonlyMap<string, MemoryNode>, chosen: Partial<Settings> = {}) {
  const site = (await sitesOf(nodes))()
  const observer = new SiteObserver(site, etcdPlaybook)
  let serial = 0
  const random = (length: number) => Buffer.alloc(length, ++serial)
  const executor = new SiteExecutor({ site, random, table: etcdPlaybook })
  const observe = async () => {
    const read = await observer.observe(sections)
    const observed = { ...read, evidence: new Map(), intents: [], kubeadm: undefined } as unknown as Snapshot
    const target = etcdPlaybook.targetOf(
      observed,
      { ...defaultSettings, cas: ['etcd'], ...chosen },
      { changes: [] },
    )
    return { observed, target }
  }
  /** Performs only the writes of a phase. */
  const write = async (phase: number): Promise<number> => {
    const { observed, target } = await observe()
    const writes = phaseOf(etcdPlaybook, phase)
      .plan(observed, target)
      .flatMap(actionsOf)
      .filter((action) => action.kind === 'write-file')
    for (const action of writes) await executor.write(action)
    return writes.length
  }
  return { observe, write }
}

function certificatesAt(node: MemoryNode, path: string): Certificate[] {
  return readCertificates(node.files.get(`${pki}/${path}`)!.content)
}

function keyAt(node: MemoryNode, path: string): string | undefined {
  return readPrivateKeyFile(node.files.get(`${pki}/${path}`)!.content).publicKey?.sha256
}

test('observes members without a process, with the files of member and API server', async () => {
  const nodes = new Map([['cp1', controlPlane('cp1')]])
  const { observed, target } = await (await opened(nodes)).observe()
  expect(observed.etcdMembers).toEqual([
    expect.objectContaining({ id: 'cp1/etcd', node: 'cp1', served: { client: [], peer: [] } }),
  ])
  expect(observed.etcdMembers[0]).not.toHaveProperty('process')
  const paths = [...observed.files.values()].map(({ path }) => path)
  for (const leaf of leaves) expect(paths).toContain(`${pki}/${leaf}.crt`)
  expect(paths).toContain(`${pki}/etcd/ca.key`)
  expect(target.changes.map(({ ca, oldCa, newCa }) => [ca, oldCa.subject, newCa.subject])).toEqual([
    ['etcd', 'CN=etcd-ca', 'CN=etcd-ca-2'],
  ])
})

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

/** Returns metrics with the ID of a member, as etcd 3.6 writes them. */
function metricsOf(id: string): string {
  return [
    `etcd_server_id{server_id="${id}"} 1`,
    'etcd_server_is_leader 1',
    'etcd_server_is_learner 0',
    'etcd_server_proposals_applied_total 1',
    `etcd_network_known_peers{Local="${id}",Remote="a1"} 1`,
    `etcd_network_known_peers{Local="${id}",Remote="a2"} 1\n`,
  ].join('\n')
}

test.for([
  ['https://cp1:8443', 'a1', 200, ['cp1 cp1:8443']],
  // Another member, on another node.
  ['https://cp1:8443', 'a2', 200, ['cp1 cp1:8443']],
  // Another etcd on the node, with the same certificates.
  ['https://cp1:8443', 'b2', 200, undefined],
  ['https://cp1:8443', 'a1', 404, undefined],
  // The certificate is not for this name.
  ['https://etcd.example:8443', 'a1', 200, undefined],
  ['http://cp1:8443', 'a1', 200, undefined],
] as const)('%s leads to the member %s with status %i: %s', async ([servers, id, status, reachedAt]) => {
  const key = 'etcd-keyfile'
  const flags = { 'etcd-servers': servers, [key]: `${pki}/apiserver-etcd-client.key` }
  const node = controlPlane('cp1', flags, new Date(Date.now() - 3_600_000))
  const argv = ['etcd', '--listen-metrics-urls=http://127.0.0.1:2381']
  node.processes = [{ program: 'etcd', pid: 1, startTicks: 1, startedAt: new Date(0), argv } as never]
  const nodes = new Map([['cp1', node]])
  const ports = {
    2381: await portOf(createHttp((_, answer) => void answer.end(metricsOf('a1')))),
    8443: await portOf(
      createHttps(
        {
          cert: node.files.get(`${pki}/etcd/server.crt`)!.content,
          key: node.files.get(`${pki}/etcd/server.key`)!.content,
          ca: node.files.get(`${pki}/etcd/ca.crt`)!.content,
          requestCert: true,
        },
        (_, answer) => void answer.writeHead(status).end(metricsOf(id)),
      ),
    ),
  }
  const dialled: number[] = []
  const dial = (_node: string, _host: string, port: number) => {
    dialled.push(port)
    return connect({ host: '127.0.0.1', port: ports[port as 2381 | 8443] })
  }
  const site = (await sitesOf(nodes))()
  let laterMs = 0
  const clock = () => new Date(site.clock().getTime() + laterMs)
  const observer = new SiteObserver({ ...site, clock, dial }, etcdPlaybook)
  const { etcdMembers } = await observer.observe(sections)
  expect(etcdMembers.map(({ state, reachedAt: its }) => [state?.memberId, its])).toEqual([['a1', reachedAt]])
  // Waits observe twice a second: the next observation does not connect again.
  const isHttps = servers.startsWith('https:')
  expect(dialled.includes(8443)).toBe(isHttps)
  dialled.length = 0
  expect((await observer.observe(sections)).etcdMembers[0]?.reachedAt).toEqual(reachedAt)
  expect(dialled).not.toContain(8443)
  // An endpoint without an answer is tried again after a time.
  laterMs = 31_000
  await observer.observe(sections)
  expect(dialled.includes(8443)).toBe(isHttps && reachedAt === undefined && id !== 'b2')
})

test('tries all endpoints at once: one that does not answer delays no other', async () => {
  const servers = 'https://lb1:8443,https://lb2:8444'
  const key = 'etcd-keyfile'
  const flags = { 'etcd-servers': servers, [key]: `${pki}/apiserver-etcd-client.key` }
  const nodes = new Map([['cp1', controlPlane('cp1', flags, new Date(Date.now() - 3_600_000))]])
  const silent: Duplex[] = []
  const dialled: number[] = []
  const dial = (_node: string, _host: string, port: number) => {
    dialled.push(port)
    const stream = new Duplex({ read: () => {}, write: (_, __, done) => done() })
    silent.push(stream)
    return stream
  }
  const observer = new SiteObserver({ ...(await sitesOf(nodes))(), dial }, etcdPlaybook)
  const observing = observer.observe(sections)
  await vi.waitFor(() => expect(dialled).toEqual(expect.arrayContaining([8443, 8444])), 3_000)
  for (const stream of silent) stream.destroy()
  await observing
})

const file = (text: string) => ({ content: Buffer.from(text), mode: 0o644 })

/** Returns a control-plane node whose etcd is a unit, its site, and the units that are read. */
async function withUnit(unit: string, argv: readonly string[], count = 1) {
  const node = controlPlane('cp1')
  node.files.delete('/etc/kubernetes/manifests/etcd.yaml')
  const fragmentPath = '/etc/systemd/system/etcd.service'
  node.files.set(fragmentPath, file(`[Service]\n${unit}\nExecStart=${argv.join(' ')}\n`))
  const units: string[] = []
  Object.assign(node.access, {
    unit: async (name: string) => {
      units.push(name)
      return {
        name,
        loadState: name === 'etcd.service' ? 'loaded' : 'not-found',
        fragmentPath,
        dropInPaths: [],
      }
    },
  })
  const running = {
    program: 'etcd',
    startTicks: 1,
    startedAt: new Date('2026-11-02T00:00:00Z'),
    argv,
  } as const
  node.processes = Array.from({ length: count }, (_, pid) => ({ ...running, pid }))
  const site = (await sitesOf(new Map([['cp1', node]])))()
  const plain = site.inventory.nodes.map((one) => ({ ...one, layout: 'plain' as const }))
  return { node, units, site: { ...site, inventory: { ...site.inventory, nodes: plain } } }
}

test.each([
  ['a single process', 1, true],
  ['two processes, of which one may be another etcd', 2, false],
])('observes a member that is a unit, with %s', async (_, count, isFound) => {
  const environment = '/etc/default/etcd'
  const flags = { 'cert-file': `${pki}/etcd/server.crt`, 'trusted-ca-file': `\${CA}` }
  const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`)
  const unit = `Environment=ETCD_CERT_FILE=/other ETCD_CONFIG_FILE= ETCDCTL_CERT=/x\nEnvironmentFile=-${environment}`
  const { node, units, site } = await withUnit(unit, ['/usr/bin/etcd', ...words], count)
  node.files.set(environment, file(`CA=${pki}/etcd/ca.crt\nETCD_PEER_CERT_FILE=${pki}/etcd/peer.crt\n`))
  const variables = [
    'HOME=/',
    'ETCD_CERT_FILE=/other',
    // etcd ignores empty variables.
    'ETCD_CONFIG_FILE=',
    `ETCD_PEER_CERT_FILE=${pki}/etcd/peer.crt`,
    'ETCD_LISTEN_METRICS_URLS=http://127.0.0.1:2381',
  ]
  node.files.set('/proc/0/environ', file(`${variables.join('\0')}\0`))
  const { etcdMembers, files } = await new SiteObserver(site, etcdPlaybook).observe(sections)
  expect(etcdMembers).toEqual([
    expect.objectContaining({
      id: 'cp1/etcd',
      runsAs: 'unit',
      // Flags take precedence over variables.
      flags: {
        'cert-file': `${pki}/etcd/server.crt`,
        'peer-cert-file': `${pki}/etcd/peer.crt`,
        'trusted-ca-file': `${pki}/etcd/ca.crt`,
      },
    }),
  ])
  expect(etcdMembers[0]?.process?.flags).toEqual(
    isFound
      ? { ...flags, 'peer-cert-file': `${pki}/etcd/peer.crt`, 'listen-metrics-urls': 'http://127.0.0.1:2381' }
      : undefined,
  )
  expect([...files.values()].map((one) => one.path)).toContain(`${pki}/etcd/server.crt`)
  expect(units).toContain('etcd.service')
  units.length = 0
  await new SiteObserver(site).observe(sections)
  expect(units).not.toContain('etcd.service')
})

const configuration = `name: cp1
data-dir: /var/lib/etcd
listen-client-urls: https://192.0.2.1:2379
listen-metrics-urls: http://127.0.0.1:2381
trusted-ca-file: /ignored.crt
client-transport-security:
  cert-file: ${pki}/etcd/server.crt
  key-file: ${pki}/etcd/server.key
  client-cert-auth: true
  trusted-ca-file: ${pki}/etcd/ca.crt
peer-transport-security:
  cert-file: ${pki}/etcd/peer.crt
  key-file: ${pki}/etcd/peer.key
  client-cert-file: /etc/etcd/peer-client.crt
  trusted-ca-file: ''
`
const configured = {
  name: 'cp1',
  'data-dir': '/var/lib/etcd',
  'listen-client-urls': 'https://192.0.2.1:2379',
  'listen-metrics-urls': 'http://127.0.0.1:2381',
  'cert-file': `${pki}/etcd/server.crt`,
  'key-file': `${pki}/etcd/server.key`,
  'client-cert-auth': 'true',
  'trusted-ca-file': `${pki}/etcd/ca.crt`,
  'peer-cert-file': `${pki}/etcd/peer.crt`,
  'peer-key-file': `${pki}/etcd/peer.key`,
  'peer-client-cert-file': '/etc/etcd/peer-client.crt',
}
const path = '/etc/etcd/etcd.yaml'
const asFlag = { argv: ['etcd', `--config-file=${path}`, '--cert-file=/other'], environment: '' }
const asVariable = { argv: ['etcd'], environment: `ETCD_CONFIG_FILE=${path}` }
const unused = { 'config-file': path, 'cert-file': '/other' }

// etcd ignores all other flags and variables then.
test.each([
  ['in a flag', asFlag, configuration, {}, configured, configured],
  ['in a variable', asVariable, configuration, {}, configured, configured],
  [
    'that changed after the start',
    asFlag,
    configuration,
    { modifiedAt: new Date('2026-11-03') },
    configured,
    unused,
  ],
  ['that is not YAML', asFlag, 'a: [', {}, unused, unused],
  ['with two documents', asFlag, `${configuration}---\na: 1\n`, {}, unused, unused],
  ['that is missing', asFlag, undefined, {}, unused, unused],
] as const)(
  'observes a unit with a configuration file %s',
  async (_, { argv, environment }, text, other, defined, own) => {
    const { node, site } = await withUnit(`Environment=${environment}`, argv)
    if (text !== undefined) node.files.set(path, { ...file(text), ...other })
    node.files.set('/proc/0/environ', file(`${environment}\0`))
    const { etcdMembers, files } = await new SiteObserver(site, etcdPlaybook).observe(sections)
    expect(etcdMembers.map(({ flags }) => flags)).toEqual([defined])
    expect(etcdMembers[0]?.process?.flags).toEqual(own)
    expect(files.has(fileKey('cp1', `${pki}/etcd/peer.crt`))).toBe(defined === configured)
  },
)

test('the page’s rotation does not read the members of etcd', async () => {
  const nodes = new Map([['cp1', controlPlane('cp1')]])
  const observed = await new SiteObserver((await sitesOf(nodes))()).observe(sections)
  expect(observed.etcdMembers).toEqual([])
  expect([...observed.files.values()].map(({ path }) => path)).not.toContain(`${pki}/etcd/server.crt`)
})

test('writes one new CA to all nodes, and certificates that verify with either CA', async () => {
  const nodes = new Map(['cp1', 'cp2'].map((name) => [name, controlPlane(name)]))
  const [cp1, cp2] = [nodes.get('cp1')!, nodes.get('cp2')!]
  const [old] = certificatesAt(cp1, 'etcd/ca.crt')
  const before = leaves.map((leaf) => certificatesAt(cp2, `${leaf}.crt`)[0]!)
  const run = await opened(nodes)
  expect(await run.write(1)).toBeGreaterThan(0)
  const [made] = certificatesAt(cp1, 'etcd/kcert/new/ca.crt')
  expect(certificatesAt(cp2, 'etcd/kcert/new/ca.crt')[0]!.fingerprintSha256).toBe(made!.fingerprintSha256)
  expect([made!.subject.text, keyAt(cp2, 'etcd/kcert/new/ca.key')]).toEqual([
    'CN=etcd-ca-2',
    made!.publicKey.sha256,
  ])
  // The copies have an index of their own, beside that of the page's rotation.
  expect(cp2.files.has('/var/lib/kcert/copies/etcd-index.jsonl')).toBe(true)
  expect(cp2.files.has('/var/lib/kcert/copies/index.jsonl')).toBe(false)
  // A second process finds what the first one wrote.
  const again = await opened(nodes)
  expect(await again.write(2)).toBe(8)
  for (const [index, leaf] of leaves.entries()) {
    const [now, bridge, ...more] = certificatesAt(cp2, `${leaf}.crt`)
    expect(more).toEqual([])
    expect(verifySignature(now!, made!.publicKey).ok).toBe(true)
    expect([bridge!.subject.text, bridge!.publicKey.sha256]).toEqual(['CN=etcd-ca-2', made!.publicKey.sha256])
    expect(verifySignature(bridge!, old!.publicKey).ok).toBe(true)
    expect(bridge!.authorityKeyId).toBe(old!.subjectKeyId)
    expect(bridge!.notAfterMs).toBeLessThanOrEqual(old!.notAfterMs)
    expect(now!.publicKey.sha256).toBe(before[index]!.publicKey.sha256)
    expect([now!.subject.text, now!.subjectAltNames, now!.extendedKeyUsage]).toEqual([
      before[index]!.subject.text,
      before[index]!.subjectAltNames,
      before[index]!.extendedKeyUsage,
    ])
  }
  expect(await again.write(2)).toBe(0)
  expect(await again.write(3)).toBe(4)
  expect(certificatesAt(cp2, 'etcd/ca.crt').map(({ fingerprintSha256 }) => fingerprintSha256)).toEqual([
    made!.fingerprintSha256,
  ])
  expect(keyAt(cp2, 'etcd/ca.key')).toBe(made!.publicKey.sha256)
})

/** Returns a machine with a member alone, and a control-plane node whose API server uses it. */
function externalNodes(): Map<string, MemoryNode> {
  const [cp1, e1] = ['cp1', 'e1'].map((name) => controlPlane(name)) as [MemoryNode, MemoryNode]
  cp1.files.delete('/etc/kubernetes/manifests/etcd.yaml')
  for (const leaf of leaves.slice(0, 3)) cp1.files.delete(`${pki}/${leaf}.crt`)
  for (const stem of ['etcd/ca.crt', 'etcd/ca.key'])
    cp1.files.set(`${pki}/${stem}`, e1.files.get(`${pki}/${stem}`)!)
  e1.files.delete('/etc/kubernetes/manifests/kube-apiserver.yaml')
  e1.files.delete(`${pki}/etcd/ca.key`)
  return new Map([
    ['cp1', cp1],
    ['e1', e1],
  ])
}

test('external etcd: writes certificates on the machine of the member, and the CA of the API server in phase 4', async () => {
  const nodes = externalNodes()
  const [cp1, e1] = [nodes.get('cp1')!, nodes.get('e1')!]
  const run = await opened(nodes)
  const { observed } = await run.observe()
  expect(observed.nodes.map(({ name, isEtcdMachine }) => [name, isEtcdMachine])).toEqual([
    ['cp1', undefined],
    ['e1', true],
  ])
  expect(observed.etcdMembers.map(({ id }) => id)).toEqual(['e1/etcd'])
  await run.write(1)
  // The machine gets copies of its files, and no CA.
  expect(e1.files.has('/var/lib/kcert/copies/etcd-index.jsonl')).toBe(true)
  expect([...e1.files.keys()].filter((path) => path.includes('/kcert/new'))).toEqual([])
  const [made] = certificatesAt(cp1, 'etcd/kcert/new/ca.crt')
  const again = await opened(nodes)
  await again.write(2)
  for (const [node, leaf] of [
    [e1, 'etcd/server'],
    [e1, 'etcd/peer'],
    [cp1, 'apiserver-etcd-client'],
  ] as const)
    expect(verifySignature(certificatesAt(node, `${leaf}.crt`)[0]!, made!.publicKey).ok).toBe(true)
  const subjects = (node: MemoryNode) => certificatesAt(node, 'etcd/ca.crt').map((one) => one.subject.text)
  expect(await again.write(3)).toBe(1)
  expect([subjects(cp1), subjects(e1)]).toEqual([['CN=etcd-ca'], ['CN=etcd-ca-2']])
  expect(await again.write(4)).toBe(2)
  expect(subjects(cp1)).toEqual(['CN=etcd-ca-2'])
  expect(keyAt(cp1, 'etcd/ca.key')).toBe(made!.publicKey.sha256)
})

test('external etcd: signs with the key on the machine of a member, if no control-plane node has it', async () => {
  const nodes = externalNodes()
  const [cp1, e1] = [nodes.get('cp1')!, nodes.get('e1')!]
  const key = cp1.files.get(`${pki}/etcd/ca.key`)!
  cp1.files.delete(`${pki}/etcd/ca.key`)
  const before = await (await opened(nodes)).observe()
  const why = ({ observed, target }: typeof before): string[] =>
    etcdPlaybook
      .preflight(observed, target, phaseOf(etcdPlaybook, 1))
      .flatMap(({ what }) => (what.includes('has the key of') ? [what] : []))
  expect(why(before)).toHaveLength(1)
  await expect((await opened(nodes)).write(1)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: 'no control-plane node or etcd machine has the key of the old etcd CA',
    next: 'kcert rotate-ca plan',
  })
  e1.files.set(`${pki}/etcd/ca.key`, key)
  const argv = ['etcd', `--trusted-ca-file=${pki}/etcd/ca.crt`]
  e1.processes = [{ program: 'etcd', pid: 7, startTicks: 1, startedAt: new Date(0), argv }]
  const run = await opened(nodes)
  expect(why(await run.observe())).toEqual([])
  await run.write(1)
  const [made] = certificatesAt(cp1, 'etcd/kcert/new/ca.crt')
  expect(keyAt(cp1, 'etcd/kcert/old/ca.key')).toBe(certificatesAt(cp1, 'etcd/ca.crt')[0]!.publicKey.sha256)
  await run.write(2)
  await run.write(3)
  expect(keyAt(e1, 'etcd/ca.key')).toBe(made!.publicKey.sha256)
})

test('external etcd: only the rotation of the CA of etcd observes the machines', async () => {
  const site = (await sitesOf(externalNodes()))()
  const { nodes, files } = await new SiteObserver(site).observe(sections)
  expect(nodes.map(({ name }) => name)).toEqual(['cp1'])
  expect([...files.values()].filter(({ node }) => node === 'e1')).toEqual([])
})

test('external etcd: refuses a machine with the name of a Node object', async () => {
  const site = (await sitesOf(externalNodes()))()
  const inventory = {
    ...site.inventory,
    nodes: [
      ...site.inventory.nodes,
      ...site.inventory.etcd!.map((one) => ({ ...one, role: 'worker' as const })),
    ],
  }
  const joined = { ...site, objects: inventoryObjects(inventory) }
  await expect(new SiteObserver(joined, etcdPlaybook).observe(sections)).rejects.toMatchObject({
    code: 'KCERT_INVENTORY_INVALID',
    message: 'etcd in kcert.yaml has a node of the cluster: e1',
  })
})

test('with unknown clients, CA files contain both CAs, the old one first, and then the new one', async () => {
  const node = controlPlane('cp1')
  const [old] = certificatesAt(node, 'etcd/ca.crt')
  const run = await opened(new Map([['cp1', node]]), { etcdClients: 'unknown' })
  await run.write(1)
  const bundle = certificatesAt(node, 'etcd/kcert/ca-bundle.crt')
  expect(await run.write(2)).toBe(5)
  const [made] = certificatesAt(node, 'etcd/kcert/new/ca.crt')
  const trusted = () => certificatesAt(node, 'etcd/ca.crt').map(({ fingerprintSha256: one }) => one)
  expect(trusted()).toEqual([old!.fingerprintSha256, made!.fingerprintSha256])
  expect(bundle.map(({ fingerprintSha256: one }) => one)).toEqual(trusted())
  // kubeadm signs with the first CA in the file and the key beside it.
  expect(keyAt(node, 'etcd/ca.key')).toBe(old!.publicKey.sha256)
  expect(await run.write(3)).toBe(2)
  expect(trusted()).toEqual([made!.fingerprintSha256])
})

test.for([
  ['ECDSA-P384', 'RSA-3072'],
  ['RSA-3072', 'ECDSA-P384'],
] as const)('a CA of type %s signs certificates that keep their keys', async ([keyType, other]) => {
  const nodes = new Map([['cp1', controlPlane('cp1')]])
  const cp1 = nodes.get('cp1')!
  const before = leaves.map((leaf) => certificatesAt(cp1, `${leaf}.crt`)[0]!.publicKey.sha256)
  const run = await opened(nodes, { keyType })
  await run.write(1)
  const [made] = certificatesAt(cp1, 'etcd/kcert/new/ca.crt')
  expect(keyTypeOf((await run.observe()).target.changes[0]!.newCa)).toBe(keyType)
  expect(keyAt(cp1, 'etcd/kcert/new/ca.key')).toBe(made!.publicKey.sha256)
  // A second process finds the CA. Another type would be refused.
  const again = await opened(nodes, { keyType: other })
  const { observed, target } = await again.observe()
  expect(otherNewCas(target).map(({ what }) => what)).toEqual([
    `the new etcd CA has the key type ${keyType}, not ${other}`,
  ])
  expect(observed.etcdMembers).toHaveLength(1)
  await again.write(2)
  for (const [index, leaf] of leaves.entries()) {
    const [now, bridge] = certificatesAt(cp1, `${leaf}.crt`)
    expect(verifySignature(now!, made!.publicKey).ok).toBe(true)
    expect([now!.publicKey.sha256, bridge!.publicKey.sha256]).toEqual([before[index], made!.publicKey.sha256])
  }
})

test('a CA that a probe created in memory before phase 1 does not determine the key type', async () => {
  const site = (await sitesOf(new Map([['cp1', controlPlane('cp1')]])))()
  const cas = new RotationCas(site, new ControlPlanes(site), (length) => Buffer.alloc(length, 1))
  const identity = new OwnIdentity(site, new ControlPlanes(site), cas)
  const client = async () => {
    const { certificate } = await identity.client('cluster', 'new', { commonName: 'a' })
    return readCertificates(certificate)[0]!
  }
  const inMemory = await cas.pair('cluster', 'new')
  const bridge = await cas.bridge('cluster')
  const before = await client()
  expect(bridge.publicKey.sha256).toBe(inMemory.certificate.publicKey.sha256)
  expect((await client()).fingerprintSha256).toBe(before.fingerprintSha256)
  const made = await cas.pair('cluster', 'new', 'ECDSA-P384')
  expect((await cas.bridge('cluster')).publicKey.sha256).toBe(made.certificate.publicKey.sha256)
  expect(verifySignature(await client(), made.certificate.publicKey).ok).toBe(true)
  expect([made.certificate.publicKey.curve, made.certificate.publicKey.sha256]).not.toContain(
    inMemory.certificate.publicKey.sha256,
  )
  expect(made.certificate.publicKey.curve).toBe('P-384')
  expect(await cas.pair('cluster', 'new')).toBe(made)
  expect(await cas.pair('cluster', 'new', 'ECDSA-P384')).toBe(made)
})

test.each(['signal', 'service'] as const)('no script restarts a member of etcd: %s', async (how) => {
  const site = (await sitesOf(new Map([['cp1', controlPlane('cp1')]])))()
  const restart = { kind: 'restart', phase: 3, process: 'cp1/etcd', how } as const
  const groups = [{ atOnce: 1, scripts: [{ node: 'cp1', acts: [restart] }] }]
  const options = { site, random: (length: number) => Buffer.alloc(length), table: etcdPlaybook }
  await expect(
    prepareRunbook(
      options,
      { groups },
      { command: 'kcert rotate-ca', number: 3, title: 'restart', next: '' },
    ),
  ).rejects.toMatchObject({ code: 'KCERT_ROTATION_REFUSED', message: 'scripts cannot restart cp1/etcd' })
})

// The members, and the CA file of stacked etcd, are those of phase 3, which kcert runs itself.
test.each([
  ['stacked', () => new Map(['cp1', 'cp2'].map((name) => [name, controlPlane(name)])), ['cp1', 'cp2'], []],
  ['external', externalNodes, ['cp1'], [`${pki}/etcd/ca.crt`, `${pki}/etcd/ca.key`]],
] as const)(
  'scripts of phase 4 restart one API server after another: %s etcd',
  async (_, make, names, files) => {
    const nodes = make()
    const run = await opened(nodes)
    for (const phase of [1, 2, 3]) await run.write(phase)
    const { observed, target } = await (await opened(nodes)).observe()
    const phase = phaseOf(etcdPlaybook, 4)
    const runbook = runbookOf(etcdPlaybook, observed, target, phase.plan(observed, target))
    expect(runbook.groups.map(({ atOnce, scripts }) => [atOnce, scripts.map(({ node }) => node)])).toEqual(
      names.map((name) => [1, [name]]),
    )
    const site = (await sitesOf(nodes))()
    const options = { site, random: (length: number) => Buffer.alloc(length), table: etcdPlaybook }
    const about = { command: 'kcert rotate-ca', number: 4, title: phase.title, next: '' }
    const prepared = (await prepareRunbook(options, runbook, about)).flat()
    const acts = prepared.map((script) => {
      const text = String(script.files.find(({ name }) => name === 'run.sh')?.content)
      return text.match(/^(?:put '\/etc\/[^']*|signal .*)/gm)
    })
    const [written = [], key = []] = files.map((path) => [`put '${path}`])
    expect(acts).toEqual(names.map(() => [...written, "signal 'kube-apiserver' '' '5'", ...key]))
  },
)

test('no output of a plan contains a private key', async () => {
  const nodes = new Map([['cp1', controlPlane('cp1')]])
  const { observed, target } = await (await opened(nodes)).observe()
  const plans = etcdPlaybook.phases.map((phase) => phase.plan(observed, target))
  const key = nodes.get('cp1')!.files.get(`${pki}/etcd/ca.key`)!.content.toString()
  const [, body = ''] = key.split('\n')
  expect(body.length).toBeGreaterThan(20)
  expect(JSON.stringify([plans, [...observed.files], observed.etcdMembers])).not.toContain(body)
})
