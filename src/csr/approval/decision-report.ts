import * as v from 'valibot'
import { errorSchema } from '../../errors/error-schema.ts'
import { requestSchema } from '../check-report.ts'

// The JSON contract of `kcert csr approve` and `kcert csr deny`. docs/schemas/RequestDecisions.json is generated from these
// schemas; the program itself imports their types alone.

const texts = v.array(v.string())
const duties = ['identity', 'entitlement'] as const
const outcomes = ['met', 'unmet', 'unknown'] as const

const ruleSchema = v.object({
  id: v.string(),
  duty: v.optional(v.pipe(v.picklist(duties), v.description("the approver's duty that the rule serves"))),
  outcome: v.pipe(
    v.picklist(outcomes),
    v.description('unknown: it takes a fact that could not be looked up'),
  ),
  detail: v.string(),
  next: v.optional(v.string()),
})

const decidedSchema = v.object({
  name: v.string(),
  outcome: v.pipe(
    v.picklist([
      'approved',
      'denied',
      'would-approve',
      'would-deny',
      'already',
      'left-alone',
      'refused',
      'changed',
      'gone',
      'not-found',
      'failed',
    ]),
    v.description(
      'would-…: a dry run; already: done before; left-alone: not for the policy, or settled otherwise; refused: dangerous, and not forced; changed: not the request that was judged; gone: deleted meanwhile; not-found: no such object; failed: see error',
    ),
  ),
  reason: v.string(),
  uid: v.optional(v.string()),
  signerName: v.optional(v.string()),
  request: v.optional(v.pipe(requestSchema, v.description('absent when the request cannot be read'))),
  usages: texts,
  expirationSeconds: v.optional(v.number()),
  username: v.optional(v.pipe(v.string(), v.description('who made the object'))),
  groups: texts,
  policy: v.optional(v.pipe(v.string(), v.description('the rule that decided'))),
  duties: v.pipe(
    v.array(v.object({ name: v.picklist(duties), text: v.string(), outcome: v.picklist(outcomes) })),
    v.description('the two duties of an approver'),
  ),
  rules: v.array(ruleSchema),
  error: v.optional(errorSchema),
})

export const decisionReportSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('RequestDecisions'),
  act: v.picklist(['approve', 'deny']),
  by: v.pipe(v.picklist(['hand', 'policy']), v.description('who decided')),
  dryRun: v.boolean(),
  counts: v.pipe(v.record(v.string(), v.number()), v.description('outcome → how many')),
  requests: v.array(decidedSchema),
})

export type DecisionReport = v.InferOutput<typeof decisionReportSchema>
export type Decided = v.InferOutput<typeof decidedSchema>
