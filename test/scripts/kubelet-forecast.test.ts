import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ForecastReport } from '../../src/kubelet/forecast-report.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { generatePrivateKey, writePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { putCluster, putServing } from './cluster-session.ts'
import { kcert, kcertBeside } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// `kcert kubelet forecast` on copies of nodes' files, and on an API server whose kubelets do not respond. The lab has real ones.

const folder = temporaryFolder('kubelet-forecast')
const day = 86_400_000
let server: FakeApiServer

beforeAll(async () => {
  server = await startApiServer()
  putCluster(server)
  server.writeKubeconfig(join(folder, 'admin.conf'))
  copyOfNode('w1', { begun: 10, dated: 'kubelet-client-2026-11-21-22-00-00.pem' })
  copyOfNode('w2', { begun: 95, rotates: false })
  const manifest = join(folder, 'copies/cp1/etc/kubernetes/manifests')
  mkdirSync(manifest, { recursive: true })
  writeFileSync(
    join(manifest, 'kube-controller-manager.yaml'),
    'apiVersion: v1\nkind: Pod\nmetadata: {name: kube-controller-manager}\nspec:\n  containers:\n  - name: kube-controller-manager\n    command: [kube-controller-manager, --cluster-signing-duration=24h]\n',
  )
})
afterAll(() => server.close())

/** A copy of a node's /var/lib/kubelet, as extracted by tar: the target of the link does not exist on this machine. */
function copyOfNode(
  name: string,
  { begun, dated, rotates = true }: { begun: number; dated?: string; rotates?: boolean },
): void {
  const kubelet = join(folder, 'copies', name, 'var/lib/kubelet')
  mkdirSync(join(kubelet, 'pki'), { recursive: true })
  mkdirSync(join(kubelet, 'pods/x/volumes'), { recursive: true })
  writeFileSync(join(kubelet, 'pods/x/volumes/kubelet-client-current.pem'), 'of a pod')
  writeFileSync(
    join(kubelet, 'config.yaml'),
    `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nrotateCertificates: ${rotates}\n`,
  )
  const current = join(kubelet, 'pki/kubelet-client-current.pem')
  const pem = pair({ commonName: `system:node:${name}`, organization: ['system:nodes'] }, 'kubernetes', begun)
  if (dated === undefined) writeFileSync(current, pem)
  else {
    writeFileSync(join(kubelet, 'pki', dated), pem)
    symlinkSync(`/var/lib/kubelet/pki/${dated}`, current)
  }
  writeFileSync(
    join(kubelet, 'pki/kubelet.crt'),
    pair({ commonName: `${name}@1795298400` }, `${name}-ca@1795298400`, 1),
  )
}

function pair(
  subject: { commonName: string; organization?: string[] },
  issuer: string,
  begunDays: number,
): string {
  const key = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
  const notBefore = new Date(Date.now() - begunDays * day)
  const der = issueCertificate(
    {
      serialNumber: '01',
      subject,
      issuer: { commonName: issuer },
      notBefore,
      notAfter: new Date(notBefore.getTime() + 100 * day),
      publicKey: key,
    },
    key,
  )
  return writePem('CERTIFICATE', der) + writePrivateKey(key, 'kubernetes')
}

const forecast = (...args: string[]) => kcert(['kubelet', 'forecast', ...args], { cwd: folder })

test("reads copies of nodes' files: names, renewal, settings, the signing duration, and nothing of pods", () => {
  const { stdout, stderr, exit } = forecast('copies', '-o', 'json')
  expect([stderr, exit]).toEqual(['', 3])
  const report = JSON.parse(stdout) as ForecastReport
  expect(violations('KubeletForecast', report)).toEqual([])
  expect(report.controllerManagers).toMatchObject([{ clusterSigningDuration: '24h0m0s' }])
  const [w1, w2] = report.nodes
  expect([w1!.name, w2!.name, report.nodes.length]).toEqual(['w1', 'w2', 2])
  expect(w1!.certificates).toMatchObject([
    { usage: 'client', state: 'not-due', source: 'file', renewal: { isEstimate: false } },
    { usage: 'serving', state: 'not-renewed', isSelfSigned: true },
  ])
  expect(w2!.certificates[0]).toMatchObject({ usage: 'client', state: 'not-renewed' })
  expect(report.findings.filter(({ isProblem }) => isProblem)).toMatchObject([
    { id: 'rotation-off', node: 'w2' },
  ])
})

