import * as v from 'valibot'
import { clusterRequestSchema } from '../request-report.ts'

// The JSON contract of `kcert csr explain`. docs/schemas/RequestExplanation.json is generated from these schemas; the program
// itself imports their types alone.

const causeSchema = v.object({
  id: v.string(),
  detail: v.string(),
  next: v.pipe(v.string(), v.description('what to do')),
  commands: v.pipe(v.array(v.string()), v.description('for a shell, in this order')),
})

/** What every explanation says. */
export const explanationFields = {
  verdict: v.pipe(
    v.picklist(['issued', 'waiting', 'stuck', 'failed', 'denied']),
    v.description('waiting: the usual course; stuck: nothing will happen until somebody acts'),
  ),
  causes: v.pipe(v.array(causeSchema), v.description('the one that decides first')),
  open: v.pipe(
    v.array(v.object({ fact: v.string(), why: v.string() })),
    v.description('what could not be looked up, so that a cause may be missing'),
  ),
}

export const explanationSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('RequestExplanation'),
  request: clusterRequestSchema,
  decidedBy: v.optional(
    v.pipe(
      v.string(),
      v.description('the program that approved or denied it, as metadata.managedFields has it'),
    ),
  ),
  ...explanationFields,
})

export type Explanation = v.InferOutput<typeof explanationSchema>
