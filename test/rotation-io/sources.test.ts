import { expect, test } from 'vitest'
import { searchOf } from '../../src/rotation/sources/searched-cas.ts'
import { readSourceFile } from '../../src/rotation/sources/source-file.ts'
import { defaultSettings, targetOf } from '../../src/rotation/target-reading.ts'
import { SiteObserver } from '../../src/rotation-io/observer.ts'
import { SiteOldKeyFiles } from '../../src/rotation-io/old-key-files.ts'
import { certificatePem, controlPlaneTree, testCa, testKey } from '../pki/kubeadm-tree.ts'
import { MemoryNode } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

const madeAt = new Date('2026-11-01T00:00:00Z')
const newPem = certificatePem(testCa('kubernetes-ca-2', testKey('new CA'), madeAt).certificate)

const apiServer = `apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver}
spec:
  containers:
  - name: kube-apiserver
    image: registry.k8s.io/kube-apiserver:v1.37.2
    command: [kube-apiserver, --client-ca-file=/etc/kubernetes/pki/ca.crt]
`

function controlPlane(): MemoryNode {
  const node = new MemoryNode('cp1', controlPlaneTree({ madeAt }))
  const content = Buffer.from(apiServer)
  node.files.set('/etc/kubernetes/manifests/kube-apiserver.yaml', { content, mode: 0o600 })
  return node
}

test.each([
  ['before phase 1, kcert searches for the CA that the API server uses', 'find'],
  ['after phase 1, the diff has the new CA as it is on the node', 'overlap'],
])('%s', async (_, step) => {
  const cp1 = controlPlane()
  const oldPem = cp1.files.get('/etc/kubernetes/pki/ca.crt')?.content.toString() ?? ''
  if (step === 'overlap') {
    const folder = '/etc/kubernetes/pki/kcert'
    cp1.files.set(`${folder}/old/ca.crt`, { content: Buffer.from(oldPem), mode: 0o644 })
    cp1.files.set(`${folder}/new/ca.crt`, { content: Buffer.from(newPem), mode: 0o644 })
  }
  const site = (await sitesOf(new Map([['cp1', cp1]])))()
  const observed = await new SiteObserver(site).observe(['nodes', 'components', 'kubelets', 'files'])
  const cas = ['cluster'] as const
  const target = targetOf({ ...observed, handshakes: [], intents: [] }, { ...defaultSettings, cas })
  const keys = new SiteOldKeyFiles(site)
  const search = searchOf(target, cas, (digest) => keys.certificate(digest))
  expect(search).toMatchObject({ step, unread: [], cas: [{ ca: 'cluster' }] })
  const { places, diff } = await readSourceFile('ca.crt', Buffer.from(oldPem), search.cas, search.step)
  expect(places).toMatchObject([{ form: 'PEM', contains: 'old', needsChange: true }])
  const added = newPem.trimEnd().replace(/^/gm, '+')
  expect(diff.includes(added)).toBe(step === 'overlap')
})

test('without a readable CA nothing is searched, and the error says so', async () => {
  const cp1 = controlPlane()
  cp1.files.delete('/etc/kubernetes/pki/ca.crt')
  const site = (await sitesOf(new Map([['cp1', cp1]])))()
  const observed = await new SiteObserver(site).observe(['nodes', 'components', 'kubelets', 'files'])
  const target = targetOf({ ...observed, handshakes: [], intents: [] }, defaultSettings)
  expect(() => searchOf(target, ['cluster'], () => undefined)).toThrow('no CA of the cluster could be read')
})
