import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { nodeNames, requestPem, servingDescription } from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { type RequestsInMemory, requestsInMemory } from '../../../test/fakes/requests-in-memory.ts'
import type { ObjectChange } from '../../cluster/objects.ts'
import type { Acted } from '../../csr/approval/acting.ts'
import { type Evaluation, evaluateByPolicy } from '../../csr/approval/evaluation.ts'
import { builtinPolicies } from '../../csr/approval/policy-file.ts'
import type { RequestObject } from '../../csr/requests-api.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { Approver, type ApproverPorts } from './approver.ts'
import { detailOf, refusalOf } from './refusal.ts'

// The approver on requests in memory, with a clock that the test advances.

const addresses = [
  ...nodeNames.dns.map((address) => ({ type: 'InternalDNS', address })),
  ...nodeNames.ip.map((address) => ({ type: 'InternalIP', address })),
]
const nodes = [{ name: 'node-1', addresses, isControlPlane: false }]
const cluster = { nodes, addresses: { apiServers: [], serviceCidrs: [] } }
const request = Buffer.from(requestPem(servingDescription())).toString('base64')

function serving(name: string, spec: Partial<RequestObject['spec']> = {}): RequestObject {
  return {
    metadata: { name },
    spec: {
      request,
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      username: 'system:node:node-1',
      groups: ['system:nodes', 'system:authenticated'],
      ...spec,
    },
  }
}

function later(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) reject(new Error('aborted'))
    setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => reject(new Error('aborted')))
  })
}

/** A watch that yields what the test pushes. */
function channel() {
  const changes: ObjectChange[] = []
  let wake = (): void => {}
  let failure: unknown
  return {
    push(type: ObjectChange['type'], object: RequestObject): void {
      changes.push({ type, object: object as unknown as ObjectChange['object'] })
      wake()
    },
    fail(error: unknown): void {
      failure = error
      wake()
    },
    async *watch(signal: AbortSignal): AsyncGenerator<ObjectChange> {
      signal.addEventListener('abort', () => wake())
      while (!signal.aborted) {
        const change = changes.shift()
        if (change !== undefined) yield change
        else if (failure !== undefined) {
          const error = failure
          failure = undefined
          throw error
        } else await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}

interface Running {
  readonly api: RequestsInMemory
  readonly told: Acted[]
  readonly feed: ReturnType<typeof channel>
  readonly approver: Approver
  add(...objects: RequestObject[]): void
  stop(): Promise<void>
}

const running: Running[] = []

function start(ports: Partial<ApproverPorts> = {}): Running {
  const api = requestsInMemory()
  const told: Acted[] = []
  const feed = channel()
  const end = new AbortController()
  const approver = new Approver({
    api,
    watch: (signal) => feed.watch(signal),
    evaluate: evaluateByPolicy('approve', builtinPolicies, fakeFacts(cluster)),
    confirm: () => {},
    tell: async (acted) => void told.push(acted),
    tellWatch: () => {},
    nowMs: () => Date.now(),
    pause: later,
    draw: () => 0.5,
    ...ports,
  })
  const over = approver.run(end.signal)
  const one: Running = {
    ...{ api, told, feed, approver },
    add: (...objects) => {
      for (const object of objects) feed.push('ADDED', api.put(object))
    },
    stop: async () => {
      end.abort()
      await vi.advanceTimersByTimeAsync(2_000)
      await over
    },
  }
  running.push(one)
  return one
}

beforeEach(() => {
  vi.useFakeTimers({ now: 0 })
})
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop()
  vi.useRealTimers()
})

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)
const results = ({ told }: Running): string[] => told.map(({ name, outcome }) => `${name} ${outcome}`)

test('approves what the policy approves, and writes the policy and the reason', async () => {
  const one = start()
  one.add(serving('csr-1'))
  await pass(200)
  expect(one.api.peek('csr-1')?.status?.conditions).toMatchObject([
    {
      type: 'Approved',
      reason: 'ApprovedByPolicy',
      message: 'kcert-controller: kubelet-serving: all rules of kubelet-serving are met',
    },
  ])
  expect(results(one)).toEqual(['csr-1 approved'])
  expect([...one.approver.pendingBy()]).toEqual([])
})

