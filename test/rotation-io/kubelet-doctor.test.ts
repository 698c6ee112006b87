import {
  appendFileSync,
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { diagnose } from '../../src/kubelet/doctor/diagnosis.ts'
import type { Finding } from '../../src/kubelet/doctor/finding.ts'
import { localTransport } from '../../src/node/local.ts'
import { rootedNode } from '../../src/node/rooted-node.ts'
import { shellNode } from '../../src/node/shell-node.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'
import { readKubelet, repairKubelet } from '../../src/renewal-io/kubelet-doctor.ts'
import {
  certificatePem,
  keyPem,
  type NodeTree,
  signedBy,
  testCa,
  testKey,
  workerTree,
} from '../pki/kubeadm-tree.ts'

// A worker's files in a folder, damaged in one way after another. The tests read the repaired files with node:fs.

const now = new Date('2026-11-21T12:00:00Z')
const madeAt = new Date('2026-11-01T00:00:00Z')
const pki = '/var/lib/kubelet/pki'
const current = `${pki}/kubelet-client-current.pem`
const kubeletConf = '/etc/kubernetes/kubelet.conf'
let root: string
let tree: NodeTree
let shell: NodeAccess
let node: NodeAccess
let good: string

beforeAll(() => {
  tree = workerTree({ madeAt, nodeName: 'w1' })
  good = tree.files.get(current)!.linkTarget!
  shell = shellNode({ name: 'w1', transport: localTransport(), clock: () => now })
})
afterAll(() => shell.close())

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kcert-doctor-'))
  for (const [path, { bytes, mode, linkTarget }] of tree.files) {
    mkdirSync(dirname(root + path), { recursive: true })
    if (linkTarget === undefined) writeFileSync(root + path, bytes, { mode })
    else symlinkSync(linkTarget, root + path)
  }
  node = rootedNode(shell, root)
  return () => rmSync(root, { recursive: true })
})

const places = { nodeName: 'w1' }
// The serving certificate in the tree is self-signed by the kubelet, as with kubeadm.
const withoutName = (findings: readonly Finding[]): Finding[] =>
  findings.filter(({ id }) => id !== 'SERVING_NAME')
const found = async (): Promise<readonly Finding[]> =>
  withoutName(await diagnose(await readKubelet(node, places), now))
const ids = (findings: readonly Finding[]): string[] => withoutName(findings).map(({ id }) => id)

/** Repairs, and expects no remaining findings and a link to the given pair. */
async function expectRepaired(...repaired: string[]): Promise<void> {
  const { left, fixed } = await repairKubelet(
    node,
    places,
    () => now,
    () => {},
  )
  expect([ids(fixed), ids(left)]).toEqual([repaired, []])
}

function pair(options: {
  from: Date
  to: Date
  key?: string
  commonName?: string
  ca?: string
  uids?: readonly string[]
}): string {
  const { from, to, key = 'kubelet', commonName = 'system:node:w1', ca, uids = [] } = options
  const attributes: [type: string, value: string][] = [
    ['2.5.4.10', 'system:nodes'],
    ['2.5.4.3', commonName],
    ...uids.map((uid): [string, string] => ['1.3.6.1.4.1.57683.2', uid]),
  ]
  const signer = ca === undefined ? tree.cas.get('ca')! : testCa('kubernetes', testKey(ca), madeAt)
  const certificate = signedBy(signer, {
    ...{ commonName, organization: ['system:nodes'], key: testKey('kubelet'), notBefore: from, notAfter: to },
    ...(uids.length > 0 && { subject: attributes.map(([type, value]) => [{ type, value }]) }),
    extendedKeyUsage: ['clientAuth'],
  })
  return certificatePem(certificate) + keyPem(testKey(key))
}

const lately = { from: new Date('2026-11-20T00:00:00Z'), to: new Date('2027-11-20T00:00:00Z') }

/** Writes another pair and points the link to it. */
function lead(text: string): void {
  writeFileSync(`${root}${pki}/kubelet-client-2026-11-20-00-00-00.pem`, text, { mode: 0o600 })
  unlinkSync(root + current)
  symlinkSync(`${pki}/kubelet-client-2026-11-20-00-00-00.pem`, root + current)
}

