import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ErrorCode } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { EventQueue, eventOf } from './events.ts'

const by = { now: new Date('2026-11-26T10:00:00Z'), instance: 'pod-1_x' }

const event = (message: string, uid = 'uid-1') =>
  eventOf(
    {
      metadata: { name: 'csr-1', uid, resourceVersion: '7' },
      spec: { request: '', signerName: 'example.com/x' },
    },
    { type: 'Warning', reason: 'NotApproved', message },
    by,
  )

test('refers to the object by UID, in the namespace that the API server requires', () => {
  expect(event('own-names: x')).toMatchObject({
    metadata: { namespace: 'default' },
    involvedObject: { kind: 'CertificateSigningRequest', name: 'csr-1', uid: 'uid-1' },
    reason: 'NotApproved',
    source: { component: 'kcert-controller' },
    firstTimestamp: '2026-11-26T10:00:00Z',
  })
})

test('has a name that no other client can predict, so that it cannot create the Event first', () => {
  const names = [event('a'), event('a')].map(({ metadata }) => (metadata as { name: string }).name)
  for (const name of names) expect(name).toMatch(/^kcert-controller\.[0-9a-f]{16}$/)
  expect(new Set(names).size).toBe(2)
})

test('escapes hidden characters, and keeps within the limit of the API server', () => {
  expect(event('a\nb\u202ec').message).toBe('a\\u000ab\\u202ec')
  for (const character of ['x', 'ü', '日', '🦊']) {
    const message = String(event(character.repeat(2_000)).message)
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024)
    expect(message).toMatch(new RegExp(`^(${character})+…$`, 'u'))
  }
})

function later(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => reject(new Error('aborted')))
  })
}

/** A queue, and an API server that fails with `failure` while it is set. */
function started() {
  const end = new AbortController()
  const server = { failure: undefined as KcertError | undefined, created: [] as unknown[] }
  const told: (ErrorCode | undefined)[] = []
  const queue = new EventQueue({
    objects: {
      create: async (_, object) => {
        if (server.failure !== undefined) throw server.failure
        server.created.push(object.message)
        return object
      },
    },
    pause: later,
    tell: (_, failure) => void told.push(failure?.code),
  })
  return { queue, server, told, end, over: queue.run(end.signal) }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('creates an Event again that was lost, and only the newest one of a request', async () => {
  const { queue, server, told } = started()
  server.failure = new KcertError('KCERT_API_FORBIDDEN', 'not allowed')
  queue.add(event('a'))
  await vi.advanceTimersByTimeAsync(500)
  queue.add(event('b'))
  queue.add(event('c', 'uid-2'))
  server.failure = undefined
  await vi.advanceTimersByTimeAsync(1_000)
  expect(server.created).toEqual(['b', 'c'])
  expect(told).toEqual(['KCERT_API_FORBIDDEN', undefined, undefined])
})

test('drops an Event that the API server rejects as invalid, and creates the others', async () => {
  const { queue, server } = started()
  server.failure = new KcertError('KCERT_API_INVALID', 'invalid')
  queue.add(event('a'))
  await vi.advanceTimersByTimeAsync(100)
  server.failure = undefined
  queue.add(event('b', 'uid-2'))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(server.created).toEqual(['b'])
})

test('keeps at most 1,000 waiting Events, the newest ones', async () => {
  const { queue, server, told } = started()
  for (let index = 0; index < 1_500; index++) queue.add(event(String(index), `uid-${index}`))
  expect(told).toEqual(Array(500).fill('KCERT_UNREACHABLE'))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(server.created).toEqual(Array.from({ length: 1_000 }, (_, index) => String(index + 500)))
})

test('ends after the waiting Events, or at the first failure', async () => {
  const one = started()
  one.queue.add(event('a'))
  one.queue.add(event('b', 'uid-2'))
  one.end.abort()
  await one.over
  expect(one.server.created).toEqual(['a', 'b'])
  const other = started()
  other.server.failure = new KcertError('KCERT_UNREACHABLE', 'down')
  other.queue.add(event('a'))
  other.queue.add(event('b', 'uid-2'))
  other.end.abort()
  await other.over
  expect(other.told).toEqual(['KCERT_UNREACHABLE'])
})
