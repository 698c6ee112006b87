import { expect, test } from 'vitest'
import { nodeNames, requestPem, servingDescription } from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { type Call, type RequestsInMemory, requestsInMemory } from '../../../test/fakes/requests-in-memory.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { generatePrivateKey } from '../../x509/new-key.ts'
import type { RequestObject } from '../requests-api.ts'
import {
  type Acted,
  type ActOptions,
  actOn,
  decidedObject,
  differenceOf,
  foreseen,
  mayPass,
  unacted,
  withCondition,
} from './acting.ts'
import { type Act, type Evaluator, evaluateByHand, evaluateByPolicy } from './evaluation.ts'
import { builtinPolicies } from './policy-file.ts'

const addresses = [
  ...nodeNames.dns.map((address) => ({ type: 'InternalDNS', address })),
  ...nodeNames.ip.map((address) => ({ type: 'InternalIP', address })),
]
const facts = fakeFacts({
  nodes: [{ name: 'node-1', addresses, isControlPlane: false }],
  addresses: { apiServers: ['192.0.2.10'], serviceCidrs: ['10.96.0.0/12'] },
  allowed: [],
})
const honest = Buffer.from(requestPem(servingDescription())).toString('base64')
const foreign = Buffer.from(
  requestPem(servingDescription(), generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })),
).toString('base64')

function serving(name: string, fields: Partial<RequestObject['spec']> = {}): RequestObject {
  return {
    metadata: { name },
    spec: {
      request: honest,
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      username: 'system:node:node-1',
      groups: ['system:nodes', 'system:authenticated'],
      ...fields,
    },
  }
}

const policy = (act: Act = 'approve'): Evaluator => evaluateByPolicy(act, builtinPolicies, facts)
const optionsFor = (evaluate: Evaluator, act: Act = 'approve'): ActOptions => ({
  act,
  evaluate,
  conditionFor: () => ({ reason: 'Test', message: 'by a test' }),
})

async function evaluateAndAct(
  api: RequestsInMemory,
  name: string,
  what = optionsFor(policy()),
): Promise<Acted> {
  const object = (await api.get(name))!
  return actOn(api, { object, evaluation: await what.evaluate(object) }, what)
}

const conditions = (api: RequestsInMemory, name = 'a') => api.peek(name)?.status?.conditions ?? []
const conflict = new KcertError('KCERT_API_CONFLICT', 'not what it was')
const unreachable = new KcertError('KCERT_UNREACHABLE', 'the connection was closed')
/** The retry after a lost response was stopped. */
const locked = new KcertError('KCERT_LOCKED', 'the Lease was lost')

test('adds the condition to an object that the policy approves, and keeps its other conditions', async () => {
  const api = requestsInMemory()
  api.put({ ...serving('a'), status: { conditions: [{ type: 'Seen', status: 'True' }] } })
  expect(await evaluateAndAct(api, 'a')).toMatchObject({ name: 'a', outcome: 'approved' })
  expect(conditions(api)).toEqual([
    { type: 'Seen', status: 'True' },
    { type: 'Approved', status: 'True', reason: 'Test', message: 'by a test' },
  ])
})

test('skips an object that the policy does not approve, and writes nothing', async () => {
  const api = requestsInMemory()
  api.put(serving('a', { username: 'system:node:node-2' }))
  expect(await evaluateAndAct(api, 'a')).toMatchObject({ outcome: 'skipped' })
  expect(api.writes).toEqual([])
})