test('leaves the rest pending, never denies, and gives the rule as the reason', async () => {
  const one = start()
  one.add(
    serving('foreign', { username: 'system:node:node-2' }),
    serving('own', { signerName: 'example.com/x' }),
  )
  await pass(500)
  expect(one.api.writes).toEqual([])
  expect(results(one)).toEqual(['foreign skipped', 'own skipped'])
  expect(one.told.map(refusalOf)).toEqual(['requester', 'no-policy'])
  expect(detailOf(one.told[0]!)).toMatch(
    /^policy kubelet-serving: identity unmet, entitlement \w+; requester: /,
  )
  expect(detailOf(one.told[1]!)).toBe('no policy applies to it')
  expect([...one.approver.pendingBy()]).toEqual([
    ['requester', 1],
    ['no-policy', 1],
  ])
})

test('evaluates a pending request again after 5, 10 and 20 s, and tells only a new result', async () => {
  const facts = { ...cluster, nodes: [] as typeof nodes }
  let evaluations = 0
  const one = start({
    evaluate: (object) => {
      evaluations++
      return evaluateByPolicy('approve', builtinPolicies, fakeFacts(facts))(object)
    },
  })
  one.add(serving('csr-1'))
  await pass(1_000)
  expect(evaluations).toBe(1)
  await pass(6_000)
  expect(evaluations).toBe(2)
  await pass(10_000)
  expect(evaluations).toBe(3)
  expect(results(one)).toEqual(['csr-1 skipped'])
  facts.nodes = nodes
  await pass(22_000)
  expect(results(one)).toEqual(['csr-1 skipped', 'csr-1 approved'])
})

test('deleted requests take no turn, so a later one does not wait behind them', async () => {
  const one = start()
  const deleted = Array.from({ length: 1_000 }, (_, index) => one.api.put(serving(`deleted-${index}`)))
  for (const object of deleted) one.feed.push('ADDED', object)
  for (const object of deleted) one.feed.push('DELETED', object)
  one.add(serving('csr-1'))
  await pass(1_000)
  // The first one was being evaluated already.
  expect(results(one)).toEqual(['deleted-0 approved', 'csr-1 approved'])
  expect([...one.approver.pendingBy()]).toEqual([])
})

test('evaluates all pending requests at once with a new policy', async () => {
  let policies: typeof builtinPolicies = []
  const one = start({
    evaluate: (object) => evaluateByPolicy('approve', policies, fakeFacts(cluster))(object),
  })
  one.add(serving('csr-1'))
  await pass(3_000)
  policies = builtinPolicies
  one.approver.evaluateAll()
  await pass(2_000)
  expect(results(one)).toEqual(['csr-1 skipped', 'csr-1 approved'])
})

test('writes nothing after the loss of the Lease or a new policy, and evaluates again', async () => {
  let isLost = true
  const one = start({
    confirm: () => {
      if (isLost) throw new KcertError('KCERT_LOCKED', 'this replica is not the leader any more')
    },
  })
  one.add(serving('csr-1'))
  await pass(1_000)
  expect(one.api.writes).toEqual([])
  expect(one.told).toMatchObject([{ outcome: 'failed', error: { code: 'KCERT_LOCKED' } }])
  isLost = false
  await pass(6_000)
  expect(results(one)).toEqual(['csr-1 failed', 'csr-1 approved'])
})

test('confirms each write with the evaluation that it writes', async () => {
  const confirmed: Evaluation[] = []
  const one = start({ confirm: (evaluation) => void confirmed.push(evaluation) })
  let isFirst = true
  one.api.meanwhile = (call) => {
    // Another client changes the object between the read and the write.
    if (call !== 'replaceApproval' || !isFirst) return
    isFirst = false
    const object = one.api.peek('csr-1')!
    one.api.put({ ...object, metadata: { ...object.metadata, labels: { a: 'b' } } })
  }
  one.add(serving('csr-1'))
  await pass(500)
  expect(results(one)).toEqual(['csr-1 approved'])
  expect(new Set(confirmed).size).toBe(2)
})

test('approves nothing when another object has the name since the watch reported it', async () => {
  const one = start()
  const reported = one.api.put(serving('csr-1', { username: 'system:node:node-2' }))
  one.api.remove('csr-1')
  one.api.put(serving('csr-1'))
  one.feed.push('ADDED', reported)
  await pass(500)
  expect(one.api.writes).toEqual([])
  expect(one.told).toEqual([])
  expect([...one.approver.pendingBy()]).toEqual([])
})