test('reports no findings for a healthy kubelet', async () => {
  expect(await found()).toEqual([])
})

test('accepts one user UID in the certificate of a kubelet', async () => {
  lead(pair({ ...lately, uids: ['a'] }))
  expect(await found()).toEqual([])
})

test('restores a missing link to the newest usable pair', async () => {
  unlinkSync(root + current)
  expect((await found())[0]).toMatchObject({ id: 'LINK_MISSING', severity: 'critical', path: current })
  await expectRepaired('LINK_MISSING')
  expect(readlinkSync(root + current)).toBe(good)
})

test('repairs a dangling link', async () => {
  unlinkSync(root + current)
  symlinkSync(`${pki}/kubelet-client-2020-01-01-00-00-00.pem`, root + current)
  await expectRepaired('LINK_DANGLING')
  expect(readlinkSync(root + current)).toBe(good)
})

test('turns a regular file into a dated one behind a link, byte for byte', async () => {
  renameSync(root + good, root + current)
  const before = readFileSync(root + current)
  await expectRepaired('LINK_IS_FILE')
  const to = readlinkSync(root + current)
  expect(to).toMatch(/\/kubelet-client-\d{4}(-\d\d){5}\.pem$/)
  expect(readFileSync(root + to).equals(before)).toBe(true)
  expect(statSync(root + to).mode & 0o777).toBe(0o600)
  const backup = `${root}/var/lib/kcert/backups/kubelet-doctor-2026-11-21T12-00-00Z`
  expect(readFileSync(backup + current).equals(before)).toBe(true)
})

test.each([
  ['PAIR_MISMATCH', 'do not match', pair.bind(undefined, { ...lately, key: 'another' })],
  ['UNREADABLE', 'no certificate can be read', () => '-----BEGIN CERTIFICATE-----\nMIIB'],
  [
    'EXPIRED',
    'expired at 2026-11-20T00:00:00.000Z',
    pair.bind(undefined, { from: new Date('2025-11-20T00:00:00Z'), to: new Date('2026-11-20T00:00:00Z') }),
  ],
  [
    'NOT_YET_VALID',
    'not valid before',
    pair.bind(undefined, { from: lately.to, to: new Date('2028-11-20T00:00:00Z') }),
  ],
  [
    'WRONG_CA',
    'signed by a CA that is not on this node',
    pair.bind(undefined, { ...lately, ca: 'another ca' }),
  ],
  [
    'WRONG_IDENTITY',
    'and this node is w1',
    pair.bind(undefined, { ...lately, commonName: 'system:node:w2' }),
  ],
  [
    'WRONG_IDENTITY',
    'its subject has 2 user UIDs: "a", "b"',
    pair.bind(undefined, { ...lately, uids: ['a', 'b'] }),
  ],
  ['WRONG_IDENTITY', 'an empty user UID', pair.bind(undefined, { ...lately, uids: [''] })],
  ['WRONG_IDENTITY', 'it is for', pair.bind(undefined, { ...lately, commonName: 'admin' })],
])('%s (%s): restores the link to the usable pair', async (id, what, make) => {
  lead(make())
  expect((await found())[0]).toMatchObject({ id, what: expect.stringContaining(what) })
  await expectRepaired(id)
  expect(readlinkSync(root + current)).toBe(good)
})

test('changes nothing without a usable pair, and names a signer', async () => {
  lead(pair({ from: new Date('2025-11-20T00:00:00Z'), to: new Date('2026-11-20T00:00:00Z') }))
  unlinkSync(root + good)
  const { left, fixed } = await repairKubelet(
    node,
    places,
    () => now,
    () => {},
  )
  expect([ids(fixed), ids(left)]).toEqual([[], ['EXPIRED']])
  expect(left[0]!.next).toContain('kcert renew kubelet.conf --node w1')
})

