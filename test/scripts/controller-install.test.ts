import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { ControllerCheck } from '../../src/app/controller/check-report.ts'
import type { RequestDescription } from '../../src/x509/issuing.ts'
import { clientDescription, requestPem, servingDescription } from '../csr/made-requests.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { type AccessRule, isAllowed } from '../fakes/api-server-access.ts'
import { freePort } from '../node/ports.ts'
import { conditionsOf, operatorOf, putCluster, putServing } from './cluster-session.ts'
import { Daemon } from './daemon.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// `kcert controller manifest` and `check`: the permissions of the one are those of the other, and suffice for the controller.

const folder = temporaryFolder('controller-install')
const image = 'registry.example.com/kcert:0.1.0'
let server: FakeApiServer
let kcert: ReturnType<typeof operatorOf>

beforeEach(async () => {
  await server?.close()
  server = await startApiServer({
    tokens: { pod: { username: 'approver', groups: ['system:authenticated'] } },
    certificateKinds: { clustertrustbundles: 'v1beta1' },
  })
  putCluster(server)
  kcert = operatorOf(server, folder)
  server.writeKubeconfig(join(folder, 'pod.conf'), { token: 'pod' })
})
afterEach(() => Daemon.killAll())
afterAll(() => server.close())

interface Role {
  readonly kind: string
  readonly metadata: { readonly namespace?: string }
  readonly rules: readonly {
    readonly apiGroups: string[]
    readonly resources: string[]
    readonly resourceNames?: string[]
    readonly verbs: string[]
  }[]
}

/** Gives the pod what the roles of the manifest grant. */
async function applyManifest(...flags: readonly string[]): Promise<void> {
  const { stdout, exit } = await kcert(['controller', 'manifest', '--image', image, ...flags])
  expect(exit).toBe(0)
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Role)
  server.rules = objects
    .filter(({ kind }) => /^(?:Cluster)?Role$/.test(kind))
    .flatMap(({ rules, metadata: { namespace } }) =>
      rules.map(
        ({ apiGroups: groups, resources, resourceNames, verbs }): AccessRule => ({
          ...{ user: 'approver', groups, resources, verbs },
          ...(resourceNames && { names: resourceNames }),
          ...(namespace && { namespace }),
        }),
      ),
    )
}

const checkAsPod = (...flags: readonly string[]) =>
  kcert(['controller', 'check', '--kubeconfig', 'pod.conf', ...flags])

test('with the permissions of the manifest, the check is complete, and the controller approves', {
  retry: 2,
}, async () => {
  await applyManifest('--approve', 'kubelet-serving')
  const checked = await checkAsPod('--approve', 'kubelet-serving', '-o', 'json')
  expect(checked.exit).toBe(0)
  const report = JSON.parse(checked.stdout)
  expect(violations('ControllerCheck', report)).toEqual([])
  expect(report).toMatchObject({ user: 'approver', namespace: 'kube-system', missing: 0 })
  expect(report.permissions).toHaveLength(16)

  const listen = `127.0.0.1:${await freePort()}`
  putServing(server, 'csr-1')
  const line = ['controller', '--kubeconfig', 'pod.conf', '--approve', 'kubelet-serving', '--listen', listen]
  const daemon = new Daemon(line, folder)
  await daemon.says(/approved csr="csr-1"/)
  expect(conditionsOf(server, 'csr-1')).toContain('Approved')
  expect(await (await fetch(`http://${listen}/readyz`)).text()).toContain('[+]permissions ok')
  expect(await daemon.kill('SIGTERM')).toBe(0)
})

const encoded = (description: RequestDescription): string =>
  Buffer.from(requestPem(description)).toString('base64')

test('makes no call without a permission in the table, and every permission is used', {
  retry: 2,
}, async () => {
  const flags = ['--approve', 'builtin', '--watch', '--watch-secrets']
  await applyManifest(...flags)
  const core = { group: '', version: 'v1' } as const
  const configMap = (namespace: string, name: string, data: object): void =>
    void server.put({ ...core, resource: 'configmaps', namespace }, { metadata: { name, namespace }, data })
  for (const namespace of ['default', 'kube-public', 'kube-system'])
    configMap(namespace, 'kube-root-ca.crt', { 'ca.crt': server.caPem })
  const service = { namespace: 'default', name: 'hook' }
  server.put(
    { group: 'admissionregistration.k8s.io', version: 'v1', resource: 'validatingwebhookconfigurations' },
    { metadata: { name: 'hook' }, webhooks: [{ name: 'hook.example.com', clientConfig: { service } }] },
  )
  const foreignNames = { ...servingDescription(), subjectAltNames: { ip: ['10.1.0.99'] } }
  // The first one is approved. The second one asks for an address that its Node does not have.
  putServing(server, 'csr-1')
  putServing(server, 'csr-2', { request: encoded(foreignNames) })
  putServing(server, 'csr-3', {
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    request: encoded(clientDescription()),
    usages: ['digital signature', 'client auth'],
    username: 'system:bootstrap:abcdef',
    groups: ['system:bootstrappers'],
  })
  const listen = `127.0.0.1:${await freePort()}`
  const daemon = new Daemon(['controller', '--kubeconfig', 'pod.conf', ...flags, '--listen', listen], folder)
  await daemon.says(/approved csr="csr-1"/)
  for (let tries = 0; tries < 600; tries++) {
    const text = await (await fetch(`http://${listen}/metrics`)).text()
    if (text.includes('kcert_scan_failed{part="clustertrustbundles"}')) break
    await new Promise((done) => setTimeout(done, 100))
  }
  expect(await daemon.kill('SIGTERM')).toBe(0)

  const pod = { username: 'approver', groups: [] }
  const calls = server.calls.filter(
    ({ username, resource }) => username === 'approver' && !resource.startsWith('self'),
  )
  expect(calls.filter((call) => !isAllowed(server.rules, pod, call))).toEqual([])
  const { stdout } = await checkAsPod(...flags, '-o', 'json')
  const { permissions } = JSON.parse(stdout) as ControllerCheck
  const unused = permissions.filter(({ verb, group, resource, name, namespace }) => {
    const rule = { verbs: [verb], groups: [group], resources: [resource] }
    const own = { ...rule, ...(name && { names: [name] }), ...(namespace && { namespace }) }
    return resource !== 'signers' && !calls.some((call) => isAllowed([own], pod, call))
  })
  expect(unused).toEqual([])
})

