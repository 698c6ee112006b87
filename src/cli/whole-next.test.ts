import { describe, expect, test } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import { givenFlags, withRepeatedAdvice, withWholeNext } from './whole-next.ts'

const shapes = {
  cn: { type: 'option' },
  dns: { type: 'option' },
  ip: { type: 'option' },
  out: { type: 'option', char: 'o', aliases: ['output'] },
  yes: { type: 'boolean', char: 'y' },
} as const

function nextOf(argv: readonly string[], next: string, takesOperands = true): string | undefined {
  const error = new KcertError('KCERT_USAGE', 'x', { next })
  return withWholeNext(error, { id: 'csr:create', argv, shapes, takesOperands }).next
}

describe('advice of flags alone becomes the complete command line', () => {
  test('with the given flags and operands', () => {
    expect(nextOf(['a.csr', '--cn', 'x', '-y'], '--ip 10.0.0.1')).toBe(
      'kcert csr create a.csr --cn x -y --ip 10.0.0.1',
    )
  })

  test.each([[['--out', 'a']], [['--out=a']], [['-o', 'a']], [['-oa']], [['-yo', 'a']], [['--output', 'a']]])(
    'in place of flags with the same name: %j',
    (argv) => {
      expect(nextOf(argv, '--out b')).toBe('kcert csr create --out b')
    },
  )

  test('in place of the flag with the same value, and not of other flags with its name', () => {
    expect(nextOf(['--dns', 'web', '--dns', '10.0.0.1'], '--ip 10.0.0.1')).toBe(
      'kcert csr create --dns web --ip 10.0.0.1',
    )
  })

  test.each(['a; touch INJ', '$(touch INJ)', "it's", 'a\n\u202eb'])(
    'with the value %j quoted for the shell',
    (value) => {
      const next = nextOf(['--cn', value, value], '--yes')
      expect(next).not.toMatch(/[\n\u202e]/)
      expect(next).toBe(
        {
          'a; touch INJ': "kcert csr create --cn 'a; touch INJ' 'a; touch INJ' --yes",
          '$(touch INJ)': "kcert csr create --cn '$(touch INJ)' '$(touch INJ)' --yes",
          "it's": "kcert csr create --cn 'it'\\''s' 'it'\\''s' --yes",
          'a\n\u202eb': "kcert csr create --cn $'a\\012\\342\\200\\256b' $'a\\012\\342\\200\\256b' --yes",
        }[value],
      )
    },
  )

  test.each([
    [['--pasword', 'hunter2', '--cn', 'x']],
    [['--pasword=hunter2', '--cn', 'x']],
    [['-p', 'hunter2', '--cn', 'x']],
    [['-yp', '--cn', 'x']],
    [['--cn', 'x', '--dns']],
  ])('without unknown flags: %j', (argv) => {
    expect(nextOf(argv, '--yes')).toBe('kcert csr create --cn x --yes')
  })

  test('without operands where the command takes none', () => {
    expect(nextOf(['hunter2', '--cn', 'x', '--', 'y'], '--yes', false)).toBe('kcert csr create --cn x --yes')
  })

  test('before --', () => {
    expect(nextOf(['--cn', 'x', '--', '-a'], '--yes')).toBe('kcert csr create --cn x --yes -- -a')
  })

  test('without the rest when a flag is in the place of a value', () => {
    expect(nextOf(['--cn', '--out=a'], '--yes')).toBe('kcert csr create --yes')
  })

  test('without the rest when it contains a bootstrap token', () => {
    expect(nextOf(['abcdef.0123456789abcdef', '--cn', 'x'], '--yes')).toBe('kcert csr create --yes')
  })
})

test.each([
  [
    { kubeconfig: { type: 'option' }, context: { type: 'option' } },
    'kcert csr list --kubeconfig f --context c',
  ],
  // Here, --context names a context of the file that `verify` reads.
  [{ context: { type: 'option' } }, 'kcert csr list'],
] as const)('other advice is for the same cluster: %j', (known, expected) => {
  const error = new KcertError('KCERT_USAGE', 'x', { next: 'kcert csr list' })
  const argv = ['--kubeconfig=f', '--context', 'c', 'csr-1'].slice('kubeconfig' in known ? 0 : 1)
  expect(withWholeNext(error, { id: 'csr:approve', argv, shapes: known, takesOperands: true }).next).toBe(
    expected,
  )
})

test('other advice does not change', () => {
  expect(nextOf(['--cn', 'x'], 'kcert csr list')).toBe('kcert csr list')
})

