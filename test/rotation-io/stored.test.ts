import { expect, test } from 'vitest'
import { StatusError } from '../../src/cluster/failures.ts'
import type { ApiObject } from '../../src/cluster/malformed.ts'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import { certificateRecord } from '../../src/rotation/certificate-record.ts'
import { journalLine, readJournal, rememberedIn } from '../../src/rotation/journal.ts'
import { manualRotation } from '../../src/rotation/phase-table.ts'
import { StoredWatch } from '../../src/rotation-io/stored.ts'
import type { Site } from '../../src/site/site.ts'
import { Certificate } from '../../src/x509/certificate.ts'
import { certificatePem, keyPem, signedBy, testCa, testKey } from '../pki/kubeadm-tree.ts'
import { now } from './memory-node.ts'

// Copies of the cluster's CAs in objects of other owners, read from objects in the format of an API server.

const [old, fresh, foreign] = ['old', 'new', 'foreign'].map((name) => testCa(name, testKey(name), now))
const [oldPem, newPem] = [certificatePem(old!.certificate), certificatePem(fresh!.certificate)]
const cas = [old!, fresh!].map(({ certificate }) => Certificate.parse(certificate))
const [oldSpki, newSpki] = cas.map(({ publicKey }) => publicKey.sha256)
const changeOf = ([oldCa, newCa]: readonly Certificate[]) => ({
  ca: 'cluster',
  oldCa: certificateRecord(oldCa!),
  newCa: certificateRecord(newCa!),
})
const notAfter = new Date(now.getTime() + 86_400_000)
const leafKey = testKey('leaf')
const leafOf = (ca: typeof old) =>
  certificatePem(signedBy(ca!, { commonName: 'web', key: leafKey, notBefore: now, notAfter }))
const base64 = (text: string) => Buffer.from(text).toString('base64')

const configMap = (name: string, data: Record<string, string>, metadata = {}): ApiObject => ({
  metadata: { namespace: 'a', name, ...metadata },
  data,
})
const secret = (name: string, data: Record<string, string>, type = 'Opaque', metadata = {}): ApiObject => ({
  metadata: { namespace: 'a', name, ...metadata },
  type,
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
})

function watchOf(
  lists: { readonly configmaps?: readonly ApiObject[]; readonly secrets?: readonly ApiObject[] | 403 | 500 },
  clock: { now: Date } = { now },
) {
  const selectors: (string | undefined)[] = []
  const objects = {
    async *list({ resource }, selection) {
      selectors.push(selection?.fieldSelector)
      const items = lists[resource as keyof typeof lists] ?? []
      if (typeof items === 'number')
        throw new StatusError('KCERT_API_FORBIDDEN', 'no', {}, { status: items, reason: 'not now' })
      yield* items
    },
  } as Pick<ObjectsApi, 'list'> as ObjectsApi
  const site = { objects, clock: () => clock.now } as unknown as Site
  return { watch: new StoredWatch(site), selectors }
}

async function storedIn(lists: Parameters<typeof watchOf>[0]) {
  return watchOf(lists).watch.stored(cas)
}

const kubeconfig = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [
    { name: 'prod', cluster: { server: 'https://a', 'certificate-authority-data': base64(oldPem) } },
  ],
  users: [
    {
      name: 'me',
      user: { 'client-certificate-data': base64(leafOf(old)), 'client-key-data': base64(keyPem(leafKey)) },
    },
  ],
  contexts: [],
})

test.for([
  ['PEM in a ConfigMap', configMap('ca', { 'ca.crt': oldPem }), [[oldSpki, 'data[ca.crt]']]],
  [
    'both CAs',
    configMap('ca', { 'ca.crt': oldPem + newPem }),
    [
      [oldSpki, 'data[ca.crt] #1'],
      [newSpki, 'data[ca.crt] #2'],
    ],
  ],
  [
    'PEM in a YAML text',
    configMap('ca', { 'x.yaml': `tls:\n  ca: |\n    ${oldPem.replaceAll('\n', '\n    ')}` }),
    [[oldSpki, 'data[x.yaml] tls.ca']],
  ],
] as const)('a CA is found: %s', async ([, object, held]) => {
  const { objects } = await storedIn({ configmaps: [object] })
  const keys = held.map(([spki, at]) => ({ spki, at }))
  expect(objects).toEqual([{ id: 'ConfigMap a/ca', authorities: keys, signers: [] }])
})

test('finds a CA and leaf certificates in Secrets: TLS, a kubeconfig, an Argo CD cluster; keeps nothing of a key', async () => {
  const argo = JSON.stringify({
    tlsClientConfig: {
      caData: base64(oldPem),
      certData: base64(leafOf(old)),
      keyData: base64(keyPem(leafKey)),
    },
  })
  const found = await storedIn({
    secrets: [
      secret('tls', { 'tls.crt': leafOf(old), 'tls.key': keyPem(leafKey) }, 'kubernetes.io/tls'),
      secret('kubeconfig', { value: kubeconfig }),
      secret('argo', { name: 'prod', config: argo }),
    ],
  })
  const at = (place: string) => [{ spki: oldSpki, at: place }]
  expect(found.objects).toEqual([
    { id: 'Secret a/tls', authorities: [], signers: at('data[tls.crt]') },
    {
      id: 'Secret a/kubeconfig',
      authorities: at('data[value] cluster prod: certificate-authority-data'),
      signers: at('data[value] user me: client-certificate-data'),
    },
    {
      id: 'Secret a/argo',
      authorities: at('data[config] tlsClientConfig.caData'),
      signers: at('data[config] tlsClientConfig.certData'),
    },
  ])
  expect(JSON.stringify(found)).not.toContain('KEY')
  expect([found.unread, found.examined]).toEqual([[], 3])
})