test('names each missing permission, and what needs it', async () => {
  await applyManifest('--approve', 'kubelet-serving')
  server.rules = server.rules.filter(({ resources }) => !resources.includes('signers'))
  const { stdout, exit } = await checkAsPod('--approve', 'builtin')
  expect(exit).toBe(3)
  expect(stdout).toContain('3 of 18 permissions are missing to approver\n')
  const missing = stdout.split('\n').filter((line) => line.startsWith('no '))
  expect(missing.map((line) => line.split(/ {2,}/).slice(1, 4))).toEqual([
    ['approve', 'signers.certificates.k8s.io', 'kubernetes.io/kube-apiserver-client-kubelet'],
    ['approve', 'signers.certificates.k8s.io', 'kubernetes.io/kubelet-serving'],
    ['create', 'subjectaccessreviews.authorization.k8s.io', expect.stringContaining('policy')],
  ])
})

test('with the permissions of the manifest of --watch, the check is complete', async () => {
  const flags = ['--watch', '--watch-secrets']
  await applyManifest(...flags)
  const checked = await checkAsPod(...flags, '-o', 'json')
  expect(checked.exit).toBe(0)
  expect(JSON.parse(checked.stdout)).toMatchObject({ missing: 0 })
  server.rules = server.rules.filter(({ resources }) => !resources.includes('secrets'))
  const { stdout, exit } = await checkAsPod(...flags)
  expect(exit).toBe(3)
  expect(stdout).toMatch(/^1 of \d+ permissions are missing/m)
  expect(stdout).toMatch(/^no +list +secrets .*--watch: certificates in Secrets/m)
})

test('a policy file becomes a ConfigMap that the controller reads', async () => {
  const text =
    'apiVersion: kcert/v1\nkind: ApprovalPolicy\nrules:\n- {name: all, decision: approve, signerNames: ["*/*"], usernames: [ann]}\n'
  writeFileSync(join(folder, 'policy.yaml'), text, { mode: 0o600 })
  const line = ['controller', 'manifest', '--approve', 'policy.yaml', '--image', image, '-n', 'kcert']
  const { stdout, stderr } = await kcert([...line, '--service-monitor', '-o', 'json'])
  const { kind, items } = JSON.parse(stdout) as { kind: string; items: { kind: string; data?: object }[] }
  expect(kind).toBe('List')
  expect(items.find((one) => one.kind === 'ConfigMap')?.data).toEqual({ 'policy.yaml': text })
  expect(items.map((one) => one.kind)).toContain('ServiceMonitor')
  expect(stderr).toBe(
    'note: RBAC lets the controller approve for every signer, because signerNames of the policy has a pattern\n',
  )
})

describe('wrong usage', () => {
  test.each([
    [['manifest', '--image', image], 'nothing to do: --approve and --watch are missing'],
    [['check'], 'nothing to do: --approve and --watch are missing'],
    [['check', '--approve', 'builtin', '--watch-secrets'], '--watch'],
    [['manifest', '--approve', 'builtin'], 'Missing required flag image'],
    [['manifest', '--approve', 'builtin', '--image', 'a\nb'], String.raw`invalid --image "a\nb"`],
    [['manifest', '--approve', 'builtin', '--image', image, '-n', 'A b'], 'invalid --namespace "A b"'],
    [
      ['manifest', '--approve', 'builtin', '--image', image, '--image-pull-secret', 'A b'],
      'invalid --image-pull-secret "A b"',
    ],
    [['manifest', '--approve', 'builtin', '--image', image, '--replicas', '0'], '--replicas'],
    [
      ['manifest', '--approve', 'builtin', '--image', image, '--api-server-port', '99999'],
      'invalid --api-server-port "99999"',
    ],
    [['manifest', '--watch', '--image', image, '--webhook-port', '443,1'], 'invalid --webhook-port "443,1"'],
    [['manifest', '--watch', '--image', image, '--watch-interval', '1s'], 'invalid --watch-interval 1s'],
    [
      ['manifest', '--watch', '--image', image, '--prometheus-namespace', 'A b'],
      'invalid --prometheus-namespace "A b"',
    ],
    [
      ['manifest', '--watch', '--image', image, '--prometheus-pods', 'app'],
      'invalid --prometheus-pods "app"',
    ],
    [['manifest', '--approve', 'absent.yaml', '--image', image], 'absent.yaml'],
  ])('%j', async (args, message) => {
    const { stdout, stderr, exit } = await kcert(['controller', ...args])
    expect([stdout, exit]).toEqual(['', 2])
    expect(stderr).toContain(message)
  })
})
