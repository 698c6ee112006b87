import { expect, test } from 'vitest'
import { accessOf, inventoryNode, isSelected, readInventory, unitOf } from './inventory.ts'

const text = `apiVersion: kcert/v1
kind: Inventory
access: {by: ssh, host: '{node}.example.com', become: sudo}
nodes:
- name: cp1
  role: control-plane
  addresses: [192.0.2.1]
  layout: kubeadm
  access: {by: command, argv: [docker, exec, -i, cp1]}
- name: w1
  role: worker
  addresses: [192.0.2.2]
  layout: plain
  units: {kubelet: kubelet-v2.service}
kubeconfigs:
- {node: w1, path: /etc/cni/net.d/calico-kubeconfig}
- {name: ci}
hooks:
- {when: before-node, phases: [9], argv: [./drain-lb]}
workloads:
  exclude: [{namespace: db}]
`

test('uses the access of a node, or else the default access, with the name filled in', async () => {
  const inventory = await readInventory(text)
  expect(accessOf(inventory, 'cp1')).toEqual({ by: 'command', argv: ['docker', 'exec', '-i', 'cp1'] })
  expect(accessOf(inventory, 'w1')).toEqual({ by: 'ssh', host: 'w1.example.com', become: 'sudo' })
  expect(inventoryNode(inventory, 'w2')).toBeUndefined()
  expect(accessOf(inventory, 'w2')).toMatchObject({ host: 'w2.example.com' })
})

test('etcd machines have access, units and names like nodes, and are no nodes', async () => {
  const machine =
    'etcd:\n- {name: e1, addresses: [192.0.2.9], layout: plain, units: {etcd: etcd-main.service}}\n'
  const inventory = await readInventory(`${text}${machine}`)
  expect(inventory.nodes.map(({ name }) => name)).toEqual(['cp1', 'w1'])
  expect(inventoryNode(inventory, 'e1')).toMatchObject({ layout: 'plain' })
  expect(accessOf(inventory, 'e1')).toMatchObject({ host: 'e1.example.com' })
  expect(unitOf(inventory, 'e1', 'etcd')).toBe('etcd-main.service')
})

test('names a unit like its component unless the file says otherwise', async () => {
  const inventory = await readInventory(text)
  expect(unitOf(inventory, 'w1', 'kubelet')).toBe('kubelet-v2.service')
  expect(unitOf(inventory, 'w1', 'kube-proxy')).toBe('kube-proxy.service')
})

test('a selector matches workloads that match each of its fields', () => {
  const web = { kind: 'Deployment', namespace: 'shop', name: 'web', labels: { tier: 'front', team: 'a' } }
  expect(isSelected({}, web)).toBe(true)
  expect(isSelected({ namespace: 'shop', labels: { tier: 'front' } }, web)).toBe(true)
  expect(isSelected({ namespace: 'shop', labels: { tier: 'back' } }, web)).toBe(false)
  expect(isSelected({ kind: 'StatefulSet' }, web)).toBe(false)
})

test.each<[string, (text: string) => string, string]>([
  [
    'an unknown field',
    (whole) => whole.replace('layout: kubeadm', 'layout: kubeadm\n  rolle: x'),
    'kcert.yaml line 9: nodes[0].rolle: unknown field "rolle"; did you mean "role"?',
  ],
  [
    'an access without its host',
    (whole) => whole.replace(", host: '{node}.example.com'", ''),
    'line 3: access.host: "host" is missing',
  ],
  [
    'an argv that is no list',
    (whole) => whole.replace('[docker, exec, -i, cp1]', 'docker'),
    'nodes[0].access.argv: "docker" is invalid: expected Array',
  ],
  [
    'two nodes of one name',
    (whole) => whole.replace('name: w1', 'name: cp1'),
    'two nodes have the name "cp1"',
  ],
  [
    'no control plane',
    (whole) => whole.replace('role: control-plane', 'role: worker'),
    'no node has the role control-plane',
  ],
  ['a node that nothing leads to', (whole) => whole.replace(/^access.*\n/m, ''), 'node w1 has no access'],
  ['a kubeconfig on no node', (whole) => whole.replace('{node: w1', '{node: w9'), 'on node "w9"'],
  [
    'an etcd machine with a role',
    (whole) => `${whole}etcd:\n- {name: e1, role: worker, addresses: [192.0.2.9], layout: plain}\n`,
    'etcd[0].role: unknown field "role"',
  ],
  [
    'an etcd machine with the name of a node',
    (whole) => `${whole}etcd:\n- {name: w1, addresses: [192.0.2.9], layout: plain}\n`,
    'two nodes have the name "w1"',
  ],
  [
    'an etcd machine that nothing leads to',
    (whole) =>
      `${whole.replace(/^access.*\n/m, '').replace('units: {kubelet', 'access: {by: local}\n  units: {kubelet')}etcd:\n- {name: e1, addresses: [192.0.2.9], layout: plain}\n`,
    'node e1 has no access',
  ],
  [
    'an image that is no reference',
    (whole) => whole.replace(/^access.*$/m, "access: {by: jobs, image: 'a b'}"),
    'access.image: "a b" is not an image reference',
  ],
  [
    'Jobs with two images',
    (whole) =>
      whole
        .replace(/^access.*$/m, 'access: {by: jobs, image: a:1}')
        .replace('{by: command, argv: [docker, exec, -i, cp1]}', '{by: jobs, image: a:2}'),
    'the Jobs have two images, a:1 and a:2',
  ],
  [
    'an etcd machine behind a Job',
    (whole) =>
      `${whole.replace(/^access.*$/m, 'access: {by: jobs, image: a:1}')}etcd:\n- {name: e1, addresses: [192.0.2.9], layout: plain}\n`,
    'e1 has no Node object, so no Job reaches it',
  ],
  ['no etcd machines', (whole) => `${whole}etcd: []\n`, 'etcd: 0 is empty'],
  ['two documents', (whole) => `${whole}---\na: b\n`, 'it has 2 YAML documents'],
])('refuses %s with its location', async (_, change, message) => {
  await expect(readInventory(change(text))).rejects.toMatchObject({ code: 'KCERT_INVENTORY_INVALID' })
  await expect(
    readInventory(change(text)).catch((error) => `${error.message}: ${error.why}`),
  ).resolves.toContain(message)
})
