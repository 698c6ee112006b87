import { expect, test } from 'vitest'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'
import { readInventory } from '../../src/rotation/inventory.ts'
import { sectionNames } from '../../src/rotation/snapshot.ts'
import { SiteObserver } from '../../src/rotation-io/observer.ts'
import { Certificates } from '../../src/site/certificates.ts'
import { FileReading } from '../../src/site/file-reading.ts'
import type { Site } from '../../src/site/site.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { certificatePem, controlPlaneTree, testCa, workerTree } from '../pki/kubeadm-tree.ts'
import { MemoryNode, now } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

// The requests of an observation to the API server and to nodes: their number for each node does not depend on the number of
// nodes.

const certificates = new Certificates()

async function counted(workers: number) {
  const names = ['cp1', ...Array.from({ length: workers }, (_, index) => `w${index + 1}`)]
  const calls = { api: 0, node: 0, dials: 0 }
  const counting = (access: NodeAccess): NodeAccess =>
    new Proxy(access, {
      get: (of, name) => {
        const method = of[name as keyof NodeAccess] as (...args: unknown[]) => unknown
        if (typeof method !== 'function') return method
        return (...args: unknown[]) => {
          calls.node++
          return method.apply(of, args)
        }
      },
    })
  const madeAt = new Date('2026-11-01T00:00:00Z')
  const nodes = new Map(
    names.map((name) => {
      const tree = name === 'cp1' ? controlPlaneTree({ madeAt }) : workerTree({ madeAt, nodeName: name })
      return [name, counting(new MemoryNode(name, tree).access)]
    }),
  )
  const inventory = await readInventory(
    JSON.stringify({
      apiVersion: 'kcert/v1',
      kind: 'Inventory',
      access: { by: 'command', argv: ['false'] },
      nodes: names.map((name) => ({
        name,
        role: name === 'cp1' ? 'control-plane' : 'worker',
        addresses: ['192.0.2.1'],
        layout: 'kubeadm',
      })),
    }),
  )
  const objects = {
    get: async () => {
      calls.api++
      return undefined
    },
    async *list({ resource }) {
      calls.api++
      if (resource === 'nodes') for (const name of names) yield { metadata: { name } }
    },
  } as Pick<ObjectsApi, 'get' | 'list'> as ObjectsApi
  const site: Site = {
    inventory,
    objects,
    clock: () => now,
    certificates,
    reading: new FileReading(certificates),
    node: (name) => nodes.get(name),
    dial: () => {
      calls.dials++
      throw new Error('nobody answers')
    },
    apiServerOn: async () => {
      throw new Error('nobody answers')
    },
    listAt: () => {
      throw new Error('nobody answers')
    },
    readAt: async () => {
      throw new Error('nobody answers')
    },
    clockAheadMs: async () => 0,
    startedAtMs: async () => 0,
    close: async () => {},
  }
  const observer = new SiteObserver(site)
  const first = await observer.observe(sectionNames)
  const { api, node } = calls
  await observer.observe(sectionNames)
  return { nodes: first.nodes.length, files: first.files.size, api, node, again: calls.node - node }
}

test('connects by its own address to a node that joined after kcert.yaml was written', async () => {
  const inventory = await readInventory(
    JSON.stringify({
      apiVersion: 'kcert/v1',
      kind: 'Inventory',
      access: { by: 'ssh', host: '{address}' },
      nodes: [{ name: 'cp1', role: 'control-plane', addresses: ['192.0.2.1'], layout: 'kubeadm' }],
    }),
  )
  const objects = {
    async *list() {
      for (const [name, address] of [
        ['cp1', '192.0.2.1'],
        ['w9', '192.0.2.9'],
      ]) {
        yield { metadata: { name }, status: { addresses: [{ type: 'InternalIP', address }] } }
      }
    },
  } as Pick<ObjectsApi, 'list'> as ObjectsApi
  const asked: [string, string | undefined][] = []
  const node = (name: string, address?: string): undefined => {
    asked.push([name, address])
  }
  await new SiteObserver({
    inventory,
    objects,
    clock: () => now,
    certificates,
    node,
  } as never as Site).observe(['nodes'])
  expect(asked).toEqual([
    ['cp1', '192.0.2.1'],
    ['w9', '192.0.2.9'],
  ])
})

