import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { printedCommands } from '../../scripts/command-lines.ts'
import { commandLine, repeatInAdvice, withGivenFlags } from './command-line.ts'

const given = {
  kubeconfig: '/tmp/a b.conf',
  context: "it's; touch INJ #",
  inventory: 'nodes.yaml',
  journal: 'j',
}
const place = String.raw`--kubeconfig '/tmp/a b.conf' --context 'it'\''s; touch INJ #'`

afterEach(() => repeatInAdvice({}))

test.each([
  ['kcert csr list', `kcert csr list ${place}`],
  ['kubectl -n kube-system get lease x', `kubectl ${place} -n kube-system get lease x`],
  [
    'see kcert csr approve a -y; kubectl get csr a',
    `see kcert csr approve ${place} a -y; kubectl ${place} get csr a`,
  ],
  ['kcert csr list --kubeconfig f --context c', 'kcert csr list --kubeconfig f --context c'],
  ['kubectl --context c get node', "kubectl --kubeconfig '/tmp/a b.conf' --context c get node"],
  ['kcert renew --all', 'kcert renew --inventory nodes.yaml --all'],
  ['kcert rotate-ca status', `kcert rotate-ca status --inventory nodes.yaml --journal j ${place}`],
  ['kcert rotate-ca --phase 5', `kcert rotate-ca --inventory nodes.yaml --journal j ${place} --phase 5`],
  ['kcert rotate-ca recover --dry-run', 'kcert rotate-ca recover --inventory nodes.yaml --dry-run'],
  ['kcert probe --nodes', `kcert probe --inventory nodes.yaml ${place} --nodes`],
  ['kcert probe -i a.yaml --etcd', `kcert probe ${place} -i a.yaml --etcd`],
  ['kcert probe 192.0.2.1:6443', 'kcert probe 192.0.2.1:6443'],
  ['kcert inspect --cluster', `kcert inspect ${place} --cluster`],
  ['kcert inspect a.pem', 'kcert inspect a.pem'],
  ['kcert verify a.pem', 'kcert verify a.pem'],
  ['kcert csr create --cn x', 'kcert csr create --cn x'],
  ["rm 'a; kcert csr list'", "rm 'a; kcert csr list'"],
  ['the kubeconfig as kubectl reads it', 'the kubeconfig as kubectl reads it'],
])('%s', (advice, expected) => {
  expect(withGivenFlags(advice, given)).toBe(expected)
  expect(withGivenFlags(expected, given)).toBe(expected)
})

test.each([
  [
    'kcert csr list',
    'kcert csr list --cluster c --server https://s --user u --as ann --as-group a --as-group b',
  ],
  [
    'kubectl get csr x',
    'kubectl --cluster c --server https://s --user u --as ann --as-group a --as-group b get csr x',
  ],
  // Their --user has a different meaning.
  [
    'kcert csr fetch x',
    'kcert csr fetch --cluster c --server https://s --as ann --as-group a --as-group b x',
  ],
  // Their --cluster is a boolean.
  [
    'kcert inspect --cluster',
    'kcert inspect --cluster-name c --server https://s --user u --as ann --as-group a --as-group b --cluster',
  ],
])('repeats the flags that select cluster and user: %s', (advice, expected) => {
  const flags = { cluster: 'c', server: 'https://s', user: 'u', as: 'ann', 'as-group': ['a', 'b'] }
  expect(withGivenFlags(advice, flags)).toBe(expected)
  expect(withGivenFlags(expected, flags)).toBe(expected)
})

test('repeats how discover reaches nodes, and that it must not write on them', () => {
  const flags = { access: 'command:docker exec -i {node}', become: 'sudo', 'read-only': true } as const
  const expected =
    "kcert rotate-ca discover --access 'command:docker exec -i {node}' --become sudo --read-only"
  expect(withGivenFlags('kcert rotate-ca discover', flags)).toBe(expected)
  expect(withGivenFlags(expected, flags)).toBe(expected)
  expect(withGivenFlags('kcert rotate-ca plan', flags)).toBe('kcert rotate-ca plan')
})

