import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { NodeAccess, ProcessFacts } from '../../src/pki/node-access.ts'
import { etcdHosts, inventoryOf } from '../../src/rotation/discovery.ts'
import type { Access } from '../../src/rotation/inventory.ts'
import type { Observed } from '../../src/rotation/snapshot.ts'
import { examineEtcd, examineMachine, prove, roleOf } from '../../src/rotation-io/discovering.ts'
import { inventoryObjects } from '../../src/rotation-io/recovering.ts'

const bare = { metadata: { name: 'a' } }
const labelled = { metadata: { name: 'a', labels: { 'node-role.kubernetes.io/control-plane': '' } } }

function nodeThat(processes: () => readonly ProcessFacts[]): NodeAccess {
  return { processes: async () => processes() } as unknown as NodeAccess
}

const running = nodeThat(() => [{ program: 'kube-apiserver' } as ProcessFacts])
const idle = nodeThat(() => [])
const away = nodeThat(() => {
  throw new KcertError('KCERT_NODE_UNREACHABLE', 'node "a"')
})

test.each([
  ['a label', labelled, idle, 'control-plane'],
  ['a label on an unreachable node', labelled, away, 'control-plane'],
  ['no label, and an API server that runs', bare, running, 'control-plane'],
  ['no label, and none', bare, idle, 'worker'],
  ['no label on an unreachable node', bare, away, 'worker'],
])('%s', async (_, object, node, role) => {
  expect(await roleOf(object, node)).toBe(role)
})

/** A node that is read, and that records every change. */
function nodeOfRoot(changes: string[]): NodeAccess {
  const change = (what: string) => async (path: string) => {
    changes.push(`${what} ${path.replace(/[0-9a-f]{12}/, 'N')}`)
    return { sha256: 'a' }
  }
  return {
    identity: async () => ({ isRoot: true }),
    clock: async () => ({ aheadMs: { atLeast: 4, atMost: 6 } }),
    freeSpace: async () => ({ availableBytes: 7 }),
    listFolder: async () => ({ found: 'folder' }),
    makeFolder: change('folder'),
    writeFile: change('write'),
    removeFile: change('remove'),
  } as unknown as NodeAccess
}

test.each([
  [
    false,
    { reachable: true, isRoot: true, clockSkewMs: 5, canRead: true, canWrite: true, freeBytes: 7 },
    [
      ...['folder /var/lib/kcert/copies', 'write /var/lib/kcert/copies/.kcert-N.probe'],
      ...['remove /var/lib/kcert/copies/.kcert-N.probe', 'folder /etc/kubernetes'],
      ...['write /etc/kubernetes/.kcert-N.probe', 'remove /etc/kubernetes/.kcert-N.probe'],
    ],
  ],
  [true, { reachable: true, isRoot: true, clockSkewMs: 5, canRead: true, freeBytes: 7 }, []],
])('read-only %s: the result, and the changes for it', async (readOnly, check, changes) => {
  const done: string[] = []
  expect(await prove(nodeOfRoot(done), readOnly)).toEqual(check)
  expect(done).toEqual(changes)
})

const etcd: ProcessFacts = {
  program: 'etcd',
  pid: 7,
  startTicks: 1,
  startedAt: new Date(0),
  argv: ['etcd', '--trusted-ca-file=/etc/etcd/ssl/etcd-ca.pem'],
}

const reasons: Readonly<Record<string, string>> = {
  none: 'API servers connect to it, but no etcd runs on it. List the machines behind it under etcd in kcert.yaml',
  unknown:
    'node "a": a member of etcd may run on it. Correct its access and discover again, or list it under etcd in kcert.yaml',
}

test.each<[string, Partial<Record<'statFiles' | 'processes', unknown>>, string, string[]]>([
  ['a unit', {}, 'plain', ['/var/lib/kcert/copies', '/etc/etcd/ssl']],
  [
    'a static pod',
    { statFiles: async () => [{ found: 'file' }] },
    'kubeadm',
    ['/var/lib/kcert/copies', '/etc/etcd/ssl'],
  ],
  ['no member', { processes: async () => [] }, 'none', ['/var/lib/kcert/copies', '/etc']],
  [
    'processes that cannot be read',
    {
      processes: async () => {
        throw new KcertError('KCERT_NODE_UNREACHABLE', 'node "a"')
      },
    },
    'unknown',
    ['/var/lib/kcert/copies', '/etc'],
  ],
])('a machine of external etcd with %s', async (_, other, layout, folders) => {
  const changes: string[] = []
  const node = {
    ...nodeOfRoot(changes),
    statFiles: async () => [{ found: 'absent' }],
    processes: async () => [etcd],
    ...other,
  } as unknown as NodeAccess
  const found = await examineMachine(node, false)
  expect(found.layout).toBe(layout)
  expect(found.check.canWrite).toBe(layout !== 'unknown')
  expect(found.check.error).toBe(reasons[layout])
  expect(changes.filter((one) => one.startsWith('folder'))).toEqual(
    folders.map((folder) => `folder ${folder}`),
  )
})

test('names a host of etcd that cannot be reached, and does not write it to the inventory', async () => {
  const access: Access = { by: 'command', argv: ['false', '{node}'] }
  const objects = inventoryObjects(inventoryOf([], access))
  const clock = () => new Date(0)
  const found = await examineEtcd(['192.0.2.22'], { access, objects, clock, readOnly: true })
  expect(found).toMatchObject([
    {
      machine: [],
      report: {
        name: '192.0.2.22',
        layout: 'unknown',
        check: {
          reachable: false,
          error: expect.stringMatching(/status was 1: a member of etcd may run on it/),
        },
      },
    },
  ])
})

test('finds the hosts of etcd that are not nodes', () => {
  const hostsOf = (servers: string, overrides = '') => {
    const flags = { 'etcd-servers': servers, 'etcd-servers-overrides': overrides }
    const components = [{ id: 'cp1/kube-apiserver', node: 'cp1', name: 'kube-apiserver', flags }]
    const observed = { components, atMs: 0, certificates: new Map() } as unknown as Observed<'components'>
    return etcdHosts(observed, [{ name: 'cp1', addresses: ['192.0.2.1'] }])
  }
  expect(hostsOf('https://127.0.0.1:2379,https://192.0.2.1:2379,https://cp1:2379')).toEqual([])
  expect(hostsOf('https://192.0.2.21:2379, https://e2.example:2379,https://192.0.2.21:4001')).toEqual([
    '192.0.2.21',
    'e2.example',
  ])
  expect(hostsOf('https://[2001:db8::21]:2379,10.0.0.1,', '/events#https://192.0.2.31:2379')).toEqual([
    '2001:db8::21',
    '192.0.2.31',
  ])
})
