import { describe, expect, test } from 'vitest'
import { auditReport } from './evaluation.ts'
import { type AuditEvent, handshakeEvent } from './event.ts'
import { KnownCredentials } from './known.ts'
import { UsageTable } from './usage.ts'

const now = new Date('2026-11-25T12:00:00Z')
const minute = 60_000
const at = (minutesAgo: number): number => now.getTime() - minutesAgo * minute
const event = (changes: Partial<AuditEvent>): AuditEvent => ({
  ...{ atMs: at(1), isLast: true, username: 'ann', credentials: [], sourceIp: '', forwardedFor: '' },
  ...{ userAgent: '', pod: '', node: '', isStale: false, issued: undefined, certificate: undefined },
  ...changes,
})
const reportOf = (
  events: readonly Partial<AuditEvent>[],
  { asksForKeys = false, since = undefined as number | undefined, known = knownOf(), isLive = false } = {},
) => {
  const sinceMs = since === undefined ? undefined : at(since)
  const table = new UsageTable({ sinceMs: sinceMs ?? Number.NEGATIVE_INFINITY, nowMs: now.getTime() })
  for (const one of events) table.add(event(one))
  return auditReport(table, known, [], {
    ...{ asksForCas: !asksForKeys, asksForKeys, sinceMs, listsAll: true, isLive, now },
  })
}
const knownOf = () => new KnownCredentials({ cas: [], keyIds: new Set(['old']) })
const every = (step: number, from: number, to: number): Partial<AuditEvent>[] =>
  Array.from({ length: Math.floor((from - to) / step) + 1 }, (_, index) => ({
    ...{ atMs: at(from - index * step), username: 'system:apiserver' },
  }))

describe('concludes from --since only if the logs cover the time from then to now', () => {
  test.each([
    ['complete', [...every(5, 60, 0)], []],
    ['quiet', [...every(9, 60, 0)], []],
    ['begins late', every(5, 30, 0), ['from 2026-11-25T11:00:00Z to 2026-11-25T11:30:00Z']],
    ['ends early', every(5, 60, 30), ['from 2026-11-25T11:35:00Z to 2026-11-25T12:00:00Z']],
    [
      'has a hole',
      [...every(5, 60, 40), ...every(5, 20, 0)],
      ['from 2026-11-25T11:25:00Z to 2026-11-25T11:40:00Z'],
    ],
    [
      'has events before, but begins late',
      [...every(5, 5000, 4990), ...every(5, 30, 0)],
      ['from 2026-11-25T11:00:00Z to 2026-11-25T11:30:00Z'],
    ],
    [
      'has an event of the future, but ends early',
      [...every(5, 60, 30), { atMs: at(-90), username: 'system:apiserver' }],
      ['from 2026-11-25T11:35:00Z to 2026-11-25T12:00:00Z'],
    ],
  ])('%s', (_, events, times) => {
    const { conclusion, incomplete } = reportOf(events, { since: 60 })
    expect(incomplete).toEqual(times.map((time) => expect.stringContaining(`no event ${time}: give`)))
    expect(conclusion).toBe(times.length === 0 ? 'not-used' : 'unknown')
  })
})

describe('requests without a credential ID, where others have one', () => {
  const id = `X509SHA256=${'3f'.repeat(32)}`
  test.each([
    ['a node', ['system:node:w1'], ['system:node:w1']],
    ['a user who also has a certificate', ['ann'], ['ann']],
    ['a user of OpenID Connect', ['oidc:bob'], []],
    ['the API server', ['system:apiserver', 'system:anonymous'], []],
    [
      'more users than are counted',
      Array.from({ length: 1001 }, (_, index) => `oidc:${index}`),
      ['other users'],
    ],
  ])('%s', (_, usernames, named) => {
    const { incomplete } = reportOf([{ credentials: [id] }, ...usernames.map((username) => ({ username }))])
    expect(incomplete).toEqual(
      named.map((name) => expect.stringMatching(new RegExp(`no credential ID: ${name};.*older$`))),
    )
  })

  test('service accounts that are more than are counted', () => {
    const users = Array.from({ length: 1001 }, (_, index) => ({ username: `oidc:${index}` }))
    expect(reportOf(users, { asksForKeys: true }).incomplete).toEqual([
      expect.stringContaining('other users'),
    ])
  })
})

test('a token of another issuer is no token of a service account key', () => {
  const { conclusion, credentials } = reportOf([{ credentials: ['JTI=1'], username: 'oidc:bob' }], {
    asksForKeys: true,
  })
  expect(credentials[0]).not.toHaveProperty('status')
  expect(conclusion).toBe('not-used')
  const account = { credentials: ['JTI=1'], username: 'system:serviceaccount:shop:cart' }
  expect(reportOf([account], { asksForKeys: true }).conclusion).toBe('unknown')
})

test('a token that is found with two key IDs is old, in any order', () => {
  const token = (keyId: string) => ({
    ...{ id: '1', namespace: 'shop', serviceAccount: 'cart', keyId, issuer: '', audiences: [] },
  })
  for (const keyIds of [
    ['old', 'new'],
    ['new', 'old'],
  ]) {
    const known = knownOf()
    for (const keyId of keyIds) known.addToken(token(keyId) as never, keyId)
    const use = { credentials: ['JTI=1'], username: 'system:serviceaccount:shop:cart' }
    expect(reportOf([use], { asksForKeys: true, known }).conclusion).toBe('used')
  }
})

describe('failed handshakes', () => {
  const reason = 'remote error: tls: bad certificate'
  test('without one, an old credential may still be used', () => {
    const { conclusion, incomplete } = reportOf([], { since: 60, isLive: true })
    expect(conclusion).toBe('unknown')
    expect(incomplete).toEqual([expect.stringMatching(/no client that connects with an old certificate/)])
  })

  test('are listed by address and reason, and counted', () => {
    const events = [1, 2, 3].map((minutes) => handshakeEvent(at(minutes), '10.0.0.7', reason))
    const { conclusion, credentials, withoutCredentialId } = reportOf(events, { since: 60, isLive: true })
    expect([conclusion, withoutCredentialId]).toEqual(['unknown', []])
    expect(credentials).toEqual([
      expect.objectContaining({
        ...{ id: `HANDSHAKE=10.0.0.7 ${reason}`, kind: 'handshake', status: 'unknown', requests: 3 },
        ...{ sourceIPs: ['10.0.0.7'], why: expect.stringContaining('trust only the old CA') },
      }),
    ])
    // They say nothing about tokens.
    const [asked] = reportOf(events, { since: 60, isLive: true, asksForKeys: true }).credentials
    expect(asked?.status).toBeUndefined()
  })
})