test('points a kubeconfig with outdated inline data to the link again, and keeps its other lines', async () => {
  const before = readFileSync(root + kubeletConf, 'utf8')
  const old = pair({ from: new Date('2025-11-20T00:00:00Z'), to: new Date('2026-11-20T00:00:00Z') })
  const data = Buffer.from(old).toString('base64')
  writeFileSync(
    root + kubeletConf,
    before
      .replace(`client-certificate: ${current}`, `client-certificate-data: ${data}`)
      .replace(`client-key: ${current}`, `client-key-data: ${data}`),
  )
  const [finding] = await found()
  expect(finding).toMatchObject({ id: 'KUBECONFIG_EMBEDS', severity: 'critical' })
  await expectRepaired('KUBECONFIG_EMBEDS')
  const sorted = (text: string): string[] => text.split('\n').toSorted()
  expect(sorted(readFileSync(root + kubeletConf, 'utf8'))).toEqual(sorted(before))
})

test('repairs a broken link and then a kubeconfig that names a dated file', async () => {
  writeFileSync(root + kubeletConf, readFileSync(root + kubeletConf, 'utf8').replaceAll(current, good))
  unlinkSync(root + current)
  await expectRepaired('LINK_MISSING', 'KUBECONFIG_ELSEWHERE')
  expect(readFileSync(root + kubeletConf, 'utf8')).toContain(`client-certificate: ${current}`)
})

test('restricts keys that other users can read, in the store and in a kubeconfig', async () => {
  chmodSync(root + good, 0o644)
  await expectRepaired('KEY_EXPOSED')
  expect(statSync(root + good).mode & 0o777).toBe(0o600)
})

test('removes leftovers of an interrupted change once the current pair is valid', async () => {
  symlinkSync(good, `${root}${pki}/kubelet-client-updated.pem`)
  writeFileSync(`${root}${pki}/kubelet-client.key.tmp`, keyPem(testKey('kubelet')), { mode: 0o600 })
  expect((await found()).map(({ severity }) => severity)).toEqual(['info', 'info'])
  await expectRepaired('LEFTOVER', 'LEFTOVER')
  expect(lstatSync(`${root}${pki}/kubelet-client-updated.pem`, { throwIfNoEntry: false })).toBeUndefined()
})

test('removes an invalid self-signed serving pair, so that the kubelet creates another', async () => {
  writeFileSync(`${root}${pki}/kubelet.key`, keyPem(testKey('another')), { mode: 0o600 })
  await expectRepaired('SELF_SIGNED_UNUSABLE')
  expect(statSync(`${root}${pki}/kubelet.crt`, { throwIfNoEntry: false })).toBeUndefined()
})

const selfSigned = { path: `${pki}/kubelet.crt`, why: /--enable-kubelet-cert-cn-validation will refuse it/ }

/** Findings for its serving certificate only, with another configuration of the kubelet. */
async function servingFindings(configuration: string): Promise<Finding[]> {
  const kind = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'
  writeFileSync(`${root}/var/lib/kubelet/config.yaml`, kind + configuration)
  const findings = await diagnose(await readKubelet(node, places), now)
  return findings.filter(({ path }) => !path.includes('client') && !path.includes('/etc/kubernetes'))
}

test("reports a serving certificate whose common name is not the node's", async () => {
  const [finding, ...more] = await servingFindings('')
  expect(more).toEqual([])
  expect(finding).toMatchObject({ id: 'SERVING_NAME', severity: 'info', path: selfSigned.path })
  expect(finding!.why).toMatch(selfSigned.why)
})

test.each([
  ['system:node:w1', []],
  ['system:node:w2', ['SERVING_NAME']],
  ['w1.example.com', ['SERVING_NAME']],
])('a tlsCertFile for %s', async (commonName, expected) => {
  writeFileSync(`${root}${pki}/own.crt`, pair({ ...lately, commonName }))
  const findings = await servingFindings('tlsCertFile: pki/own.crt\n')
  expect(findings.map(({ id, path }) => `${id} ${path}`)).toEqual(
    expected.map((id) => `${id} ${pki}/own.crt`),
  )
})

test.each(['pki/absent.crt', 'config.yaml'])('a tlsCertFile without a certificate: %s', async (file) => {
  expect(await servingFindings(`tlsCertFile: ${file}\n`)).toMatchObject([
    { id: 'UNREADABLE', severity: 'critical', path: `/var/lib/kubelet/${file}` },
  ])
})

