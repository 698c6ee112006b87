import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pauseFor } from 'node:timers/promises'
import { afterAll, afterEach, expect, test } from 'vitest'
import { openWith } from '../../../../test/contract/stage.ts'
import { type FakeApiServer, type FakeOptions, startApiServer } from '../../../../test/fakes/api-server.ts'
import type { AccessRule } from '../../../../test/fakes/api-server-access.ts'
import { putCluster, putServing } from '../../../../test/scripts/cluster-session.ts'
import type { Cluster } from '../../../cluster/cluster.ts'
import { each, type Right } from '../../../cluster/rights.ts'
import { neededRights } from '../rights-table.ts'
import { PartSamples } from './part.ts'
import { forbiddenAddresses, watchKubelets } from './served.ts'
import { Watcher, type WatchSettings } from './watcher.ts'

const folder = mkdtempSync(join(tmpdir(), 'kcert-watch-'))
const dayMs = 86_400_000
const core = { group: '', version: 'v1' } as const
const admission = { group: 'admissionregistration.k8s.io', version: 'v1' } as const
let server: FakeApiServer
let cluster: Cluster

afterEach(async () => {
  cluster.close()
  await server.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

const pause = async (ms: number, signal?: AbortSignal): Promise<void> => {
  await pauseFor(ms, undefined, signal && { signal })
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

async function start(options: FakeOptions = {}, requestTimeoutMs = 30_000): Promise<void> {
  server = await startApiServer({ tokens: { pod: { username: 'pod', groups: [] } }, ...options })
  putCluster(server)
  const slice = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' } as const
  const endpoints = [{ addresses: ['127.0.0.1'] }]
  const ports = [{ port: server.port }]
  const labels = { 'kubernetes.io/service-name': 'kubernetes' }
  server.put(
    { ...slice, namespace: 'default' },
    { metadata: { name: 'kubernetes', labels }, endpoints, ports },
  )
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: server.port } },
  }
  server.put({ ...core, resource: 'nodes' }, { metadata: { name: 'node-1' }, status })
  for (const namespace of ['default', 'kube-public', 'kube-system', 'shop'])
    putRootCa(namespace, server.caPem)
  cluster = await openWith(server.writeKubeconfig(join(folder, 'admin.conf')), requestTimeoutMs)
}

function putRootCa(namespace: string, pem: string): void {
  const key = { ...core, resource: 'configmaps', namespace }
  server.put(key, { metadata: { name: 'kube-root-ca.crt', namespace }, data: { 'ca.crt': pem } })
}

function putTls(namespace: string, name: string, certificate: string, key = ''): void {
  server.put(
    { ...core, resource: 'secrets', namespace },
    {
      metadata: { name, namespace },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64(certificate), 'tls.key': base64(key) },
    },
  )
}

const issued = (days: number, name = 'web.shop.svc') =>
  server.issue(name, [], {
    usage: 'serverAuth',
    names: { dns: [name] },
    notAfter: new Date(Date.now() + days * dayMs),
  })

function watcherWith(settings: Partial<WatchSettings> = {}) {
  const told: string[] = []
  const watcher = new Watcher(
    {
      ...{ cluster, pause, clock: () => new Date(), draw: () => 0.5 },
      tell: (part, failure) => told.push(`${part} ${failure?.code ?? 'works'}`),
    },
    { intervalMs: 60_000, readSecrets: true, ...settings },
  )
  const scan = async (): Promise<string> => {
    await watcher.scanAll(new AbortController().signal)
    return watcher.render()
  }
  return { watcher, scan, told }
}

/** Returns the labels of a metric → the value. Fails for text that Prometheus would reject. */
function samplesOf(text: string, metric: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of text.trimEnd().split('\n')) {
    if (/^# (?:HELP|TYPE) kcert_\w+ /.test(line)) continue
    const [, name, labels = '', value] =
      /^(kcert_\w+)(\{(?:\w+="(?:[^"\\]|\\["\\])*",?)+\})? (-?[\d.]+)$/.exec(line) ?? []
    expect(name, JSON.stringify(line)).toBeDefined()
    expect(samples.has(line), `twice: ${line}`).toBe(false)
    if (name === `kcert_${metric}`) samples.set(labels, Number(value))
  }
  return samples
}

const parts = (text: string, value: number): string[] =>
  [...samplesOf(text, 'scan_failed')].flatMap(([labels, failed]) =>
    failed === value ? [labels.slice(7, -2)] : [],
  )

