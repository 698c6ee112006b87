import { expect, test } from 'vitest'
import { bootstrapProgress, type NodeRequest, type ProgressFacts } from './progress.ts'
import { kubeadmJoiners, type TokenFacts } from './token-secret.ts'

const now = new Date('2026-11-21T12:00:00Z')

const token: TokenFacts = {
  id: 'abcdef',
  expiration: new Date('2026-11-22T12:00:00Z'),
  usages: ['signing', 'authentication'],
  groups: [kubeadmJoiners],
  faults: [],
}

const request = (state: NodeRequest['state'], message?: string): NodeRequest => ({
  name: 'node-csr-1',
  username: 'system:bootstrap:abcdef',
  state,
  ...(message === undefined ? {} : { message }),
})

/** A cluster that is ready for the node, before any sign of it. */
const expected: ProgressFacts = {
  node: 'node-7',
  tokens: [token],
  tokenId: undefined,
  requests: [],
  rights: { createsRequests: true, isAutoApproved: true, renewsItself: true },
  nodeObject: 'absent',
  lease: 'absent',
  csiNode: 'absent',
  now,
}

const arrived: ProgressFacts = {
  ...expected,
  requests: [request('issued')],
  nodeObject: { isReady: true },
  lease: { renewedAt: new Date('2026-11-21T11:59:50Z'), durationSeconds: 40 },
  csiNode: 'there',
}

function stopOf(changes: Partial<ProgressFacts>, facts = expected) {
  const { stoppedAt, verdict, steps } = bootstrapProgress({ ...facts, ...changes })
  const step = steps.find(({ id }) => id === stoppedAt)
  return { verdict, stoppedAt, number: step?.number, next: step?.next ?? '', detail: step?.detail ?? '' }
}

test('has fifteen steps in order', () => {
  const numbers = bootstrapProgress(expected).steps.map(({ number }) => number)
  expect([...new Set(numbers)]).toEqual(Array.from({ length: 15 }, (_, index) => index + 1))
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
})

test('treats a Ready Node without a Lease as joined, and one that is not Ready as never reported', () => {
  expect(stopOf({ lease: 'absent' }, arrived)).toMatchObject({ verdict: 'joined', stoppedAt: undefined })
  const silent = stopOf({ lease: 'absent', nodeObject: { isReady: false } }, arrived)
  expect(silent).toMatchObject({ verdict: 'stopped', stoppedAt: 'lease' })
})

test('treats a registered node with a heartbeat as joined, which proves every earlier step', () => {
  const { verdict, steps } = bootstrapProgress(arrived)
  expect(verdict).toBe('joined')
  expect(steps.filter(({ outcome }) => outcome !== 'done')).toEqual([])
})

test('needs neither the token nor the request of a joined node', () => {
  expect(stopOf({ tokens: [], requests: [] }, arrived).verdict).toBe('joined')
})

test.each<[string, Partial<ProgressFacts>, number, string, string]>([
  ['no token', { tokens: [] }, 5, 'token', 'kcert token create'],
  [
    'an expired token',
    { tokens: [{ ...token, faults: [{ id: 'expired', detail: 'it expired at noon' }] }] },
    5,
    'token',
    'kcert token create',
  ],
  ['a token that was given and is gone', { tokenId: 'zzzzzz' }, 5, 'token', 'kcert token create'],
  [
    'no binding',
    { rights: { ...expected.rights, createsRequests: false } },
    6,
    'binding',
    'kcert bootstrap rbac',
  ],
  ['no request', {}, 7, 'request', 'journalctl -u kubelet'],
  ['no approval yet', { requests: [request('pending')] }, 8, 'approval', 'kcert csr explain node-csr-1'],
  [
    'no approver',
    { requests: [request('pending')], rights: { ...expected.rights, isAutoApproved: false } },
    8,
    'approval',
    'kcert bootstrap rbac -o yaml | kubectl apply -f -',
  ],
  ['a denial', { requests: [request('denied', 'no')] }, 8, 'approval', 'kubectl delete csr node-csr-1'],
  ['no signature', { requests: [request('approved')] }, 9, 'signature', 'kcert csr explain node-csr-1'],
  ['a failed one', { requests: [request('failed', 'rule')] }, 9, 'signature', 'kcert csr explain'],
  ['a certificate that is not fetched', { requests: [request('issued')] }, 11, 'fetched', 'journalctl'],
])('stops at %s, and names the next command', (_, changes, number, id, next) => {
  const stop = stopOf(changes)
  expect([stop.verdict, stop.number, stop.stoppedAt]).toEqual(['stopped', number, id])
  expect(stop.next).toContain(next)
})

test('reports no later step as failed after the one where the node stopped, except missing renewal permissions', () => {
  const rights = { createsRequests: false, isAutoApproved: false, renewsItself: false }
  const { steps } = bootstrapProgress({ ...expected, rights })
  expect(steps.filter(({ outcome }) => outcome === 'stopped').map(({ id }) => id)).toEqual([
    'binding',
    'renewal-approved',
  ])
})

test('stops at the Lease when the kubelet no longer reports, with the time since', () => {
  const lease = { renewedAt: new Date('2026-11-21T11:50:00Z'), durationSeconds: 40 }
  const stop = stopOf({ lease }, arrived)
  expect([stop.verdict, stop.stoppedAt]).toEqual(['stopped', 'lease'])
  expect(stop.detail).toBe(
    'the kubelet has not reported for 600 s (since 2026-11-21T11:50:00Z); run this on the node',
  )
})

test('stops at a missing CSINode', () => {
  expect(stopOf({ csiNode: 'absent' }, arrived).stoppedAt).toBe('csinode')
})

test('reports a pending renewal, with the command that explains it', () => {
  const renewal = { ...request('pending'), name: 'csr-2', username: 'system:node:node-7' }
  const stop = stopOf({ requests: [renewal] }, arrived)
  expect([stop.stoppedAt, stop.next]).toEqual(['renewal-approved', 'kcert csr explain csr-2'])
})

test('reports facts without the permission to read them as unknown, never as complete', () => {
  const { steps } = bootstrapProgress({
    ...expected,
    tokens: undefined,
    rights: { createsRequests: undefined, isAutoApproved: undefined, renewsItself: undefined },
  })
  expect(steps.filter(({ outcome }) => outcome === 'unknown').map(({ id }) => id)).toEqual([
    'kubelet',
    'kubeconfig-missing',
    'bootstrap-kubeconfig',
    'server-and-token',
    'token',
    'binding',
  ])
})
