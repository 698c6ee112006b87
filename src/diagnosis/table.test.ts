import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { facts } from './facts.ts'
import type { Found } from './report.ts'
import { command, conditionOf, sentence } from './sentence.ts'
import { readTable } from './table.ts'

const plain: Found = { endpoints: [], certificateNames: [], files: [], side: 'unknown' }
const w1: Found = { ...plain, node: 'w1', endpoints: ['192.0.2.1:10250'] }

test.each([
  ['the kubelet[ of {node}]', 'the kubelet', 'the kubelet of w1'],
  ['of {node}', undefined, 'of w1'],
  ['{node} || a node', 'a node', 'w1'],
  ['if at=kubelet,etcd: a kubelet || if at!=kubelet: {side}', 'unknown', 'a kubelet'],
  ['if !node: none: {node}', undefined, undefined],
])('fills "%s" without and with a node', (text, without, withNode) => {
  expect([sentence(text, plain), sentence(text, w1)]).toEqual([without, withNode])
})

test('requires every term of a condition', () => {
  expect(
    ['node at=kubelet', 'node at=etcd', '!node at=kubelet'].map((text) => conditionOf(text)(w1)),
  ).toEqual([true, false, false])
})

test('inserts a fact as one shell word, without parsing it again', () => {
  const hostile: Found = { ...plain, user: 'system:bootstrap:-x || {node}; [rm]', files: ['~/a b.pem'] }
  expect(command('kcert token check {bootstrapUser}', hostile)).toBe(
    "kcert token check './-x || {node}; [rm]'",
  )
  expect(command('kcert inspect {certificateFile}', hostile)).toBe("kcert inspect ~/'a b.pem'")
  expect(sentence('of {user}', hostile)).toBe('of system:bootstrap:-x || {node}; [rm]')
})

test('reads a row, with a cause of an earlier row under another condition', () => {
  const [first, second] = readTable(`
# first generic if side=unknown: it means
  this
// a remark
> some words
> tls alert: bad day / rainy day
- cause if node: a
  detail
  ! it names {node}
  $ kcert inspect {node} # its
    names
  $ if at=etcd: kcert renew # nothing

# second: that
> other words
- cause if !node
- cause
`)
  expect(first).toMatchObject({ id: 'first', isGeneric: true, words: expect.arrayContaining(['some words']) })
  expect(first?.words).toContain('tls: bad day')
  expect(first?.words).toContain('ssl/tls alert rainy day')
  expect(first?.means(w1)).toBe('it means this')
  const [cause] = first!.causes
  expect([cause?.detail(w1), cause?.evidence(w1), cause?.evidence(plain)]).toEqual([
    'a detail',
    'it names w1',
    undefined,
  ])
  expect(cause?.checks(w1)).toEqual([{ command: 'kcert inspect w1', shows: 'its names' }])
  expect(second?.causes.map(({ id, holds }) => [id, holds?.(w1)])).toEqual([
    ['cause', false],
    ['cause', true],
  ])
})

test('rejects a cause that is not in an earlier row', () => {
  expect(() => readTable('\n# a: b\n> c\n- d\n')).toThrow('no cause "d"')
})

test('uses only facts that exist', () => {
  const lists = Object.values(facts).flatMap((fact) => (typeof fact === 'function' ? [] : fact))
  const texts = [...globSync('src/diagnosis/rules/*.ts').map((file) => readFileSync(file, 'utf8')), ...lists]
  const named = texts.flatMap((text) => [
    ...Array.from(text.matchAll(/\{(\w+)\}/g), ([, name]) => name!),
    ...Array.from(text.matchAll(/(?:^| )if ([^:`\n]+?): /gm), ([, terms]) => terms!)
      .flatMap((terms) => terms.split(' '))
      .flatMap((term) => /^!?(\w+)(?:!?=\S+)?$/.exec(term)?.[1] ?? `${term}?`),
  ])
  expect(named.filter((name) => !Object.hasOwn(facts, name))).toEqual([])
  const needed = new Set(named)
  expect(Object.keys(facts).filter((name) => !needed.has(name))).toEqual([])
})