test('exports what objects have and what servers serve, without keys', async () => {
  await start()
  const { certificate, key } = issued(10)
  putTls('shop', 'web-tls', certificate, key)
  putServing(server, 'csr-1')
  server.put(
    { ...admission, resource: 'validatingwebhookconfigurations' },
    {
      metadata: { name: 'hook' },
      webhooks: [
        {
          name: 'hook.example.com',
          clientConfig: { url: `https://127.0.0.1:${server.port}/x`, caBundle: base64(server.caPem) },
        },
      ],
    },
  )
  const { scan } = watcherWith()
  const text = await scan()
  expect(parts(text, 1)).toEqual([])
  const remaining = samplesOf(text, 'certificate_remaining_seconds')
  const left = remaining.get('{kind="secret",namespace="shop",name="web-tls",entry="data[tls.crt]"}')
  expect(left).toBeGreaterThan(10 * 86_400 - 60)
  expect(left).toBeLessThanOrEqual(10 * 86_400)
  const kinds = [...remaining.keys()].map((labels) => /kind="([^"]*)"/.exec(labels)?.[1])
  expect(new Set(kinds)).toEqual(
    new Set(['api-server', 'kubelet', 'webhook', 'secret', 'configmap', 'validatingwebhookconfiguration']),
  )
  expect(samplesOf(text, 'ca_bundles')).toEqual(new Map([['{state="verified"}', 4]]))
  expect([...samplesOf(text, 'pending_requests')]).toEqual([
    [expect.stringMatching(/^\{signer="kubernetes.io\/kubelet-serving",reason="[a-z-]+"\}$/), 1],
  ])
  expect(samplesOf(text, 'served_endpoints').get('{kind="webhook",status="ok"}')).toBe(1)
  expect(samplesOf(text, 'cluster_info_checks')).toEqual(new Map([['{check="object",outcome="absent"}', 1]]))
  expect(text).not.toMatch(/PRIVATE|BEGIN/)
  expect(text).not.toContain(base64(key).slice(0, 40))
  expect(text).not.toContain(key.split('\n')[1])
})

test('shows a namespace whose CA bundle lacks the CA of the API servers', async () => {
  await start()
  const other = await startApiServer()
  putRootCa('left', other.caPem)
  putRootCa('garbage', 'no certificate')
  await other.close()
  const { scan } = watcherWith()
  const text = await scan()
  expect(samplesOf(text, 'ca_bundles').get('{state="rejected"}')).toBe(2)
  expect([...samplesOf(text, 'ca_bundle_rejected').keys()].sort()).toEqual([
    '{namespace="garbage"}',
    '{namespace="left"}',
  ])
})

test('connects to no Node address that is this machine or link-local', async () => {
  await start()
  const blocked = forbiddenAddresses({ server: 'https://192.0.2.1:6443' })
  const families = {
    ipv4: ['127.0.0.1', '0.0.0.0', '169.254.169.254'],
    ipv6: ['::1', 'fe80::1', '::ffff:169.254.169.254'],
  }
  for (const [family, addresses] of Object.entries(families))
    for (const address of addresses) expect(blocked.check(address, family as 'ipv4'), address).toBe(true)
  expect(blocked.check('10.0.0.1')).toBe(false)
  const counted = async (seen: Cluster) => {
    const to = new PartSamples(new Date())
    await watchKubelets(seen, to, new Date())
    return [...(to.samples.get('served_endpoints') ?? [])]
  }
  expect(await counted(cluster)).toEqual([['{kind="kubelet",status="ok"}', 1]])
  const elsewhere = { ...cluster, server: 'https://192.0.2.1:6443' }
  expect(await counted(elsewhere)).toEqual([['{kind="kubelet",status="unreachable"}', 1]])
})

test('shows a server with an older certificate than the one in its Secret', async () => {
  let now = new Date(Date.now() - 3_600_000)
  await start({ now: () => now, servingNames: { dns: ['hook.shop.svc'], ip: ['127.0.0.1'] } })
  now = new Date()
  const slice = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' } as const
  server.put(
    { ...slice, namespace: 'shop' },
    {
      metadata: { name: 'hook-1', labels: { 'kubernetes.io/service-name': 'hook' } },
      endpoints: [{ addresses: ['127.0.0.1'] }],
      ports: [{ port: server.port }],
    },
  )
  server.put(
    { ...admission, resource: 'mutatingwebhookconfigurations' },
    {
      metadata: { name: 'hook' },
      webhooks: [
        {
          name: 'hook.example.com',
          clientConfig: { service: { namespace: 'shop', name: 'hook' }, caBundle: base64(server.caPem) },
        },
      ],
    },
  )
  putTls('shop', 'other-tls', issued(90).certificate)
  const { scan } = watcherWith()
  const problems = async (): Promise<string[]> =>
    [...samplesOf(await scan(), 'served_problem').keys()].filter((labels) => labels.includes('webhook'))
  expect(await problems()).toEqual([])
  putTls('shop', 'hook-tls', issued(90, 'hook.shop.svc').certificate)
  expect(await problems()).toEqual([
    `{kind="webhook",name="service/shop/hook",entry="127.0.0.1:${server.port}",code="OLD_CERTIFICATE_SERVED"}`,
  ])
})