test('reads a kubeconfig by its current context, and reports the CAs of its other contexts', async () => {
  const pem = (name: string) =>
    certificatePem(testCa(name, generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' }), now).certificate)
  const [own, other] = [pem('own'), pem('other')]
  const cluster = (name: string, ca: string) => ({
    name,
    cluster: {
      server: 'https://192.0.2.1:6443',
      'certificate-authority-data': Buffer.from(ca).toString('base64'),
    },
  })
  const text = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'own',
    contexts: [{ name: 'own', context: { cluster: 'own', user: 'me' } }],
    clusters: [cluster('other', other), cluster('own', own)],
    users: [{ name: 'me', user: { token: 'x' } }],
  })
  const { contains } = await new FileReading(certificates).read(Buffer.from(text), 'digest of the text')
  const [ofOwn, ofOther] = [own, other].map((ca) => certificates.addAll(readCertificates(Buffer.from(ca))))
  expect(contains).toEqual({ kind: 'kubeconfig', caData: ofOwn, besides: ofOther })
})

test('sends the same requests to each node, and no more to the API server, for any number of nodes', async () => {
  const [few, some, many] = [await counted(2), await counted(12), await counted(32)]
  expect([few.nodes, some.nodes, many.nodes]).toEqual([3, 13, 33])
  expect(few.files).toBeGreaterThan(15)
  // Lists come in pages of 500; each list here is one page.
  expect([some.api, many.api]).toEqual([few.api, few.api])
  const perWorker = (some.node - few.node) / 10
  expect(perWorker).toBeLessThanOrEqual(12)
  expect(many.node - some.node).toBe(perWorker * 20)
  // Paths are remembered, so a second observation needs fewer requests.
  expect((some.again - few.again) / 10).toBeLessThan(perWorker)
  expect(many.again - some.again).toBe(2 * (some.again - few.again))
})

test('takes the version of a component from its image when there is no other source', async () => {
  const tree = controlPlaneTree({ madeAt: new Date('2026-11-01T00:00:00Z') })
  const cp1 = new MemoryNode('cp1', tree)
  const pod = (name: string, image: string) =>
    `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec:\n  containers:\n  - {name: ${name}, image: "${image}", command: [${name}]}\n`
  for (const [name, image] of [
    ['kube-apiserver', 'registry.k8s.io/kube-apiserver:v1.37.2'],
    ['kube-controller-manager', 'registry.k8s.io/kube-controller-manager:v1.36.3'],
    ['kube-scheduler', `registry.k8s.io/kube-scheduler@sha256:${'0'.repeat(64)}`],
  ] as const) {
    const content = Buffer.from(pod(name, image))
    cp1.files.set(`/etc/kubernetes/manifests/${name}.yaml`, { content, mode: 0o600 })
  }
  const site = (await sitesOf(new Map([['cp1', cp1]])))()
  const { components } = await new SiteObserver(site).observe(['components'])
  expect(components.map(({ name, version }) => [name, version])).toEqual([
    ['kube-apiserver', 'v1.37.2'],
    ['kube-controller-manager', 'v1.36.3'],
    ['kube-scheduler', undefined],
  ])
})

const kubeletHead = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'
const configFlag = '--config=/var/lib/kubelet/config.yaml'
const dropInFolder = '/etc/kubernetes/kubelet.conf.d'
const dropIn = (...lines: string[]) => ({
  content: Buffer.from(`${kubeletHead}${lines.join('\n')}\n`),
  mode: 0o600,
})

