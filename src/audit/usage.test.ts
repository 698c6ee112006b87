import { expect, test } from 'vitest'
import type { AuditEvent } from './event.ts'
import { UsageTable } from './usage.ts'

const now = Date.parse('2026-11-25T12:00:00Z')
const use = (credential: string, changes: Partial<AuditEvent> = {}): AuditEvent => ({
  ...{ atMs: now - 1000, isLast: true, username: 'ann', credentials: [credential], sourceIp: '192.0.2.1' },
  ...{ forwardedFor: '', userAgent: 'kubectl', pod: '', node: '', isStale: false },
  ...{ issued: undefined, certificate: undefined },
  ...changes,
})
const tableOf = (events: readonly AuditEvent[], options: { sinceMs?: number; most?: number } = {}) => {
  const table = new UsageTable({ sinceMs: Number.NEGATIVE_INFINITY, nowMs: now, ...options })
  for (const event of events) table.add(event)
  return table
}

test('counts a request once, and takes its first and last time from any order of events', () => {
  const table = tableOf([
    use('a', { atMs: now - 2000, isLast: false }),
    use('a', { atMs: now - 2000 }),
    use('a', { atMs: now - 9000 }),
    use('a', { atMs: now - 1000 }),
  ])
  expect(table.credentials.get('a')).toMatchObject({ requests: 3, firstMs: now - 9000, lastMs: now - 1000 })
})

test('finds the use of a credential whose only request is still running', () => {
  const table = tableOf([use('a', { isLast: false })])
  expect(table.credentials.get('a')).toMatchObject({ requests: 0, lastMs: now - 1000 })
})

test('counts requests since a time, and finds tokens that were issued before it', () => {
  const table = tableOf(
    [
      use('a', { atMs: now - 9000 }),
      use('b', { atMs: now - 9000, issued: 'c' }),
      use('c', { atMs: now - 5000 }),
    ],
    { sinceMs: now - 5000 },
  )
  expect(table.credentials.has('a')).toBe(false)
  expect(table.credentials.get('c')).toMatchObject({ requests: 1, issuedMs: now - 9000 })
  expect([table.events, table.counted]).toEqual([3, 1])
})

test('keeps eight different values of what a client chooses, and says that there are more', () => {
  const events = Array.from({ length: 100 }, (_, index) => use('a', { userAgent: `agent-${index}` }))
  const { lists, isCut, requests } = tableOf(events).credentials.get('a')!
  expect(lists.userAgents).toHaveLength(8)
  expect([isCut, requests]).toEqual([true, 100])
})

test('keeps the use of known credentials after the limit, and counts the events of others', () => {
  const table = tableOf([use('a'), use('b'), use('c'), use('a'), use('d')], { most: 2 })
  expect([...table.credentials.keys()]).toEqual(['a', 'b'])
  expect(table.credentials.get('a')!.requests).toBe(2)
  expect(table.leftOut).toBe(2)
})

test('counts requests without a credential ID by user, without those that failed to authenticate', () => {
  const table = tableOf([
    use('', { credentials: [], username: 'system:apiserver' }),
    use('', { credentials: [], username: 'system:apiserver', isLast: false }),
    use('', { credentials: [], username: '' }),
  ])
  expect([...table.withoutId]).toEqual([['system:apiserver', 1]])
})

test('keeps events of the future, and counts them', () => {
  const table = tableOf([use('a', { atMs: now + 86_400_000 }), use('a', { atMs: now + 1000 })])
  expect(table.future).toBe(1)
  expect(table.credentials.get('a')!.requests).toBe(2)
})
