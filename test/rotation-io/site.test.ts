import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import type { ReadFile } from '../../src/pki/node-access.ts'
import { readInventory, restartCommand } from '../../src/rotation/inventory.ts'
import { openSite, type Site } from '../../src/site/site.ts'
import { systemClock } from '../../src/system/clock.ts'
import { controlPlaneTree } from '../pki/kubeadm-tree.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

const folder = temporaryFolder('site')

async function site(): Promise<Site> {
  const inventory = await readInventory(`apiVersion: kcert/v1
kind: Inventory
nodes:
- name: cp1
  role: control-plane
  addresses: [127.0.0.1]
  layout: kubeadm
  access: {by: local}
  restart: {kubelet: [rc-service, kubelet, restart]}
`)
  // No request goes to the API server.
  const opened = openSite({ inventory, objects: {} as ObjectsApi, clock: systemClock })
  onTestFinished(() => opened.close())
  return opened
}

function writeTree(): string {
  const root = join(folder, 'cp1')
  for (const [path, { bytes, mode, linkTarget }] of controlPlaneTree({ madeAt: new Date('2026-11-01') })
    .files) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    if (linkTarget === undefined) writeFileSync(join(root, path), bytes, { mode })
    else symlinkSync(linkTarget, join(root, path))
  }
  return root
}

test('reads files of a node into a snapshot without private keys', async () => {
  const { node, reading, certificates } = await site()
  const root = writeTree()
  const pki = `${root}/etc/kubernetes/pki`
  // The leaf certificate comes before its CA: its issuer is known once both are read.
  const paths = [
    `${pki}/apiserver.crt`,
    `${pki}/ca.crt`,
    `${pki}/ca.key`,
    `${root}/etc/kubernetes/admin.conf`,
  ]
  const files = (await node('cp1')!.readFiles(paths)) as ReadFile[]
  const [leaf, ca, key, admin] = await Promise.all(
    files.map(async ({ content, sha256 }) => (await reading.read(content, sha256)).contains),
  )
  const digestIn = (contains: typeof leaf) =>
    contains?.kind === 'certificates' ? contains.certificates[0]! : ''
  const caRecord = certificates.table.get(digestIn(ca))!
  expect(caRecord).toMatchObject({ subject: 'CN=kubernetes', isCa: true })
  expect(key).toEqual({ kind: 'key', spki: caRecord.spki })
  expect(certificates.table.get(digestIn(leaf))).toMatchObject({ signedBy: caRecord.spki })
  expect(admin).toMatchObject({ kind: 'kubeconfig', caData: [caRecord.digest] })
  const client = admin?.kind === 'kubeconfig' ? certificates.table.get(admin.client!) : undefined
  expect(client).toMatchObject({
    signedBy: caRecord.spki,
    subject: 'CN=kubernetes-admin,O=kubeadm:cluster-admins',
  })
  expect(certificates.get(digestIn(ca))?.fingerprintSha256).toBe(caRecord.digest)
  expect(JSON.stringify([leaf, ca, key, admin, ...certificates.table])).not.toContain('PRIVATE')
})

test('reports the files that a kubeconfig names, and unreadable ones as other', async () => {
  const { reading } = await site()
  const text = `kind: Config
clusters: [{name: c, cluster: {server: 'https://a', certificate-authority: ca.pem}}]
users: [{name: u, user: {client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
`
  expect(await reading.read(Buffer.from(text), 'a')).toEqual({
    contains: { kind: 'kubeconfig', caData: [] },
    refersTo: { ca: 'ca.pem', client: '/var/lib/kubelet/pki/kubelet-client-current.pem' },
  })
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  expect((await reading.read(Buffer.from(broken), 'b')).contains).toEqual({ kind: 'other' })
  expect((await reading.read(Buffer.from('kind: Pod'), 'c')).contains).toEqual({ kind: 'other' })
})

test('returns the same start of a process in each observation, and undefined for an unknown node', async () => {
  const { inventory, node, startedAtMs } = await site()
  expect(node('w9')).toBeUndefined()
  expect(restartCommand(inventory, 'cp1', 'kubelet')).toEqual(['rc-service', 'kubelet', 'restart'])
  const process = { program: 'kubelet', pid: 7, startTicks: 9, argv: [] } as const
  const first = await startedAtMs('cp1', { ...process, startedAt: new Date(1_000_000) })
  const again = await startedAtMs('cp1', { ...process, startedAt: new Date(1_000_013) })
  expect(again).toBe(first)
  expect(await startedAtMs('cp1', { ...process, pid: 8, startedAt: new Date(2_000_000) })).not.toBe(first)
})

test('an address that is this machine fails its own node only', async () => {
  const inventory = await readInventory(`apiVersion: kcert/v1
kind: Inventory
access: {by: command, argv: [env, 'NODE={address}']}
nodes:
- {name: cp1, role: control-plane, addresses: [192.0.2.1], layout: kubeadm}
- {name: w1, role: worker, addresses: [127.0.0.1], layout: kubeadm}
`)
  const opened = openSite({ inventory, objects: {} as ObjectsApi, clock: systemClock })
  onTestFinished(() => opened.close())
  const refused = { code: 'KCERT_NODE_NAME_REFUSED', message: 'invalid address of node "w1": "127.0.0.1"' }
  await expect(opened.node('w1')!.identity()).rejects.toMatchObject(refused)
  const [error] = await once(opened.dial('w1', '127.0.0.1', 1), 'error')
  expect(error).toMatchObject(refused)
  expect(await opened.node('cp1')!.identity()).toHaveProperty('hostname')
  // The name of a node that is not in the inventory is its address until the API server sends one.
  await expect(opened.node('127.2')!.identity()).rejects.toMatchObject({ code: refused.code })
  expect(await opened.node('127.2', '192.0.2.2')!.identity()).toHaveProperty('hostname')
})
