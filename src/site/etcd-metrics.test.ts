import { expect, test } from 'vitest'
import { etcdStateIn } from './etcd-metrics.ts'

// Lines as etcd 3.6 writes them.
const metrics = `# HELP etcd_network_active_peers The current number of active peer connections.
# TYPE etcd_network_active_peers gauge
etcd_network_active_peers{Local="a1",Remote="b2"} 1
etcd_network_active_peers{Local="a1",Remote="c3"} 0
# TYPE etcd_network_known_peers gauge
etcd_network_known_peers{Local="a1",Remote="a1"} 1
etcd_network_known_peers{Local="a1",Remote="b2"} 1
etcd_network_known_peers{Local="a1",Remote="c3"} 1
etcd_network_known_peers{Local="a1",Remote="dd"} 0
etcd_server_has_leader 1
etcd_server_id{server_id="a1"} 1
etcd_server_is_leader 0
etcd_server_is_learner 0
etcd_server_proposals_applied_total 1.2084894e+07
`

test('reads members, connections and indexes, without removed members', () => {
  expect(etcdStateIn(metrics)).toEqual({
    memberId: 'a1',
    isLeader: false,
    isLearner: false,
    applied: 12_084_894,
    known: ['a1', 'b2', 'c3'],
    active: ['b2'],
  })
})

test('knows only itself in a cluster of one', () => {
  const alone = metrics
    .replaceAll(/^etcd_network_active_peers\{.*\n/gm, '')
    .replaceAll(/^etcd_network_known_peers\{.*Remote="(?!a1)..".*\n/gm, '')
  expect(etcdStateIn(alone)).toMatchObject({ known: ['a1'], active: [] })
})

test.each([
  ['etcd_server_id', 'its metrics do not contain etcd_server_id'],
  ['etcd_network_known_peers', /^its metrics do not contain etcd_network_known_peers \(etcd 3\.6/],
  ['etcd_server_is_leader', 'its metrics do not contain a number for etcd_server_is_leader'],
  ['etcd_server_is_learner', 'its metrics do not contain a number for etcd_server_is_learner'],
  ['etcd_server_proposals_applied_total', /a number for etcd_server_proposals_applied_total$/],
])('rejects metrics without %s: a missing value is not 0', (name, message) => {
  const without = metrics.replaceAll(new RegExp(`^${name}\\b.*\n`, 'gm'), '')
  expect(() => etcdStateIn(without)).toThrow(message)
})

test('rejects a value that is not a number', () => {
  expect(() => etcdStateIn(metrics.replace('1.2084894e+07', 'NaN'))).toThrow('proposals_applied_total')
  // A member that is left out could be down unnoticed.
  expect(() => etcdStateIn(metrics.replace('Remote="c3"} 1', 'Remote="c3"} NaN'))).toThrow('known_peers')
})

test('rejects two values for one number', () => {
  expect(() => etcdStateIn(`${metrics}etcd_server_is_learner 1\n`)).toThrow('etcd_server_is_learner')
})