test('omits certificates of other signers, objects in other sections, and objects without findings', async () => {
  const named = (namespace: string, name: string) => ({
    ...configMap(name, { 'ca.crt': oldPem }),
    metadata: { namespace, name },
  })
  const { objects } = await storedIn({
    configmaps: [
      named('a', 'kube-root-ca.crt'),
      named('kube-public', 'cluster-info'),
      named('kube-system', 'extension-apiserver-authentication'),
      named('kube-system', 'kcert-rotation'),
      named('kube-system', 'kcert-etcd-rotation'),
      configMap('words', { text: 'hello', empty: '', broken: '-----BEGIN CERTIFICATE-----\nx' }),
      configMap('theirs', { 'ca.crt': certificatePem(foreign!.certificate) }),
      { metadata: { namespace: 'a', name: 'no data' } },
    ],
    secrets: [
      secret('token', { 'ca.crt': oldPem, token: 'x' }, 'kubernetes.io/service-account-token'),
      secret('release', { release: oldPem }, 'helm.sh/release.v1'),
      // The name of the old CA, but signed by another key.
      secret('namesake', { 'tls.crt': leafOf(testCa('old', testKey('another'), now)) }),
    ],
  })
  expect(objects).toEqual([])
})

test('the server omits irrelevant objects, and a repeated list returns each object once', async () => {
  const object = configMap('ca', { 'ca.crt': oldPem })
  const { watch, selectors } = watchOf({ configmaps: [object, object] })
  expect((await watch.stored(cas)).objects).toHaveLength(1)
  expect(selectors[0]).toBe('metadata.name!=kube-root-ca.crt')
  expect(selectors[1]).toContain('type!=helm.sh/release.v1')
  expect(selectors[1]).toContain('type!=kubernetes.io/service-account-token')
})

test('reports a kind that it may not list, and reads the other one', async () => {
  const found = await storedIn({ configmaps: [configMap('ca', { 'ca.crt': oldPem })], secrets: 403 })
  expect(found.unread).toEqual(['Secret'])
  expect(found.objects.map(({ id }) => id)).toEqual(['ConfigMap a/ca'])
})

test('takes the owner from the controller, the label, or the last writer', async () => {
  const data = { 'ca.crt': oldPem }
  const managedFields = [
    { manager: 'argocd-controller', fieldsV1: { 'f:data': {} } },
    { manager: 'kubectl-label', fieldsV1: { 'f:metadata': {} } },
  ]
  const labels = { 'app.kubernetes.io/managed-by': 'Helm' }
  const ownerReferences = [{ kind: 'Certificate', name: 'web', controller: true }]
  const { objects } = await storedIn({
    configmaps: [
      configMap('x', data, { managedFields, labels, ownerReferences }),
      configMap('y', data, { managedFields, labels }),
      configMap('z', data, { managedFields }),
    ],
  })
  expect(objects.map(({ owner }) => owner)).toEqual(['Certificate web', 'Helm', 'argocd-controller'])
})

test('finds the old CA, and what it signed, from the journal when no node has the old CA', async () => {
  const { watch } = watchOf({
    configmaps: [configMap('ca', { 'ca.crt': oldPem })],
    secrets: [
      secret('tls', { 'tls.crt': leafOf(old) }, 'kubernetes.io/tls'),
      // The name of the old CA, but signed by another key.
      secret('namesake', { 'tls.crt': leafOf(testCa('old', testKey('another'), now)) }),
    ],
  })
  expect((await watch.stored([cas[1]!])).objects).toEqual([])
  const written = { kind: 'rotation', changes: [changeOf(cas)] } as const
  const journal = readJournal(`${journalLine(written, now.getTime(), undefined)}\n`)
  const { changes } = rememberedIn(journal, manualRotation)
  const [{ oldCa, newCa }] = changes as [ReturnType<typeof changeOf>]
  const { objects } = await watch.stored([cas[1]!], [oldCa, newCa])
  expect(objects).toEqual([
    { id: 'ConfigMap a/ca', authorities: [{ spki: oldSpki, at: 'data[ca.crt]' }], signers: [] },
    { id: 'Secret a/tls', authorities: [], signers: [{ spki: oldSpki, at: 'data[tls.crt]' }] },
  ])
})

test('reads the lists once within a minute, and again for other CAs or after a failure', async () => {
  const clock = { now }
  const lists: { secrets: readonly ApiObject[] | 500 } = { secrets: [] }
  const { watch, selectors } = watchOf(lists, clock)
  await Promise.all([watch.stored(cas), watch.stored(cas)])
  await watch.stored(cas)
  expect(selectors).toHaveLength(2)
  await watch.stored([cas[0]!])
  expect(selectors).toHaveLength(4)
  clock.now = new Date(now.getTime() + 60_000)
  await watch.stored([cas[0]!])
  expect(selectors).toHaveLength(6)
  clock.now = new Date(now.getTime() + 120_000)
  lists.secrets = 500
  await expect(watch.stored(cas)).rejects.toThrow('no')
  lists.secrets = []
  expect((await watch.stored(cas)).unread).toEqual([])
})