test('shows each certificate on one line of the timeline, and what many nodes share once', () => {
  const { stdout } = forecast('copies')
  expect(stdout).toMatch(/^w1 +client +20\d\d-\d\d-\d\d \d\d:\d\d to .*\(in (?:59|60)d\).* =+#+-+\| /m)
  expect(stdout).toMatch(/^w1 +serving +never: self-signed /m)
  expect(stdout.match(/serving-self-signed/g)).toHaveLength(1)
  expect(stdout).toContain('w1 and 1 more:')
  const narrow = kcert(['kubelet', 'forecast', 'copies'], { cwd: folder, env: { COLUMNS: '60' } }).stdout
  expect(narrow).toContain('w1')
  expect(forecast('copies', '--node', 'w1').exit).toBe(0)
})

test('reports each node whose kubelet cannot be reached, and shows the requests', async () => {
  putServing(server, 'csr-waits')
  // The API server itself listens at the port of the node's kubelet, so the test connects to no kubelet elsewhere.
  const daemonEndpoints = { kubeletEndpoint: { Port: server.port } }
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }]
  server.put(
    { group: '', version: 'v1', resource: 'nodes' },
    { metadata: { name: 'node-1' }, status: { addresses, daemonEndpoints } },
  )
  const { stdout, exit } = await kcertBeside(
    ['kubelet', 'forecast', '--kubeconfig', 'admin.conf', '-o', 'json'],
    { cwd: folder },
  )
  const report = JSON.parse(stdout) as ForecastReport
  expect(violations('KubeletForecast', report)).toEqual([])
  expect(report.nodes).toMatchObject([
    {
      name: 'node-1',
      certificates: [
        // It is not a kubelet's certificate, so no kubelet renews it.
        { source: 'handshake', location: `127.0.0.1:${server.port}`, state: 'not-renewed' },
      ],
      pending: [{ name: 'csr-waits', usage: 'serving' }],
    },
  ])
  expect(new Set(report.findings.map(({ id }) => id))).toEqual(
    new Set([
      'controller-manager-not-seen',
      'request-waits',
      'not-read',
      'not-the-kubelet',
      'serving-common-name',
    ]),
  )
  expect(exit).toBe(0)
})

test.each([
  [['nowhere'], 'does not exist'],
  [['admin.conf'], 'no files of a kubelet'],
  [['copies', '--node', 'w9'], 'no files of node "w9"'],
  [['copies', '--timeout', 'soon'], 'is not a duration'],
])('%j is wrong usage', (args, said) => {
  const { exit, stderr } = forecast(...args)
  expect([exit, stderr]).toEqual([2, expect.stringContaining(said)])
})

test('names a damaged certificate, and shows the others', () => {
  const damaged = join(folder, 'damaged/pki')
  mkdirSync(damaged, { recursive: true })
  writeFileSync(join(damaged, 'kubelet-client-current.pem'), 'not this')
  copyFileSync(join(folder, 'copies/w2/var/lib/kubelet/pki/kubelet.crt'), join(damaged, 'kubelet.crt'))
  const { stdout, exit } = forecast('damaged', '-o', 'json')
  const { findings, nodes } = JSON.parse(stdout) as ForecastReport
  expect(exit).toBe(0)
  expect(nodes).toMatchObject([{ name: 'w2', certificates: [{ usage: 'serving' }] }])
  expect(findings.find(({ id }) => id === 'not-read')?.detail).toContain('contains no readable certificate')
})

test('reads the nodes of an inventory; an unreachable one is reported, with exit code 4', () => {
  const nodes = ['here: env', 'gone: "false"'].map((one) => {
    const [name, program] = one.split(': ')
    const access = `access: {by: command, argv: [${program}]}`
    return `- {name: ${name}, ${access}, role: control-plane, addresses: [192.0.2.1], layout: kubeadm}`
  })
  writeFileSync(
    join(folder, 'kcert.yaml'),
    ['apiVersion: kcert/v1', 'kind: Inventory', 'nodes:', ...nodes, ''].join('\n'),
  )
  const { stdout, exit } = forecast('--inventory', 'kcert.yaml', '-o', 'json')
  const report = JSON.parse(stdout) as ForecastReport
  expect(violations('KubeletForecast', report)).toEqual([])
  expect([report.nodes.map(({ name }) => name), exit]).toEqual([['gone', 'here'], 4])
  expect(report.findings).toContainEqual(
    expect.objectContaining({
      node: 'gone',
      detail: expect.stringContaining('the node could not be read: '),
    }),
  )
  expect(forecast('copies', '-i', 'kcert.yaml').stderr).toContain('are mutually exclusive')
})
