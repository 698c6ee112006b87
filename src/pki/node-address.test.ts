import { expect, test } from 'vitest'
import { isHost, isThisMachine, nodeAddresses, nodeHost, remoteAddresses } from './node-address.ts'

const of = (type: string, ...addresses: string[]) => addresses.map((address) => ({ type, address }))

test('returns only IP addresses, and host names only for the host name types', () => {
  const status = [
    ...of('Hostname', 'w1'),
    ...of('ExternalIP', '2001:db8::1'),
    ...of('InternalIP', '192.0.2.1'),
  ]
  expect(nodeAddresses(status)).toEqual(['192.0.2.1', '2001:db8::1'])
  expect(nodeAddresses(status, ['Hostname'])).toEqual(['w1'])
  expect(nodeAddresses(of('InternalIP', 'w1', '192.0.2.1'))).toEqual(['192.0.2.1'])
  expect(nodeAddresses(undefined)).toEqual([])
  expect(nodeAddresses([{}, { type: 'InternalIP' }, { address: '192.0.2.1' }])).toEqual([])
})

test.each([
  '-oProxyCommand=touch /tmp/x',
  '192.0.2.1 -v',
  '192.0.2.1\n',
  '$(id)',
  '',
  '127.1',
  '2130706433',
  '0x7f000001',
  'a..b',
  '.a',
  'a_b',
  'a-',
  `${'a'.repeat(64)}.example`,
  `${'a.'.repeat(127)}a`,
])('rejects %j as an address of any type', (address) => {
  for (const type of ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS'])
    expect(nodeAddresses(of(type, address), [type])).toEqual([])
})

test('omits addresses of this machine for commands', () => {
  const names = of('Hostname', 'localhost', 'w1')
  const status = [
    ...of('InternalIP', '127.0.0.1', '::1', '0.0.0.0', '::ffff:127.0.0.1', '192.0.2.1'),
    ...names,
  ]
  expect(remoteAddresses(status)).toEqual(['192.0.2.1'])
  expect(remoteAddresses(status, ['Hostname'])).toEqual(['w1'])
})

test('dials the first valid one of InternalIP, ExternalIP and Hostname', () => {
  const name = of('Hostname', 'w1.example.com')
  const outer = of('ExternalIP', '198.51.100.1')
  expect(nodeHost([...name, ...outer, ...of('InternalIP', '192.0.2.1')])).toBe('192.0.2.1')
  expect(nodeHost([...name, ...outer, ...of('InternalIP', '-x')])).toBe('198.51.100.1')
  expect(nodeHost(name)).toBe('w1.example.com')
  expect(nodeHost(of('InternalDNS', 'w1'))).toBeUndefined()
})

test('accepts node names that end in a number as hosts, and rejects options and multiple words', () => {
  for (const host of ['w1', 'w.01', '10', 'W1.example.com', '192.0.2.1', '::1', 'fe80::1'])
    expect(isHost(host), host).toBe(true)
  for (const text of ['-w1', 'w1 x', 'w1\0', 'w1\u202e', '', 'root@w1', 'w1;id', 'fe80::1%eth0', '[::1]'])
    expect(isHost(text), text).toBe(false)
})

test.each([
  '127.1',
  '127.0.1',
  '127.255.255.255',
  '2130706432',
  '2147483647',
  '0x7f000001',
  '0X7F.1',
  '017700000001',
  '0177.0.0.01',
  '127.0xffffff',
  '0',
  '0.0',
  '00.0x0.0.0',
  'localhost',
  'a.localhost.localdomain',
])('%j is this machine', (host) => expect(isThisMachine(host)).toBe(true))

// Resolvers ask DNS for a name with a part that is not a number or is too large.
test.each([
  'worker.1',
  'rack1.2',
  'node-127.0',
  '101',
  '1',
  '0.1',
  '10.1',
  '2130706431',
  '2147483648',
  '126.16777215',
  '127.16777216',
  '127.0.65536',
  '127.256.1',
  '256.0.0.0x7f',
  '127.0.0.0.1',
  '0.0.0.0.0',
  '0177.0.0.08',
  '4294967296',
  '0x',
  '127.1e3',
  '0b0',
  '127..1',
])('%j is not this machine', (host) => expect(isThisMachine(host)).toBe(false))
