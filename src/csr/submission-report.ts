import * as v from 'valibot'
import { described, header, text, texts } from '../x509/json-fields.ts'
import { clusterRequestSchema } from './request-report.ts'

// The JSON contract of `kcert csr submit`. docs/schemas/SubmittedRequests.json is generated from these schemas; the program
// itself imports only their types.

const submissionSchema = v.object({
  source: text('the file, "-" for standard input'),
  name: v.optional(v.string()),
  outcome: described(
    v.picklist(['created', 'present', 'dry-run', 'failed']),
    'present: the same request existed already; dry-run: the API server would accept it',
  ),
  request: v.optional(described(clusterRequestSchema, 'the object as the API server returns it')),
  error: v.optional(
    v.object({
      code: v.string(),
      message: v.string(),
      why: v.optional(v.string()),
      fix: v.optional(v.string()),
      next: v.optional(v.string()),
    }),
  ),
  notices: described(texts, 'notes for the user'),
  next: described(texts, 'next commands'),
})

export const submissionReportSchema = v.object({
  ...header('SubmittedRequests'),
  submissions: v.array(submissionSchema),
})

export type SubmissionReport = v.InferOutput<typeof submissionReportSchema>
export type SubmissionItem = v.InferOutput<typeof submissionSchema>
