import * as v from 'valibot'
import * as json from '../../x509/json-fields.ts'
import { requestSchema } from '../check-report.ts'

// The JSON contract of `kcert csr approve` and `kcert csr deny`. docs/schemas/RequestDecisions.json is generated from these
// schemas; the program itself imports only their types.

const duties = ['identity', 'entitlement'] as const
const outcomes = ['met', 'unmet', 'unknown'] as const

const ruleSchema = v.object({
  id: v.string(),
  duty: json.optionalField(v.picklist(duties), "the approver's duty that the rule checks"),
  outcome: json.described(v.picklist(outcomes), 'unknown: it needs a fact that kcert could not look up'),
  detail: v.string(),
  ...json.adviceEntries,
})

const decidedSchema = v.object({
  name: v.string(),
  outcome: json.described(
    v.picklist([
      'approved',
      'denied',
      'would-approve',
      'would-deny',
      'already-decided',
      'skipped',
      'refused',
      'changed',
      'deleted',
      'not-found',
      'failed',
    ]),
    'would-…: dry run; already-decided: already approved or denied; skipped: the policy does not decide this, or the object is already denied, failed or issued; refused: dangerous, and not forced; changed: no longer the request that kcert checked; deleted: no longer exists; not-found: no such object; failed: see error',
  ),
  reason: v.string(),
  uid: v.optional(v.string()),
  signerName: v.optional(v.string()),
  request: json.optionalField(requestSchema, 'absent when the request cannot be read'),
  usages: json.texts,
  expirationSeconds: v.optional(v.number()),
  username: json.optionalText('user who created the object'),
  groups: json.texts,
  policy: json.optionalText('the rule that decided'),
  duties: json.described(
    json.objects({ name: v.picklist(duties), text: v.string(), outcome: v.picklist(outcomes) }),
    'the two duties of an approver',
  ),
  rules: v.array(ruleSchema),
  error: v.optional(json.errorSchema),
})

export const decisionReportSchema = v.object({
  ...json.header('RequestDecisions'),
  action: v.picklist(['approve', 'deny']),
  by: json.described(v.picklist(['manual', 'policy']), 'who decided'),
  dryRun: v.boolean(),
  counts: json.described(v.record(v.string(), v.number()), 'outcome → how many'),
  requests: v.array(decidedSchema),
})

export type DecisionReport = v.InferOutput<typeof decisionReportSchema>
export type Decided = v.InferOutput<typeof decidedSchema>
