import { expect, test } from 'vitest'
import { factsOfNodes, readNodes } from './node-list.ts'

const node = (name: string, addresses: object[] = [], labels: object = {}) => ({
  kind: 'Node',
  metadata: { name, labels },
  status: { addresses },
})
const read = (object: unknown) => readNodes(JSON.stringify(object), 'nodes.json')
const controlPlane = { a: '', 'node-role.kubernetes.io/control-plane': '' }

test('reads a Node, or the Nodes of a list, and ignores other objects', async () => {
  const worker = node('w', [{ type: 'InternalIP', address: '10.0.0.2' }, {}], { a: '' })
  expect(await read(worker)).toEqual([
    {
      name: 'w',
      addresses: [
        { type: 'InternalIP', address: '10.0.0.2' },
        { type: '', address: '' },
      ],
      isControlPlane: false,
    },
  ])
  const items = [{ kind: 'Pod', metadata: { name: 'p' } }, node('cp', [], controlPlane), { kind: 'Node' }]
  expect(await read({ kind: 'List', items })).toEqual([
    { name: 'cp', addresses: [], isControlPlane: true },
    { name: '', addresses: [], isControlPlane: false },
  ])
})

test.each([
  ['an empty list', '{"kind":"List","items":[]}', undefined],
  ['another object', '{"kind":"Pod"}', undefined],
  ['a Node before invalid YAML', '{"kind":"Node"}\n---\n: [', expect.stringMatching(/./)],
])('refuses %s, since every node would be unknown', async (_, text, why) => {
  const refused = readNodes(text, 'nodes.json').catch((error: unknown) => error)
  expect(await refused).toMatchObject({
    code: 'KCERT_MANIFEST_MALFORMED',
    message: 'nodes.json contains no Nodes',
    why,
    next: 'kubectl get nodes -o json > nodes.json',
  })
})

test('finds a Node by its name, and by any spelling of an address', async () => {
  const [a, b] = await read({
    items: [
      node('a', [{ address: '2001:db8::1' }, { address: 'Host.example.com' }, { address: '2001:DB8:0::1' }]),
      node('b', [{ address: '2001:db8::1' }]),
    ],
  })
  const facts = factsOfNodes([a!, b!])
  expect(await facts.findNode('b')).toBe(b)
  expect(await facts.findNode('c')).toBe('absent')
  expect(await facts.findNodesAt('2001:0db8::1')).toEqual(['a', 'b'])
  expect(await facts.findNodesAt('host.EXAMPLE.com')).toEqual(['a'])
  expect(await facts.findNodesAt('10.0.0.1')).toEqual([])
  // The upper case of U+017F is S.
  expect(await facts.findNodesAt('ho\u017ft.example.com')).toEqual([])
})
