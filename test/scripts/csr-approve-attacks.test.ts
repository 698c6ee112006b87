import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RequestDescription } from '../../src/x509/issuing.ts'
import { oidOf } from '../../src/x509/oids.ts'
import { attribute, craftedRequestPem, extensionsFor, requestPem } from '../csr/made-requests.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { conditionsOf, operatorOf, putCluster, putServing } from './cluster-session.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Requests that were once wrongly approved, with `csr approve --policy` on an API server. src/csr/approval/attacks.test.ts shows
// which rule refuses each.

const folder = temporaryFolder('approve-attacks')
let server: FakeApiServer
beforeAll(async () => {
  server = await startApiServer()
})
afterAll(() => server.close())

const policy = `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- {builtin: kubelet-serving}
- name: own
  decision: approve
  signerNames: ["example.com/serving"]
  groups: [system:nodes]
  commonNames: ["*", "*.apps.example.com"]
  organizations: ["*"]
  dnsNames: ["*.apps.example.com"]
  emails: ["*@example.com"]
  uris: ["spiffe://cluster.local/ns/*/sa/*"]
  usages: [digital signature, server auth]
`

const named = (commonName: string): RequestDescription => ({ subject: { commonName } })
const withMore = (type: string, value: string): RequestDescription => ({
  subject: [[{ type: 'CN', value: 'ann' }], [{ type, value }]],
})
const hidden = extensionsFor({
  subject: {},
  subjectAltNames: { dns: ['kubernetes.default.svc'] },
  basicConstraints: { ca: true },
})
const plain = attribute(
  oidOf('extensionRequest'),
  extensionsFor({ subject: {}, keyUsage: ['digitalSignature'] }),
)
const ann = named('ann').subject
const uri = (path: string): RequestDescription => ({
  ...named('ann'),
  subjectAltNames: { uri: [`spiffe://cluster.local/ns/${path}`] },
})
const email = (address: string): RequestDescription => ({
  ...named('ann'),
  subjectAltNames: { email: [address] },
})

/** For the custom signer in the policy. */
const own: Readonly<Record<string, string>> = {
  'm1-ou-service': requestPem(withMore('OU', 'kubernetes.default.svc')),
  'm1-ou-group': requestPem(withMore('OU', 'Domain Admins')),
  'm1-email': requestPem(withMore('emailAddress', 'root@example.org')),
  'm1-serial': requestPem(withMore('serialNumber', '1')),
  'm1-uid': requestPem(withMore('UID', 'root')),
  'm1-user-uid': requestPem(withMore('1.3.6.1.4.1.57683.2', '0')),
  'm2-microsoft': craftedRequestPem(ann, [plain, attribute('1.3.6.1.4.1.311.2.1.14', hidden)]),
  'm2-two-values': craftedRequestPem(ann, [
    attribute(oidOf('extensionRequest'), extensionsFor(named('ann')), hidden),
  ]),
  'm3-wildcard-cn': requestPem(named('*.apps.example.com')),
  'm3-nul-cn': requestPem(named('admin\0.apps.example.com')),
  'm3-newline-cn': requestPem(named('admin\n.apps.example.com')),
  'm3-nul-email': requestPem(email('root@evil\0@example.com')),
  'm3-two-mailboxes': requestPem(email('root@localhost,@example.com')),
  'm3-dots': requestPem(uri('../sa/..')),
  'm3-escaped-slash': requestPem(uri('a%2fb/sa/x')),
  'm3-query': requestPem(uri('a/sa/x?admin')),
  'm3-fragment': requestPem(uri('a/sa/x#admin')),
  'm4-crl-sign': requestPem({ ...named('ann'), keyUsage: ['digitalSignature', 'cRLSign'] }),
  'm4-ca': requestPem({ ...named('ann'), basicConstraints: { ca: true } }),
}

/** SANs of a Node that reports them itself. */
const names = {
  dns: [
    'vault.corp.example.net',
    'kube-dns.kube-system',
    'metrics-server.kube-system',
    'host.docker.internal',
    '127.1',
    '0x7f000001',
    '2130706433',
  ],
  ip: ['169.254.169.254', 'fe80::1', '64:ff9b::a60:1', '::a60:1'],
}
const node = { commonName: 'system:node:node-1', organization: ['system:nodes'] }
const serving: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...names.dns.map((name, i) => [`m5-dns-${i}`, { dns: ['node-1', name] }] as const),
    ...names.ip.map((address, i) => [`m5-ip-${i}`, { dns: ['node-1'], ip: [address] }] as const),
    ['honest-node', { dns: ['node-1'], ip: ['10.1.0.7'] }] as const,
  ].map(([name, subjectAltNames]) => [name, requestPem({ subject: node, subjectAltNames })]),
)

test('approves none of them by a policy, and both honest requests', async () => {
  putCluster(server)
  const addresses = [
    { type: 'Hostname', address: 'node-1' },
    ...names.dns.map((address) => ({ type: 'InternalDNS', address })),
    ...['10.1.0.7', ...names.ip].map((address) => ({ type: 'InternalIP', address })),
  ]
  server.put(
    { group: '', version: 'v1', resource: 'nodes' },
    { metadata: { name: 'node-1' }, status: { addresses } },
  )
  const inBase64 = (pem: string) => Buffer.from(pem).toString('base64')
  const all = {
    ...own,
    'honest-own': requestPem({
      ...named('ann'),
      subjectAltNames: { uri: ['spiffe://cluster.local/ns/a/sa/b'] },
    }),
  }
  for (const [name, pem] of Object.entries(all))
    putServing(server, name, { signerName: 'example.com/serving', request: inBase64(pem) })
  for (const [name, pem] of Object.entries(serving)) putServing(server, name, { request: inBase64(pem) })
  writeFileSync(join(folder, 'policy.yaml'), policy)
  const { stdout, exit } = await operatorOf(
    server,
    folder,
  )(['csr', 'approve', '--policy', 'policy.yaml', '--yes', '-o', 'json'])
  const everyName = [...Object.keys(all), ...Object.keys(serving)]
  expect(JSON.parse(stdout).counts).toEqual({ approved: 2, skipped: everyName.length - 2 })
  expect(exit).toBe(3)
  expect(everyName.filter((name) => conditionsOf(server, name).length > 0).sort()).toEqual([
    'honest-node',
    'honest-own',
  ])
})
