import * as v from 'valibot'
import { described, header, text } from '../x509/json-fields.ts'
import { clusterRequestSchema } from './request-report.ts'

// The JSON contract of `kcert csr submit`. docs/schemas/SubmittedRequests.json is generated from these schemas; the program
// itself imports their types alone.

const submissionSchema = v.object({
  source: text('the file, "-" for standard input'),
  name: v.optional(v.string()),
  outcome: described(
    v.picklist(['created', 'present', 'dry-run', 'failed']),
    'present: the same request was there before; dry-run: the API server would take it',
  ),
  request: v.optional(described(clusterRequestSchema, 'as the API server has it')),
  error: v.optional(
    v.object({
      code: v.string(),
      message: v.string(),
      why: v.optional(v.string()),
      next: v.optional(v.string()),
    }),
  ),
  notices: described(v.array(v.string()), 'what whoever asked should know'),
  next: described(v.array(v.string()), 'commands to go on with'),
})

export const submissionReportSchema = v.object({
  ...header('SubmittedRequests'),
  submissions: v.array(submissionSchema),
})

export type SubmissionReport = v.InferOutput<typeof submissionReportSchema>
export type SubmissionItem = v.InferOutput<typeof submissionSchema>
