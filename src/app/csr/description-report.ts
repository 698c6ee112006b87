import * as v from 'valibot'
import { clusterRequestSchema } from '../../csr/request-report.ts'
import { certificateReportSchema, problemSchema } from '../../inspection/report.ts'
import { timeSchema as time } from '../../x509/json-fields.ts'

// The JSON contract of `kcert csr describe`. docs/schemas/RequestDescriptions.json is generated from these schemas; the program
// itself imports only their types.

const descriptionSchema = v.object({
  ...clusterRequestSchema.entries,
  resourceVersion: v.optional(v.string()),
  annotations: v.record(v.string(), v.string()),
  decidedBy: v.optional(
    v.pipe(v.string(), v.description('the program that approved or denied it, from metadata.managedFields')),
  ),
  certificates: v.pipe(
    v.array(certificateReportSchema),
    v.description('status.certificate, as kcert inspect shows it'),
  ),
  problems: v.pipe(v.array(problemSchema), v.description('of the certificates')),
})

export const descriptionsSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('RequestDescriptions'),
  generatedAt: time,
  requests: v.array(descriptionSchema),
  missing: v.pipe(v.array(v.string()), v.description('names without an object on the cluster')),
})

export type RequestDescription = v.InferOutput<typeof descriptionSchema>
export type RequestDescriptions = v.InferOutput<typeof descriptionsSchema>