test('never approves an object that is swapped during the approval, in 1,000 tries', async () => {
  // At a random call of each run, the object is deleted and created again with another key, under the same name.
  const outcomes: Record<string, number> = {}
  let seed = 1
  const random = (): number => {
    seed = (seed * 48271) % 2147483647
    return seed / 2147483647
  }
  for (let run = 0; run < 1000; run++) {
    const api = requestsInMemory()
    api.put(serving('a'))
    const at = 2 + Math.floor(random() * 3)
    const keepsUid = random() < 0.3 ? api.peek('a')!.metadata.uid : undefined
    api.meanwhile = () => {
      if (api.calls.length !== at) return
      api.remove('a')
      api.put({
        ...serving('a', { request: foreign }),
        metadata: { name: 'a', ...(keepsUid === undefined ? {} : { uid: keepsUid }) },
      })
    }
    const { outcome } = await evaluateAndAct(api, 'a')
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    for (const written of api.writes) expect(written.spec.request).toBe(honest)
    if (api.peek('a')!.spec.request === foreign) expect(conditions(api)).toEqual([])
  }
  // Both cases occurred: the swap before the write, and the swap after it.
  expect(outcomes.changed).toBeGreaterThan(400)
  expect(outcomes.approved).toBeGreaterThan(200)
  expect(Object.keys(outcomes).sort()).toEqual(['approved', 'changed'])
})

test.each([
  ['request', foreign],
  ['signerName', 'kubernetes.io/kube-apiserver-client'],
  ['usages', ['client auth']],
  ['username', 'system:node:node-2'],
  ['groups', ['system:masters']],
  ['expirationSeconds', 1],
] as const)('does not approve an object whose %s changed', async (field, value) => {
  const api = requestsInMemory()
  const first = api.put(serving('a'))
  const evaluated = { object: first, evaluation: await policy()(first) }
  api.put({ ...serving('a', { [field]: value }), metadata: first.metadata })
  expect(await actOn(api, evaluated, optionsFor(policy()))).toMatchObject({ outcome: 'changed' })
  expect(api.writes).toEqual([])
})

test('evaluates an object again, and approves it, when another client changes its labels', async () => {
  const api = requestsInMemory()
  api.put(serving('a'))
  api.meanwhile = (call) => {
    if (call === 'replaceApproval' && api.calls.length < 5) {
      const now = api.peek('a')!
      api.put({ ...now, metadata: { ...now.metadata, labels: { seen: 'yes' } } })
    }
  }
  expect(await evaluateAndAct(api, 'a')).toMatchObject({ outcome: 'approved' })
  expect(api.peek('a')!.metadata.labels).toEqual({ seen: 'yes' })
})

test('does not approve an object that another client denies first', async () => {
  const api = requestsInMemory()
  api.put(serving('a'))
  api.meanwhile = (call) => {
    if (call !== 'replaceApproval') return
    api.put({ ...api.peek('a')!, status: { conditions: [{ type: 'Denied', status: 'True' }] } })
  }
  expect(await evaluateAndAct(api, 'a')).toMatchObject({
    outcome: 'skipped',
    reason: 'already denied',
  })
  expect(conditions(api).map(({ type }) => type)).toEqual(['Denied'])
})

test('gives up after six tries when the object keeps changing', async () => {
  const api = requestsInMemory()
  api.put(serving('a'))
  api.fault = (call) => (call === 'replaceApproval' ? { error: conflict, when: 'before' } : undefined)
  expect(await evaluateAndAct(api, 'a')).toMatchObject({
    outcome: 'failed',
    error: { code: 'KCERT_API_CONFLICT' },
  })
  expect(api.calls.filter((call) => call === 'replaceApproval')).toHaveLength(6)
})

const steps = [
  ['get', 2],
  ['replaceApproval', 3],
] as const satisfies readonly (readonly [Call, number])[]

test.each(
  steps.flatMap(([call, at]) =>
    ([conflict, unreachable, locked] as const).flatMap((error) =>
      (['before', 'after'] as const).map((when) => ({ call, at, error, code: error.code, when })),
    ),
  ),
)('$code $when $call: approves the request once, or reports that it did not', async (given) => {
  const api = requestsInMemory()
  api.put(serving('a'))
  api.fault = (_, count) => (count === given.at ? given : undefined)
  const { outcome } = await evaluateAndAct(api, 'a')
  const approved = conditions(api).filter(({ type }) => type === 'Approved').length
  const isLost = given.call === 'get' || (given.error !== conflict && given.when === 'before')
  if (isLost) expect([outcome, approved]).toEqual(['failed', 0])
  else expect([outcome, approved]).toEqual(['approved', 1])
})

