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

describe('flags alone as advice become the whole command line', () => {
  test('with the flags and operands that were given', () => {
    expect(nextOf(['a.csr', '--cn', 'x', '-y'], '--ip 10.0.0.1')).toBe(
      'kcert csr create a.csr --cn x -y --ip 10.0.0.1',
    )
  })

  test.each([[['--out', 'a']], [['--out=a']], [['-o', 'a']], [['-oa']], [['-yo', 'a']], [['--output', 'a']]])(
    'in the place of those with the same name: %j',
    (argv) => {
      expect(nextOf(argv, '--out b')).toBe('kcert csr create --out b')
    },
  )

  test('in the place of the one that has the same value, and not of others with its name', () => {
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
  ])('without what the command does not know: %j', (argv) => {
    expect(nextOf(argv, '--yes')).toBe('kcert csr create --cn x --yes')
  })

  test('without operands where the command takes none', () => {
    expect(nextOf(['hunter2', '--cn', 'x', '--', 'y'], '--yes', false)).toBe('kcert csr create --cn x --yes')
  })

  test('in front of --', () => {
    expect(nextOf(['--cn', 'x', '--', '-a'], '--yes')).toBe('kcert csr create --cn x --yes -- -a')
  })

  test('without the rest where a flag has another in the place of its value', () => {
    expect(nextOf(['--cn', '--out=a'], '--yes')).toBe('kcert csr create --yes')
  })

  test('without the rest where a bootstrap token is in it', () => {
    expect(nextOf(['abcdef.0123456789abcdef', '--cn', 'x'], '--yes')).toBe('kcert csr create --yes')
  })
})

test.each([
  [
    { kubeconfig: { type: 'option' }, context: { type: 'option' } },
    'kcert csr list --kubeconfig f --context c',
  ],
  // The context is one of the file that `verify` reads.
  [{ context: { type: 'option' } }, 'kcert csr list'],
] as const)('other advice is for the same cluster: %j', (known, expected) => {
  const error = new KcertError('KCERT_USAGE', 'x', { next: 'kcert csr list' })
  const argv = ['--kubeconfig=f', '--context', 'c', 'csr-1'].slice('kubeconfig' in known ? 0 : 1)
  expect(withWholeNext(error, { id: 'csr:approve', argv, shapes: known, takesOperands: true }).next).toBe(
    expected,
  )
})

test('other advice stays as it is', () => {
  expect(nextOf(['--cn', 'x'], 'kcert csr list')).toBe('kcert csr list')
})

test.each([
  [['-i', 'n.yaml', '--journal=j']],
  [['-in.yaml', '--journal', 'j']],
  [['-i=n.yaml', '--journal', 'j']],
])('inventory and journal count however they are written: %j', (argv) => {
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

test('the advice of a report is for the same nodes, and nothing else in it changes', () => {
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

test('next of a report repeats a fix that has no command', () => {
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

test('an error keeps its fix beside the whole command', () => {
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

test('advice is for the same cluster and user, and never has the token', () => {
  const argv = ['--cluster', 'c', '--user=u', '--token', 'secret', '--as-group', 'a', '--as-group=b']
  const given = { argv, shapes: clusterShapes }
  expect(givenFlags(given)).toEqual({ cluster: 'c', user: 'u', 'as-group': ['a', 'b'] })
  const error = new KcertError('KCERT_USAGE', 'x', { next: '--kubeconfig f' })
  expect(withWholeNext(error, { ...given, id: 'csr:list', takesOperands: false }).next).toBe(
    'kcert csr list --cluster c --user=u --as-group a --as-group=b --kubeconfig f',
  )
})

test('a --user that names no user of the kubeconfig is not repeated, and --cluster-name is the cluster', () => {
  const shapes = {
    ...clusterShapes,
    user: { type: 'option' },
    cluster: { type: 'boolean' },
    'cluster-name': { type: 'option', helpGroup: 'CLUSTER' },
  } as const
  const argv = ['--user', 'ann', '--cluster', '--cluster-name', 'c']
  expect(givenFlags({ argv, shapes })).toEqual({ cluster: 'c' })
})
