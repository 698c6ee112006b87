import { expect, test } from 'vitest'
import type { Executor } from '../../rotation/ports.ts'
import type { Hook } from './hooks.ts'
import { playbookOf } from './playbooks.ts'
import { guardedBy, guardedKeys, hooksOf } from './site.ts'

// The Lease is confirmed before each act: if it is lost, the next act does not run.

const acts = ['write', 'patch', 'restart', 'roll', 'probe'] as const

function recording(calls: string[]): Executor {
  const perform = (name: string) => async () => {
    calls.push(name)
    return { ok: true, detail: name }
  }
  return Object.fromEntries(acts.map((name) => [name, perform(name)])) as unknown as Executor
}

test.each(acts)('%s runs after the Lease was confirmed, and returns its result', async (name) => {
  const calls: string[] = []
  const confirm = async () => {
    await Promise.resolve()
    calls.push('confirm')
  }
  const guarded = guardedBy({ confirm }, recording(calls))
  expect(await guarded[name]({} as never)).toEqual({ ok: true, detail: name })
  expect(calls).toEqual(['confirm', name])
})

test.each(acts)('%s does not run after the Lease is lost', async (name) => {
  const calls: string[] = []
  const lost = new Error('another rotation of this cluster is in progress')
  const guarded = guardedBy({ confirm: () => Promise.reject(lost) }, recording(calls))
  await expect(guarded[name]({} as never)).rejects.toBe(lost)
  expect(calls).toEqual([])
})

test('destroys no key after the Lease is lost', async () => {
  const calls: string[] = []
  const lost = new Error('lost')
  const files = { destroy: async () => void calls.push('destroy') }
  const guarded = guardedKeys({ confirm: () => Promise.reject(lost) }, files as never)
  await expect(guarded.destroy('cp1', {} as never)).rejects.toBe(lost)
  expect(calls).toEqual([])
  await guardedKeys({ confirm: async () => {} }, files as never).destroy('cp1', {} as never)
  expect(calls).toEqual(['destroy'])
})

test.each([undefined, 'cluster', 'front-proxy', 'cluster,front-proxy'])(
  'all hooks run with --ca %s',
  (ca) => {
    expect(hooksOf(hooks, playbookOf(ca))).toEqual(hooks)
  },
)

test('with --ca etcd, hooks run that name no phase of the other rotation', () => {
  expect(hooksOf(hooks, playbookOf('etcd'))).toEqual([hooks[1]])
})

const hooks: readonly Hook[] = [
  { name: 'after 9', when: 'after-phase', phases: [9], argv: ['true'] },
  { name: 'after all', when: 'after-phase', argv: ['true'] },
]
