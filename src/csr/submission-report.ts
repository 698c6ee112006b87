import * as v from 'valibot'
import { clusterRequestSchema } from './request-report.ts'

// The JSON contract of `kcert csr submit`. docs/schemas/SubmittedRequests.json is generated from these schemas; the program
// itself imports their types alone.

const submissionSchema = v.object({
  source: v.pipe(v.string(), v.description('the file, "-" for standard input')),
  name: v.optional(v.string()),
  outcome: v.pipe(
    v.picklist(['created', 'present', 'dry-run', 'failed']),
    v.description('present: the same request was there before; dry-run: the API server would take it'),
  ),
  request: v.optional(v.pipe(clusterRequestSchema, v.description('as the API server has it'))),
  error: v.optional(
    v.object({
      code: v.string(),
      message: v.string(),
      why: v.optional(v.string()),
      next: v.optional(v.string()),
    }),
  ),
  notices: v.pipe(v.array(v.string()), v.description('what whoever asked should know')),
  next: v.pipe(v.array(v.string()), v.description('commands to go on with')),
})

export const submissionReportSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('SubmittedRequests'),
  submissions: v.array(submissionSchema),
})

export type SubmissionReport = v.InferOutput<typeof submissionReportSchema>
export type SubmissionItem = v.InferOutput<typeof submissionSchema>