const instancePath = '/var/lib/kubelet/instance-config.yaml'

test.each([
  // As kubeadm 1.34 to 1.37 writes it.
  ['containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock"\n', undefined],
  ['', undefined],
  ['rotateCertificates: true\ntlsCertFile: pki/own.crt\n', undefined],
  [
    'serverTLSBootstrap: true\ntlsCertFile: /etc/own.crt\nauthentication: {x509: {clientCAFile: /etc/ca.crt}}\n',
    'it changes authentication.x509.clientCAFile, serverTLSBootstrap, tlsCertFile',
  ],
  ['tlsCertFile: [\n', /^it cannot be read: line \d+: /],
])('compares instance-config.yaml with the configuration of the kubelet: %j', async (text, what) => {
  writeFileSync(`${root}${pki}/own.crt`, pair({ ...lately, commonName: 'system:node:w1' }))
  writeFileSync(root + instancePath, text)
  const findings = await servingFindings('rotateCertificates: true\ntlsCertFile: pki/own.crt\n')
  const expected = { id: 'INSTANCE_CONFIG', severity: 'warning', path: instancePath }
  expect(findings).toEqual(
    what === undefined
      ? []
      : [
          expect.objectContaining({
            ...expected,
            what: typeof what === 'string' ? what : expect.stringMatching(what),
          }),
        ],
  )
})

test('does not report a setting of instance-config.yaml that a flag of the kubelet overrides', async () => {
  writeFileSync(root + instancePath, 'rotateCertificates: false\nserverTLSBootstrap: true\n')
  const running: NodeAccess = Object.assign(Object.create(node) as NodeAccess, {
    processes: () => Promise.resolve([{ argv: ['kubelet', '--rotate-certificates=true'] }]),
  })
  const { instance } = await readKubelet(running, places)
  expect(instance).toEqual({ path: instancePath, changes: ['serverTLSBootstrap'] })
})

test('merges the drop-ins of --config-dir, and stops at a malformed one', async () => {
  const folder = '/etc/kubernetes/[1]*.d'
  const put = (name: string, line: string): void => {
    mkdirSync(dirname(`${root}${folder}/${name}`), { recursive: true })
    const head = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'
    writeFileSync(`${root}${folder}/${name}`, `${line.startsWith('kind') ? '' : head}${line}\n`)
  }
  const running: NodeAccess = Object.assign(Object.create(node) as NodeAccess, {
    // Relative to /, where systemd starts the kubelet.
    processes: () => Promise.resolve([{ argv: ['kubelet', `--config-dir=${folder.slice(1)}/`] }]),
  })
  put('10.conf', 'serverTLSBootstrap: true')
  expect(await readKubelet(running, places)).toMatchObject({ asksForServing: true })
  put('20.conf', 'serverTLSBootstrap: false')
  symlinkSync('10.conf', `${root}${folder}/30.conf`)
  put('40.txt', 'serverTLSBootstrap: false')
  expect(await readKubelet(running, places)).toMatchObject({ asksForServing: true })
  put('50/1.conf', 'serverTLSBootstrap: false')
  expect(await readKubelet(running, places)).toMatchObject({ asksForServing: false })
  put('60.conf', 'kind: Pod')
  await expect(readKubelet(running, places)).rejects.toMatchObject({
    code: 'KCERT_MANIFEST_MALFORMED',
    why: expect.stringContaining(`${folder}/60.conf: its kind is not KubeletConfiguration`),
  })
})

