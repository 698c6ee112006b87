import { expect, test } from 'vitest'
import { servingRequest } from '../../../test/csr/made-requests.ts'
import type { Duty, Finding } from '../rule.ts'
import type { SigningRequest } from '../signing-request.ts'
import { decide, dutyOutcome } from './decide.ts'
import { noFacts } from './facts.ts'
import type { Decision, Policy } from './policy.ts'

const finding = (duty: Duty, outcome: Finding['outcome']): Finding => ({
  id: 'x',
  question: 'approval',
  duty,
  outcome,
  detail: 'd',
})
const policy = (name: string, decision: Decision, applies = true): Policy =>
  ({
    name,
    evaluate: async () => ({
      policy: name,
      applies,
      decision,
      reason: `${name}: ${decision}`,
      findings: [finding('identity', 'met')],
    }),
  }) as unknown as Policy
const failing = {
  name: 'dark',
  evaluate: async () => {
    throw new Error('timeout')
  },
} as unknown as Policy
const verdict = (policies: Policy[], fields: Partial<SigningRequest> = {}) =>
  decide(servingRequest(fields), policies, noFacts)
const unknown = { identity: 'unknown', entitlement: 'unknown' }

const condition = (type: string) => ({ conditions: [{ type, status: 'True' }] })

test.each<[string, Partial<SigningRequest>, string]>([
  ['being deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' }, 'the object is being deleted'],
  ['denied', condition('Denied'), 'already denied'],
  ['issued', { certificate: Buffer.of(1), ...condition('Approved') }, 'already issued'],
  ['approved', condition('Approved'), 'already approved'],
  ['failed', condition('Failed'), 'it failed: the requester must submit a new request'],
])('skips an object that is %s, and evaluates no policy', async (_, fields, reason) => {
  expect(await verdict([policy('a', 'approve')], fields)).toEqual({
    ...{ decision: 'ignore', reason, findings: [], duties: unknown, isIncomplete: false },
  })
})

test.each<[string, Policy[], object]>([
  [
    'a denial beats an approval',
    [policy('a', 'approve'), policy('b', 'deny')],
    { decision: 'deny', policy: 'b' },
  ],
  [
    'an approval beats a policy that ignores',
    [policy('a', 'ignore'), policy('b', 'approve')],
    { decision: 'approve', policy: 'b' },
  ],
  [
    'the first that applies gives the reason',
    [policy('a', 'deny', false), policy('b', 'ignore'), policy('c', 'ignore')],
    { decision: 'ignore', policy: 'b', reason: 'b: ignore' },
  ],
  [
    'no policy applies',
    [policy('a', 'approve', false)],
    { decision: 'ignore', reason: 'no policy applies to it', findings: [], duties: unknown },
  ],
  [
    'a lookup that fails might have denied',
    [policy('a', 'approve'), failing],
    { decision: 'ignore', reason: 'dark: a lookup failed: timeout', isIncomplete: true },
  ],
  [
    'a denial applies although a lookup fails',
    [failing, policy('a', 'deny')],
    { decision: 'deny', isIncomplete: false },
  ],
  [
    'the duties of the policy that decides',
    [policy('a', 'approve')],
    { duties: { identity: 'met', entitlement: 'unknown' } },
  ],
])('%s', async (_, policies, expected) => {
  expect(await verdict(policies)).toMatchObject(expected)
})

test.each<[Finding['outcome'][], Finding['outcome']]>([
  [[], 'unknown'],
  [['met', 'met'], 'met'],
  [['met', 'unknown'], 'unknown'],
  [['unknown', 'unmet', 'met'], 'unmet'],
])('findings %j of a duty: %s', (outcomes, expected) => {
  const findings = outcomes.map((outcome) => finding('identity', outcome))
  expect(dutyOutcome('identity', [...findings, finding('entitlement', 'unmet')])).toBe(expected)
})
