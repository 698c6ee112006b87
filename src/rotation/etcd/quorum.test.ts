import { expect, test } from 'vitest'
import type { EtcdMemberSnapshot, EtcdState } from '../snapshot.ts'
import { quorumGaps } from './quorum.ts'

const atMs = 100_000
const ids = ['a1', 'b2', 'c3']

function member(index: number, state: Partial<EtcdState> = {}, given: Partial<EtcdMemberSnapshot> = {}) {
  const memberId = ids[index]!
  const active = ids.filter((id) => id !== memberId)
  const runsAs: EtcdMemberSnapshot['runsAs'] = 'static-pod'
  return {
    id: `cp${index + 1}/etcd`,
    runsAs,
    node: `cp${index + 1}`,
    flags: {},
    process: { startedAtMs: 0, flags: {}, isHealthy: true },
    state: { memberId, isLeader: index === 0, isLearner: false, applied: 500, known: ids, active, ...state },
    served: { client: [], peer: [] },
    ...given,
  }
}

const gaps = (etcdMembers: readonly EtcdMemberSnapshot[], forMs?: number) =>
  quorumGaps({ etcdMembers, atMs, certificates: new Map() }, forMs).map(({ at, what }) => `${at}: ${what}`)

test('has nothing to wait for when all members agree', () => {
  expect(gaps([member(0), member(1), member(2)], 5_000)).toEqual([])
})

test('a cluster of one is its own quorum', () => {
  expect(gaps([member(0, { known: ['a1'], active: [] })])).toEqual([])
})

test.each<[string, EtcdMemberSnapshot]>([
  ['no process runs', (({ process: _, ...rest }) => rest)(member(2))],
  ['its metrics cannot be read', (({ state: _, ...rest }) => rest)(member(2))],
  ['connection refused', (({ state: _, ...rest }) => ({ ...rest, unread: 'connection refused' }))(member(2))],
  ['is not healthy', member(2, {}, { process: { startedAtMs: 0, flags: {}, isHealthy: false } })],
  ['is a learner', member(2, { isLearner: true })],
  ['is 51 entries behind', member(2, { applied: 449 })],
  ['does not list member b2', member(2, { known: ['a1', 'c3'] })],
  ['has no connection to member a1', member(2, { active: ['b2'] })],
  ['has just started', member(2, {}, { process: { startedAtMs: atMs - 4_999, flags: {}, isHealthy: true } })],
])('waits for a member that %s', (what, last) => {
  expect(gaps([member(0), member(1), last], 5_000)).toContain(`cp3/etcd: ${what}`)
})

test('applies within 50 entries', () => {
  expect(gaps([member(0), member(1), member(2, { applied: 450 })])).toEqual([])
})

test('waits for exactly one leader', () => {
  expect(gaps([member(0), member(1, { isLeader: true }), member(2)])).toEqual(['etcd: 2 leaders'])
  expect(gaps([member(0, { isLeader: false }), member(1), member(2)])).toEqual(['etcd: 0 leaders'])
})

test('a member that no node shows may be down: the others could lose the quorum', () => {
  const known = [...ids, 'dd']
  expect(gaps([member(0, { known }), member(1, { known }), member(2, { known })])).toEqual([
    'etcd: member dd was not found on any control-plane node or etcd machine in kcert.yaml',
  ])
})

test('no member at all is no quorum', () => {
  expect(gaps([])).toEqual(['etcd: no member was found'])
})
