import { expect, test } from 'vitest'
import { parseJsonPath, renderJsonPath } from './jsonpath.ts'

// The examples of https://kubernetes.io/docs/reference/kubectl/jsonpath/, and forbidden templates.

const list = {
  kind: 'List',
  items: [
    {
      kind: 'None',
      metadata: { name: '127.0.0.1', labels: { 'kubernetes.io/hostname': 'a' } },
      status: { capacity: { cpu: '4' } },
    },
    {
      kind: 'None',
      metadata: { name: '127.0.0.2' },
      status: { capacity: { cpu: '8' }, ready: true, restarts: 3 },
    },
  ],
  users: [
    { name: 'myself', user: {} },
    { name: 'e2e', user: { username: 'admin', password: 'secret' } },
  ],
}

const print = (template: string, value: object = list): string =>
  renderJsonPath(parseJsonPath(template), value)

test.each([
  ['kind is {.kind}', 'kind is List'],
  ["{['kind']}", 'List'],
  ['{.kind}', 'List'],
  ['{$.kind}', 'List'],
  ['.kind', 'List'],
  ['kind', 'List'],
  ['{.items[*].metadata.name}', '127.0.0.1 127.0.0.2'],
  ['{.users[0].name}', 'myself'],
  ['{.users[-1].name}', 'e2e'],
  ['{.users[0,1].name}', 'myself e2e'],
  ['{.items[0:1].metadata.name}', '127.0.0.1'],
  ['{.items[-1:].metadata.name}', '127.0.0.2'],
  ['{.users[?(@.name=="e2e")].user.password}', 'secret'],
  ["{.users[?(@.name != 'e2e')].name}", 'myself'],
  ['{.items[?(@.status.ready)].metadata.name}', '127.0.0.2'],
  ['{.items[?(@.status.ready==true)].metadata.name}', '127.0.0.2'],
  ['{.items[?(@.status.restarts>2)].metadata.name}', '127.0.0.2'],
  ['{..cpu}', '4 8'],
  ['{range .items[*]}[{.metadata.name}, {.status.capacity.cpu}] {end}', '[127.0.0.1, 4] [127.0.0.2, 8] '],
  [
    '{range .items[*]}{.metadata.name}{"\\t"}{.status.capacity.cpu}{"\\n"}{end}',
    '127.0.0.1\t4\n127.0.0.2\t8\n',
  ],
  [String.raw`{.items[*].metadata.labels.kubernetes\.io/hostname}`, 'a'],
  ["{.items[0].metadata.labels['kubernetes.io/hostname']}", 'a'],
  ['{.items[0].status}', '{"capacity":{"cpu":"4"}}'],
  ['{.missing.name}', ''],
  ['{.items[9].name}', ''],
])('%s prints %s', (template, expected) => {
  expect(print(template)).toBe(expected)
})

test.each([
  '{.items[?(@.constructor.constructor("return process")())]}',
  '{.items[?(process.exit(1))]}',
  '{.items[(@.length-1)]}',
  '{.items[*]',
  '{range .items[*]}{.name}',
  '{end}',
  '{.items[::0]}',
])('refuses %s', (template) => {
  expect(() => print(template)).toThrow(/^invalid jsonpath template/)
})

test('reads no inherited property', () => {
  expect(print('{.constructor}{.__proto__}{..toString}')).toBe('')
})

test('escapes control characters of values and keeps line ends', () => {
  expect(print('{.a}', { a: 'x\u001b[2J\ny' })).toBe('x\\u001b[2J\ny')
})
