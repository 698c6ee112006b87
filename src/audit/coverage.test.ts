import { describe, expect, test } from 'vitest'
import { type ApiServers, serverCoverage, timeGaps } from './coverage.ts'
import type { AuditEvent } from './event.ts'
import { UsageTable } from './usage.ts'

const minute = 60_000
const nowMs = Date.parse('2026-11-25T12:00:00Z')
const event = (minutesAgo: number): AuditEvent => ({
  ...{ atMs: nowMs - minutesAgo * minute, isLast: true, username: 'ann', credentials: [], sourceIp: '' },
  ...{ forwardedFor: '', userAgent: '', pod: '', node: '', isStale: false },
  ...{ issued: undefined, certificate: undefined },
})

describe('the time of the logs of each node', () => {
  const tableOf = (logs: Record<string, readonly [from: number, to: number]>): UsageTable => {
    const table = new UsageTable({ sinceMs: Number.NEGATIVE_INFINITY, nowMs })
    for (const [node, [from, to]] of Object.entries(logs))
      for (let at = from; at >= to; at -= 5) table.add(event(at), node)
    return table
  }
  const table = tableOf({ cp1: [60, 0], cp2: [60, 30] })
  const hour = { sinceMs: nowMs - 60 * minute, nowMs, concludes: true }
  const ends = 'the logs of cp2 contain no event from 2026-11-25T11:35:00Z to 2026-11-25T12:00:00Z: give'

  test('is that from --since to now', () => {
    expect(timeGaps(table, hour, { read: ['cp1', 'cp2'] })).toEqual([expect.stringContaining(ends)])
    expect(timeGaps(table, hour, { read: ['cp1'] })).toEqual([])
  })

  test('is all of it for a node without an event', () => {
    expect(timeGaps(table, hour, { read: ['cp1', 'cp3'] })).toEqual([
      expect.stringContaining('cp3 contain no event from 2026-11-25T11:00:00Z to 2026-11-25T12:00:00Z'),
    ])
  })

  test('is that of all logs without --since, if the report draws a conclusion', () => {
    const all = { ...hour, sinceMs: undefined }
    expect(timeGaps(table, all, { read: ['cp1', 'cp2'] })).toEqual([expect.stringContaining(ends)])
    expect(timeGaps(table, { ...all, concludes: false }, { read: ['cp1', 'cp2'] })).toEqual([])
    expect(timeGaps(table, all, { read: ['cp1'] })).toEqual([])
  })
})

describe('API servers without logs', () => {
  const rotated = ['audit.log', 'audit-2026-11-25T08-59-59.000.log.gz', 'audit.log.1', 'audit.log.2.gz']
  const local = 'they do not name the API server that wrote them'
  test.each<[string, ApiServers, readonly string[], readonly string[], readonly string[]]>([
    ['are not known without a cluster', {}, ['a/audit.log'], [], []],
    [
      'are fewer logs than the cluster has API servers',
      { inCluster: 3 },
      rotated.map((name) => `cp1/${name}`),
      [`API servers of the cluster: 3; different logs that were read: 1; ${local}`],
      [],
    ],
    [
      'are none with as many logs',
      { inCluster: 2 },
      ['cp1', 'cp2'].flatMap((node) => rotated.map((name) => `${node}/${name}`)),
      [],
      [`API servers of the cluster: 2; different logs that were read: 2; ${local}`],
    ],
    [
      'are unknown if the cluster does not say how many it has',
      { inCluster: 'unknown, because you may not list EndpointSlices', read: ['cp1', 'cp2'] },
      [],
      [
        'API servers of the cluster: unknown, because you may not list EndpointSlices; nodes whose logs were read: 2 (cp1, cp2)',
      ],
      [],
    ],
    [
      'are more than the nodes that were read',
      { inCluster: 2, read: [] },
      [],
      ['API servers of the cluster: 2; nodes whose logs were read: 0'],
      [],
    ],
    [
      'are the control planes that --node leaves out',
      { read: ['cp1'], skipped: ['cp2', 'cp3'] },
      [],
      ['no logs of cp2, cp3 were read: --node leaves them out'],
      [],
    ],
  ])('%s', (_what, servers, sources, gaps, notes) => {
    const logs = sources.map((source) => ({ source, events: 1 }))
    expect(serverCoverage(servers, logs)).toEqual({ gaps, notes })
  })

  test('are not those of a log without an event', () => {
    const logs = [
      { source: 'audit.log', events: 1 },
      { source: 'kubelet.log', events: 0 },
    ]
    expect(serverCoverage({ inCluster: 2 }, logs).gaps).toHaveLength(1)
  })
})
