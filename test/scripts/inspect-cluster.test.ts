import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { InspectionReport } from '../../src/inspection/report.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { putServing } from './cluster-session.ts'
import { kcertBeside } from './program.ts'
import { tracesOf } from './secret-traces.ts'
import { temporaryFolder } from './temporary-folder.ts'

// The objects of a cluster, on the fake API server: each kind once, including invalid ones.

const folder = temporaryFolder('inspect-cluster')
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const core = (resource: string, namespace: string) =>
  ({ group: '', version: 'v1', resource, namespace }) as const
const admission = { group: 'admissionregistration.k8s.io', version: 'v1' } as const
let server: FakeApiServer
let keys: string[]

beforeAll(async () => {
  server = await startApiServer({ tokens: { webhooks: { username: 'viewer', groups: [] } } })
  const issue = (name: string, notAfter?: Date) =>
    server.issue(name, [], { usage: 'serverAuth', names: { dns: [name] }, ...(notAfter && { notAfter }) })
  const [web, other, old] = [issue('web'), issue('other'), issue('old', new Date(Date.now() - 86_400_000))]
  keys = [web.key, other.key, old.key]
  const secret = (namespace: string, name: string, type: string, data: Record<string, string>) =>
    server.put(core('secrets', namespace), {
      metadata: { name, namespace },
      type,
      data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
    })
  const tls = 'kubernetes.io/tls'
  secret('shop', 'web-tls', tls, { 'tls.crt': web.certificate, 'tls.key': web.key })
  secret('shop', 'swapped', tls, { 'tls.crt': web.certificate, 'tls.key': other.key })
  secret('old', 'old-tls', tls, { 'tls.crt': old.certificate, 'tls.key': old.key })
  secret('shop', 'opaque', 'Opaque', { 'ca-bundle': server.caPem, password: 'correct horse' })
  secret('shop', 'release', 'helm.sh/release.v1', { release: web.certificate })
  secret('shop', 'nothing', 'Opaque', { password: 'correct horse' })
  for (const namespace of ['default', 'shop', 'old'])
    server.put(core('configmaps', namespace), {
      metadata: { name: 'kube-root-ca.crt', namespace },
      data: { 'ca.crt': server.caPem },
    })
  server.put(core('configmaps', 'kube-public'), {
    metadata: { name: 'cluster-info', namespace: 'kube-public' },
    data: {
      kubeconfig: `apiVersion: v1\nkind: Config\nclusters:\n- name: ""\n  cluster:\n    server: https://127.0.0.1:6443\n    certificate-authority-data: ${base64(server.caPem)}\nusers: null\n`,
    },
  })
  server.put(
    { ...admission, resource: 'validatingwebhookconfigurations' },
    {
      metadata: { name: 'policy' },
      webhooks: [{ name: 'a.example', clientConfig: { caBundle: base64(server.caPem) } }],
    },
  )
  server.put(
    { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices', namespace: 'default' },
    {
      metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      endpoints: [{ addresses: ['127.0.0.1'] }],
      ports: [{ port: server.port }],
    },
  )
  putServing(server, 'csr-1', {}, { status: { certificate: base64(web.certificate) } })
})
afterAll(() => server.close())

async function inspect(kubeconfig: string, ...more: string[]) {
  const args = ['inspect', '--cluster', '--kubeconfig', kubeconfig, ...more]
  return kcertBeside(args, { cwd: folder })
}

test('reports each object as a separate source, with its problems', async () => {
  const kubeconfig = server.writeKubeconfig(join(folder, 'admin.conf'))
  const { stdout, stderr, exit } = await inspect(kubeconfig, '-o', 'json')
  expect(stderr).toBe('note: kube-root-ca.crt is the same in all 3 namespaces, and shown once\n')
  expect(exit).toBe(3)
  const report = JSON.parse(stdout) as InspectionReport
  const places = report.certificates.map(({ source, entry }) => `${source} | ${entry}`).sort()
  expect(places).toEqual(
    [
      `${kubeconfig} | cluster fake: certificate-authority-data`,
      `${kubeconfig} | user someone: client-certificate-data`,
      // The leaf, and the CA in its chain.
      `127.0.0.1:${server.port} | certificate 1`,
      `127.0.0.1:${server.port} | certificate 2`,
      'configmap default/kube-root-ca.crt | data[ca.crt]',
      'configmap kube-public/cluster-info | data[kubeconfig] cluster "": certificate-authority-data',
      'csr csr-1 | status.certificate',
      'secret old/old-tls | data[tls.crt]',
      'secret shop/opaque | data[ca-bundle]',
      'secret shop/swapped | data[tls.crt]',
      'secret shop/web-tls | data[tls.crt]',
      'validatingwebhookconfiguration policy | webhooks[a.example].clientConfig.caBundle',
    ].sort(),
  )
  const found = report.problems.map(({ code, source }) => `${code} ${source}`)
  expect(found).toContain('KEY_MISMATCH secret shop/swapped')
  expect(found).toContain('CERT_EXPIRED secret old/old-tls')
  expect(report.requests).toMatchObject([{ source: 'csr csr-1', entry: 'spec.request' }])
  for (const trace of tracesOf(...(keys as [string]))) expect(stdout).not.toContain(trace)
  expect(stdout).not.toContain('correct horse')
})

test('reports which lists are forbidden, and reads the rest', async () => {
  server.rules = [
    {
      user: 'viewer',
      verbs: ['list'],
      groups: [admission.group],
      resources: ['validatingwebhookconfigurations'],
    },
  ]
  const kubeconfig = server.writeKubeconfig(join(folder, 'viewer.conf'), { token: 'webhooks' })
  const { stdout, exit } = await inspect(kubeconfig, '-o', 'json')
  expect(exit).toBe(6)
  const report = JSON.parse(stdout) as InspectionReport
  expect(report.certificates.map(({ source }) => source)).toContain('validatingwebhookconfiguration policy')
  const refused = report.problems.filter(({ code }) => code === 'SOURCE_UNREADABLE')
  expect(refused.map(({ source }) => source)).toContain('secrets of the cluster')
  expect(refused[0]!.next).toContain('kubectl create clusterrole')
  const shown = await inspect(kubeconfig)
  expect(`${shown.stdout}${shown.stderr}`).toContain(
    'other API servers were not inspected: you may not list EndpointSlices',
  )
})

test('exits with 4 for a cluster that does not respond, and still shows the kubeconfig; --kubeconfig requires --cluster', async () => {
  const kubeconfig = server.writeKubeconfig(join(folder, 'away.conf'), undefined, {
    server: 'https://127.0.0.1:9',
  })
  const away = await inspect(kubeconfig)
  expect(away.exit).toBe(4)
  expect(away.stdout).toContain('kubernetes-admin')
  expect(away.stderr).toContain('KCERT_UNREACHABLE')
  const misled = await kcertBeside(['inspect', '--kubeconfig', kubeconfig])
  expect([misled.exit, misled.stderr]).toEqual([
    2,
    expect.stringContaining(`next: kcert inspect --kubeconfig ${kubeconfig} --cluster`),
  ])
})

test('-n and -l select objects, without kubeconfig, API servers and cluster-scoped objects', async () => {
  const kubeconfig = server.writeKubeconfig(join(folder, 'scoped.conf'))
  const read = async (...flags: string[]) => {
    const { stdout } = await kcertBeside([
      ...['inspect', '--cluster', '--kubeconfig', kubeconfig, '-o', 'json'],
      ...flags,
    ])
    return JSON.parse(stdout) as InspectionReport
  }
  const old = await read('-n', 'old')
  expect(old.certificates.map(({ source }) => source).sort()).toEqual([
    'configmap old/kube-root-ca.crt',
    'secret old/old-tls',
  ])
  expect(old.kubeconfigs).toEqual([])
  const none = await kcertBeside(['inspect', '--cluster', '--kubeconfig', kubeconfig, '-n', 'none'])
  expect([none.exit, none.stderr]).toEqual([
    3,
    expect.stringContaining('no certificates in namespace "none"'),
  ])
  const labels = await kcertBeside(['inspect', '--cluster', '--kubeconfig', kubeconfig, '-l', 'app=none'])
  expect(labels.stderr).toContain('no certificates in the cluster with labels "app=none"')
  const both = await kcertBeside(['inspect', '--cluster', '--kubeconfig', kubeconfig, '-A', '-n', 'old'])
  expect([both.exit, both.stderr]).toEqual([2, expect.stringContaining('mutually exclusive')])
})
