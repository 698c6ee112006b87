import * as v from 'valibot'
import * as json from '../../x509/json-fields.ts'
import { clusterRequestSchema } from '../request-report.ts'

// The JSON contract of `kcert csr explain`. docs/schemas/RequestExplanation.json is generated from these schemas; the program
// itself imports only their types.

const causeSchema = v.object({
  id: v.string(),
  detail: v.string(),
  fix: json.text('what to do'),
  next: json.text('the same as fix'),
  commands: json.described(json.texts, 'shell commands, in this order'),
})

/** The common fields of every explanation. */
export const explanationFields = {
  verdict: json.described(
    v.picklist(['issued', 'waiting', 'stuck', 'failed', 'denied']),
    'waiting: it continues without you; stuck: nothing happens until you act',
  ),
  causes: json.described(v.array(causeSchema), 'the most important cause first'),
  unknownFacts: json.described(
    json.objects({ fact: v.string(), why: v.string() }),
    'facts that kcert could not look up, so that a cause may be missing',
  ),
}

export const explanationSchema = v.object({
  ...json.header('RequestExplanation'),
  request: clusterRequestSchema,
  decidedBy: json.optionalText('the program that approved or denied it, from metadata.managedFields'),
  ...explanationFields,
})

export type Explanation = v.InferOutput<typeof explanationSchema>