test('repeats that etcd’s CA is rotated in every command of that rotation, and in no other', () => {
  const flags = { ca: 'etcd', journal: 'j' } as const
  expect(withGivenFlags('kcert rotate-ca --phase 3', flags)).toBe(
    'kcert rotate-ca --ca etcd --journal j --phase 3',
  )
  expect(withGivenFlags('kcert rotate-ca rollback --to 2', flags)).toBe(
    'kcert rotate-ca rollback --ca etcd --journal j --to 2',
  )
  expect(withGivenFlags('kcert rotate-ca status --ca etcd', flags)).toBe(
    'kcert rotate-ca status --journal j --ca etcd',
  )
  const chosen = { algorithm: 'ECDSA-P256' }
  expect(withGivenFlags('kcert rotate-ca --phase 1', chosen)).toBe(
    'kcert rotate-ca --algorithm ECDSA-P256 --phase 1',
  )
  expect(withGivenFlags('kcert rotate-ca plan', chosen)).toBe('kcert rotate-ca plan --algorithm ECDSA-P256')
  expect(withGivenFlags('kcert rotate-ca', chosen)).toBe('kcert rotate-ca --algorithm ECDSA-P256')
  expect(withGivenFlags('kcert rotate-ca plan', { ca: 'etcd', 'etcd-clients': 'unknown' })).toBe(
    'kcert rotate-ca plan --ca etcd --etcd-clients unknown',
  )
  for (const later of [
    'kcert rotate-ca status',
    'kcert rotate-ca rollback --to 0',
    'kcert rotate-ca verify',
    'kcert rotate-ca --destroy-old-key',
    'kcert rotate-ca --archive-old-key old',
    'kcert rotate-ca plan --algorithm RSA-2048',
    'kcert rotate-sa-key --phase 1',
  ])
    expect(withGivenFlags(later, chosen)).toBe(later)
  for (const other of ['kcert rotate-ca discover', 'kcert rotate-ca recover', 'kcert probe --etcd'])
    expect(withGivenFlags(other, flags)).toBe(other)
})

test('adds the given flags after the whole name of a command', () => {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    readonly commands: Readonly<Record<string, object>>
  }
  for (const id of Object.keys(commands)) {
    const name = `kcert ${id.replaceAll(':', ' ')}`
    expect(withGivenFlags(`${name} --help`, { ...given, ca: 'cluster' })).toMatch(new RegExp(`^${name} -`))
  }
})

test('adds nothing without given flags', () => {
  expect(withGivenFlags('kcert csr list; kubectl get csr x', {})).toBe('kcert csr list; kubectl get csr x')
})

test('adds the given flags to each command line', () => {
  repeatInAdvice({ kubeconfig: 'f' })
  expect(commandLine`kcert csr approve ${'a b'}`).toBe("kcert csr approve --kubeconfig f 'a b'")
})

test('adds the given flags to every command in a message that accepts them, including each that reads a cluster', () => {
  const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    readonly commands: Readonly<Record<string, { readonly flags: object }>>
  }
  const printed = printedCommands('kcert').map(({ words }) => words)
  const seen = new Set<string>()
  for (const words of printed) {
    const id = [3, 2, 1].map((n) => words.slice(0, n).join(':')).find((one) => one in manifest.commands)
    if (id === undefined) continue
    const line = `kcert ${words.join(' ')}`
    const added = [
      ...withGivenFlags(line, given).matchAll(/ --(kubeconfig|context|inventory|journal)(?![\w-])/g),
    ].map(([, flag = '']) => flag)
    for (const flag of added)
      expect([id, Object.keys(manifest.commands[id]?.flags ?? {})]).toEqual([
        id,
        expect.arrayContaining([flag]),
      ])
    if (added.includes('kubeconfig')) seen.add(id)
  }
  const reading = Object.entries(manifest.commands).filter(([, { flags }]) => 'kubeconfig' in flags)
  const advised = new Set(printed.flatMap((words) => [words[0] ?? '', words.slice(0, 2).join(':')]))
  // These read a cluster with --cluster, or by default. No message advises the commands of the controller.
  const conditional = [
    ...['audit', 'ca:sign', 'csr:check', 'inspect', 'probe', 'kubeconfig:create', 'bootstrap:kubeconfig'],
    ...['cluster-info:pin', 'cluster-info:verify', 'controller', 'controller:check'],
  ]
  const left = reading.map(([id]) => id).filter((id) => advised.has(id) && !seen.has(id))
  expect(left.filter((id) => !conditional.includes(id))).toEqual([])
  expect(seen.size).toBeGreaterThan(8)
})