test.each<[string, readonly string[], string, string | undefined]>([
  ['its configuration file', [configFlag], 'featureGates: {A: true, B: false}', 'A=true,B=false,'],
  [
    'its flags too',
    [configFlag, '--feature-gates=C=false', '--feature-gates', 'D=true'],
    '',
    'C=false,D=true',
  ],
  ['no file and no flag', [], '', ''],
  ['a file that kcert cannot read', ['--config=/etc/other.yaml'], 'featureGates: {A: true}', undefined],
  [
    'drop-ins',
    [configFlag, `--config-dir=${dropInFolder}`],
    'featureGates: {A: true, B: false}',
    'A=true,B=true,',
  ],
])('reads the feature gates of a kubelet from %s', async (_, flags, settings, gates) => {
  const cp1 = new MemoryNode('cp1', controlPlaneTree({ madeAt: new Date('2026-11-01T00:00:00Z') }))
  const content = Buffer.from(`${kubeletHead}${settings}\n`)
  cp1.files.set('/var/lib/kubelet/config.yaml', { content, mode: 0o600 })
  cp1.files.set(`${dropInFolder}/10.conf`, dropIn('featureGates: {B: true}'))
  cp1.processes = [
    { program: 'kubelet', pid: 7, startTicks: 1, argv: ['/usr/bin/kubelet', ...flags] } as never,
  ]
  const site = (await sitesOf(new Map([['cp1', cp1]])))()
  const { kubelets } = await new SiteObserver(site).observe(['kubelets'])
  expect(kubelets.map((kubelet) => kubelet.gates)).toEqual([gates])
})

test('reads the client CA of a kubelet from a drop-in, and stops if a drop-in cannot be read', async () => {
  const cp1 = new MemoryNode('cp1', controlPlaneTree({ madeAt: new Date('2026-11-01T00:00:00Z') }))
  const argv = ['/usr/bin/kubelet', configFlag, `--config-dir=${dropInFolder}`]
  cp1.processes = [{ program: 'kubelet', pid: 7, startTicks: 1, argv } as never]
  cp1.files.set('/var/lib/kubelet/config.yaml', dropIn('authentication: {x509: {clientCAFile: /a/ca.crt}}'))
  cp1.files.set(`${dropInFolder}/10.conf`, dropIn('authentication: {x509: {clientCAFile: /b/ca.crt}}'))
  const observer = new SiteObserver((await sitesOf(new Map([['cp1', cp1]])))())
  const { kubelets } = await observer.observe(['kubelets'])
  expect(kubelets.map(({ clientCaFile }) => clientCaFile)).toEqual(['/b/ca.crt'])
  cp1.files.set(`${dropInFolder}/20.conf`, { ...dropIn(), linkTarget: '/none' })
  const { nodes } = await observer.observe(['nodes', 'kubelets'])
  expect(nodes.map(({ unreachable }) => unreachable)).toEqual([
    `${dropInFolder}/20.conf does not exist, and the kubelet does not start without it (--config-dir)`,
  ])
  cp1.files.delete(`${dropInFolder}/10.conf`)
  cp1.files.delete(`${dropInFolder}/20.conf`)
  const [without] = (await observer.observe(['nodes', 'kubelets'])).nodes
  expect(without?.unreachable).toContain(`${dropInFolder} does not exist`)
})

test('assumes nothing about the feature gates of a kubelet that does not run and has no unit', async () => {
  const cp1 = new MemoryNode('cp1', controlPlaneTree({ madeAt: new Date('2026-11-01T00:00:00Z') }))
  const site = (await sitesOf(new Map([['cp1', cp1]])))()
  const { kubelets } = await new SiteObserver(site).observe(['kubelets'])
  expect(kubelets.map((kubelet) => kubelet.gates)).toEqual([undefined])
})

test.each([
  ['apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.2\n', 'v1.37.2'],
  ['apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n', undefined],
  ['kubernetesVersion: [v1.37.2]\nkind: ClusterConfiguration\n', undefined],
  ['', undefined],
])('reads from kubeadm-config %j the Kubernetes version %s', async (ClusterConfiguration, version) => {
  const cp1 = new MemoryNode('cp1', { files: new Map(), cas: new Map() })
  const site = (await sitesOf(new Map([['cp1', cp1]])))()
  const get = async ({ name }: { readonly name?: string }) =>
    name === 'kubeadm-config' ? { metadata: { name }, data: { ClusterConfiguration } } : undefined
  const objects = { ...site.objects, get } as unknown as ObjectsApi
  const { kubeadm } = await new SiteObserver({ ...site, objects }).observe(['kubeadm'])
  expect(kubeadm?.kubernetesVersion).toBe(version)
})
