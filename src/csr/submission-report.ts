import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'
import { clusterRequestSchema } from './request-report.ts'

// The JSON contract of `kcert csr submit`. docs/schemas/SubmittedRequests.json is generated from these schemas; the program
// itself imports only their types.

const submissionSchema = v.object({
  source: json.text('the file, "-" for standard input'),
  name: v.optional(v.string()),
  outcome: json.described(
    v.picklist(['created', 'present', 'dry-run', 'failed']),
    'present: the same request existed already; dry-run: the API server would accept it',
  ),
  request: json.optionalField(clusterRequestSchema, 'the object as the API server returns it'),
  error: v.optional(
    v.object({
      code: v.string(),
      message: v.string(),
      why: v.optional(v.string()),
      ...json.adviceEntries,
    }),
  ),
  notices: json.described(json.texts, 'notes for the user'),
  next: json.described(json.texts, 'next commands'),
})

export const submissionReportSchema = v.object({
  ...json.header('SubmittedRequests'),
  submissions: v.array(submissionSchema),
})

export type SubmissionReport = v.InferOutput<typeof submissionReportSchema>
export type SubmissionItem = v.InferOutput<typeof submissionSchema>
