import * as v from 'valibot'
import { clusterRequestSchema } from '../../csr/request-report.ts'
import { certificateReportSchema, problemSchema } from '../../inspection/report.ts'
import * as json from '../../x509/json-fields.ts'

// The JSON contract of `kcert csr describe`. docs/schemas/RequestDescriptions.json is generated from these schemas; the program
// itself imports only their types.

const descriptionSchema = v.object({
  ...clusterRequestSchema.entries,
  resourceVersion: v.optional(v.string()),
  annotations: v.record(v.string(), v.string()),
  decidedBy: json.optionalText('the program that approved or denied it, from metadata.managedFields'),
  certificates: json.described(
    v.array(certificateReportSchema),
    'status.certificate, as kcert inspect shows it',
  ),
  problems: json.described(v.array(problemSchema), 'of the certificates'),
})

export const descriptionsSchema = v.object({
  ...json.header('RequestDescriptions'),
  generatedAt: json.time,
  requests: v.array(descriptionSchema),
  missing: json.described(json.texts, 'names without an object on the cluster'),
})

export type RequestDescription = v.InferOutput<typeof descriptionSchema>
export type RequestDescriptions = v.InferOutput<typeof descriptionsSchema>