test('approves nothing when the object is swapped during the evaluation', async () => {
  const evaluate = evaluateByPolicy('approve', builtinPolicies, fakeFacts(cluster))
  const one = start({
    evaluate: async (object) => {
      const evaluation = await evaluate(object)
      one.api.remove('csr-1')
      one.api.put(serving('csr-1', { signerName: 'kubernetes.io/kube-apiserver-client' }))
      return evaluation
    },
  })
  one.add(serving('csr-1'))
  await pass(500)
  expect(one.api.writes).toEqual([])
  expect(results(one)).toEqual(['csr-1 changed'])
})

test('ignores decided requests, and forgets those that are decided or deleted elsewhere', async () => {
  const one = start({ evaluate: evaluateByPolicy('approve', [], fakeFacts(cluster)) })
  const status = { conditions: [{ type: 'Denied', status: 'True' }] }
  one.add({ ...serving('denied'), status }, serving('a'), serving('b'))
  await pass(500)
  expect(results(one)).toEqual(['a skipped', 'b skipped'])
  one.feed.push('MODIFIED', { ...one.api.peek('a')!, status })
  // After a gap, the watch knows only the metadata of a deleted object.
  one.feed.push('DELETED', { metadata: one.api.peek('b')!.metadata } as RequestObject)
  await pass(500)
  expect([...one.approver.pendingBy()]).toEqual([])
})

test('a request that makes the evaluation crash does not stop the others', async () => {
  const evaluate = evaluateByPolicy('approve', builtinPolicies, fakeFacts(cluster))
  const one = start({
    evaluate: async (object) => {
      if (object.metadata.name === 'bad') throw new TypeError('cannot read properties of undefined')
      return evaluate(object)
    },
  })
  one.add(serving('bad', { username: 'eve' }), serving('csr-1'))
  await pass(1_000)
  expect(results(one)).toEqual(['bad failed', 'csr-1 approved'])
  expect([...one.approver.pendingBy()]).toEqual([['KCERT_DEFECT', 1]])
})

test('a user with many requests delays the request of another user by one evaluation', async () => {
  const one = start({ evaluate: evaluateByPolicy('approve', builtinPolicies, fakeFacts(cluster)) })
  one.add(...Array.from({ length: 500 }, (_, index) => serving(`flood-${index}`, { username: 'eve' })))
  await pass(100)
  one.add(serving('csr-1'))
  await pass(200)
  expect(results(one)).toContain('csr-1 approved')
  expect(one.told.length).toBeLessThan(8)
})

test('evaluates at most 20 requests a second', async () => {
  const one = start({ evaluate: evaluateByPolicy('approve', [], fakeFacts(cluster)) })
  one.add(...Array.from({ length: 200 }, (_, index) => serving(`csr-${index}`)))
  await pass(5_000)
  expect(one.told.length).toBeGreaterThan(90)
  expect(one.told.length).toBeLessThanOrEqual(101)
})

test('rests while the API server is unreachable instead of failing for each request', async () => {
  const one = start()
  one.api.fault = (call) =>
    call === 'get' ? { error: new KcertError('KCERT_UNREACHABLE', 'down'), when: 'before' } : undefined
  one.add(...Array.from({ length: 50 }, (_, index) => serving(`csr-${index}`)))
  await pass(4_000)
  expect(one.told.length).toBeLessThan(5)
  one.api.fault = () => undefined
  await pass(20_000)
  expect(one.told.filter(({ outcome }) => outcome === 'approved')).toHaveLength(50)
})

test('watches again after a failure, and stops with work in progress completed', async () => {
  const failures: unknown[] = []
  const one = start({ tellWatch: (failure) => void failures.push(failure?.code) })
  one.feed.fail(new KcertError('KCERT_API_FORBIDDEN', 'not allowed to watch'))
  await pass(1_500)
  one.add(serving('csr-1'))
  await pass(1_500)
  expect(failures).toEqual(['KCERT_API_FORBIDDEN'])
  expect(results(one)).toEqual(['csr-1 approved'])
})