/** Returns the outcome when the response to a write is lost and the object has this status at the next read. */
async function outcomeAfterLostAnswer(status: NonNullable<RequestObject['status']>): Promise<Acted> {
  const api = requestsInMemory()
  api.put(serving('a'))
  api.fault = (call) => (call === 'replaceApproval' ? { error: unreachable, when: 'before' } : undefined)
  api.meanwhile = (call) => {
    if (call === 'get' && api.calls.length > 3) api.put({ ...api.peek('a')!, status })
  }
  return evaluateAndAct(api, 'a')
}

const ours = { type: 'Approved', status: 'True', reason: 'Test', message: 'by a test' }

test.each<[RequestObject['status'] & object, Acted['outcome']]>([
  [{ conditions: [{ type: 'Approved', status: 'True', message: 'another' }] }, 'already-decided'],
  [{ conditions: [{ ...ours, reason: 'Another' }] }, 'already-decided'],
  [{ conditions: [{ ...ours, message: 'by another' }] }, 'already-decided'],
  [
    {
      conditions: [
        { ...ours, type: 'Seen' },
        { ...ours, message: 'by another' },
      ],
    },
    'already-decided',
  ],
  [{ conditions: [{ ...ours, type: 'Seen' }] }, 'failed'],
  [{ conditions: [] }, 'failed'],
  [{}, 'failed'],
  [{ conditions: [ours] }, 'approved'],
  [{ conditions: [{ type: 'Seen', status: 'True' }, ours] }, 'approved'],
  // The signer failed the request before the next read.
  [{ conditions: [ours, { type: 'Failed', status: 'True' }] }, 'approved'],
])('after a lost response, an object with the status %j: %s', async (status, outcome) => {
  expect((await outcomeAfterLostAnswer(status)).outcome).toBe(outcome)
})

test('does not evaluate an unchanged object again', async () => {
  const api = requestsInMemory()
  const object = api.put(serving('a'))
  const evaluated = { object, evaluation: await policy()(object) }
  const evaluate: Evaluator = () => Promise.reject(new Error('judged again'))
  expect(await actOn(api, evaluated, optionsFor(evaluate))).toMatchObject({ outcome: 'approved' })
})

test('does not retry a write that the API server rejects permanently', async () => {
  const api = requestsInMemory()
  api.put(serving('a'))
  const error = new KcertError('KCERT_API_FORBIDDEN', 'not allowed')
  api.fault = (call) => (call === 'replaceApproval' ? { error, when: 'before' } : undefined)
  expect(await evaluateAndAct(api, 'a')).toMatchObject({ outcome: 'failed', reason: 'not allowed', error })
  expect(api.calls.filter((call) => call === 'replaceApproval')).toHaveLength(1)
})

test('rethrows a programming error', async () => {
  const api = requestsInMemory()
  const object = api.put(serving('a'))
  const evaluated = { object, evaluation: await policy()(object) }
  api.get = () => Promise.reject(new TypeError('a fault'))
  await expect(actOn(api, evaluated, optionsFor(policy()))).rejects.toThrow(TypeError)
})

test('reports a deleted object as deleted', async () => {
  const api = requestsInMemory()
  const object = api.put(serving('a'))
  api.remove('a')
  const evaluated = { object, evaluation: await policy()(object) }
  expect(await actOn(api, evaluated, optionsFor(policy()))).toMatchObject({ outcome: 'deleted' })
})

test('reports an object that is deleted before the write as deleted, and a replaced one as changed', async () => {
  for (const isReplaced of [false, true]) {
    const api = requestsInMemory()
    api.put(serving('a'))
    api.meanwhile = (call) => {
      if (call === 'replaceApproval') api.remove('a')
      else if (isReplaced && api.peek('a') === undefined) api.put(serving('a', { request: foreign }))
    }
    expect(await evaluateAndAct(api, 'a')).toMatchObject({ outcome: isReplaced ? 'changed' : 'deleted' })
    expect(conditions(api)).toEqual([])
  }
})