test('finds the drop-ins that the kubelet walks to', async () => {
  const folder = `${root}/etc/kubernetes/k.d`
  const at = (...names: string[]): string => [folder, ...names].join('/')
  const put = (path: string, isOn: boolean): void => {
    mkdirSync(dirname(path), { recursive: true })
    const head = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'
    writeFileSync(path, `${head}serverTLSBootstrap: ${isOn}\n`)
  }
  const asks = async (flag = '/etc/kubernetes/k.d') => {
    const processes = () => Promise.resolve([{ argv: ['kubelet', `--config-dir=${flag}`] }])
    const running: NodeAccess = Object.assign(Object.create(node) as NodeAccess, { processes })
    return (await readKubelet(running, places)).asksForServing
  }
  await expect(asks()).rejects.toMatchObject({ why: expect.stringContaining('k.d does not exist') })
  // A hidden file is read first, then a folder in the order of its name: as deep as it goes, and also with the name of a drop-in.
  put(at('.1.conf'), true)
  expect(await asks()).toBe(true)
  put(at('2.conf', 'a', 'b', 'c', '.conf'), false)
  expect(await asks()).toBe(false)
  put(at('3.conf'), true)
  expect(await asks()).toBe(true)
  // No folder behind a link is read.
  put(`${root}/etc/kubernetes/other/9.conf`, false)
  symlinkSync('../other', at('other'))
  expect(await asks()).toBe(true)
  symlinkSync('k.d', `${root}/etc/kubernetes/link`)
  expect(await asks('/etc/kubernetes/link')).toBe(false)
  expect(await asks('/etc/kubernetes/link/')).toBe(true)
  symlinkSync('../other', at('other.conf'))
  await expect(asks()).rejects.toMatchObject({
    code: 'KCERT_NODE_REFUSED',
    why: expect.stringContaining('k.d/other.conf cannot be read'),
  })
})

test('reports a serving certificate that was requested and never issued, and leaves it to an approver', async () => {
  mkdirSync(`${root}/var/lib/kubelet`, { recursive: true })
  const kind =
    'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nserverTLSBootstrap: true\n'
  writeFileSync(`${root}/var/lib/kubelet/config.yaml`, kind)
  const [finding, ...more] = await found()
  expect(more).toEqual([])
  expect(finding).toMatchObject({ id: 'SERVING_MISSING', severity: 'warning' })
  expect(finding!.fixes).toBeUndefined()
})

test('reports a kubeconfig that client-go rejects as a critical finding with the reason', async () => {
  const text = readFileSync(root + kubeletConf, 'utf8').replace(/^current-context:.*$/m, 'current-context: y')
  writeFileSync(root + kubeletConf, text)
  const [finding, ...more] = await found()
  expect(more).toEqual([])
  expect(finding).toMatchObject({
    id: 'KUBECONFIG_UNREADABLE',
    severity: 'critical',
    what: expect.stringMatching(/^client-go rejects it: current-context: /),
  })
})

test('treats a kubeconfig with invalid UTF-8 as one that client-go rejects', async () => {
  appendFileSync(root + kubeletConf, Buffer.from('# caf\xe9\n', 'latin1'))
  const [finding, ...more] = await found()
  expect(more).toEqual([])
  expect(finding).toMatchObject({
    id: 'KUBECONFIG_UNREADABLE',
    what: expect.stringMatching(/^client-go rejects it: .*UTF-8/),
  })
})

test.each([
  ['a token', '{"token": "abc"}'],
  ['a password', '{"username": "a", "password": "b"}'],
])('restricts a JSON kubeconfig with %s to its owner', async (_, user) => {
  const cluster = '{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}'
  const context = '{"name": "x", "context": {"cluster": "c", "user": "u"}}'
  const text = `{"apiVersion": "v1", "kind": "Config", "current-context": "x", "clusters": [${cluster}], "contexts": [${context}], "users": [{"name": "u", "user": ${user}}]}`
  writeFileSync(root + kubeletConf, text)
  chmodSync(root + kubeletConf, 0o644)
  await expectRepaired('KEY_EXPOSED')
  expect(statSync(root + kubeletConf).mode & 0o777).toBe(0o600)
})

test('reports a late renewal for a certificate past nine tenths of its validity', async () => {
  lead(pair({ from: new Date('2026-01-01T00:00:00Z'), to: new Date('2026-12-01T00:00:00Z') }))
  expect(ids(await found())).toEqual(['RENEWAL_OVERDUE'])
})

test('reports a missing or malformed kubeconfig first', async () => {
  writeFileSync(root + kubeletConf, 'apiVersion: v1\nkind: Config\n\tusers: [')
  expect(ids(await found())).toEqual(['KUBECONFIG_UNREADABLE'])
  unlinkSync(root + kubeletConf)
  expect(ids(await found())).toEqual(['KUBECONFIG_MISSING'])
})