test.each([
  [['-i', 'n.yaml', '--journal=j']],
  [['-in.yaml', '--journal', 'j']],
  [['-i=n.yaml', '--journal', 'j']],
])('repeats inventory and journal in every spelling: %j', (argv) => {
  const known = { inventory: { type: 'option', char: 'i' }, journal: { type: 'option' } } as const
  expect(givenFlags({ argv, shapes: known })).toEqual({ inventory: 'n.yaml', journal: 'j' })
})

test.each([
  [['--all-nodes'], { inventory: 'kcert.yaml' }],
  [['--all-nodes', '-i', 'n.yaml'], { inventory: 'n.yaml' }],
])('repeats the inventory that %j reads', (argv, expected) => {
  const shapes = { inventory: { type: 'option', char: 'i' }, 'all-nodes': { type: 'boolean' } } as const
  expect(givenFlags({ argv, shapes })).toEqual(expected)
})

test("a report's advice names the same nodes, and the rest of the report does not change", () => {
  const report = {
    next: { command: 'kcert renew --all', why: 'kcert renew' },
    name: 'kcert renew',
    findings: [{ next: 'kcert kubelet doctor', what: 'kcert renew', commands: ['kcert renew', 'ls'] }],
    when: new Date(0),
  }
  expect(withRepeatedAdvice(report, {})).toEqual(report)
  expect(withRepeatedAdvice(report, { inventory: 'n.yaml' })).toEqual({
    next: { command: 'kcert renew --inventory n.yaml --all', why: 'kcert renew' },
    name: 'kcert renew',
    findings: [
      {
        next: 'kcert kubelet doctor --inventory n.yaml',
        what: 'kcert renew',
        commands: ['kcert renew --inventory n.yaml', 'ls'],
      },
    ],
    when: new Date(0),
  })
})

test('the next field of a report repeats a fix that has no command', () => {
  const report = {
    findings: [{ fix: 'deny it' }, { fix: 'restart it', next: 'ls' }, { fix: 'x', next: undefined }],
    problem: { fix: 'correct it', next: '' },
  }
  expect(withRepeatedAdvice(report, {})).toEqual({
    findings: [
      { fix: 'deny it', next: 'deny it' },
      { fix: 'restart it', next: 'ls' },
      { fix: 'x', next: 'x' },
    ],
    problem: { fix: 'correct it', next: '' },
  })
})

test('an error keeps its fix next to the complete command', () => {
  const error = new KcertError('KCERT_USAGE', 'x', { fix: 'choose another name', next: '--name b' })
  const given = { id: 'csr:create', argv: [], shapes: {}, takesOperands: false }
  expect(withWholeNext(error, given)).toMatchObject({
    fix: 'choose another name',
    next: 'kcert csr create --name b',
  })
})

const clusterShapes = {
  kubeconfig: { type: 'option', helpGroup: 'CLUSTER' },
  cluster: { type: 'option', helpGroup: 'CLUSTER' },
  user: { type: 'option', helpGroup: 'CLUSTER' },
  token: { type: 'option', helpGroup: 'CLUSTER' },
  'as-group': { type: 'option', helpGroup: 'CLUSTER' },
} as const

test('advice names the same cluster and user, and never contains the token', () => {
  const argv = ['--cluster', 'c', '--user=u', '--token', 'secret', '--as-group', 'a', '--as-group=b']
  const given = { argv, shapes: clusterShapes }
  expect(givenFlags(given)).toEqual({ cluster: 'c', user: 'u', 'as-group': ['a', 'b'] })
  const error = new KcertError('KCERT_USAGE', 'x', { next: '--kubeconfig f' })
  expect(withWholeNext(error, { ...given, id: 'csr:list', takesOperands: false }).next).toBe(
    'kcert csr list --cluster c --user=u --as-group a --as-group=b --kubeconfig f',
  )
})

test('does not repeat a --user that is not in the kubeconfig, and takes the cluster from --cluster-name', () => {
  const shapes = {
    ...clusterShapes,
    user: { type: 'option' },
    cluster: { type: 'boolean' },
    'cluster-name': { type: 'option', helpGroup: 'CLUSTER' },
  } as const
  const argv = ['--user', 'ann', '--cluster', '--cluster-name', 'c']
  expect(givenFlags({ argv, shapes })).toEqual({ cluster: 'c' })
})

test('repeats --ca for etcd, whose rotation has a journal of its own, and for no other CA', () => {
  const own = { ca: { type: 'option' }, inventory: { type: 'option', char: 'i' } } as const
  expect(givenFlags({ argv: ['plan', '--ca', 'etcd'], shapes: own })).toEqual({ ca: 'etcd' })
  expect(givenFlags({ argv: ['plan', '--ca=etcd'], shapes: own })).toEqual({ ca: 'etcd' })
  expect(givenFlags({ argv: ['plan', '--ca', 'cluster', '-i', 'a'], shapes: own })).toEqual({
    inventory: 'a',
  })
})
