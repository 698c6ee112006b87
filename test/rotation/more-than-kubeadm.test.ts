import { expect, test } from 'vitest'
import { allPhases, Scene } from './scene.ts'

// Clusters with more in their files than kubeadm writes. Content of other owners is kept, and does not block the rotation.

const small = { controlPlanes: 2, workers: 1 } as const
const pki = '/etc/kubernetes/pki'
const controlPlanes = ['cp1', 'cp2']

/** Runs a whole rotation, and returns where a CA that is not rotated is found before and after it. */
async function keptThrough(scene: Scene, ...others: readonly string[]) {
  const held = () =>
    [...Object.entries(scene.files()), ...Object.entries(scene.objects())].flatMap(([where, what]) =>
      others.some((digest) => JSON.stringify(what).includes(digest)) ? [where] : [],
    )
  const before = held()
  expect(before.length).toBeGreaterThan(0)
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
  expect(held()).toEqual(before)
}

/** API servers that also trust another front proxy. */
async function withOtherProxies(): Promise<{ scene: Scene; other: string }> {
  const scene = new Scene(small)
  const { cluster } = scene
  const other = cluster.makeCa('other-proxies', true).digest
  for (const node of controlPlanes) {
    const certificates = [other, cluster.oldFrontProxyCa.digest]
    cluster.write(node, `${pki}/front-proxy-ca.crt`, { certificates })
  }
  await cluster.time.pass(5_000)
  return { scene, other }
}

test('API servers trust a front proxy of another CA before, during and after the rotation', async () => {
  const { scene, other } = await withOtherProxies()
  await keptThrough(scene, other)
})

test('a rollback of such a cluster from phase 11 restores every byte', async () => {
  const { scene } = await withOtherProxies()
  const files = scene.files()
  await scene.runAll(1, 11)
  for (const phase of allPhases.slice(0, 11).toReversed()) await scene.undo(phase)
  expect(scene.files()).toEqual(files)
  expect(scene.clients.failures).toEqual([])
})

test('ignores a CA that a manual rotation left in extension-apiserver-authentication', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  const earlier = cluster.makeCa('kubernetes-before', true).digest
  const name = 'ConfigMap kube-system/extension-apiserver-authentication'
  const { client, requestheader } = cluster.objects.get(name)!.data as Record<string, readonly string[]>
  cluster.put(name, { client: [earlier, ...client!], requestheader })
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
})

test.for([
  { flag: 'root-ca-file', path: `${pki}/root.crt` },
  { flag: 'cluster-signing-cert-file', path: `${pki}/signing.crt` },
  { flag: 'cluster-signing-key-file', path: `${pki}/signing.key` },
] as const)('--$flag with another file is refused before any change', async ({ flag, path }) => {
  const scene = new Scene(small)
  const { cluster } = scene
  const definition = cluster.definitionPath('kube-controller-manager')
  const content = cluster.contentOf(cluster.read('cp1', definition)!.text)
  if (content === undefined || !('definition' in content)) throw new Error('no definition')
  const { component, flags } = content.definition
  cluster.write('cp1', definition, { definition: { component, flags: { ...flags, [flag]: path } } })
  await expect(scene.run(1)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: `flags that name other files than the API server's --client-ca-file: cp1/kube-controller-manager --${flag}=${path}`,
  })
  expect(scene.acts).toBe(0)
})

test('refuses an intermediate CA as the new CA before any change', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  const own = { ...cluster.makeCa('company-ca', true), issuer: 'CN=company root' }
  scene.settings = { ...scene.settings, given: { cluster: cluster.know(own) } }
  await expect(scene.run(1)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: 'the new cluster CA is an intermediate: CN=company-ca, signed by CN=company root',
  })
  expect(scene.acts).toBe(0)
})

test('refuses a cluster with an intermediate CA before any change', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  cluster.know({ ...cluster.oldCa, issuer: 'CN=company root' })
  await expect(scene.run(1)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: 'the cluster CA is an intermediate: CN=kubernetes, signed by CN=company root',
  })
  expect(scene.acts).toBe(0)
})

test('does not change the kubeconfig of an audit webhook, which is not one of the cluster', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  const auditors = cluster.makeCa('auditors', true)
  const client = cluster.issue('kube-apiserver', auditors).digest
  const kubeconfig = { caData: [auditors.digest], client }
  cluster.write('cp1', '/etc/kubernetes/audit-webhook.conf', { kubeconfig }, 0o600)
  await keptThrough(scene, auditors.digest, client)
})

test('requires confirmation for a kubeconfig whose other context uses the old CA, and does not change it', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  const other = cluster.makeCa('another-cluster', true)
  const path = '/etc/kubernetes/people.conf'
  const client = cluster.issue('me', other).digest
  const besides = [cluster.oldCa.digest]
  cluster.write('cp1', path, { kubeconfig: { caData: [other.digest], client, besides } }, 0o600)
  const before = cluster.read('cp1', path)!.text
  await scene.runAll(1, 6)
  await expect(scene.run(7)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    message: `phase 7 is incomplete: cp1:${path}: another context still uses the old CA`,
  })
  scene.settings = { ...scene.settings, waivers: new Set([`cp1:${path}`]) }
  await scene.runAll(7, 12)
  expect(cluster.read('cp1', path)!.text).toBe(before)
  expect(scene.remainsOfOldCa()).toEqual([`cp1:${path}`])
})
