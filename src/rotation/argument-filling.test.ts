import { expect, test } from 'vitest'
import { filledIn } from './argument-filling.ts'
import { accessOf, readInventory } from './inventory.ts'

const place = { node: 'w1', address: '192.0.2.1' }

/** Expects that the value is refused for this reason, as a name and as an address. */
function expectRefused(value: string, why: string): void {
  for (const [word, part] of [
    ['{address}', { ...place, address: value }],
    ['x{node}', { ...place, node: value }],
  ] as const)
    expect(() => filledIn(word, part)).toThrow(
      expect.objectContaining({
        code: 'KCERT_NODE_NAME_REFUSED',
        exitCode: 5,
        message: expect.stringContaining(JSON.stringify(value)),
        why: expect.stringContaining(why),
      }),
    )
}

test('fills in {node} and {address} at each occurrence, also within words', () => {
  expect(filledIn('--to={node}:{address}/{node}', place)).toBe('--to=w1:192.0.2.1/w1')
  expect(filledIn('{other} $& {node', place)).toBe('{other} $& {node')
})

test.each(['-oProxyCommand=touch x', '--', 'a b', 'a\nb', 'a\0', '$(id)', "a'b", '{node}', ''])(
  'the value %j is refused, as a name and as an address',
  (value) => {
    expectRefused(value, 'neither a host name (RFC 1123) nor an IP address')
  },
)

test.each([
  '127.0.0.1',
  '127.8.8.8',
  '0.0.0.0',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  'localhost',
  'a.LOCALHOST',
  '127.1',
  '0x7f000001',
])('the value %j is refused, because it is the machine on which kcert runs', (value) => {
  expectRefused(value, 'would reach this machine instead')
})

test.each([
  '10.0.0.1',
  '128.0.0.1',
  'fd00::1',
  '64:ff9b::1',
  '::ffff:10.0.0.1',
  'localhost-1',
  'node-127',
  'worker.1',
  '101',
])('the value %j is filled in', (value) =>
  expect(filledIn('{address}', { ...place, address: value })).toBe(value),
)

const text = `apiVersion: kcert/v1
kind: Inventory
access: {by: command, argv: [ssh, '{address}']}
nodes:
- {name: cp1, role: control-plane, addresses: [192.0.2.1], layout: kubeadm}
`

test('refuses an inventory with an address that is an option', async () => {
  await expect(readInventory(text.replace('192.0.2.1', '-oProxyCommand=id'))).rejects.toMatchObject({
    code: 'KCERT_INVENTORY_INVALID',
    why: expect.stringContaining('is not a host name (RFC 1123) or an IP address'),
  })
  await expect(readInventory(text.replace('cp1', '-oProxyCommand=id'))).rejects.toMatchObject({
    code: 'KCERT_INVENTORY_INVALID',
  })
})

test('refuses by its address a node that is in the API server but not in the inventory', async () => {
  const inventory = await readInventory(text)
  expect(accessOf(inventory, 'w9', '192.0.2.9')).toMatchObject({ argv: ['ssh', '192.0.2.9'] })
  expect(() => accessOf(inventory, 'w9', '-oProxyCommand=id')).toThrow('invalid address of node "w9"')
})