test('writes nothing in a dry run, and reports what would happen', async () => {
  const api = requestsInMemory()
  const object = api.put(serving('a'))
  expect(foreseen({ object, evaluation: await policy()(object) }, 'approve')).toMatchObject({
    outcome: 'would-approve',
  })
  const deny = await evaluateByHand('deny', facts, false)(object)
  expect(foreseen({ object, evaluation: deny }, 'deny').outcome).toBe('would-deny')
  const foreignNode = serving('a', { username: 'system:node:node-2' })
  expect(foreseen({ object, evaluation: await policy()(foreignNode) }, 'approve').outcome).toBe('skipped')
  expect(api.writes).toEqual([])
})

test('writes the condition Denied, and skips an approved object', async () => {
  const api = requestsInMemory()
  api.put(serving('a'))
  api.put({ ...serving('b'), status: { conditions: [{ type: 'Approved', status: 'True' }] } })
  const deny = optionsFor(evaluateByHand('deny', facts, false), 'deny')
  expect(await evaluateAndAct(api, 'a', deny)).toMatchObject({ outcome: 'denied' })
  expect(await evaluateAndAct(api, 'a', deny)).toMatchObject({ outcome: 'already-decided' })
  expect(await evaluateAndAct(api, 'b', deny)).toMatchObject({ outcome: 'skipped' })
  expect(conditions(api).map(({ type }) => type)).toEqual(['Denied'])
})

test('never treats an object without a UID as the evaluated one', () => {
  const withUid = (uid?: string): RequestObject => ({
    ...serving('a'),
    metadata: { name: 'a', ...(uid && { uid }) },
  })
  const swapped = 'another object has this name now'
  expect(differenceOf(withUid(), withUid())).toBe(swapped)
  expect(differenceOf(withUid('u'), withUid())).toBe(swapped)
  expect(differenceOf(withUid('u'), withUid('v'))).toBe(swapped)
  expect(differenceOf(withUid('u'), withUid('u'))).toBeUndefined()
})

test('reports why it does not act, and reports an incomplete evaluation as a failure', () => {
  const verdict = {} as Awaited<ReturnType<Evaluator>>['verdict']
  expect(unacted({ course: 'already-decided', reason: 'already approved', verdict })).toEqual({
    outcome: 'already-decided',
    reason: 'already approved',
  })
  expect(unacted({ course: 'act', reason: 'r', verdict })).toEqual({ outcome: 'skipped', reason: 'r' })
  expect(unacted({ course: 'incomplete', reason: 'timeout', verdict })).toMatchObject({
    outcome: 'failed',
    reason: 'timeout',
    error: { code: 'KCERT_UNREACHABLE', message: 'timeout', fix: 'run it again' },
  })
})

test.each([
  [conflict, true],
  [unreachable, true],
  [locked, true],
  [new KcertError('KCERT_API_NOT_FOUND', 'gone'), true],
  [new KcertError('KCERT_USAGE', 'x'), false],
  [Object.assign(new Error('x'), { code: 'KCERT_UNREACHABLE' }), false],
])('reads the object again after %s: %s', (error, expected) => {
  expect(mayPass(error)).toBe(expected)
})

test('returns the object that it would write, and leaves the given one unchanged', async () => {
  const given: RequestObject = {
    ...serving('a'),
    status: { conditions: [{ type: 'Seen', status: 'True' }] },
  }
  for (const [act, type] of [
    ['approve', 'Approved'],
    ['deny', 'Denied'],
  ] as const)
    expect(decidedObject(given, await policy()(given), optionsFor(policy(), act))).toEqual({
      ...given,
      status: {
        conditions: [
          { type: 'Seen', status: 'True' },
          { type, status: 'True', reason: 'Test', message: 'by a test' },
        ],
      },
    })
  expect(given.status!.conditions).toHaveLength(1)
})

test('adds the first condition to an object without a status', () => {
  const condition = { type: 'Approved', status: 'True', reason: 'R', message: 'M' }
  expect(withCondition(serving('a'), condition).status).toEqual({ conditions: [condition] })
})
