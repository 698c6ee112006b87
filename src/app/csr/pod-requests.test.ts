import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openWith } from '../../../test/contract/stage.ts'
import { type FakeApiServer, type FakeOptions, startApiServer } from '../../../test/fakes/api-server.ts'
import { noFiles } from '../../../test/pki/inspected.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { Inspection } from '../../inspection/inspection.ts'
import type { InspectionReport } from '../../inspection/report.ts'
import { defaultThresholds } from '../../inspection/thresholds.ts'
import { renderPodExplanation, renderPodRequestList } from '../../output/csr-pods.ts'
import { noPaint } from '../../output/paint.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { scanCluster } from '../inspect/cluster.ts'
import { explainPod, listPodRequests } from './pod-requests.ts'

const resource = 'podcertificaterequests'
const group = 'certificates.k8s.io'
// Relative to the current time: the TLS connection to the fake API server uses the machine's clock.
const createdAt = Math.floor(Date.now() / 1000) * 1000
const later = (seconds: number): Date => new Date(createdAt + seconds * 1000)
const created = rfc3339(later(0))
const expiry = rfc3339(later(7200))
const view = { width: Number.POSITIVE_INFINITY, paint: noPaint }

let folder: string
let server: FakeApiServer
let clusters: Cluster[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kcert-pods-'))
  clusters = []
})
afterEach(async () => {
  for (const cluster of clusters) cluster.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

async function open(version: string | undefined, options: FakeOptions = {}): Promise<Cluster> {
  server = await startApiServer({
    now: () => later(0),
    ...(version !== undefined && { certificateKinds: { [resource]: version } }),
    ...options,
  })
  return as({ username: 'admin', groups: ['system:masters'] })
}

async function as(user: Parameters<FakeApiServer['writeKubeconfig']>[1]): Promise<Cluster> {
  const cluster = await openWith(server.writeKubeconfig(join(folder, `${clusters.length}.conf`), user))
  clusters.push(cluster)
  return cluster
}

function put(name: string, status: object = {}, spec: object = {}, namespace = 'shop'): void {
  server.put(
    { group, version: 'v1', resource, namespace },
    {
      metadata: { name, namespace },
      spec: {
        signerName: 'example.com/pods',
        podName: 'web-0',
        serviceAccountName: 'web',
        nodeName: 'worker-1',
        maxExpirationSeconds: 86_400,
        ...spec,
      },
      status,
    },
  )
}

const condition = (type: string, reason: string, message: string) => ({
  conditions: [{ type, status: 'True', reason, message, lastTransitionTime: created }],
})

function issued(notAfter: Date) {
  const { certificate } = server.issue('web-0', [], { usage: 'clientAuth', notAfter })
  return {
    ...condition('Issued', 'Issued', 'by the signer'),
    certificateChain: certificate,
    beginRefreshAt: later(1800).toISOString(),
  }
}

async function scan(cluster: Cluster): Promise<InspectionReport> {
  const inspection = new Inspection({
    now: later(0),
    thresholds: defaultThresholds,
    readReferencedFile: noFiles,
  })
  expect(await scanCluster(cluster, inspection)).toMatchObject({ failure: undefined })
  return (await inspection.finish()).report
}

describe.each(['v1', 'v1beta1'])('PodCertificateRequests served in %s', (version) => {
  test('are listed, pending ones first', async () => {
    const cluster = await open(version)
    put('issued', issued(later(7200)))
    put('denied', condition('Denied', 'UnsupportedKeyType', 'ECDSAP256 please'))
    put('pending')
    put('other', {}, { signerName: 'example.org/other' }, 'default')
    const list = await listPodRequests(cluster, { states: [] }, later(60))
    expect(list).toMatchObject({ summary: { pending: 2, failed: 0, denied: 1, issued: 1 } })
    expect(list.requests.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([
      'default/other',
      'shop/pending',
      'shop/denied',
      'shop/issued',
    ])
    expect(list.requests[3]).toMatchObject({ state: 'issued', notAfter: expiry })
    const text = renderPodRequestList(list, view)
    expect(text).toMatch(/shop +pending +1m +Pending +web-0 +web +worker-1 +example.com\/pods +14m/)
    expect(text).toMatch(/shop +issued .* 1h 59m +14m/)
    expect(text).toContain('4 requests: 2 pending, 1 denied, 1 issued')
    const narrowed = await listPodRequests(
      cluster,
      { states: ['pending'], namespace: 'shop', signer: 'example.com/pods' },
      later(60),
    )
    expect(narrowed.requests.map(({ name }) => name)).toEqual(['pending'])
  })

  test('pass their certificates, with expiry, to inspect --cluster', async () => {
    const cluster = await open(version)
    put('web', issued(later(7200)))
    put('pending')
    const { certificates, problems } = await scan(cluster)
    expect(certificates).toMatchObject([
      {
        source: 'podcertificaterequest shop/web',
        entry: 'status.certificateChain',
        role: 'issued',
        notAfter: expiry,
      },
    ])
    expect(problems.filter(({ code }) => code === 'SOURCE_UNREADABLE')).toEqual([])
  })
})

test.each([
  ['with all permissions', true],
  ['without permission to list them', false],
])('reports that the API server does not serve them, to a user %s', async (_, isMaster) => {
  const rules = [{ user: 'viewer', verbs: ['list'], groups: [''], resources: ['secrets', 'configmaps'] }]
  const master = await open(undefined, { rules })
  const cluster = isMaster ? master : await as({ username: 'viewer' })
  await expect(listPodRequests(cluster, { states: [] }, later(0))).rejects.toMatchObject({
    code: 'KCERT_API_NOT_FOUND',
  })
  const { problems } = await scan(cluster)
  expect(problems.filter(({ source }) => source.startsWith(resource))).toEqual([])
})

test('a user who may not list them sees the verb and resource', async () => {
  await open('v1beta1')
  const cluster = await as({ username: 'viewer' })
  await expect(listPodRequests(cluster, { states: [] }, later(0))).rejects.toMatchObject({
    code: 'KCERT_API_FORBIDDEN',
    next: expect.stringContaining('--verb=list --resource=podcertificaterequests.certificates.k8s.io'),
  })
  const { problems } = await scan(cluster)
  expect(problems).toContainEqual(
    expect.objectContaining({ code: 'SOURCE_UNREADABLE', source: 'podcertificaterequests of the cluster' }),
  )
})

describe('csr explain, PodCertificateRequest', () => {
  async function explained(status: object, seconds: number, spec: object = {}, signers: string[] = []) {
    const cluster = await open('v1')
    const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
    for (const name of signers) {
      const rule = { apiGroups: [group], resources: ['signers'], verbs: ['sign'] }
      const subjects = [{ kind: 'ServiceAccount', name, namespace: 'signers' }]
      server.put({ ...rbac, resource: 'clusterroles' }, { metadata: { name }, rules: [rule] })
      server.put(
        { ...rbac, resource: 'clusterrolebindings' },
        { metadata: { name }, subjects, roleRef: { kind: 'ClusterRole', name } },
      )
    }
    put('web', status, spec)
    const explanation = await explainPod(cluster, 'shop', 'web', later(seconds))
    if (explanation === undefined) throw new Error('there is none')
    const text = renderPodExplanation(explanation, later(seconds).toISOString(), view)
    return { verdict: explanation.verdict, ids: explanation.causes.map(({ id }) => id), text }
  }

  test.each([
    {
      status: condition('Denied', 'UnsupportedKeyType', 'ECDSAP256 please'),
      verdict: 'denied',
      ids: ['denied'],
      says: /UnsupportedKeyType: ECDSAP256 please\nfix: set keyType .*create it again/,
    },
    {
      status: condition('Denied', 'constructor', ''),
      verdict: 'denied',
      ids: ['denied'],
      says: /permanently: constructor\nfix: correct what the message names;/,
    },
    {
      status: condition('Failed', 'Outage', 'no CA'),
      verdict: 'failed',
      ids: ['signer-refused'],
      says: /failed +Outage: no CA at 20[\s\S]*failed to issue it: Outage: no CA/,
    },
    {
      status: { certificateChain: 'x' },
      verdict: 'stuck',
      ids: ['certificate-unreadable'],
      says: /status.certificateChain cannot be read/,
    },
  ])('$verdict by $ids', async ({ status, verdict, ids, says }) => {
    const found = await explained(status, 60)
    expect(found).toMatchObject({ verdict, ids })
    expect(found.text).toMatch(says)
  })

  test('explains an issued request until its certificate expires', async () => {
    await open('v1')
    const status = issued(later(7200))
    await server.close()
    expect(await explained(status, 7199)).toMatchObject({ verdict: 'issued', ids: [] })
    await server.close()
    const expired = await explained(status, 7200)
    expect(expired).toMatchObject({ verdict: 'stuck', ids: ['certificate-expired'] })
    expect(expired.text).toContain(`expired at ${expiry}`)
  })

  test.each([
    { seconds: 29, signers: ['pods'], verdict: 'waiting', id: 'signer-signs-now' },
    { seconds: 30, signers: ['pods'], verdict: 'stuck', id: 'signer-has-not-signed' },
    { seconds: 29, signers: [], verdict: 'stuck', id: 'signer-absent' },
  ])(
    'a pending one after $seconds s with the signers $signers',
    async ({ seconds, signers, verdict, id }) => {
      const found = await explained({}, seconds, {}, signers)
      expect(found).toMatchObject({ verdict, ids: [id] })
      expect(found.text.includes('ServiceAccount signers/pods')).toBe(signers.length > 0)
    },
  )

  test('explains a request for a Kubernetes signer without a controller', async () => {
    const spec = { signerName: 'kubernetes.io/kube-apiserver-client-pod' }
    const found = await explained({}, 1, spec, ['pods'])
    expect(found).toMatchObject({ verdict: 'stuck', ids: ['no-such-signer'] })
    expect(found.text).toMatch(/no signer exists for "kubernetes.io\/kube-apiserver-client-pod"/)
  })

  test('reports that the user may not look up the signers', async () => {
    await open('v1', {
      rules: [{ user: 'viewer', verbs: ['list'], groups: [group], resources: [resource] }],
    })
    put('web')
    const explanation = await explainPod(await as({ username: 'viewer' }), 'shop', 'web', later(60))
    expect(explanation).toMatchObject({ verdict: 'stuck', unknownFacts: [{ fact: 'who may sign' }] })
  })

  test('reports a name that no object has', async () => {
    expect(await explainPod(await open('v1'), 'shop', 'web', later(0))).toBeUndefined()
  })
})