test('counts hostile Secrets as unreadable, and escapes their names', async () => {
  await start()
  const { certificate } = issued(20)
  putTls('shop', 'garbage', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
  putTls('shop', 'empty', '')
  putTls('shop', 'noise', '\u0000\u0001garbage')
  putTls('shop', 'huge', certificate.repeat(12_000))
  putTls('shop', 'a\n"b\\c\u202e{}', certificate)
  putTls('shop', 'n'.repeat(5_000), certificate)
  const { scan } = watcherWith()
  const text = await scan()
  expect(parts(text, 1)).toEqual([])
  expect(samplesOf(text, 'unreadable_objects').get('{kind="secret"}')).toBe(4)
  const names = [...samplesOf(text, 'certificate_remaining_seconds').keys()].filter((one) =>
    one.includes('"secret"'),
  )
  expect(names).toHaveLength(2)
  expect(names.join()).toContain(String.raw`a\\u000a\"b\\c\\u202e{}`)
  for (const name of names) expect(name.length).toBeLessThan(500)
})

test('counts a caBundle without a readable certificate as unreadable', async () => {
  await start()
  const clientConfig = { url: `https://127.0.0.1:${server.port}/x` }
  for (const [name, caBundle] of Object.entries({ good: server.caPem, garbage: 'no certificate', none: '' }))
    server.put(
      { ...admission, resource: 'validatingwebhookconfigurations' },
      {
        metadata: { name },
        webhooks: [
          { name: `${name}.example.com`, clientConfig: { ...clientConfig, caBundle: base64(caBundle) } },
        ],
      },
    )
  const { scan } = watcherWith()
  const unreadable = samplesOf(await scan(), 'unreadable_objects')
  expect(unreadable.get('{kind="validatingwebhookconfiguration"}')).toBe(1)
})

test('a part fails without the cluster CA, or if its kind is not served', async () => {
  await start({ without: ['customresourcedefinitions', 'clustertrustbundles'] })
  putRootCa('default', 'no certificate')
  const { scan } = watcherWith()
  expect(parts(await scan(), 1)).toEqual(['api-servers', 'kubelets', 'customresourcedefinitions'])
})

test.each([true, false])(
  'with readSecrets %s, verifies the signature of cluster-info',
  async (readSecrets) => {
    await start()
    const kubeconfig = `apiVersion: v1\nkind: Config\nclusters:\n- name: ""\n  cluster:\n    server: https://127.0.0.1:${server.port}\n    certificate-authority-data: ${base64(server.caPem)}\nusers: null\n`
    const key = { ...core, resource: 'configmaps', namespace: 'kube-public' }
    server.put(key, { metadata: { name: 'cluster-info', namespace: 'kube-public' }, data: { kubeconfig } })
    const { scan } = watcherWith({ readSecrets })
    const checks = samplesOf(await scan(), 'cluster_info_checks')
    expect(checks.get(`{check="signature",outcome="${readSecrets ? 'ok' : 'unknown'}"}`)).toBe(1)
    // --watch without --watch-secrets reads none, even if RBAC permits it.
    expect(server.calls.some(({ resource }) => resource === 'secrets')).toBe(readSecrets)
  },
)

test('a flood of CSRs hides the reasons of no other signer and requester', async () => {
  await start()
  const { scan } = watcherWith()
  const pending = async () => samplesOf(await scan(), 'pending_requests')
  putServing(server, 'z-requester', { usages: ['client auth'] })
  putServing(server, 'z-signer', { signerName: 'kubernetes.io/kube-apiserver-client', username: 'ann' })
  const before = [...(await pending()).keys()]
  expect(before).toHaveLength(2)
  for (let index = 0; index < 250; index++)
    putServing(server, `a-${index}`, { username: `system:serviceaccount:shop:${index}` })
  const after = await pending()
  expect([...after.keys()]).toEqual(expect.arrayContaining(before))
  expect(after.get('{signer="kubernetes.io/kubelet-serving",reason="not-explained"}')).toBe(152)
  expect([...after.values()].reduce((sum, count) => sum + count)).toBe(252)
})

test('an incomplete journal, or no CA bundle at all, is not shown as good', async () => {
  await start()
  const system = { ...core, resource: 'configmaps', namespace: 'kube-system' }
  server.put(system, { metadata: { name: 'kcert-rotation' }, data: { 'journal.jsonl': '{"kind":"phase"}' } })
  const { scan } = watcherWith()
  expect(samplesOf(await scan(), 'scan_left_out').get('{part="rotations"}')).toBe(1)
  for (const namespace of ['default', 'kube-public', 'kube-system', 'shop'])
    server.remove({ ...core, resource: 'configmaps', namespace }, 'kube-root-ca.crt')
  expect(parts(await scan(), 1)).toEqual(['ca-bundles'])
})

test('bounds the series, and leaves out the certificates that expire last', async () => {
  await start()
  for (let index = 0; index < 5; index++)
    for (let other = 0; other < 250; other++)
      putTls(`ns-${index}`, `web-${other}`, certificates()[other % 10]!)
  putTls('shop', 'web', issued(1_000).certificate)
  const { scan } = watcherWith()
  const text = await scan()
  const names = [...samplesOf(text, 'certificate_remaining_seconds').keys()].filter((one) =>
    one.includes('"secret"'),
  )
  expect(names).toHaveLength(1_001)
  expect(names.join()).toContain('name="web"')
  expect(samplesOf(text, 'scan_left_out').get('{part="secrets"}')).toBe(250)
  expect(samplesOf(text, 'certificates').get('{kind="secret",state="valid"}')).toBe(1_251)
})

let made: string[] = []
function certificates(): string[] {
  if (made.length === 0) made = Array.from({ length: 10 }, (_, index) => issued(index + 1).certificate)
  return made
}

test('counts each object once when a list expires and starts again', async () => {
  await start()
  for (let index = 0; index < 600; index++) putTls(`ns-${index % 10}`, `web-${index}`, certificates()[0]!)
  server.faults.add({ kind: 'expired', verb: 'list', resource: 'secrets', at: 1, times: 1 })
  const { scan } = watcherWith()
  const text = await scan()
  expect(server.calls.filter(({ fault }) => fault === 'expired')).toHaveLength(1)
  expect(samplesOf(text, 'certificates').get('{kind="secret",state="valid"}')).toBe(600)
})

test('has no series of a part that hangs or fails, and shows them when it works again', async () => {
  await start({}, 2_000)
  putTls('shop', 'web-tls', issued(10).certificate)
  const { scan, told } = watcherWith({ intervalMs: 5_000 })
  expect(await scan()).toContain('kind="secret"')
  server.faults.add({ kind: 'hang', verb: 'list', resource: 'secrets', times: 1_000 })
  const failed = await scan()
  expect(parts(failed, 1)).toEqual(['secrets'])
  expect(failed).not.toContain('kind="secret"')
  expect(failed).not.toContain('scan_left_out{part="secrets"}')
  expect(samplesOf(failed, 'scan_failures_total').get('{part="secrets"}')).toBe(1)
  expect(failed).toContain('kind="configmap"')
  server.faults.clear()
  // The hung part ends after its last retry.
  for (let tries = 0; tries < 60 && told.length < 2; tries++) {
    await pause(500)
    await scan()
  }
  expect(told).toEqual(['secrets KCERT_UNREACHABLE', 'secrets works'])
}, 60_000)

test('shows no series that is older than three intervals', async () => {
  await start()
  const { watcher, scan } = watcherWith({ intervalMs: 10 })
  await scan()
  await pause(50)
  const text = watcher.render()
  expect(parts(text, 0)).toEqual([])
  expect(samplesOf(text, 'certificate_remaining_seconds').size).toBe(0)
})

const ruleOf = ({ verb, group, resource, name }: Right): AccessRule => ({
  ...{ user: 'pod', verbs: [verb], groups: [group], resources: [resource] },
  ...(name !== undefined && { names: [name] }),
})
const all = neededRights({ watch: { readSecrets: true } }, 'kube-system').flatMap(({ rights }) => rights)

test('needs no other permission than those of controller manifest --watch', async () => {
  await start()
  cluster.close()
  cluster = await openWith(server.writeKubeconfig(join(folder, 'pod.conf'), { token: 'pod' }))
  server.rules = all.map(ruleOf)
  putServing(server, 'csr-1')
  const { scan } = watcherWith()
  expect(parts(await scan(), 1)).toEqual([])
})

test.each([
  ['secrets', '', ['secrets']],
  ['configmaps', '', ['ca-bundles', 'configmaps']],
  ['nodes', '', ['kubelets']],
  ['pods', '', ['kubelets']],
  ['certificatesigningrequests', 'certificates.k8s.io', ['kubelets', 'requests']],
  ['apiservices', 'apiregistration.k8s.io', ['webhooks', 'apiservices']],
])('without the permission to list %s, the parts that need it fail', async (resource, group, expected) => {
  await start()
  cluster.close()
  cluster = await openWith(server.writeKubeconfig(join(folder, 'pod.conf'), { token: 'pod' }))
  const [missing] = each('list', { group, resource })
  server.rules = all
    .filter((right) => !(right.verb === 'list' && right.resource === missing!.resource))
    .map(ruleOf)
  const { scan } = watcherWith()
  expect(parts(await scan(), 1)).toEqual(expected)
})
