import type { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { createCa, issued } from '../../test/scripts/small-pki.ts'
import type { FileContent, NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import { type EndpointKind, endpointKinds } from '../probe/target.ts'
import type { Inventory } from '../rotation/inventory.ts'
import { nodeTargets } from './node-targets.ts'
import type { Site } from './site.ts'

const ca = createCa()
const etcdCa = createCa('etcd-ca')
const leaf = (commonName: string, by = ca) => issued({ subject: { commonName } }, by)
const [serving, kubeletClient, etcdClient] = [
  leaf('kube-apiserver'),
  leaf('apiserver-kubelet-client'),
  leaf('apiserver-etcd-client', etcdCa),
]
const pki = '/etc/kubernetes/pki'
const flags = (...words: string[]): string[] => words.map((word) => `--${word}`)

const apiServer = [
  'kube-apiserver',
  ...flags(
    'advertise-address=192.0.2.10',
    'bind-address=0.0.0.0',
    'service-cluster-ip-range=10.96.0.0/12',
    `client-ca-file=${pki}/ca.crt`,
    `tls-cert-file=${pki}/apiserver.crt`,
    `kubelet-certificate-authority=${pki}/ca.crt`,
    `kubelet-client-certificate=${pki}/apiserver-kubelet-client.crt`,
    `kubelet-client-key=${pki}/apiserver-kubelet-client.key`,
    `etcd-cafile=${pki}/etcd/ca.crt`,
    `etcd-certfile=${pki}/apiserver-etcd-client.crt`,
    `etcd-keyfile=${pki}/apiserver-etcd-client.key`,
  ),
]
const etcd = [
  '/usr/local/bin/etcd',
  ...flags(
    'listen-client-urls=https://127.0.0.1:2379,https://192.0.2.10:2379',
    'advertise-client-urls=https://192.0.2.10:2379',
    'listen-peer-urls=https://192.0.2.10:2380',
    'initial-advertise-peer-urls=https://192.0.2.10:2380',
    `cert-file=${pki}/etcd/server.crt`,
    `peer-cert-file=${pki}/etcd/peer.crt`,
    `peer-trusted-ca-file=${pki}/etcd/ca.crt`,
  ),
]
const scheduler = ['kube-scheduler', '--bind-address=127.0.0.1']
const kubelet = ['/usr/bin/kubelet', '--config=/var/lib/kubelet/config.yaml']

const files: Readonly<Record<string, string>> = {
  [`${pki}/ca.crt`]: ca.pem,
  [`${pki}/apiserver.crt`]: serving.pem,
  [`${pki}/apiserver-kubelet-client.crt`]: kubeletClient.pem,
  [`${pki}/apiserver-kubelet-client.key`]: kubeletClient.keyPem,
  [`${pki}/etcd/ca.crt`]: etcdCa.pem,
  [`${pki}/apiserver-etcd-client.crt`]: etcdClient.pem,
  [`${pki}/apiserver-etcd-client.key`]: etcdClient.keyPem,
  '/var/lib/kubelet/config.yaml': 'kind: KubeletConfiguration\naddress: 192.0.2.10\nport: 10251\n',
  '/var/lib/kubelet/pki/kubelet.crt': leaf('w1@1').pem,
  '/proc/7/environ': 'ETCD_LISTEN_CLIENT_URLS=https://192.0.2.31:2379\0',
}

function siteOf(
  programs: Readonly<Record<string, readonly (readonly string[])[]>>,
  lost: string[] = [],
): Site {
  const names = Object.keys(programs)
  const machines = names.filter((name) => name.startsWith('e'))
  const inventory = {
    ...(machines.length > 0 && {
      etcd: machines.map((name) => ({
        name,
        addresses: ['192.0.2.31'],
        layout: name === 'e1' ? 'kubeadm' : 'plain',
      })),
    }),
    nodes: names
      .filter((name) => !machines.includes(name))
      .map((name) => ({
        name,
        role: 'control-plane',
        addresses: ['192.0.2.10'],
        layout: 'kubeadm',
      })),
  } as unknown as Inventory
  const found = (path: string): FileContent =>
    (path in files
      ? { path, found: 'file', content: Buffer.from(files[path]!) }
      : { path, found: 'absent' }) as FileContent
  const node = (name: string) => ({
    processes: async () => {
      if (lost.includes(name))
        throw new (await import('../errors/kcert-error.ts')).KcertError('KCERT_NODE_UNREACHABLE', name)
      return programs[name]!.map((argv) => ({
        pid: 7,
        program: argv[0]!.split('/').at(-1),
        argv,
      })) as ProcessFacts[]
    },
    readFiles: async (paths: readonly string[]) => paths.map(found),
    statFiles: async (paths: readonly string[]) => paths.map(found),
  })
  return {
    inventory,
    node: (name: string) => node(name) as unknown as NodeAccess,
    dial: () => ({}) as Duplex,
  } as unknown as Site
}

const everything = new Set<EndpointKind>(endpointKinds)

test('reads machines of external etcd only for members of etcd', async () => {
  const site = siteOf({ cp1: [apiServer], e1: [etcd] }, ['e1'])
  const kubelets = await nodeTargets(site, new Set<EndpointKind>(['kubelet']), {})
  expect(kubelets).toEqual({ targets: [], faults: [] })
  const { faults } = await nodeTargets(site, new Set<EndpointKind>(['etcd']), {})
  expect(faults.map(({ node }) => node)).toEqual(['e1'])
  const { targets } = await nodeTargets(siteOf({ cp1: [apiServer], e1: [etcd] }), everything, {})
  const found = targets
    .filter(({ from }) => from === 'e1')
    .map(({ kind, anchors, client }) => {
      return [kind, anchors.map(({ source }) => source).join(), client?.subject]
    })
  expect(found).toEqual([
    ['etcd', `cp1:${pki}/etcd/ca.crt`, 'CN=apiserver-etcd-client'],
    ['etcd-peer', `e1:${pki}/etcd/ca.crt`, undefined],
  ])
})

test('reads where a member listens from the variables of its unit', async () => {
  const { targets } = await nodeTargets(siteOf({ e2: [['etcd']] }), everything, {})
  expect(targets.map(({ kind, host, port }) => [kind, host, port])).toEqual([['etcd', '192.0.2.31', 2379]])
})

test('returns from each process where it listens, its certificate, and which CAs verify it', async () => {
  const { targets, faults } = await nodeTargets(
    siteOf({ cp1: [apiServer, etcd, scheduler, kubelet] }),
    everything,
    {},
  )
  expect(faults).toEqual([])
  const observed = targets.map(({ name, host, port, expectedNames, anchors, isVerified, given, client }) => ({
    [name]: [
      `${host}:${port}`,
      expectedNames.join(' '),
      anchors.map(({ by, source }) => `${by} of ${source}`).join(' '),
      isVerified,
      given?.source ?? '',
      client?.subject ?? '',
    ],
  }))
  const own = 'cp1:/etc/kubernetes/pki'
  expect(Object.assign({}, ...observed)).toEqual({
    'kube-apiserver cp1': [
      '127.0.0.1:6443',
      '192.0.2.10 kubernetes.default.svc 10.96.0.1',
      `cluster CA of ${own}/ca.crt`,
      true,
      `${own}/apiserver.crt`,
      '',
    ],
    'etcd cp1': [
      '192.0.2.10:2379',
      '192.0.2.10',
      `etcd CA of ${own}/etcd/ca.crt`,
      true,
      `${own}/etcd/server.crt`,
      'CN=apiserver-etcd-client',
    ],
    'etcd peer cp1': [
      '192.0.2.10:2380',
      '192.0.2.10',
      `etcd peer CA of ${own}/etcd/ca.crt`,
      true,
      `${own}/etcd/peer.crt`,
      '',
    ],
    'kube-scheduler cp1': ['127.0.0.1:10259', '', '', false, '', ''],
    'kubelet cp1': [
      '192.0.2.10:10251',
      '192.0.2.10',
      `cluster CA of ${own}/ca.crt --kubelet-certificate-authority of ${own}/ca.crt`,
      true,
      'cp1:/var/lib/kubelet/pki/kubelet.crt',
      'CN=apiserver-kubelet-client',
    ],
  })
  expect(targets.every(({ from, dial }) => from === 'cp1' && dial !== undefined)).toBe(true)
})

test('marks kubelets that no API server verifies', async () => {
  const lax = apiServer.filter((word) => !word.startsWith('--kubelet-certificate-authority'))
  const { targets } = await nodeTargets(siteOf({ cp1: [lax, kubelet] }), new Set(['kubelet']), {})
  expect(targets).toMatchObject([
    {
      isVerified: false,
      anchors: [{ by: 'cluster CA' }],
      notes: [expect.stringContaining('no API server that kcert can see verifies')],
    },
  ])
})

test('returns the targets of the other nodes when one is unreachable', async () => {
  const { targets, faults } = await nodeTargets(
    siteOf({ cp1: [apiServer], cp2: [apiServer] }, ['cp2']),
    everything,
    {},
  )
  expect([targets.map(({ name }) => name), faults.map(({ node }) => node)]).toEqual([
    ['kube-apiserver cp1'],
    ['cp2'],
  ])
})

test('returns the same order whichever process started first', async () => {
  const namesOf = async (processes: readonly (readonly string[])[]) =>
    (await nodeTargets(siteOf({ cp1: processes }), everything, {})).targets.map(({ name }) => name)
  const order = ['kube-apiserver cp1', 'kube-scheduler cp1', 'kubelet cp1', 'etcd cp1', 'etcd peer cp1']
  expect(await namesOf([scheduler, etcd, kubelet, apiServer])).toEqual(order)
  expect(await namesOf([apiServer, etcd, scheduler, kubelet])).toEqual(order)
})
