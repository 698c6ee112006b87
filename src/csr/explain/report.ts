import * as v from 'valibot'
import { described, header, optionalText, text, texts } from '../../x509/json-fields.ts'
import { clusterRequestSchema } from '../request-report.ts'

// The JSON contract of `kcert csr explain`. docs/schemas/RequestExplanation.json is generated from these schemas; the program
// itself imports only their types.

const causeSchema = v.object({
  id: v.string(),
  detail: v.string(),
  fix: text('what to do'),
  next: text('the same as fix'),
  commands: described(texts, 'shell commands, in this order'),
})

/** The common fields of every explanation. */
export const explanationFields = {
  verdict: described(
    v.picklist(['issued', 'waiting', 'stuck', 'failed', 'denied']),
    'waiting: it continues without you; stuck: nothing happens until you act',
  ),
  causes: described(v.array(causeSchema), 'the most important cause first'),
  unknownFacts: described(
    v.array(v.object({ fact: v.string(), why: v.string() })),
    'facts that kcert could not look up, so that a cause may be missing',
  ),
}

export const explanationSchema = v.object({
  ...header('RequestExplanation'),
  request: clusterRequestSchema,
  decidedBy: optionalText('the program that approved or denied it, from metadata.managedFields'),
  ...explanationFields,
})

export type Explanation = v.InferOutput<typeof explanationSchema>
